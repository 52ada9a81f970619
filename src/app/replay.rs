//! A recording that is played instead of a run that is watched.

/// Why a command goes nowhere while a recording is played.
pub(super) const REFUSED: &str =
    "a replay: what is shown is over and takes no commands; Space pauses the replay";

/// A recording and how it is played; the shell owns its clock.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Replay {
    /// Seconds of the run in one second; infinite: as fast as it can be read.
    pub speed: f64,
    pub paused: bool,
}

impl Replay {
    /// The words on the screen.
    pub fn label(self) -> String {
        match (self.paused, self.speed.is_finite()) {
            (true, _) => "replay paused".to_owned(),
            (false, true) => format!("replay {}x", self.speed),
            (false, false) => "replay".to_owned(),
        }
    }
}
