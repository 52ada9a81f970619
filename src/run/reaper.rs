//! The workers that this process started: each is waited for in the background, how it ended is noted in its folder, and
//! one that hangs after its run has ended is killed.

use std::{
    collections::BTreeMap,
    fs::OpenOptions,
    io::Write,
    ops::ControlFlow,
    path::PathBuf,
    process::Child,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use super::{RunDir, death, last, own, tail};
use crate::protocol::Event;

/// How long a worker may take to leave after the last line of its record.
pub const PATIENCE: Duration = Duration::from_secs(8);
/// Time between two looks at a worker.
const POLL: Duration = Duration::from_millis(20);
/// Looks at a worker between two at its record.
const SELDOM: u32 = 25;

/// How a worker left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// By itself, with this exit code, or somebody else killed it.
    Gone { code: Option<i32> },
    /// Its run had ended and it did not: it was killed.
    Killed,
}

/// Workers of this process, by their run's folder; nothing while one lives.
static WORKERS: Mutex<BTreeMap<PathBuf, Option<Exit>>> = Mutex::new(BTreeMap::new());

fn note(run: &RunDir, exit: Option<Exit>) {
    WORKERS.lock().unwrap_or_else(PoisonError::into_inner).insert(run.path().to_owned(), exit);
}

/// Looks after the worker from now on, so that no zombie stays when it ends before this process.
pub fn look_after(child: Child, run: &RunDir) {
    note(run, None);
    let run = run.clone();
    let thread = std::thread::Builder::new().name("reaper".into());
    let started = thread.spawn({
        let run = run.clone();
        move || note(&run, Some(watch(child, &run)))
    });
    if started.is_err() {
        // Without a thread the zombie lasts as long as this process: no harm.
        note(&run, Some(Exit::Gone { code: None }));
    }
}

/// Waits until the worker of the run is gone and what is known about its end is noted. Nothing when this process did not
/// start it, or it still lives after that time.
pub fn wait(run: &RunDir, within: Duration) -> Option<Exit> {
    let until = Instant::now() + within;
    loop {
        let known = WORKERS.lock().unwrap_or_else(PoisonError::into_inner).get(run.path()).copied()?;
        if known.is_some() || Instant::now() > until {
            return known;
        }
        std::thread::sleep(POLL / 4);
    }
}

fn watch(mut child: Child, run: &RunDir) -> Exit {
    let length = || std::fs::metadata(run.events()).map_or(0, |meta| meta.len());
    // A run that goes on has the end of its last worker in its record.
    let before = length();
    let mut ended: Option<Instant> = None;
    let mut code = None;
    for look in 0_u32.. {
        match child.try_wait() {
            Ok(Some(status)) => {
                code = status.code();
                if !status.success() {
                    death::died(run, child.id(), status);
                }
                break;
            }
            Ok(None) => {}
            Err(_) => break,
        }
        if ended.is_none() && look.is_multiple_of(SELDOM) && length() > before && has_ended(run) {
            ended = Some(Instant::now());
        }
        if ended.is_some_and(|ended| ended.elapsed() > PATIENCE) {
            say(run);
            let _ = child.kill();
            let _ = child.wait();
            return Exit::Killed;
        }
        std::thread::sleep(POLL);
    }
    Exit::Gone { code }
}

/// Whether the last line of the record is the run's end.
fn has_ended(run: &RunDir) -> bool {
    let mut ended = false;
    let read = last::lines_back(&run.events(), u64::MAX, |line| {
        ended = matches!(tail::parse(line), tail::Line::Event(Event::RunEnded(_)));
        ControlFlow::Break(())
    });
    read.is_ok() && ended
}

/// Says in the worker's log what becomes of it.
fn say(run: &RunDir) {
    let log = own::open(&run.worker_log(), OpenOptions::new().append(true));
    // Nobody reads the log of a run whose folder is gone.
    let _ = log.and_then(|mut log| {
        let seconds = PATIENCE.as_secs();
        writeln!(log, "the run has ended, but its worker did not leave within {seconds} s: it was killed")
    });
}
