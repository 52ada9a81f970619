//! How a run ended, and the figures that its summary takes from it beside the record.

use std::{any::Any, time::Duration};

use super::{
    commands::Turn,
    engine::Done,
    fault::{self, Fault, Phase},
    telemetry,
    trainer::Training,
};
use crate::{
    backend::{allocator, memory},
    config::{Arch, Config},
    protocol::{Host, Reason, summary::Measured},
    run::{
        RunDir, checkpoint as stored,
        goes_on::{self, GoesOn},
        record::Record,
        summary::Finish,
    },
};

/// How the run ended, and what the engine could say about it; nothing when it failed half-way.
pub(super) struct Over {
    pub(super) reason: Reason,
    pub(super) message: Option<String>,
    pub(super) done: Option<(Done, Measured)>,
    /// It goes on with other settings.
    pub(super) turn: Option<Turn>,
    /// Settings with which it would not run out of memory again; none when it did not run out.
    pub(super) advised: Vec<(&'static str, String)>,
}

impl Over {
    pub(super) const fn failed(message: String) -> Self {
        Self { reason: Reason::Failed, message: Some(message), done: None, turn: None, advised: Vec::new() }
    }

    /// What the engine could not see: it had not begun, or was about to end.
    pub(super) fn panicked(panic: &(dyn Any + Send), config: &Config) -> Self {
        let words = fault::words(panic);
        let fault = Fault::of(words);
        let reason = fault.as_ref().map_or(Reason::Failed, Fault::reason);
        let ours = || match config.model.arch {
            Arch::Own => {
                format!(
                    "the task `{}` failed with a panic, worker.log says where: {words}",
                    config.model.name()
                )
            }
            _ => words.to_owned(),
        };
        let advice = fault.as_ref().and_then(|fault| fault.advice(config));
        let message = fault.map_or_else(ours, |fault| fault.sentence(config, Phase::Start, advice.as_ref()));
        let advised = advice.map(|advice| advice.settings).unwrap_or_default();
        Self { reason, message: Some(message), done: None, turn: None, advised }
    }
}

/// What is counted of tensors while they are there.
pub(super) fn measured(training: &dyn Training) -> Measured {
    let optimizer = training.optimizer();
    let own = optimizer.names().into_iter().flat_map(|name| optimizer.entries(&name));
    let entries: Vec<_> = own.chain(optimizer.shared()).collect();
    Measured {
        parameter_bytes: training.parameter_bytes(),
        state_elements: entries.iter().map(crate::optim::Entry::elements).sum(),
        state_bytes: entries.iter().map(crate::optim::Entry::bytes).sum(),
        ..Measured::default()
    }
}

/// What the summary says beside the record; of a run that failed half-way, what the record tells.
pub(super) fn finish(run: &RunDir, record: &Record, over: &Over, wall: Duration, baseline: u64) -> Finish {
    let so_far = Finish::so_far(record);
    let (counts, measured) = match &over.done {
        Some((done, measured)) => {
            let forked = record.header.as_ref().and_then(|header| header.forked_from.as_ref());
            let own = done.tokens.saturating_sub(forked.map_or(0, |from| from.tokens));
            let rate = (!done.busy.is_zero()).then(|| own as f64 / done.busy.as_secs_f64());
            ((done.updates, done.tokens, rate), measured.clone())
        }
        None => ((so_far.updates, so_far.tokens, so_far.tokens_per_second), so_far.measured),
    };
    let (updates, tokens, tokens_per_second) = counts;
    let measured = with_peaks(measured, record, baseline);
    let total = record.header.as_ref().map_or(0, |header| header.total_updates);
    let goes_on = match over.reason {
        // Only its end went wrong: there is nothing left to train.
        _ if total > 0 && updates >= total && stored::reaches(run, updates) => GoesOn::Not,
        // A folder that cannot be read has nothing to go on from.
        Reason::OutOfMemory => goes_on::after_out_of_memory(run, &over.advised).unwrap_or(GoesOn::Not),
        _ => GoesOn::Resumed,
    };
    Finish {
        reason: over.reason,
        goes_on,
        updates,
        tokens,
        wall_seconds: wall.as_secs_f64(),
        tokens_per_second,
        measured,
    }
}

/// The peaks that telemetry saw; the allocator's own is exact.
fn with_peaks(measured: Measured, record: &Record, baseline: u64) -> Measured {
    let peak = allocator::peak_bytes();
    let mut peaks = record.totals.peaks;
    // What the device's allocator has kept count of since the last reading.
    let device = record.header.as_ref().and_then(|header| memory::device(header.device.parse().ok()?));
    peaks.apply(&telemetry::with_device(Host::default(), device));
    let exact = (peak > 0).then_some(peak);
    peaks.allocator = exact.max(peaks.allocator);
    // The operating system counts both in its own time: one may be ahead.
    peaks.host_rss = telemetry::resident_peak().max(peaks.host_rss);
    let counted = if device.is_some() { "libtorch's allocator, " } else { "" };
    peaks.tell(Measured {
        baseline_bytes: exact.map(|_| baseline),
        peak_source: format!("the worker's allocator, {counted}the operating system, NVML once a second"),
        ..measured
    })
}
