//! A measured value over the whole run in bounded space.
//!
//! Values fall into buckets of equal counts. When there are [`CAP`] of them, neighbours merge and the count
//! doubles: smallest, largest and mean survive, so a spike is never lost. A value that is not a number is
//! counted and leaves a gap in the line.

use super::slice::Slice;

/// Most buckets a series keeps.
pub const CAP: usize = 4096;

/// What the x axis counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum XAxis {
    #[default]
    Update,
    Tokens,
    /// Seconds since the run started.
    Time,
}

impl XAxis {
    /// The next one, round and round.
    pub const fn next(self) -> Self {
        match self {
            Self::Update => Self::Tokens,
            Self::Tokens => Self::Time,
            Self::Time => Self::Update,
        }
    }

    /// The word on the axis.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Update => "updates",
            Self::Tokens => "tokens",
            Self::Time => "time",
        }
    }
}

/// Where on the x axes a value was measured.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Place {
    pub update: u64,
    pub tokens: u64,
    /// Seconds.
    pub time: f64,
}

impl Place {
    /// The coordinate on that axis.
    pub fn on(&self, axis: XAxis) -> f64 {
        match axis {
            XAxis::Update => self.update as f64,
            XAxis::Tokens => self.tokens as f64,
            XAxis::Time => self.time,
        }
    }
}

/// Some values in a row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Bucket {
    pub(super) first_update: u64,
    /// Of the last value.
    pub(super) place: Place,
    pub(super) count: u64,
    pub(super) finite: u64,
    sum: f64,
    pub(super) min: f64,
    pub(super) max: f64,
    /// Whether the largest came after the smallest.
    pub(super) rising: bool,
}

impl Bucket {
    fn of(place: Place, value: f64) -> Self {
        let finite = value.is_finite();
        let (sum, min, max) =
            if finite { (value, value, value) } else { (0.0, f64::INFINITY, f64::NEG_INFINITY) };
        Self {
            first_update: place.update,
            place,
            count: 1,
            finite: u64::from(finite),
            sum,
            min,
            max,
            rising: true,
        }
    }

    pub(super) fn join(&mut self, later: &Self) {
        if later.finite > 0 {
            let (new_max, new_min) = (later.max > self.max, later.min < self.min);
            if new_max != new_min {
                self.rising = new_max;
            } else if new_max {
                self.rising = later.rising;
            }
        }
        self.place = later.place;
        self.count += later.count;
        self.finite += later.finite;
        self.sum += later.sum;
        self.min = self.min.min(later.min);
        self.max = self.max.max(later.max);
    }

    pub(super) fn mean(&self) -> Option<f64> {
        (self.finite > 0).then(|| self.sum / self.finite as f64)
    }

    pub(super) fn has_gap(&self) -> bool {
        self.finite < self.count
    }
}

/// A value over the run.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    pub(super) buckets: Vec<Bucket>,
    /// Values in one full bucket.
    stride: u64,
}

impl Default for Series {
    fn default() -> Self {
        Self { buckets: Vec::new(), stride: 1 }
    }
}

impl Series {
    /// Adds the next value; places must not go back but after [`Series::truncate`].
    pub fn push(&mut self, place: Place, value: f64) {
        let one = Bucket::of(place, value);
        match self.buckets.last_mut() {
            Some(last) if last.count < self.stride => last.join(&one),
            _ => self.buckets.push(one),
        }
        if self.buckets.len() > CAP {
            self.halve();
        }
    }

    fn halve(&mut self) {
        let merged = self.buckets.chunks(2).map(|pair| {
            let mut bucket = pair[0];
            if let Some(second) = pair.get(1) {
                bucket.join(second);
            }
            bucket
        });
        self.buckets = merged.collect();
        self.stride *= 2;
    }

    /// Forgets what was measured after that update.
    pub fn truncate(&mut self, update: u64) {
        self.buckets.retain(|bucket| bucket.first_update <= update);
    }

    /// Whether nothing was measured yet.
    pub fn is_empty(&self) -> bool {
        self.buckets.is_empty()
    }

    /// Buckets held.
    pub fn len(&self) -> usize {
        self.buckets.len()
    }

    /// The points of the line as it was measured; a gap is a point whose y is NaN.
    pub fn points(&self, axis: XAxis) -> Vec<(f64, f64)> {
        self.points_in(&Slice { axis, ..Slice::default() })
    }

    /// The line smoothed by an exponential moving average of weight `beta` a value, corrected for its start.
    pub fn smoothed(&self, axis: XAxis, beta: f64) -> Vec<(f64, f64)> {
        self.smoothed_in(&Slice { axis, ..Slice::default() }, beta)
    }

