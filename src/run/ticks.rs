//! Round numbers on an axis, for pictures on the screen and in files.

/// The next of 1, 2, 5 times a power of ten that is no smaller; 1 where the number is none or not above 0.
pub fn round_step(rough: f64) -> f64 {
    if !(rough.is_finite() && rough > 0.0) {
        return 1.0;
    }
    let power = 10f64.powf(rough.log10().floor());
    let factor = [1.0, 2.0, 5.0].into_iter().find(|factor| rough <= factor * power * (1.0 + 1e-9));
    power * factor.unwrap_or(10.0)
}

/// The multiples of `step` from `low` to `high`, 64 at most.
pub fn multiples(low: f64, high: f64, step: f64) -> impl Iterator<Item = f64> {
    let first = (low / step - 1e-9).ceil();
    let last = (high / step + 1e-9).floor();
    let count = if (last - first).is_finite() { (last - first + 1.0).clamp(0.0, 64.0) as u32 } else { 0 };
    (0..count).map(move |at| (first + f64::from(at)) * step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_round_and_their_multiples_lie_within() {
        let steps = [0.9, 1.0, 1.1, 2.0, 3.0, 5.0, 7.0, 20.0].map(round_step);
        assert_eq!(steps, [1.0, 1.0, 2.0, 2.0, 5.0, 5.0, 10.0, 20.0]);
        for none in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(round_step(none), 1.0);
        }
        assert_eq!(multiples(-0.5, 2.0, 0.5).collect::<Vec<_>>(), [-0.5, 0.0, 0.5, 1.0, 1.5, 2.0]);
        assert_eq!(multiples(0.0, 1e9, 1.0).count(), 64);
        assert_eq!(multiples(f64::NAN, 1.0, 1.0).count(), 0);
        assert_eq!(multiples(0.1, 0.2, 1.0).count(), 0);
    }
}
