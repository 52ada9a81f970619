//! Watching a run in lines until it ends: what it writes is printed, and an interrupt stops it.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::{Duration, Instant},
};

use signal_hook::consts::{SIGINT, SIGTERM};

use super::{INTERRUPTED, output, printer::Printer, progress::Waiting};
use crate::{
    config::Arch,
    ledger::ledger,
    protocol::{Command, Event, Reason},
    run::{
        Client, RunDir, death, goes_on, last,
        list::Lister,
        lock, pulse,
        reaper::{self, Exit},
        standing,
        tail::Tail,
    },
    worker::{
        fault::{self, Fault},
        telemetry,
    },
};

/// Time between two looks at the record.
const POLL: Duration = Duration::from_millis(50);
/// Lines of a dead worker's log that are searched for why.
const LOG_LINES: usize = 200;
/// How long it may take to learn how a worker ended.
const GONE: Duration = Duration::from_secs(2);

/// Counts interrupts instead of dying of them.
pub(super) fn interrupts() -> std::io::Result<Arc<AtomicUsize>> {
    let presses = Arc::new(AtomicUsize::new(0));
    for signal in [SIGINT, SIGTERM] {
        let presses = Arc::clone(&presses);
        let mut signals = signal_hook::iterator::Signals::new([signal])?;
        std::thread::spawn(move || signals.forever().for_each(|_| _ = presses.fetch_add(1, SeqCst)));
    }
    Ok(presses)
}

/// Prints the run until it ends, from that byte of its record. A closed standard output ends the printing, not the run.
/// A run that has not made all of its updates is told how to go on with.
pub(super) fn follow(run: &RunDir, from: u64, json: bool, presses: &AtomicUsize) -> anyhow::Result<i32> {
    let total = Lister::default().entry(run).total_updates.filter(|_| from > 0).unwrap_or(0);
    // The record's first line says so, too, and a run that goes on is not read from there.
    let arch = run.config().map_or(Arch::Llama, |config| config.model.arch);
    let printer = Printer::of_one(json, total, arch);
    Ok(follow_with(run, from, printer, presses, &mut || Ok(()))?.unwrap_or(0))
}

/// The same; nothing when nobody reads any more. `before_stop` is done on an interrupt, before the run is told to stop, and
/// again until it listens.
pub(super) fn follow_with(
    run: &RunDir,
    from: u64,
    mut printer: Printer,
    presses: &AtomicUsize,
    before_stop: &mut dyn FnMut() -> anyhow::Result<()>,
) -> anyhow::Result<Option<i32>> {
    let mut tail = Tail::open_at(run, from);
    // Presses when the run was told to stop.
    let mut told: Option<usize> = None;
    // When the record grew last, and whether its silence has been told.
    let mut heard: Option<(Instant, bool)> = None;
    let mut waiting = Some(Waiting::on("the worker is starting"));
    loop {
        let live = lock::is_live(run);
        let events = tail.poll()?;
        let pressed = presses.load(SeqCst);
        if !events.is_empty() || !live || pressed > 0 {
            drop(waiting.take());
        }
        if !events.is_empty() {
            heard = Some((Instant::now(), false));
        }
        for event in events {
            if !printer.print(run, &event)? {
                return Ok(None);
            }
            if let Event::RunEnded(ended) = &event {
                if let Some(command) = &ended.summary.resume_command {
                    output::message(&format!("go on with it: {command}"));
                }
                // By this process, or by a signal that somebody sent to the worker.
                let interrupted = settle(run) == Some(INTERRUPTED) || told.is_some();
                let stopped = ended.reason == Reason::Stopped;
                return Ok(Some(if interrupted && stopped { INTERRUPTED } else { ended.reason.exit_code() }));
            }
        }
        if !live {
            reaper::wait(run, GONE);
            let why = standing::crash_line(run).unwrap_or_else(|| "it said nothing".to_owned());
            if !run.events().exists() {
                anyhow::bail!("the worker of run {} died: {why}", run.id());
            }
            anyhow::bail!(
                "the worker of run {} died: {why} (see {}); {}",
                run.id(),
                run.worker_log().display(),
                after_death(run, &why)
            );
        }
        if let Some((last, silent @ false)) = &mut heard
            && last.elapsed().as_secs_f64() >= pulse::QUIET
        {
            *silent = true;
            let (id, quiet) = (run.id(), pulse::QUIET);
            output::message(&if death::disk_is_full(run) {
                format!(
                    "nothing of run {id} could be recorded for {quiet} s: its disk is full, make room there"
                )
            } else {
                format!(
                    "no sign of life of the worker of run {id} for {quiet} s; it is not dead, and the run goes on when it does"
                )
            });
        }
        if pressed > 0 && told.is_none() {
            before_stop()?;
            // The worker may not listen yet, or not any more: then the next look tries again, or sees the end.
            if let Ok(mut client) = Client::connect(run)
                && client.send(Command::Stop).is_ok()
            {
                told = Some(pressed);
                output::message(
                    "stopping: the update is finished and a checkpoint written; Ctrl+C again to leave now",
                );
            }
        }
        if told.is_some_and(|told| pressed > told) {
            output::message(&format!("the run ends by itself; go on with it: {}", goes_on::resumed(run)));
            return Ok(Some(INTERRUPTED));
        }
        std::thread::sleep(POLL);
    }
}

/// What to do about a worker that died so: one that ran out of memory would die again of the same settings.
fn after_death(run: &RunDir, why: &str) -> String {
    let smaller = || {
        // A backtrace may stand behind the line that says so.
        let said = || last::log_tail(&run.worker_log(), LOG_LINES).iter().find_map(|line| Fault::of(line));
        let (config, fault) = (run.config().ok()?, Fault::of(why).or_else(said)?);
        // The kernel may have killed another process for memory than this one.
        let asked = matches!(fault, Fault::OutOfMemory { asked: Some(_), .. });
        let reach = telemetry::memory_within_reach().unwrap_or(u64::MAX);
        if !asked && ledger(&config).total_bytes_estimated < reach {
            return None;
        }
        let advice = fault.advice(&config)?;
        let command = goes_on::with(run, &advice.settings).ok()?;
        Some(format!("{}: {command}", fault::advised(&config, Some(&advice))))
    };
    smaller().unwrap_or_else(|| format!("go on with it: {}", goes_on::resumed(run)))
}

/// Waits until the worker of a run that has ended has left, too. Returns its exit code, if this process started it.
fn settle(run: &RunDir) -> Option<i32> {
    match reaper::wait(run, reaper::PATIENCE + GONE)? {
        Exit::Gone { code } => code,
        Exit::Killed => {
            output::message(&format!(
                "the worker of run {} did not leave within {} s after the run had ended: it was killed",
                run.id(),
                reaper::PATIENCE.as_secs()
            ));
            None
        }
    }
}
