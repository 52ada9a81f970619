//! How a run stands: queued, live, ended, or crashed.

use std::{fmt, fs, time::SystemTime};

use serde::{Deserialize, Serialize};

use super::{RunDir, death, last, launch, lock, queue};
use crate::protocol::Reason;

/// The state of a run, as lists show it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Made, but no worker has taken it yet.
    Queued,
    Live,
    Paused,
    /// Ran to its end.
    Done,
    Stopped,
    /// Ended with an error that the worker recorded.
    Failed,
    /// The worker is gone and recorded no end.
    Crashed,
}

impl State {
    /// The word in tables and JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Live => "live",
            Self::Paused => "paused",
            Self::Done => "done",
            Self::Stopped => "stopped",
            Self::Failed => "failed",
            Self::Crashed => "crashed",
        }
    }

    /// Whether a worker trains the run now.
    pub const fn is_live(self) -> bool {
        matches!(self, Self::Live | Self::Paused)
    }

    /// The state of a run that ended for this reason.
    pub const fn ended(reason: Reason) -> Self {
        match reason {
            Reason::Finished | Reason::DataEnded => Self::Done,
            Reason::Stopped => Self::Stopped,
            Reason::NotFinite | Reason::OutOfMemory | Reason::Failed => Self::Failed,
        }
    }

    /// The state of a run whose record says so much.
    pub fn of(run: &RunDir, ended: Option<Reason>, paused: bool) -> Self {
        let begun = ended.is_none() && has_begun(run);
        match ended {
            Some(reason) => Self::ended(reason),
            None if lock::is_live(run) => {
                if paused {
                    Self::Paused
                } else {
                    Self::Live
                }
            }
            None if begun => Self::Crashed,
            None if queue::was_removed(run) => Self::Stopped,
            None if was_abandoned(run) => Self::Crashed,
            None => Self::Queued,
        }
    }
}

/// Whether a worker was ever there. To be looked at before whether one is there now: one that starts between the two
/// looks must not seem to have gone.
pub fn has_begun(run: &RunDir) -> bool {
    // One that was killed before it said anything has left what its starter saw.
    lock::was_started(run) || run.events().exists() || run.death_json().exists()
}

/// Whether a run was made and neither started in time nor put into the line.
pub fn was_abandoned(run: &RunDir) -> bool {
    let made = fs::metadata(run.run_toml()).and_then(|file| file.modified()).ok();
    let age = made.and_then(|made| SystemTime::now().duration_since(made).ok());
    age.is_some_and(|age| age > launch::START)
        && !has_begun(run)
        && !queue::was_removed(run)
        && !queue::holds(run)
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What is known about why a worker died without recording it: one sentence, and the end of its log.
pub fn crash_report(run: &RunDir, lines: usize) -> (String, Vec<String>) {
    let log = last::log_tail(&run.worker_log(), lines);
    let below = if log.is_empty() { "" } else { "; the last it said is below" };
    let told = match (death::cause(run), log.last()) {
        (Some(cause), _) => format!("the worker is gone and recorded no end: {cause}{below}"),
        (None, Some(_)) => format!("the worker is gone and recorded no end{below}"),
        (None, None) => {
            "the worker is gone, recorded no end and said nothing: it was killed, or the machine stopped"
                .to_owned()
        }
    };
    (told, log)
}

/// The same in one line: why the worker died, if that is known, and the last it said.
pub fn crash_line(run: &RunDir) -> Option<String> {
    match (death::cause(run), last::log_tail(&run.worker_log(), 1).pop()) {
        (Some(cause), Some(said)) => Some(format!("{cause}; the last it said: {said}")),
        (cause, said) => cause.or(said),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::{EventWriter, RunLock, sample};

    #[test]
    fn a_run_is_queued_live_paused_crashed_or_as_it_ended() {
        let (_folder, run) = sample::run("standing");
        assert_eq!(State::of(&run, None, false), State::Queued);
        let lock = RunLock::acquire(&run).unwrap();
        assert_eq!(State::of(&run, None, false), State::Live);
        assert_eq!(State::of(&run, None, true), State::Paused);
        drop(lock);
        assert_eq!(State::of(&run, None, true), State::Crashed);
        assert_eq!(State::of(&run, Some(Reason::NotFinite), false), State::Failed);
        assert_eq!(State::of(&run, Some(Reason::DataEnded), false), State::Done);
    }

    #[test]
    fn a_worker_that_was_killed_before_it_said_anything_has_crashed() {
        let (_folder, run) = sample::run("early");
        death::died(&run, 1, std::os::unix::process::ExitStatusExt::from_raw(9));
        assert_eq!(State::of(&run, None, false), State::Crashed);
        assert!(crash_report(&run, 3).0.contains("SIGKILL (signal 9)"), "{:?}", crash_report(&run, 3));
    }

    #[test]
    fn a_crash_is_told_with_the_end_of_the_log() {
        let (_folder, run) = sample::run("crash");
        EventWriter::create(&run, &sample::header(&run)).unwrap();
        let (told, log) = crash_report(&run, 3);
        assert!(told.contains("said nothing") && log.is_empty(), "{told}");
        std::fs::write(run.worker_log(), "one\ntwo\n\nthree\u{1b}[2J\nmemory allocation failed").unwrap();
        let (told, log) = crash_report(&run, 3);
        assert!(told.contains("below"), "{told}");
        assert_eq!(log, ["two", "three [2J", "memory allocation failed"]);
    }
}
