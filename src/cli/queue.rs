//! `tui-train queue`: the process that starts queued runs, one after another.

use std::sync::{Arc, atomic::AtomicBool};

use signal_hook::consts::SIGHUP;

use super::output;
use crate::run::{Home, Queue, launch};

/// Works until nothing is queued.
///
/// # Errors
/// The queue cannot be read or written.
pub fn run() -> anyhow::Result<i32> {
    // It outlives the terminal and the program that started it. Where it leads a group already it is on its own.
    let _ = rustix::process::setsid();
    let _ = signal_hook::flag::register(SIGHUP, Arc::new(AtomicBool::new(false)));
    Queue::of(&Home::from_env()?).work(launch::begin_queued)?;
    Ok(0)
}

/// Sees to it that what is queued is started, as after a reboot. What goes wrong with it is said and stops nothing
/// else.
pub fn wake(home: &Home) {
    if let Err(error) = Queue::of(home).wake() {
        output::message(&format!("the queued runs cannot be started: {error:#}"));
    }
}
