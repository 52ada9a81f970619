//! The curves of a run, read off its record.

use super::kept::{Kept, Progress};
use crate::{
    protocol::{Event, Header, Host},
    run::{RunDir, RunError, State},
};

/// A point: an update, and a figure at it.
pub(super) type Point = (u64, f64);

/// Everything the panels show.
#[derive(Debug, Default)]
pub(super) struct Curves {
    pub(super) header: Option<Box<Header>>,
    pub(super) loss: Vec<Point>,
    pub(super) validation: Vec<Point>,
    pub(super) rate: Vec<Point>,
    pub(super) norm: Vec<Point>,
    /// Readings in bytes by their source; a source without a reading is left out.
    pub(super) memory: Vec<(&'static str, Vec<Point>)>,
}

/// A source of readings, and where they stand.
type Source = (&'static str, fn(&Host) -> Option<u64>);

const SOURCES: [Source; 5] = [
    ("resident (operating system)", |host| host.host_rss),
    ("allocated (worker's allocator)", |host| host.allocator),
    ("GPU process (NVML)", |host| host.gpu_process_used),
    ("GPU tensors (libtorch's allocator)", |host| host.gpu_allocated),
    ("GPU pool (libtorch's allocator)", |host| host.gpu_reserved),
];

impl Curves {
    /// Reads a run.
    ///
    /// # Errors
    /// The record cannot be read, or there is none yet.
    pub(super) fn read(run: &RunDir, progress: Progress<'_>) -> Result<Self, RunError> {
        let mut kept = Kept::read(run, progress)?;
        let header = kept.header.take();
        if header.is_none() {
            return Err(crate::run::summary::no_record(run, State::of(run, None, false)));
        }
        let validation = kept.validations.values().map(|v| (v.update, v.loss)).collect();
        let mut curves = Self { header, validation, ..Self::default() };
        let mut readings: [Vec<Point>; SOURCES.len()] = Default::default();
        let wanted = |kind: &str| matches!(kind, "update" | "host");
        kept.each(run, wanted, progress, |event| {
            match event {
                Event::Update(update) => {
                    curves.loss.push((update.update, update.loss));
                    curves.rate.push((update.update, update.learning_rate));
                    curves.norm.push((update.update, update.grad_norm));
                }
                Event::Host(host) => {
                    for ((_, reading), points) in SOURCES.iter().zip(&mut readings) {
                        if let Some(bytes) = reading(&host) {
                            points.push((host.update, bytes as f64));
                        }
                    }
                }
                _ => {}
            }
            Ok::<(), RunError>(())
        })?;
        let named = SOURCES.iter().zip(readings).map(|((name, _), points)| (*name, points));
        curves.memory = named.filter(|(_, points)| !points.is_empty()).collect();
        Ok(curves)
    }
}
