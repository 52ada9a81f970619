//! One run at a glance, read from the two ends of its record.

use std::{io, ops::ControlFlow, path::PathBuf};

use serde::{Deserialize, Serialize};

use super::{
    RunDir, RunError, bounded,
    compare::figures::measured_on,
    last,
    newest::Newest,
    pulse,
    standing::{self, State},
    summary::about,
    tail,
};
use crate::{
    config::Config,
    ledger,
    protocol::{Event, Header, Ledger, Lineage, Reason, RunEnded, Summary, number, summary::Measured},
};

/// Most bytes read from the end of a record of a run that has not ended.
const LOOK_BACK: u64 = 4 << 20;

/// One run in a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunEntry {
    /// The run's id.
    pub run: String,
    pub name: String,
    /// What somebody wrote down about it.
    #[serde(default)]
    pub note: Option<String>,
    pub state: State,
    /// Why it ended.
    pub reason: Option<Reason>,
    /// The checkpoint of another run that it started from.
    #[serde(default)]
    pub forked_from: Option<Lineage>,
    /// UTC, RFC 3339.
    pub started: String,
    pub preset: Option<String>,
    pub device: Option<String>,
    pub optimizer: Option<String>,
    pub micro_batch: Option<usize>,
    pub accumulate: Option<usize>,
    pub seed: Option<u64>,
    /// Updates made.
    pub update: u64,
    /// Updates when nobody stops it; unknown for a queued run that is set in epochs.
    pub total_updates: Option<u64>,
    pub tokens: u64,
    /// Loss of the newest update, in nats.
    #[serde(with = "number::optional")]
    pub final_train_loss: Option<f64>,
    /// The newest validation loss.
    #[serde(with = "number::optional")]
    pub final_val_loss: Option<f64>,
    /// The lowest validation loss; known once the run has ended.
    #[serde(with = "number::optional")]
    pub best_val_loss: Option<f64>,
    #[serde(with = "number::optional")]
    pub tokens_per_second: Option<f64>,
    /// Bytes of the optimizer's state, by the ledger; of a loop of its own, as it told.
    pub state_bytes: Option<u64>,
    /// Peak of the memory that `peak_source` names, in bytes.
    pub peak_bytes: Option<u64>,
    pub peak_source: Option<String>,
    /// What stands in the way of showing more.
    pub problem: Option<String>,
    /// What its losses are measured on; known once the run has begun. Runs compare where it is the same.
    #[serde(default)]
    pub measured_on: Option<String>,
    /// How it goes on, if it ended before it was through.
    #[serde(default)]
    pub resume_command: Option<String>,
    pub path: PathBuf,
}

/// The memory by which runs are compared: the best source that has a reading, and its name.
pub fn peak(measured: &Measured) -> Option<(u64, &'static str)> {
    let sources = [
        (measured.peak_gpu_process_bytes, "GPU memory of the process (NVML)"),
        (measured.peak_gpu_allocated_bytes, "GPU memory of the tensors (libtorch)"),
        (measured.peak_allocator_bytes, "allocator"),
        (measured.peak_host_rss, "resident memory"),
    ];
    sources.into_iter().find_map(|(bytes, source)| Some((bytes.filter(|&bytes| bytes > 0)?, source)))
}

/// What the ends of a run's record say of it.
pub(super) fn read(run: &RunDir) -> RunEntry {
    match ended(run) {
        Ok(Some(ended)) => from_summary(run, &ended),
        Ok(None) => unfinished(run),
        Err(error) => RunEntry { problem: Some(error.to_string()), ..unfinished(run) },
    }
}

/// The end of a record, if its last line is one.
fn ended(run: &RunDir) -> Result<Option<Box<RunEnded>>, RunError> {
    let path = run.events();
    let mut found = None;
    let read = last::lines_back(&path, bounded::LONGEST_LINE as u64, |line| {
        if tail::kind(line).is_none_or(|kind| kind == "run_ended")
            && let tail::Line::Event(Event::RunEnded(ended)) = tail::parse(line)
        {
            found = Some(ended);
        }
        ControlFlow::Break(())
    });
    match read {
        // It has not begun.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(RunError::io("cannot read", &path)(error)),
        Ok(()) => Ok(found),
    }
}

fn from_summary(run: &RunDir, ended: &RunEnded) -> RunEntry {
    let summary: &Summary = &ended.summary;
    let measured = peak(&summary.measured);
    let total = summary.config.train.max_updates.or_else(|| header(run).map(|header| header.total_updates));
    RunEntry {
        state: State::ended(ended.reason),
        reason: Some(ended.reason),
        started: summary.started.clone(),
        device: Some(summary.device.clone()),
        update: summary.updates,
        total_updates: total,
        tokens: summary.tokens,
        final_train_loss: summary.final_train_loss,
        final_val_loss: summary.final_val_loss,
        best_val_loss: summary.best_val_loss,
        tokens_per_second: summary.tokens_per_second,
        state_bytes: state_bytes(&summary.ledger, summary.measured.state_bytes),
        peak_bytes: measured.map(|(bytes, _)| bytes),
        peak_source: measured.map(|(_, source)| source.to_owned()),
        problem: ended.message.clone(),
        measured_on: Some(measured_on(&summary.config, &summary.data)),
        resume_command: summary.resume_command.as_deref().map(|command| about(command, &run.called())),
        ..blank(run, Some(&summary.config))
    }
}

