//! What happened at an update, as a vertical line in a chart.

use super::series::Place;

/// What a vertical line in a chart stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MarkerKind {
    /// The rate was overridden, or given back to the schedule.
    Rate,
    Paused,
    /// The run was told to stop.
    Stopped,
    Checkpoint,
    Resumed,
    /// The checkpoint of another run that this one started from.
    Forked,
    Alert,
    /// An update was skipped because its gradient was not finite.
    Skipped,
}

impl MarkerKind {
    /// The letter above the line.
    pub const fn letter(self) -> char {
        match self {
            Self::Rate => 'r',
            Self::Paused => 'p',
            Self::Stopped => 's',
            Self::Checkpoint => 'c',
            Self::Resumed => 'R',
            Self::Forked => 'F',
            Self::Alert => '!',
            Self::Skipped => 'x',
        }
    }
}

/// Something that happened at an update.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Marker {
    pub place: Place,
    pub kind: MarkerKind,
}
