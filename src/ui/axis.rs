//! Scales and ticks of an axis.

use super::format;
use crate::run::ticks::{multiples, round_step};

/// A range of numbers on an axis, never empty and always finite.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scale {
    low: f64,
    high: f64,
    log: bool,
}

impl Scale {
    /// A scale that holds both numbers; a logarithmic one needs them positive.
    pub fn new(low: f64, high: f64, log: bool) -> Self {
        if !log || low <= 0.0 {
            return Self::linear(low, high);
        }
        let (low, high) = (low.log10(), high.max(low).log10());
        // A range without extent gets some, so that a constant line lies in the middle.
        let pad = if high - low < 1e-9 { 0.5 } else { 0.0 };
        Self { low: low - pad, high: high + pad, log: true }
    }

    /// A linear scale that holds both numbers.
    pub fn linear(low: f64, high: f64) -> Self {
        let (low, high) = if low <= high { (low, high) } else { (high, low) };
        let size = low.abs().max(high.abs());
        let pad = if high - low > size * 1e-9 { 0.0 } else { (size * 0.5).max(0.5) };
        Self { low: low - pad, high: high + pad, log: false }
    }

    /// Where on the axis a number lies: 0 at the low end, 1 at the high end.
    pub fn place(&self, value: f64) -> f64 {
        // By the logarithm of two, which takes a third of the time of that of ten.
        let value = if self.log { value.log2() * std::f64::consts::LOG10_2 } else { value };
        (value - self.low) / (self.high - self.low)
    }

    /// The number at a place on the axis; the reverse of [`Scale::place`].
    pub fn value(&self, share: f64) -> f64 {
        let value = self.low + share * (self.high - self.low);
        if self.log { 10f64.powf(value) } else { value }
    }

    /// Whether it is logarithmic.
    pub const fn is_log(&self) -> bool {
        self.log
    }

    /// At most about `most` round numbers on the scale with their labels, from low to high.
    pub fn ticks(&self, most: usize) -> Vec<(f64, String)> {
        if self.log { self.log_ticks(most) } else { self.linear_ticks(most) }
    }

    /// The same where there is nothing between whole numbers: updates, tokens.
    pub fn whole_ticks(&self, most: usize) -> Vec<(f64, String)> {
        let named = |value: f64| (value, format::tick(value, 1.0));
        if !self.log {
            let step = round_step((self.high - self.low) / most.max(1) as f64).max(1.0);
            return multiples(self.low, self.high, step).map(named).collect();
        }
        let whole = |value: &f64| (value - value.round()).abs() < 1e-9 * value.abs();
        let ticks = self.log_ticks(most).into_iter().map(|(value, _)| value);
        ticks.filter(whole).map(|value| named(value.round())).collect()
    }

    fn linear_ticks(&self, most: usize) -> Vec<(f64, String)> {
        let step = round_step((self.high - self.low) / most.max(1) as f64);
        multiples(self.low, self.high, step).map(|value| (value, format::tick(value, step))).collect()
    }

    fn log_ticks(&self, most: usize) -> Vec<(f64, String)> {
        let decades = (self.high - self.low).max(1e-9);
        let factors: &[f64] = match decades {
            _ if decades * 3.0 <= most as f64 => &[1.0, 2.0, 5.0],
            _ if decades * 2.0 <= most as f64 => &[1.0, 3.0],
            _ => &[1.0],
        };
        let every = (decades / most.max(1) as f64).ceil().max(1.0) as i32;
        let mut ticks = Vec::new();
        for power in self.low.floor() as i32..=self.high.ceil() as i32 {
            if power % every != 0 {
                continue;
            }
            for factor in factors {
                let value = factor * 10f64.powi(power);
                if (-1e-9..=1.0 + 1e-9).contains(&self.place(value)) {
                    ticks.push((value, label(value)));
                }
            }
        }
        if ticks.len() < 2 {
            // Less than a decade: round numbers of the linear scale are closer together.
            let (low, high) = (10f64.powf(self.low), 10f64.powf(self.high));
            let step = round_step((high - low) / most.max(1) as f64);
            return multiples(low, high, step).map(|value| (value, format::tick(value, step))).collect();
        }
        ticks
    }
}