/// Bytes of the optimizer's state, which for a loop of its own nobody counts: what it told, if it told any.
fn state_bytes(ledger: &Ledger, told: u64) -> Option<u64> {
    if ledger.counts_training() { Some(ledger.state_bytes) } else { Some(told).filter(|&told| told > 0) }
}

/// A run without an end: queued, live or crashed.
fn unfinished(run: &RunDir) -> RunEntry {
    let header = header(run);
    let config = match &header {
        // A resumption may have changed what the first line says.
        Some(header) if !run.resumed_toml().is_file() => Ok(header.config.clone()),
        _ => run.config(),
    };
    let mut entry = blank(run, config.as_ref().ok());
    entry.problem = newer(run).or_else(|| config.as_ref().err().map(ToString::to_string));
    if let Ok(config) = &config {
        entry.total_updates = config.train.max_updates;
        let ledger = header.as_ref().map_or_else(|| ledger::ledger(config), |header| header.ledger.clone());
        entry.state_bytes = state_bytes(&ledger, 0);
    }
    if let Some(header) = &header {
        entry.device = Some(header.device.clone());
        entry.measured_on = Some(measured_on(&header.config, &header.data));
        entry.total_updates = entry.total_updates.or(Some(header.total_updates));
        entry.started.clone_from(&header.started);
    }
    let mut newest = Newest::of(&header);
    if let Err(error) = last::lines_back(&run.events(), LOOK_BACK, |line| newest.take(line))
        && error.kind() != io::ErrorKind::NotFound
    {
        entry.problem = Some(format!("{}: {error}", run.events().display()));
    }
    entry.state = State::of(run, None, newest.paused.unwrap_or(false));
    if entry.state == State::Crashed && entry.problem.is_none() {
        entry.problem = standing::crash_line(run);
    }
    if entry.state.is_live() && entry.problem.is_none() {
        let paused = entry.state == State::Paused;
        entry.problem = pulse::quiet(run).and_then(|quiet| newest.pulse.missing(quiet, paused));
    }
    let begun = header.as_ref().and_then(|header| header.forked_from.as_ref()).map_or(0, |from| from.update);
    entry.update = newest.update.unwrap_or(begun);
    entry.tokens = newest.tokens;
    entry.final_train_loss = newest.train_loss;
    entry.final_val_loss = newest.val_loss;
    entry.tokens_per_second = newest.speed;
    let measured = newest.peak.as_ref().and_then(peak);
    entry.peak_bytes = measured.map(|(bytes, _)| bytes);
    entry.peak_source = measured.map(|(_, source)| source.to_owned());
    entry
}

/// What the first line says of a version that this one cannot read.
fn newer(run: &RunDir) -> Option<String> {
    let line = last::first_line(&run.events()).ok()??;
    Some(format!("{}: {}", run.events().display(), tail::newer(&line)?))
}

fn header(run: &RunDir) -> Option<Box<Header>> {
    let line = last::first_line(&run.events()).ok()??;
    match tail::parse(&line) {
        tail::Line::Event(Event::Header(header)) => Some(header),
        _ => None,
    }
}

/// Of a run of which nothing more is known than its configuration.
pub(super) fn blank(run: &RunDir, config: Option<&Config>) -> RunEntry {
    let meta = run.meta();
    let problem = meta.as_ref().err().map(ToString::to_string);
    let meta = meta.unwrap_or_default();
    RunEntry {
        run: run.id().to_owned(),
        name: if problem.is_some() { run.name_in_id().to_owned() } else { meta.name },
        note: None,
        state: State::Queued,
        reason: None,
        forked_from: meta.forked_from,
        started: meta.created,
        preset: config.and_then(|config| config.model.preset.clone()),
        device: None,
        optimizer: config.map(|config| config.optimizer.name.to_string()),
        micro_batch: config.map(|config| config.train.micro_batch),
        accumulate: config.map(|config| config.train.accumulate),
        seed: config.map(|config| config.train.seed),
        update: 0,
        total_updates: None,
        tokens: 0,
        final_train_loss: None,
        final_val_loss: None,
        best_val_loss: None,
        tokens_per_second: None,
        state_bytes: None,
        peak_bytes: None,
        peak_source: None,
        problem,
        measured_on: None,
        resume_command: None,
        path: run.path().to_owned(),
    }
}

#[cfg(test)]
mod tests;
