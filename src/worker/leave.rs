//! A worker leaves when its run has ended, whatever its libraries do.

use std::time::Duration;

use rustix::process::{Signal, getpid, kill_process};

/// How long libraries may take to unload themselves.
const UNLOADING: Duration = Duration::from_secs(5);

/// Ends the process in a while, unless it ends by itself before: a driver may hang while it is unloaded.
pub fn soon() {
    let guard = std::thread::Builder::new().name("leave".into()).spawn(|| {
        std::thread::sleep(UNLOADING);
        // Standard error is the worker's log.
        let seconds = UNLOADING.as_secs();
        let told = format!("the run has ended, but a library did not unload within {seconds} s: killed\n");
        let _ = rustix::io::write(rustix::stdio::stderr(), told.as_bytes());
        // No handler of the library that hangs runs again.
        let _ = kill_process(getpid(), Signal::KILL);
    });
    // Without the guard whoever started the worker still looks after it.
    drop(guard);
}
