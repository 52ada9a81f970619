//! Many numbers in the buckets that TensorBoard's own library uses: each a tenth wider than the one nearer to zero.

/// The bound nearest to zero.
const SMALLEST: f64 = 1e-12;
/// How much further each bound lies.
const GROWTH: f64 = 1.1;
/// Bounds on either side, up to about 1e20.
const BOUNDS: usize = 775;

/// Counts by size. What is not finite has no place and is counted apart.
#[derive(Debug, Clone)]
pub struct Histogram {
    /// Below zero, from the largest, then at and above zero.
    below: Vec<u64>,
    above: Vec<u64>,
    bounds: Vec<f64>,
    pub min: f64,
    pub max: f64,
    pub count: u64,
    pub sum: f64,
    pub sum_of_squares: f64,
    pub nonfinite: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        let mut bounds = Vec::with_capacity(BOUNDS);
        let mut bound = SMALLEST;
        while bounds.len() < BOUNDS {
            bounds.push(bound);
            bound *= GROWTH;
        }
        Self {
            below: vec![0; BOUNDS + 1],
            above: vec![0; BOUNDS + 1],
            bounds,
            min: f64::INFINITY,
            max: f64::NEG_INFINITY,
            count: 0,
            sum: 0.0,
            sum_of_squares: 0.0,
            nonfinite: 0,
        }
    }
}

impl Histogram {
    /// Takes more numbers.
    pub fn push(&mut self, values: &[f64]) {
        for &value in values {
            if !value.is_finite() {
                self.nonfinite += 1;
                continue;
            }
            let place = self.bounds.partition_point(|bound| *bound <= value.abs());
            if value < 0.0 {
                self.below[place] += 1;
            } else {
                self.above[place] += 1;
            }
            self.min = self.min.min(value);
            self.max = self.max.max(value);
            self.count += 1;
            self.sum += value;
            self.sum_of_squares += value * value;
        }
    }

    /// The upper end of each bucket and what lies in it, from low to high, from the first that is not empty to the last.
    pub fn buckets(&self) -> (Vec<f64>, Vec<f64>) {
        // Of the numbers below zero, the bucket nearest to it ends at zero.
        let below = (0..=BOUNDS)
            .rev()
            .map(|at| (at.checked_sub(1).map_or(0.0, |at| -self.bounds[at]), self.below[at]));
        let above = (0..=BOUNDS).map(|at| (self.bounds.get(at).copied().unwrap_or(f64::MAX), self.above[at]));
        let all: Vec<(f64, u64)> = below.chain(above).collect();
        let filled = |bucket: &(f64, u64)| bucket.1 > 0;
        let Some(first) = all.iter().position(filled) else { return (Vec::new(), Vec::new()) };
        let last = all.iter().rposition(filled).unwrap_or(first);
        all[first..=last].iter().map(|&(bound, count)| (bound, count as f64)).unzip()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_lies_in_the_bucket_that_holds_it() {
        let mut histogram = Histogram::default();
        let values = [-2.0, -1e-30, 0.0, 1e-30, 0.5, 0.5, 3.0, 1e30, f64::NAN, f64::INFINITY];
        histogram.push(&values);
        assert_eq!((histogram.count, histogram.nonfinite, histogram.min, histogram.max), (8, 2, -2.0, 1e30));
        let (ends, counts) = histogram.buckets();
        assert_eq!(counts.iter().sum::<f64>(), 8.0);
        assert!(ends.windows(2).all(|pair| pair[0] < pair[1]));
        let mut from = f64::NEG_INFINITY;
        for (&end, &count) in ends.iter().zip(&counts) {
            let inside = values.iter().filter(|&&value| {
                // A bucket below zero holds its upper end's neighbours from below.
                if value < 0.0 { value > from && value <= end } else { value >= from && value < end }
            });
            assert_eq!(inside.count() as f64, count, "{from} to {end}");
            from = end;
        }
        assert_eq!(Histogram::default().buckets(), (vec![], vec![]));
    }
}