fn label(value: f64) -> String {
    if (1e-2..1e5).contains(&value) {
        let digits = (-value.log10().floor()).clamp(0.0, 2.0) as usize;
        format!("{value:.digits$}")
    } else {
        format::rate(value)
    }
}

/// Ticks of a scale in seconds at round numbers of seconds, minutes or hours.
pub fn time_ticks(scale: &Scale, most: usize) -> Vec<(f64, String)> {
    let want = (scale.high - scale.low) / most.max(1) as f64;
    let steps = [
        1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0, 7200.0, 21_600.0,
        86_400.0,
    ];
    let step = steps.into_iter().find(|step| *step >= want).unwrap_or_else(|| round_step(want));
    multiples(scale.low, scale.high, step).map(|value| (value, format::duration(value))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(scale: Scale, most: usize) -> Vec<String> {
        scale.ticks(most).into_iter().map(|(_, label)| label).collect()
    }

    #[test]
    fn ticks_are_round_numbers() {
        assert_eq!(labels(Scale::linear(0.0, 600.0), 6), ["0", "100", "200", "300", "400", "500", "600"]);
        assert_eq!(labels(Scale::linear(1.13, 5.4), 4), ["2", "4"]);
        assert_eq!(labels(Scale::linear(0.0, 0.003), 3), ["0", "1e-3", "2e-3", "3e-3"]);
        assert_eq!(labels(Scale::new(1.0, 1000.0, true), 4), ["1", "10", "100", "1000"]);
        let narrow = labels(Scale::new(1.1, 5.5, true), 5);
        assert!(narrow.len() >= 2, "{narrow:?}");
    }

    #[test]
    fn a_scale_without_extent_still_has_one() {
        for value in [0.0, 5.0, -3.0, 1e-30, 1e30] {
            let scale = Scale::linear(value, value);
            assert!((scale.place(value) - 0.5).abs() < 1e-6, "{value}");
            assert!(scale.ticks(4).iter().all(|(tick, _)| tick.is_finite()));
        }
        assert!((Scale::new(2.0, 2.0, true).place(2.0) - 0.5).abs() < 1e-9);
        assert_eq!(Scale::linear(3.0, 1.0), Scale::linear(1.0, 3.0));
    }

    #[test]
    fn there_is_no_tick_between_whole_numbers() {
        let whole = |low, high, log, most| -> Vec<String> {
            Scale::new(low, high, log).whole_ticks(most).into_iter().map(|(_, label)| label).collect()
        };
        assert_eq!(whole(1.0, 2.0, false, 5), ["1", "2"]);
        assert_eq!(whole(1.0, 3.0, false, 10), ["1", "2", "3"]);
        assert_eq!(whole(1.0, 1.0, false, 5), ["1"], "one update");
        assert_eq!(whole(0.0, 600.0, false, 6), ["0", "100", "200", "300", "400", "500", "600"]);
        assert_eq!(whole(1.0, 3.0, true, 8), ["1", "2"]);
        assert_eq!(whole(3.0, 4.0, true, 8), ["3", "4"]);
        assert_eq!(whole(1.0, 1.0, true, 5), ["1", "2"]);
        assert_eq!(whole(1.0, 1000.0, true, 4), ["1", "10", "100", "1000"]);
        assert_eq!(labels(Scale::new(1.0, 2.0, false), 5).len(), 6, "of what can be divided there is more");
    }

    #[test]
    fn time_ticks_are_round_on_the_clock() {
        let ticks = time_ticks(&Scale::linear(0.0, 130.0), 5);
        let labels: Vec<_> = ticks.into_iter().map(|(_, label)| label).collect();
        assert_eq!(labels, ["0:00", "0:30", "1:00", "1:30", "2:00"]);
    }
}
