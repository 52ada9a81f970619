//! Signs of life of a worker. A thread of its own writes a reading of the machine each second, even while the engine is
//! stuck; so a record that does not grow and one that grows without updates are told apart.

use std::{fs, time::SystemTime};

use super::RunDir;

/// Seconds after which a record that does not grow is told.
pub const QUIET: f64 = 5.0;
/// Seconds without an update that are told at the earliest,
const IDLE: f64 = 30.0;
/// and how many times the last one took so long.
const TIMES: f64 = 5.0;

/// The engine's last deeds and the machine's last reading, in seconds of the run.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Pulse {
    /// The newest update, validation or command, or the start.
    pub worked: Option<f64>,
    /// Between the two newest updates.
    pub usual: Option<f64>,
    /// The newest reading.
    pub heard: Option<f64>,
}

impl Pulse {
    /// Seconds without a deed, if that is longer than what the last update lets expect.
    fn idle(self) -> Option<f64> {
        let idle = self.heard? - self.worked?;
        (idle > IDLE.max(TIMES * self.usual.unwrap_or(0.0))).then_some(idle)
    }

    /// What is missing of a run that should be training, in words. `quiet` are the seconds since its record grew; of a
    /// paused run no updates are expected.
    pub fn missing(self, quiet: f64, paused: bool) -> Option<String> {
        if quiet >= QUIET {
            return Some(format!("no sign of life for {quiet:.0} s"));
        }
        self.idle().filter(|_| !paused).map(|idle| format!("no update for {idle:.0} s"))
    }
}

/// Seconds since the record of a live run grew. Nothing while its worker has not written a line yet, or where the file
/// system keeps no times.
pub fn quiet(run: &RunDir) -> Option<f64> {
    let changed = |path| fs::metadata(path).and_then(|file| file.modified()).ok();
    let grown = changed(run.events())?;
    if changed(run.worker_json()).is_some_and(|born| born > grown) {
        return None;
    }
    SystemTime::now().duration_since(grown).ok().map(|quiet| quiet.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pulse(worked: f64, usual: f64, heard: f64) -> Pulse {
        Pulse { worked: Some(worked), usual: Some(usual), heard: Some(heard) }
    }

    #[test]
    fn a_silence_is_told_when_it_is_longer_than_can_be_expected() {
        assert_eq!(pulse(10.0, 0.1, 11.0).missing(0.4, false), None);
        assert_eq!(pulse(10.0, 0.1, 55.0).missing(0.4, false).unwrap(), "no update for 45 s");
        assert_eq!(pulse(10.0, 0.1, 55.0).missing(0.4, true), None, "a paused run makes none");
        assert_eq!(pulse(10.0, 20.0, 55.0).missing(0.4, false), None, "its updates take so long");
        assert_eq!(pulse(10.0, 0.1, 11.0).missing(7.2, true).unwrap(), "no sign of life for 7 s");
        assert_eq!(Pulse::default().missing(0.0, false), None);
    }
}
