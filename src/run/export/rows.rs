//! One row an update, with the metrics' names as columns: what CSV and JSON lines have in common.
//!
//! What is the same in every row is not in them: settings, name and note are in the summary, which `--format json` writes.

use std::collections::BTreeMap;

use super::kept::{Kept, Progress};
use crate::{
    protocol::{Event, Host, TextSample, Update, Validation},
    run::{RunDir, RunError},
};

/// The columns, in order.
pub const COLUMNS: [&str; 21] = [
    "update",
    "time",
    "tokens",
    "micro_batches",
    "train/loss",
    "train/learning_rate",
    "train/grad_norm",
    "perf/tokens_per_second",
    "skipped",
    "val/loss",
    "val/accuracy",
    "val/f1",
    "val/f1_macro",
    "mem/host_rss",
    "mem/allocator",
    "mem/gpu_process_used",
    "mem/gpu_allocated",
    "mem/gpu_reserved",
    "perf/flops_per_second",
    "perf/mfu",
    "sys/gpu_energy",
];

/// What stands in one place of a row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Cell {
    /// There was no such event.
    Empty,
    Whole(u64),
    Float(f64),
    Flag(bool),
}

impl Cell {
    fn whole(value: Option<u64>) -> Self {
        value.map_or(Self::Empty, Self::Whole)
    }

    fn float(value: Option<f64>) -> Self {
        value.map_or(Self::Empty, Self::Float)
    }
}

/// What is known of one update.
#[derive(Debug, Clone, Default)]
struct Row {
    number: u64,
    update: Option<Update>,
    validation: Option<Validation>,
    /// The newest reading before the next row.
    host: Option<Host>,
    sample: Option<TextSample>,
}

impl Row {
    fn cells(&self) -> [Cell; COLUMNS.len()] {
        let (update, validation, host) = (self.update.as_ref(), self.validation.as_ref(), self.host.as_ref());
        [
            Cell::Whole(self.number),
            Cell::float(update.map(|u| u.time).or(validation.map(|v| v.time))),
            Cell::whole(update.map(|u| u.tokens)),
            Cell::whole(update.map(|u| u.micro_batches)),
            Cell::float(update.map(|u| u.loss)),
            Cell::float(update.map(|u| u.learning_rate)),
            Cell::float(update.map(|u| u.grad_norm)),
            Cell::float(update.map(|u| u.tokens_per_second)),
            update.map_or(Cell::Empty, |u| Cell::Flag(u.skipped)),
            Cell::float(validation.map(|v| v.loss)),
            Cell::float(validation.and_then(|v| v.accuracy)),
            Cell::float(validation.and_then(|v| v.f1)),
            Cell::float(validation.and_then(|v| v.f1_macro)),
            Cell::whole(host.and_then(|h| h.host_rss)),
            Cell::whole(host.and_then(|h| h.allocator)),
            Cell::whole(host.and_then(|h| h.gpu_process_used)),
            Cell::whole(host.and_then(|h| h.gpu_allocated)),
            Cell::whole(host.and_then(|h| h.gpu_reserved)),
            Cell::float(update.and_then(|u| u.flops_per_second)),
            Cell::float(update.and_then(|u| u.mfu)),
            Cell::float(host.and_then(|h| h.gpu_energy)),
        ]
    }
}

/// Hands over the rows of a run, oldest first, each with the text that the model wrote after that update.
///
/// # Errors
/// The record cannot be read, or `take` fails.
pub fn each<E: From<RunError>>(
    run: &RunDir,
    progress: Progress<'_>,
    mut take: impl FnMut(&[Cell; COLUMNS.len()], Option<&TextSample>) -> Result<(), E>,
) -> Result<(), E> {
    let mut kept = Kept::read(run, progress)?;
    let mut validations = std::mem::take(&mut kept.validations);
    // Those of updates that have had no row yet.
    let mut samples: BTreeMap<u64, TextSample> = BTreeMap::new();
    let mut held: Option<Row> = None;
    let mut hand_over = |row: &Row| take(&row.cells(), row.sample.as_ref());
    let wanted = |kind: &str| matches!(kind, "update" | "host" | "sample");
    kept.each(run, wanted, progress, |event| {
        match event {
            Event::Update(update) => {
                if let Some(row) = held.take() {
                    hand_over(&row)?;
                }
                // Not every update has an event, and those without may have been validated.
                while let Some(entry) = validations.first_entry().filter(|entry| *entry.key() < update.update)
                {
                    let (number, validation) = entry.remove_entry();
                    let sample = samples.remove(&number);
                    hand_over(&Row { number, validation: Some(validation), sample, ..Row::default() })?;
                }
                samples.clear();
                let validation = validations.remove(&update.update);
                held =
                    Some(Row { number: update.update, update: Some(update), validation, ..Row::default() });
            }
            Event::Host(host) => {
                if let Some(row) = &mut held {
                    row.host = Some(host);
                }
            }
            Event::Sample(sample) => match &mut held {
                Some(row) if row.number == sample.update => row.sample = Some(sample),
                _ => drop(samples.insert(sample.update, sample)),
            },
            _ => {}
        }
        Ok::<(), E>(())
    })?;
    if let Some(row) = held {
        hand_over(&row)?;
    }
    for (number, validation) in validations {
        let sample = samples.remove(&number);
        hand_over(&Row { number, validation: Some(validation), sample, ..Row::default() })?;
    }
    Ok(())
}
