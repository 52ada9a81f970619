//! Ends the process when the loop cannot.
//!
//! The terminal library waits for input in a loop that never returns once the terminal is gone, so the loop that
//! would see the signal is not reached any more, and a screen nobody sees would eat a processor that the run needs.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
    },
    time::Duration,
};

use super::terminal;

/// Exit code after a signal that asked the program to end.
const INTERRUPTED: i32 = 130;
/// Time between two looks.
const LOOK: Duration = Duration::from_millis(250);
/// Looks that the loop has to leave by itself after a signal.
const PATIENCE: u32 = 3;
/// Looks without a turn of the loop after which the terminal is asked whether it is still there.
const STUCK: u32 = 8;

/// What the loop and the watchdog share.
#[derive(Debug, Clone, Default)]
pub struct Watchdog {
    turns: Arc<AtomicU64>,
    done: Arc<AtomicBool>,
}

impl Watchdog {
    /// Starts the thread. `hangup` is set when the terminal is gone, and `code` is the exit code then; `interrupt` is
    /// set by the signals that ask the program to end, and taken back by the loop that obeys them.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn start(hangup: Arc<AtomicBool>, code: i32, interrupt: Arc<AtomicBool>) -> io::Result<Self> {
        let dog = Self::default();
        let shared = dog.clone();
        std::thread::Builder::new().name("watchdog".into()).spawn(move || {
            if shared.watch(&hangup, &interrupt) {
                terminal::restore();
                std::process::exit(if interrupt.load(SeqCst) { INTERRUPTED } else { code });
            }
        })?;
        Ok(dog)
    }

    /// The loop takes another turn.
    pub fn turn(&self) {
        self.turns.fetch_add(1, SeqCst);
    }

    /// Whether the process is to be ended; false when the loop has ended by itself.
    fn watch(&self, hangup: &AtomicBool, interrupt: &AtomicBool) -> bool {
        let (mut asked, mut still, mut seen) = (0, 0, 0);
        loop {
            std::thread::sleep(LOOK);
            if self.done.load(SeqCst) {
                return false;
            }
            let turns = self.turns.load(SeqCst);
            still = if turns == seen { still + 1 } else { 0 };
            seen = turns;
            asked = if hangup.load(SeqCst) || interrupt.load(SeqCst) { asked + 1 } else { 0 };
            let gone = still >= STUCK && crossterm::terminal::window_size().is_err();
            if gone || asked > PATIENCE {
                return true;
            }
        }
    }
}

impl Watchdog {
    /// The loop has ended: nothing is watched any more.
    pub fn dismiss(&self) {
        self.done.store(true, SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loop_that_does_not_leave_after_a_signal_is_ended() {
        let dog = Watchdog::default();
        assert!(dog.watch(&AtomicBool::new(true), &AtomicBool::new(false)));
        assert!(dog.watch(&AtomicBool::new(false), &AtomicBool::new(true)));
    }

    #[test]
    fn a_loop_that_has_left_is_left_alone() {
        let dog = Watchdog::default();
        dog.turn();
        dog.dismiss();
        assert!(!dog.watch(&AtomicBool::new(true), &AtomicBool::new(true)));
    }
}
