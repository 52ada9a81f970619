//! Starting a run: its folder and its worker process.

use std::{
    fs::File,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::Context;

use super::{Home, RunDir, last, lock};
use crate::config::{Resolved, validate};

/// How long a new worker may take to hold its run's lock.
const START: Duration = Duration::from_secs(20);
/// Time between two looks.
const POLL: Duration = Duration::from_millis(10);
/// Lines of the worker's log in an error.
const LOG_LINES: usize = 3;

/// Makes a run's folder and starts its worker, a process of its own that writes to `worker.log` and outlives this
/// one. Returns once the worker holds the run's lock.
///
/// # Errors
/// The folder cannot be written, the process cannot be started, or it ends before it holds the lock.
pub fn start(home: &Home, resolved: &Resolved, name: &str) -> anyhow::Result<RunDir> {
    validate::trainable(&resolved.config)?;
    let run = RunDir::create(home, name, &with_whole_path(resolved)?)?;
    let mut child = spawn(&run)?;
    let until = Instant::now() + START;
    while !lock::is_live(&run) {
        if let Some(status) = child.try_wait().context("cannot look after the worker")? {
            // A run that is over already has said in its record how it went.
            if status.success() || run.events().exists() {
                return Ok(run);
            }
            let log = last::log_tail(&run.worker_log(), LOG_LINES).join("; ");
            let said = if log.is_empty() { "its log is empty".to_owned() } else { log };
            anyhow::bail!("the worker of run {} ended at once ({status}): {said}", run.id());
        }
        if Instant::now() > until {
            anyhow::bail!(
                "the worker of run {} does not start; see {}",
                run.id(),
                run.worker_log().display()
            );
        }
        std::thread::sleep(POLL);
    }
    reap(child);
    Ok(run)
}

/// A relative path means another file in another folder: the record keeps the whole path.
fn with_whole_path(resolved: &Resolved) -> anyhow::Result<Resolved> {
    let mut resolved = resolved.clone();
    if let Some(path) = &mut resolved.config.data.path {
        let whole = std::path::absolute(&*path).context("the path of the present folder is unknown")?;
        *path = whole.display().to_string();
        if let Some(explicit) = resolved.explicit.get_mut("data.path") {
            *explicit = toml::Value::String(path.clone()).to_string();
        }
    }
    Ok(resolved)
}

fn spawn(run: &RunDir) -> anyhow::Result<Child> {
    let path = run.worker_log();
    let log = File::options()
        .create(true)
        .append(true)
        .open(&path)
        .with_context(|| format!("cannot write {}", path.display()))?;
    let program = std::env::current_exe().context("cannot find this program's own file")?;
    // The worker opens a session of its own, so that no terminal's signals reach it.
    Command::new(&program)
        .arg("worker")
        .arg(run.path())
        .stdin(Stdio::null())
        .stdout(log.try_clone().context("cannot share the worker's log")?)
        .stderr(log)
        .spawn()
        .with_context(|| format!("cannot start {}", program.display()))
}

/// Waits for the worker in the background, so that no zombie stays when it ends before this process.
fn reap(mut child: Child) {
    let thread = std::thread::Builder::new().name("reaper".into());
    // Without a thread the zombie lasts as long as this process: no harm.
    let _ = thread.spawn(move || child.wait());
}
