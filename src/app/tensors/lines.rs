//! Lines and columns of the table of state tensors: what stands in them and how they are ordered.

use std::cmp::Ordering;

use crate::protocol::{StateTensor, TensorState, TensorStats, state::figures};

/// A column of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Column {
    Name,
    State,
    Shape,
    Step,
    Bytes,
    Rms,
    /// How far the RMS has come since the statistics before these.
    Change,
    Min,
    Max,
    Zeros,
    NonFinite,
    Ratio,
    /// What factoring or 8-bit codes lose.
    Error,
    /// Rows that no gradient has touched.
    Untouched,
    Dtype,
}

impl Column {
    /// Every column, from left to right.
    pub const ALL: [Self; 15] = [
        Self::Name,
        Self::State,
        Self::Shape,
        Self::Step,
        Self::Bytes,
        Self::Rms,
        Self::Change,
        Self::Min,
        Self::Max,
        Self::Zeros,
        Self::NonFinite,
        Self::Ratio,
        Self::Error,
        Self::Untouched,
        Self::Dtype,
    ];

    /// The head of the column.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Name => "tensor",
            Self::State => "state",
            Self::Shape => "shape",
            Self::Step => "step",
            Self::Bytes => "bytes",
            Self::Rms => "rms",
            Self::Change => "rms +-",
            Self::Min => "min",
            Self::Max => "max",
            Self::Zeros => "zeros",
            Self::NonFinite => "nan/inf",
            Self::Ratio => "update/param",
            Self::Error => "error",
            Self::Untouched => "untouched",
            Self::Dtype => "dtype",
        }
    }
}

/// One line: a state tensor of a parameter; a parameter that keeps none has one line without. With layers as groups
/// there is a line over each of them, too, which carries its first parameter.
#[derive(Debug, Clone, Copy)]
pub struct Line<'a> {
    pub parameter: &'a TensorState,
    pub state: Option<(&'a str, &'a StateTensor)>,
    /// This line's RMS at the statistics before these.
    pub rms_before: Option<f64>,
    pub group: Option<Group<'a>>,
}

/// What a layer's line says of the lines below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Group<'a> {
    pub layer: &'a str,
    pub parameters: usize,
    pub elements: u64,
    pub bytes: u64,
    pub nonfinite: u64,
    /// The lines below it are hidden.
    pub folded: bool,
}

/// The layer that a parameter belongs to: its name up to the first number, or without its last part.
pub fn layer(name: &str) -> &str {
    let mut end = 0;
    for part in name.split('.') {
        end += part.len();
        if !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()) {
            return &name[..end];
        }
        end += 1;
    }
    name.rsplit_once('.').map_or(name, |(layer, _)| layer)
}

impl Line<'_> {
    /// What factoring or 8-bit codes lost at the last update that was measured: of codes for each of the two moments.
    pub fn error(&self) -> Option<f64> {
        let name = match self.state.map(|(name, _)| name) {
            Some("state1") => figures::QUANTIZATION_ERROR_1,
            Some("state2") => figures::QUANTIZATION_ERROR_2,
            Some("exp_avg_sq_row" | "exp_avg_sq_col") => figures::FACTORIZATION_ERROR,
            _ => return None,
        };
        self.parameter.figures.get(name).copied()
    }

    /// How far the RMS has come since the statistics before these, as a share of what it was.
    pub fn change(&self) -> Option<f64> {
        let now = self.state.and_then(|(_, state)| state.stats).map(|stats| stats.rms)?;
        self.rms_before.filter(|before| *before > 0.0).map(|before| now / before - 1.0)
    }

    /// Rows of the parameter that no gradient has touched.
    pub fn untouched(&self) -> Option<f64> {
        self.parameter.figures.get(figures::ROWS_NEVER_TOUCHED).copied()
    }
}

/// The order of two lines by a column; words from A, numbers from the smallest.
pub(super) fn compare(column: Column, a: &Line<'_>, b: &Line<'_>) -> Ordering {
    let stat = |line: &Line<'_>, pick: fn(&TensorStats) -> f64| {
        // What was not measured sorts below everything, what is not a number above.
        line.state.and_then(|(_, state)| state.stats.as_ref()).map_or(f64::NEG_INFINITY, pick)
    };
    let by = |pick: fn(&TensorStats) -> f64| stat(a, pick).total_cmp(&stat(b, pick));
    fn state<'a>(line: &Line<'a>) -> Option<&'a StateTensor> {
        line.state.map(|(_, state)| state)
    }
    let measured = |figure: Option<f64>| figure.unwrap_or(f64::NEG_INFINITY);
    match column {
        Column::Name => Ordering::Equal,
        Column::State => a.state.map(|s| s.0).cmp(&b.state.map(|s| s.0)),
        Column::Shape => elements(a).cmp(&elements(b)),
        Column::Step => a.parameter.step.cmp(&b.parameter.step),
        Column::Bytes => state(a).map(|s| s.bytes).cmp(&state(b).map(|s| s.bytes)),
        Column::Rms => by(|stats| stats.rms),
        Column::Change => measured(a.change()).total_cmp(&measured(b.change())),
        Column::Min => by(|stats| stats.min),
        Column::Max => by(|stats| stats.max),
        Column::Zeros => by(|stats| stats.zeros as f64),
        Column::NonFinite => by(|stats| stats.nonfinite as f64),
        Column::Ratio => measured(a.parameter.update_ratio).total_cmp(&measured(b.parameter.update_ratio)),
        Column::Error => measured(a.error()).total_cmp(&measured(b.error())),
        Column::Untouched => measured(a.untouched()).total_cmp(&measured(b.untouched())),
        Column::Dtype => state(a).map(|s| &s.dtype).cmp(&state(b).map(|s| &s.dtype)),
    }
}

fn elements(line: &Line<'_>) -> u64 {
    line.state.map_or(0, |(_, state)| state.elements)
}
