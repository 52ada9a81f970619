//! What is told of an opened tensor beyond its strips: how its values are spread, what its codes stand for, and what one
//! update did to it.

use serde::{Deserialize, Serialize};

use super::{Heat, number};

/// How many values lie between one power of two and the next.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Histogram {
    /// What was counted: a state tensor's name, `gradient` or `update`.
    pub name: String,
    /// Every how many elements one was looked at: 1 where all were.
    pub every: u64,
    /// The first bin holds sizes from `2^first` to twice that.
    pub first: i32,
    pub counts: Vec<u64>,
    pub zeros: u64,
    /// Of the values in the bins, those below zero.
    pub negative: u64,
    pub nonfinite: u64,
}

impl Histogram {
    /// Counts these values, of which every `every`th of a tensor is given.
    pub fn of(name: &str, every: u64, values: impl IntoIterator<Item = f64>) -> Self {
        let mut builder = HistogramBuilder::new(name);
        values.into_iter().for_each(|value| builder.push(value));
        Self { every, ..builder.finish() }
    }

    /// Values looked at.
    pub fn total(&self) -> u64 {
        self.counts.iter().sum::<u64>() + self.zeros + self.nonfinite
    }
}

/// Exponents of two that an `f64` can have.
const EXPONENTS: usize = 2048;
const BIAS: i32 = 1023;

/// Counts values one by one.
#[derive(Debug)]
pub struct HistogramBuilder {
    name: String,
    counts: Vec<u64>,
    zeros: u64,
    negative: u64,
    nonfinite: u64,
}

impl HistogramBuilder {
    /// Nothing counted yet.
    pub fn new(name: &str) -> Self {
        Self { name: name.to_owned(), counts: vec![0; EXPONENTS], zeros: 0, negative: 0, nonfinite: 0 }
    }

    /// Takes the next value.
    pub fn push(&mut self, value: f64) {
        if value == 0.0 {
            self.zeros += 1;
        } else if value.is_finite() {
            self.negative += u64::from(value < 0.0);
            // The exponent as it is stored: exact, and what f32 calls subnormal is a normal number here.
            self.counts[(value.to_bits() >> 52) as usize % EXPONENTS] += 1;
        } else {
            self.nonfinite += 1;
        }
    }

    /// The histogram of what was taken, from the first bin that holds something to the last.
    pub fn finish(self) -> Histogram {
        let first = self.counts.iter().position(|count| *count > 0).unwrap_or(0);
        let end = self.counts.iter().rposition(|count| *count > 0).map_or(first, |last| last + 1);
        let used = first < end;
        Histogram {
            name: self.name,
            every: 1,
            first: if used { first as i32 - BIAS } else { 0 },
            counts: self.counts[first..end].to_vec(),
            zeros: self.zeros,
            negative: self.negative,
            nonfinite: self.nonfinite,
        }
    }
}

/// How the codes of an 8-bit tensor are used.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CodeUse {
    /// Name of the state tensor.
    pub name: String,
    pub elements: u64,
    /// Elements of a block, which share one scale.
    pub blocksize: u64,
    pub blocks: u64,
    /// Blocks whose scale is zero: all their values are.
    pub empty_blocks: u64,
    /// Smallest and largest scale above zero; zero where there is none.
    #[serde(with = "number")]
    pub smallest_scale: f64,
    #[serde(with = "number")]
    pub largest_scale: f64,
    /// Codes at the ends of the map, the largest sizes it has.
    pub at_ends: u64,
    /// Codes that stand for zero.
    pub at_zero: u64,
    /// How many of the 256 codes are in use.
    pub used: u64,
}

impl CodeUse {
    /// Of how often each code occurs, with the map of what they stand for and the scales of the blocks.
    pub fn of(name: &str, counts: &[u64; 256], map: &[f64], scales: &[f64], blocksize: usize) -> Self {
        let signed = map.first().is_some_and(|value| *value < 0.0);
        let zero = map.iter().position(|value| *value == 0.0);
        let above = || scales.iter().copied().filter(|scale| *scale > 0.0);
        Self {
            name: name.to_owned(),
            elements: counts.iter().sum(),
            blocksize: blocksize as u64,
            blocks: scales.len() as u64,
            empty_blocks: scales.iter().filter(|scale| **scale == 0.0).count() as u64,
            smallest_scale: above().reduce(f64::min).unwrap_or(0.0),
            largest_scale: above().reduce(f64::max).unwrap_or(0.0),
            // Without a sign the lower end is zero itself.
            at_ends: counts[255] + if signed { counts[0] } else { 0 },
            at_zero: zero.and_then(|code| counts.get(code)).copied().unwrap_or(0),
            used: counts.iter().filter(|count| **count > 0).count() as u64,
        }
    }
}

/// What one update did to the opened tensor, reduced while the update was made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UpdateLook {
    /// Updates applied to the tensor, this one included.
    pub step: u64,
    /// Of the gradient as the rule took it, after clipping.
    pub gradient: Histogram,
    /// Of what was added to the parameter.
    pub update: Histogram,
    /// Adafactor's second moment of a matrix after this update, as its factors give it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub second_moment: Option<Heat>,
    /// The square of the gradient of a matrix.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub squared_gradient: Option<Heat>,
    /// `|R C / mean(R) - g^2| / |g^2|` in the Frobenius norm over each cell; NaN where the gradient is zero.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Heat>,
    /// The same over the whole matrix.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "number::optional")]
    pub factorization_error: Option<f64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_fall_between_powers_of_two() {
        let values = [1.0, -1.5, 2.0, 8.0, 0.0, f64::NAN, f64::from(f32::from_bits(1))];
        let found = Histogram::of("x", 1, values);
        assert_eq!((found.first, found.counts.len()), (-149, 153));
        assert_eq!(&found.counts[149..], [2, 1, 0, 1]);
        assert_eq!((found.zeros, found.negative, found.nonfinite, found.total()), (1, 1, 1, 7));
        let none = Histogram::of("x", 16, []);
        assert_eq!((none.first, none.counts.len(), none.every, none.total()), (0, 0, 16, 0));
    }

    #[test]
    fn codes_at_the_ends_are_those_of_the_largest_sizes() {
        let mut counts = [0; 256];
        (counts[0], counts[127], counts[255]) = (3, 5, 2);
        let signed: Vec<f64> = (0..256).map(|code| (f64::from(code) - 127.0) / 128.0).collect();
        let of = CodeUse::of("state1", &counts, &signed, &[0.0, 2.0, 0.5], 4);
        assert_eq!((of.at_ends, of.at_zero, of.used, of.elements), (5, 5, 3, 10));
        assert_eq!((of.blocks, of.empty_blocks, of.smallest_scale, of.largest_scale), (3, 1, 0.5, 2.0));
        let unsigned: Vec<f64> = (0..256).map(|code| f64::from(code) / 255.0).collect();
        let of = CodeUse::of("state2", &counts, &unsigned, &[], 4);
        assert_eq!((of.at_ends, of.at_zero, of.smallest_scale), (2, 3, 0.0));
    }
}
