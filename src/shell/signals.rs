//! What the system tells the program, as flags that the loop looks at.

use std::{
    io,
    sync::{Arc, atomic::AtomicBool},
};

use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGTERM, SIGTSTP};

/// One flag a meaning; whoever obeys takes it back.
pub(super) struct Signals {
    /// Stop the run, leave when it has ended; a second time: leave now.
    pub(super) interrupt: Arc<AtomicBool>,
    /// Leave; the run goes on.
    pub(super) hangup: Arc<AtomicBool>,
    pub(super) suspend: Arc<AtomicBool>,
    /// The process was stopped and goes on: somebody else may have used the terminal.
    pub(super) goes_on: Arc<AtomicBool>,
}

impl Signals {
    /// # Errors
    /// The system lets no handler be set.
    pub(super) fn register() -> io::Result<Self> {
        let flag = |signals: &[i32]| -> io::Result<Arc<AtomicBool>> {
            let flag = Arc::new(AtomicBool::new(false));
            for signal in signals {
                signal_hook::flag::register(*signal, Arc::clone(&flag))?;
            }
            Ok(flag)
        };
        Ok(Self {
            interrupt: flag(&[SIGINT, SIGTERM])?,
            hangup: flag(&[SIGHUP])?,
            suspend: flag(&[SIGTSTP])?,
            goes_on: flag(&[SIGCONT])?,
        })
    }
}
