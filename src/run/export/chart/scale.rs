//! The vertical axis of a panel: its range, and round figures on it.

use super::Panel;
use crate::run::ticks::{multiples, round_step};

/// The largest is so many times the smallest before an axis becomes logarithmic.
const LOGARITHMIC: f64 = 200.0;
/// What lies beyond is drawn at the edge: a range must have a size.
const LARGEST: f64 = 1e300;
/// How figures of a panel are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::run::export) enum Unit {
    Number,
    Bytes,
}

/// A range of the vertical axis.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scale {
    low: f64,
    high: f64,
    pub(super) logarithmic: bool,
}

impl Scale {
    /// The range of all finite figures, with a little room; a range without extent gets some.
    pub(super) fn of(panel: &Panel<'_>) -> Option<Self> {
        let finite = || {
            let points = panel.lines.iter().flat_map(|line| line.points);
            points.map(|point| point.1).filter(|value| value.is_finite())
        };
        let (low, high) = (finite().reduce(f64::min)?.max(-LARGEST), finite().reduce(f64::max)?.min(LARGEST));
        if panel.may_be_logarithmic && low > 0.0 && high / low > LOGARITHMIC {
            return Some(Self { low: low.log10() - 0.05, high: high.log10() + 0.05, logarithmic: true });
        }
        let room = match high - low {
            0.0 if high == 0.0 => 1.0,
            0.0 => 0.5 * high.abs(),
            extent => 0.05 * extent,
        };
        // Bytes and rates begin at zero when they come near it.
        let from = if low >= 0.0 && low < 0.5 * high { 0.0 } else { low - room };
        Some(Self { low: from, high: high + room, logarithmic: false })
    }

    /// 0 at the low end, 1 at the high end.
    pub(super) fn place(&self, value: f64) -> f64 {
        let value = if self.logarithmic { value.log10() } else { value };
        ((value - self.low) / (self.high - self.low)).clamp(0.0, 1.0)
    }

    /// Round figures on the range, each as it is written.
    pub(super) fn ticks(&self, unit: Unit) -> Vec<(f64, String)> {
        if self.logarithmic {
            let powers = self.low.ceil() as i32..=self.high.floor() as i32;
            let every = (powers.clone().count() as i32 / 6).max(1);
            let powers = powers.filter(|power| power.rem_euclid(every) == 0);
            return powers.map(|power| (10_f64.powi(power), format!("1e{power}"))).collect();
        }
        let size = match unit {
            Unit::Number => 1.0,
            Unit::Bytes => 1024_f64.powf((self.high.max(1.0).log2() / 10.0 - 0.1).floor().clamp(0.0, 5.0)),
        };
        let write = |value: f64, step: f64| match unit {
            Unit::Number => number(value, step),
            Unit::Bytes => {
                let names = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
                let name = names[(size.log2() / 10.0) as usize % names.len()];
                format!("{} {name}", number(value / size, step / size))
            }
        };
        let step = size * round_step((self.high - self.low) / size / 5.0);
        multiples(self.low, self.high, step).map(|value| (value, write(value, step))).collect()
    }
}

/// A tick, with the digits that its step needs.
fn number(value: f64, step: f64) -> String {
    if value.abs() < step * 1e-9 {
        return "0".to_owned();
    }
    let size = value.abs().max(step);
    if !(1e-2..1e5).contains(&size) {
        let digits = (value.abs().log10().floor() - step.log10().floor()).clamp(0.0, 6.0) as usize;
        return format!("{value:.digits$e}").replace(".0e", "e");
    }
    let digits = (-step.log10().floor()).clamp(0.0, 8.0) as usize;
    format!("{value:.digits$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scale(low: f64, high: f64) -> Scale {
        Scale { low, high, logarithmic: false }
    }

    fn labels(scale: Scale, unit: Unit) -> Vec<String> {
        scale.ticks(unit).into_iter().map(|(_, label)| label).collect()
    }

    #[test]
    fn ticks_are_round_in_their_unit() {
        assert_eq!(labels(scale(0.0, 5.2), Unit::Number), ["0", "2", "4"]);
        assert_eq!(labels(scale(2.13, 2.47), Unit::Number), ["2.2", "2.3", "2.4"]);
        assert_eq!(labels(scale(0.0, 1e-3), Unit::Number), ["0", "2e-4", "4e-4", "6e-4", "8e-4", "1e-3"]);
        let mib = 1024.0 * 1024.0;
        assert_eq!(labels(scale(0.0, 5.0 * mib), Unit::Bytes)[..3], ["0 MiB", "1 MiB", "2 MiB"]);
        assert_eq!(labels(scale(0.0, 1.5 * 1024.0 * mib), Unit::Bytes)[1], "500 MiB");
        let wide = Scale { low: -3.2, high: 1.1, logarithmic: true };
        assert_eq!(labels(wide, Unit::Number), ["1e-3", "1e-2", "1e-1", "1e0", "1e1"]);
    }
}
