//! What the newest lines of a record say about a run that has not ended.

use std::ops::ControlFlow;

use super::{pulse::Pulse, tail};
use crate::protocol::{Event, Header, summary::Measured};

/// Updates without a command between them that show that the run is not paused: while paused each one is asked for.
const FREE_UPDATES: u32 = 3;

/// What the newest lines say, read backwards.
#[derive(Debug, Default)]
pub(super) struct Newest {
    pub(super) update: Option<u64>,
    pub(super) tokens: u64,
    has_update: bool,
    pub(super) train_loss: Option<f64>,
    pub(super) speed: Option<f64>,
    has_validation: bool,
    pub(super) val_loss: Option<f64>,
    pub(super) paused: Option<bool>,
    updates_without_command: u32,
    pub(super) peak: Option<Measured>,
    pub(super) pulse: Pulse,
    /// The time of the newest update.
    updated: Option<f64>,
    /// Older lines of updates after this one were dropped by a resumption.
    limit: Option<u64>,
}

impl Newest {
    pub(super) fn of(header: &Option<Box<Header>>) -> Self {
        // A run that never validates on the way has nothing to look for.
        let validates = header.as_ref().is_some_and(|header| {
            header.config.train.validate_every > 0 && header.config.data.validation_fraction > 0.0
        });
        Self { has_validation: !validates, ..Self::default() }
    }

    pub(super) fn take(&mut self, line: &[u8]) -> ControlFlow<()> {
        let tail::Line::Event(event) = tail::parse(line) else { return ControlFlow::Continue(()) };
        let counts = |update: u64| self.limit.is_none_or(|limit| update <= limit);
        match event {
            Event::Update(update) if counts(update.update) => {
                self.pulse.worked.get_or_insert(update.time);
                match self.updated {
                    None => self.updated = Some(update.time),
                    Some(newest) => _ = self.pulse.usual.get_or_insert(newest - update.time),
                }
                self.updates_without_command += 1;
                if self.updates_without_command >= FREE_UPDATES {
                    self.paused.get_or_insert(false);
                }
                if !self.has_update {
                    self.has_update = true;
                    self.update = self.update.max(Some(update.update));
                    self.tokens = update.tokens;
                    self.speed = Some(update.tokens_per_second);
                }
                if self.train_loss.is_none() && !update.skipped {
                    self.train_loss = Some(update.loss);
                }
                // Validations come once every so many updates: the first one has nothing before it.
                if update.update == 1 {
                    self.has_validation = true;
                }
            }
            Event::Validation(validation) if counts(validation.update) && self.val_loss.is_none() => {
                self.pulse.worked.get_or_insert(validation.time);
                self.val_loss = Some(validation.loss);
                self.has_validation = true;
            }
            Event::Host(host) if self.peak.is_none() && counts(host.update) => {
                self.pulse.heard.get_or_insert(host.time);
                // The newest reading: the allocator keeps its own peak, the others are as they are now.
                self.peak = host
                    .allocator_peak
                    .map(|peak| Measured { peak_allocator_bytes: Some(peak), ..Measured::default() });
            }
            Event::Command(command) if command.outcome == "applied" => {
                self.updates_without_command = 0;
                self.pulse.worked.get_or_insert(command.time);
                match &*command.name {
                    "pause" | "step" | "step_micro_batch" => self.paused.get_or_insert(true),
                    "resume" => self.paused.get_or_insert(false),
                    _ => &mut false,
                };
            }
            Event::Resumed(resumed) => {
                let from_update = resumed.from_update;
                self.paused.get_or_insert(false);
                self.pulse.worked.get_or_insert(resumed.time);
                self.pulse.heard.get_or_insert(resumed.time);
                self.update = self.update.or(Some(from_update));
                self.limit = Some(self.limit.map_or(from_update, |limit| limit.min(from_update)));
            }
            Event::Header(header) => {
                self.pulse.worked.get_or_insert(header.forked_from.map_or(0.0, |from| from.time));
                return ControlFlow::Break(());
            }
            _ => {}
        }
        if self.has_update && self.has_validation && self.train_loss.is_some() && self.paused.is_some() {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }
}
