//! Block-wise dynamic quantisation to 8 bits (Dettmers et al. 2022, arXiv 2110.02861), as bitsandbytes has it.
//!
//! A block of values is divided by its largest absolute value; each quotient becomes the code of the nearest of 256
//! values. These are spaced evenly within each power of ten, so that small values keep their precision.

use std::sync::LazyLock;

/// Values in [-1, 1], for a moment with a sign.
static SIGNED: LazyLock<DynamicMap> = LazyLock::new(|| DynamicMap::new(true));
/// Values in [0, 1], for a second moment.
static UNSIGNED: LazyLock<DynamicMap> = LazyLock::new(|| DynamicMap::new(false));

/// Bits of the mantissa that choose a cell of the search table: in a cell there is seldom more than one midpoint.
const CELL_BITS: u32 = 7;
/// Bits that do not.
const SHIFT: u32 = 23 - CELL_BITS;
/// The first and the last cell, those of 2^-24 and of 1. Smaller and larger numbers share them.
const FIRST: u32 = (127 - 24) << CELL_BITS;
const LAST: u32 = 127 << CELL_BITS;
/// Cells for numbers of one sign.
const CELLS: usize = (LAST - FIRST + 1) as usize;

/// What each of the 256 codes stands for, in rising order.
#[derive(Debug)]
pub struct DynamicMap {
    values: [f32; 256],
    /// Half way to the next value, and to the one before; infinite at the ends.
    above: [f32; 256],
    below: [f32; 256],
    /// A code within two of the right one for each cell of positive and of negative numbers.
    guesses: Vec<u8>,
}

impl DynamicMap {
    /// The map for values with a sign.
    pub fn signed() -> &'static Self {
        &SIGNED
    }

    /// The map for values without one.
    pub fn unsigned() -> &'static Self {
        &UNSIGNED
    }

    /// For i in 0..7: the midpoints of an even division of [0.1, 1] times `10^(i-6)`, in `2^i` parts with a sign, in
    /// `2^(i+1)` without; then 0 and 1.
    fn new(signed: bool) -> Self {
        let mut all = vec![0.0_f64, 1.0];
        for decade in 0..7 {
            let parts = 1 << if signed { decade } else { decade + 1 };
            let scale = 10_f64.powi(decade - 6);
            for part in 0..parts {
                let value = (0.1 + 0.9 * (f64::from(part) + 0.5) / f64::from(parts)) * scale;
                all.push(value);
                if signed {
                    all.push(-value);
                }
            }
        }
        all.sort_by(f64::total_cmp);
        let values: [f32; 256] = std::array::from_fn(|code| all[code] as f32);
        let between = |code: usize| 0.5 * (values[code] + values[code + 1]);
        let above = std::array::from_fn(|code| if code == 255 { f32::INFINITY } else { between(code) });
        let below = std::array::from_fn(|code| if code == 0 { f32::NEG_INFINITY } else { between(code - 1) });
        let guesses = (0..2 * CELLS)
            .map(|cell| {
                let bits = (FIRST + (cell % CELLS) as u32) << SHIFT;
                let centre = f32::from_bits(bits | 1 << (SHIFT - 1));
                let centre = if cell < CELLS { centre } else { -centre };
                above.partition_point(|midpoint| *midpoint < centre) as u8
            })
            .collect();
        Self { values, above, below, guesses }
    }

    /// All values, by code.
    pub const fn values(&self) -> &[f32; 256] {
        &self.values
    }

    /// Half way between each value and the next.
    pub fn midpoints(&self) -> &[f32] {
        &self.above[..255]
    }

    /// What a code stands for.
    pub fn value(&self, code: u8) -> f32 {
        self.values[usize::from(code)]
    }

    /// The code of the nearest value.
    pub fn nearest(&self, x: f32) -> u8 {
        let bits = x.to_bits();
        let cell = ((bits & 0x7FFF_FFFF) >> SHIFT).clamp(FIRST, LAST) - FIRST;
        let sign = if bits >> 31 == 0 { 0 } else { CELLS };
        let mut code = self.guesses[cell as usize + sign];
        // Without branches: whether a neighbour is nearer is as good as random.
        for _ in 0..2 {
            let at = usize::from(code);
            code = code + u8::from(x > self.above[at]) - u8::from(x < self.below[at]);
        }
        code
    }

    /// The code of the nearest value that does not have the other sign: CUDA moves one code on where zero was nearest
    /// to a negative value.
    pub fn nearest_of_sign(&self, x: f32) -> u8 {
        let code = self.nearest(x);
        match (self.value(code).is_sign_negative(), x.is_sign_negative()) {
            (false, true) => code.saturating_sub(1),
            (true, false) => code.saturating_add(1),
            _ => code,
        }
    }
}

/// The codes of all values, and the largest absolute value of each block of `blocksize`, as an update leaves them.
pub fn codes(map: &DynamicMap, values: &[f32], blocksize: usize) -> (Vec<u8>, Vec<f32>) {
    let mut scales = Vec::with_capacity(values.len().div_ceil(blocksize));
    let mut codes = Vec::with_capacity(values.len());
    let signed = map.value(0).is_sign_negative();
    for block in values.chunks(blocksize) {
        let largest = block.iter().fold(0.0_f32, |largest, value| largest.max(value.abs()));
        scales.push(largest);
        // A block of zeros has no scale: any code stands for zero.
        let divisor = if largest > 0.0 { largest } else { 1.0 };
        codes.extend(block.iter().map(|value| {
            let share = value / divisor;
            if signed { map.nearest_of_sign(share) } else { map.nearest(share) }
        }));
    }
    (codes, scales)
}

/// What codes stand for.
pub fn values(map: &DynamicMap, codes: &[u8], scales: &[f32], blocksize: usize) -> Vec<f32> {
    let blocks = codes.chunks(blocksize).zip(scales);
    blocks.flat_map(|(codes, scale)| codes.iter().map(move |&code| map.value(code) * scale)).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_value_is_its_own_code() {
        for map in [DynamicMap::signed(), DynamicMap::unsigned()] {
            assert!(map.values().is_sorted_by(|a, b| a < b));
            for code in 0..=255 {
                assert_eq!(map.nearest(map.value(code)), code);
            }
        }
        assert_eq!((DynamicMap::signed().nearest(0.0), DynamicMap::unsigned().nearest(0.0)), (127, 0));
        assert_eq!(DynamicMap::signed().nearest_of_sign(-1e-9), 126);
        assert_eq!(DynamicMap::signed().nearest_of_sign(1e-9), 127, "zero has the sign of a positive value");
    }

    proptest! {
        #[test]
        fn no_other_value_is_nearer(x in -1.2_f32..1.2, small in -30_i32..0) {
            for x in [x, x * 2_f32.powi(small)] {
                for map in [DynamicMap::signed(), DynamicMap::unsigned()] {
                    let distance = |code: u8| (f64::from(map.value(code)) - f64::from(x)).abs();
                    let found = distance(map.nearest(x));
                    // Midpoints are rounded to f32.
                    prop_assert!((0..=255).all(|code| found <= distance(code) + 1e-7 * f64::from(x.abs())));
                }
            }
        }
    }
}
