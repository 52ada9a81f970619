//! One row an update, with the metrics' names as columns: what CSV and JSON lines have in common.

use super::kept::{Kept, Progress};
use crate::{
    protocol::{Event, Host, Update, Validation},
    run::{RunDir, RunError},
};

/// The columns, in order.
pub const COLUMNS: [&str; 18] = [
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
        ]
    }
}

/// Hands over the rows of a run, oldest first.
///
/// # Errors
/// The record cannot be read, or `take` fails.
pub fn each<E: From<RunError>>(
    run: &RunDir,
    progress: Progress<'_>,
    mut take: impl FnMut(&[Cell; COLUMNS.len()]) -> Result<(), E>,
) -> Result<(), E> {
    let mut kept = Kept::read(run, progress)?;
    let mut validations = std::mem::take(&mut kept.validations);
    let mut held: Option<Row> = None;
    let wanted = |kind: &str| matches!(kind, "update" | "host");
    kept.each(run, wanted, progress, |event| {
        match event {
            Event::Update(update) => {
                if let Some(row) = held.take() {
                    take(&row.cells())?;
                }
                // Not every update has an event, and those without may have been validated.
                while let Some(entry) = validations.first_entry().filter(|entry| *entry.key() < update.update)
                {
                    let (number, validation) = entry.remove_entry();
                    take(&Row { number, validation: Some(validation), ..Row::default() }.cells())?;
                }
                let validation = validations.remove(&update.update);
                held = Some(Row { number: update.update, update: Some(update), validation, host: None });
            }
            Event::Host(host) => {
                if let Some(row) = &mut held {
                    row.host = Some(host);
                }
            }
            _ => {}
        }
        Ok::<(), E>(())
    })?;
    if let Some(row) = held {
        take(&row.cells())?;
    }
    for (number, validation) in validations {
        take(&Row { number, validation: Some(validation), ..Row::default() }.cells())?;
    }
    Ok(())
}