    /// The smoothed value at an update.
    pub fn smoothed_at(&self, update: u64, beta: f64) -> Option<f64> {
        let until = self.averages(beta).take_while(|(bucket, _)| bucket.first_update <= update);
        until.last().and_then(|(_, smooth)| smooth)
    }

    /// Every bucket with the moving average up to it; none where no value of it is a number.
    pub(super) fn averages(&self, beta: f64) -> impl Iterator<Item = (&Bucket, Option<f64>)> {
        let (mut sum, mut weight) = (0.0, 0.0);
        // Nearly all buckets hold as many values: the power is taken once.
        let mut power = (0, 1.0);
        self.buckets.iter().map(move |bucket| {
            let smooth = bucket.mean().map(|mean| {
                if power.0 != bucket.finite {
                    power = (bucket.finite, beta.powf(bucket.finite as f64));
                }
                let keep = power.1;
                sum = sum * keep + mean * (1.0 - keep);
                weight = weight * keep + (1.0 - keep);
                sum / weight
            });
            (bucket, smooth)
        })
    }

    /// The first update something was measured at.
    pub fn first_update(&self) -> Option<u64> {
        self.buckets.first().map(|bucket| bucket.first_update)
    }

    /// Mean of the last few buckets that hold numbers.
    pub fn recent(&self, buckets: usize) -> Option<f64> {
        let means: Vec<f64> = self.buckets.iter().rev().filter_map(Bucket::mean).take(buckets).collect();
        (!means.is_empty()).then(|| means.iter().sum::<f64>() / means.len() as f64)
    }

    /// Smallest and largest number in the series.
    pub fn range(&self) -> Option<(f64, f64)> {
        self.buckets.iter().filter(|bucket| bucket.finite > 0).fold(None, |range: Option<(f64, f64)>, b| {
            Some(range.map_or((b.min, b.max), |(low, high)| (low.min(b.min), high.max(b.max))))
        })
    }

    /// The last place something was measured at.
    pub fn last_place(&self) -> Option<Place> {
        self.buckets.last().map(|bucket| bucket.place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(update: u64) -> Place {
        Place { update, tokens: update * 512, time: update as f64 * 0.1 }
    }

    #[test]
    fn a_long_series_stays_bounded_and_keeps_its_extremes() {
        let mut series = Series::default();
        for update in 1..=100_000 {
            let value = match update {
                54_321 => 900.0,
                77_777 => -5.0,
                _ => 1.0,
            };
            series.push(at(update), value);
        }
        assert!(series.len() <= CAP);
        assert_eq!(series.range(), Some((-5.0, 900.0)));
        let points = series.points(XAxis::Update);
        assert!(points.iter().any(|p| p.1 == 900.0) && points.iter().any(|p| p.1 == -5.0));
        assert!(points.windows(2).all(|pair| pair[0].0 <= pair[1].0));
        assert_eq!(points.last().map(|p| p.0), Some(100_000.0));
    }

    #[test]
    fn a_value_that_is_no_number_is_a_gap_even_after_merging() {
        let mut series = Series::default();
        for update in 1..=20_000 {
            series.push(at(update), if update == 10_000 { f64::NAN } else { 2.0 });
        }
        let gaps = |points: Vec<(f64, f64)>| points.iter().filter(|p| p.1.is_nan()).count();
        assert_eq!(gaps(series.points(XAxis::Update)), 1);
        assert_eq!(gaps(series.smoothed(XAxis::Update, 0.9)), 1);
        assert_eq!(series.range(), Some((2.0, 2.0)));
    }

    #[test]
    fn smoothing_starts_at_the_first_value_and_follows() {
        let mut series = Series::default();
        for update in 1..=200 {
            series.push(at(update), if update <= 100 { 4.0 } else { 2.0 });
        }
        let smooth = series.smoothed(XAxis::Update, 0.9);
        assert!((smooth[0].1 - 4.0).abs() < 1e-9);
        let last = smooth[199].1;
        assert!(last > 2.0 && last < 2.01, "{last}");
    }

    #[test]
    fn truncating_forgets_later_updates() {
        let mut series = Series::default();
        (1..=50).for_each(|update| series.push(at(update), update as f64));
        series.truncate(40);
        assert_eq!(series.range(), Some((1.0, 40.0)));
        assert_eq!(series.last_place().map(|place| place.update), Some(40));
    }

    #[test]
    fn the_x_axis_can_be_tokens_or_time() {
        let mut series = Series::default();
        series.push(at(3), 1.0);
        assert_eq!(series.points(XAxis::Tokens), vec![(1536.0, 1.0)]);
        assert!((series.points(XAxis::Time)[0].0 - 0.3).abs() < 1e-12);
    }
}
