//! What a run's events add up to: enough for pages, lists and comparisons, not the curves.

mod totals;

use std::{
    collections::{BTreeMap, VecDeque},
    io,
};

use serde::Serialize;

use super::{RunDir, RunError, Tail};
use crate::protocol::{
    Alert, CheckpointWritten, CommandRecord, Event, Header, Lineage, RunEnded, StateReport, TextSample,
    Update, Window,
};

pub use totals::{Energy, Peaks, Totals, ValidationPoint};

/// Texts that are kept of those that a model wrote.
const SAMPLES: usize = 32;

/// The fold of a run's events.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Record {
    pub header: Option<Box<Header>>,
    /// What depends on the updates made, and goes back with a resumed run.
    pub totals: Totals,
    /// Every validation, oldest first.
    pub validations: Vec<ValidationPoint>,
    /// The newest texts that the model wrote, oldest first.
    pub samples: VecDeque<TextSample>,
    pub alerts: Vec<Alert>,
    pub commands: Vec<CommandRecord>,
    pub checkpoints: Vec<CheckpointWritten>,
    /// The window being filled, if the worker said so since the last update.
    pub window: Option<Window>,
    /// The newest statistics of the optimizer's state.
    pub state: Option<StateReport>,
    pub ended: Option<Box<RunEnded>>,
    pub paused: bool,
    /// The update of each resumption, oldest first.
    pub resumed: Vec<u64>,
    /// Settings that are others since a resumption, oldest first.
    pub changed: Vec<SettingChange>,
    /// Lines of the record that could not be read.
    pub skipped_lines: u64,
    /// New lows of the training loss, so that the best one is known after going back, too.
    lows: Vec<(u64, f64)>,
    /// The totals at each checkpoint, for a run that goes back to it.
    marks: BTreeMap<u64, Totals>,
    /// The totals when a checkpoint was begun that is not on disk yet.
    copied: Option<(u64, Box<Totals>)>,
}

/// A setting that a resumption changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SettingChange {
    /// The updates after this one were made with the new value.
    pub from_update: u64,
    #[serde(skip)]
    pub key: String,
    /// The value that held until then.
    pub before: String,
}

impl Record {
    /// Reads the whole record of a run.
    ///
    /// # Errors
    /// `events.jsonl` exists and cannot be read.
    pub fn read(run: &RunDir) -> Result<Self, RunError> {
        Self::fold(run, Tail::open(run).with_newest_state(), |_| {})
    }

    /// The same, showing every event to `look` on the way.
    ///
    /// # Errors
    /// `events.jsonl` exists and cannot be read.
    pub fn read_with(run: &RunDir, look: impl FnMut(&Event)) -> Result<Self, RunError> {
        Self::fold(run, Tail::open(run), look)
    }

    fn fold(run: &RunDir, mut tail: Tail, mut look: impl FnMut(&Event)) -> Result<Self, RunError> {
        let mut record = Self::default();
        let read: io::Result<bool> = tail.each(u64::MAX, |event| {
            look(&event);
            record.take(event);
        });
        read.map_err(RunError::io("cannot read", &run.events()))?;
        record.skipped_lines = tail.skipped();
        Ok(record)
    }

    /// Takes one more event into account.
    pub fn apply(&mut self, event: &Event) {
        self.take(event.clone());
    }

    /// The same without copying it.
    pub fn take(&mut self, event: Event) {
        match event {
            Event::Header(header) => {
                // The first line counts; what changed since is said when the run is resumed.
                self.header.get_or_insert(header);
            }
            Event::Update(update) => self.update(update),
            Event::Window(window) => self.window = Some(window),
            Event::Validation(validation) => {
                self.totals.time = validation.time;
                self.validations.push(ValidationPoint {
                    update: validation.update,
                    time: validation.time,
                    tokens: self.tokens(),
                    loss: validation.loss,
                    accuracy: validation.accuracy,
                    f1: validation.f1,
                    f1_macro: validation.f1_macro,
                });
            }
            Event::Sample(sample) => {
                self.totals.time = sample.time;
                if self.samples.len() == SAMPLES {
                    self.samples.pop_front();
                }
                self.samples.push_back(sample);
            }
            Event::Host(host) => {
                self.totals.time = host.time;
                self.totals.peaks.apply(&host);
                if let Some(joules) = host.gpu_energy {
                    self.totals.energy.now = joules;
                }
                self.totals.host = Some(host);
            }
            Event::Alert(alert) => self.alerts.push(alert),
            Event::State(report) => self.state = Some(report),
            Event::Checkpoint(checkpoint) => {
                // It holds what was there when it was copied; updates have been made since.
                let copied = self.copied.take().filter(|(update, _)| *update == checkpoint.update);
                let totals = copied.map_or_else(|| self.totals.clone(), |(_, totals)| *totals);
                self.marks.insert(checkpoint.update, totals);
                self.checkpoints.push(checkpoint);
            }
            Event::Snapshot(snapshot) => {
                self.totals.time = snapshot.time;
                self.copied = Some((snapshot.update, Box::new(self.totals.clone())));
            }
            Event::Resumed(resumed) => {
                let peaks = self.totals.peaks;
                self.go_back(resumed.from_update);
                // What earlier processes needed is needed still, unless this one trains elsewhere.
                let stays = self.header.as_ref().is_none_or(|header| resumed.stays_on(&header.device));
                self.totals.peaks = if stays { peaks } else { Peaks::default() };
                self.changed.extend(resumed.changed.into_iter().map(|[key, before, _]| SettingChange {
                    from_update: resumed.from_update,
                    key,
                    before,
                }));
                if let Some(header) = resumed.header {
                    self.header = Some(header);
                }
            }
            Event::Command(command) => self.command(command),
            Event::RunEnded(ended) => {
                self.window = None;
                self.paused = false;
                self.totals.peaks = self.totals.peaks.most(Peaks::told(&ended.summary.measured));
                self.ended = Some(ended);
            }
        }
    }

    fn update(&mut self, update: Update) {
        self.window = None;
        let tokens = update.tokens.saturating_sub(self.tokens());
        if update.tokens_per_second.is_finite() && update.tokens_per_second > 0.0 {
            let seconds = tokens as f64 / update.tokens_per_second;
            self.totals.training_seconds += seconds;
            self.totals.flops += update.flops_per_second.unwrap_or(0.0) * seconds;
        }
        if update.skipped {
            self.totals.skipped += 1;
        } else if update.loss.is_finite() {
            self.totals.train_loss = Some(update.loss);
            if self.lows.last().is_none_or(|&(_, low)| update.loss < low) {
                self.lows.push((update.update, update.loss));
            }
        }
        self.totals.time = update.time;
        self.totals.last = Some(update);
    }

    fn command(&mut self, command: CommandRecord) {
        if command.outcome == "applied" {
            match &*command.name {
                "pause" => self.paused = true,
                "resume" => self.paused = false,
                _ => {}
            }
        }
        self.totals.time = command.time;
        self.commands.push(command);
    }

    /// Drops what belongs to updates after this one.
    fn go_back(&mut self, update: u64) {
        // Killed between the checkpoint and the line that tells of it.
        if let Some((at, totals)) = self.copied.take()
            && at == update
        {
            self.marks.insert(at, *totals);
        }
        self.marks.retain(|&at, _| at <= update);
        self.totals = self.marks.last_key_value().map(|(_, totals)| totals.clone()).unwrap_or_default();
        self.totals.energy.next_worker();
        self.validations.retain(|point| point.update <= update);
        self.samples.retain(|sample| sample.update <= update);
        self.alerts.retain(|alert| alert.update <= update);
        self.commands.retain(|command| command.update <= update);
        self.checkpoints.retain(|checkpoint| checkpoint.update <= update);
        self.lows.retain(|&(at, _)| at <= update);
        self.state = self.state.take().filter(|report| report.update <= update);
        self.window = None;
        self.ended = None;
        self.paused = false;
        // What changed further on holds from here: nothing of what was made in between counts.
        self.changed.iter_mut().for_each(|change| change.from_update = change.from_update.min(update));
        self.resumed.push(update);
    }

    /// Updates made, as of the newest event.
    pub fn updates(&self) -> u64 {
        let begun = self.forked_from().map_or(0, |from| from.update);
        let told = self.totals.last.as_ref().map_or(begun, |update| update.update);
        let stored = self.checkpoints.last().map_or(0, |checkpoint| checkpoint.update);
        self.ended.as_ref().map_or_else(|| told.max(stored), |ended| ended.summary.updates)
    }

    /// Real input tokens trained, as of the newest update event.
    pub fn tokens(&self) -> u64 {
        let begun = || self.forked_from().map_or(0, |from| from.tokens);
        self.totals.last.as_ref().map_or_else(begun, |update| update.tokens)
    }

    fn forked_from(&self) -> Option<&Lineage> {
        self.header.as_ref().and_then(|header| header.forked_from.as_ref())
    }

    /// Updates that were skipped because something was not finite.
    pub const fn skipped_updates(&self) -> u64 {
        self.totals.skipped
    }

    /// Loss of the newest update that was not skipped, in nats.
    pub const fn final_train_loss(&self) -> Option<f64> {
        self.totals.train_loss
    }

    /// The lowest training loss of any update.
    pub fn best_train_loss(&self) -> Option<f64> {
        self.lows.last().map(|&(_, loss)| loss)
    }

    /// The newest validation.
    pub fn last_validation(&self) -> Option<&ValidationPoint> {
        self.validations.last()
    }

    /// The newest validation loss.
    pub fn final_val_loss(&self) -> Option<f64> {
        self.validations.last().map(|point| point.loss)
    }

    /// The lowest validation loss.
    pub fn best_val_loss(&self) -> Option<f64> {
        self.validations.iter().map(|point| point.loss).filter(|loss| !loss.is_nan()).min_by(f64::total_cmp)
    }

    /// Tokens over the time the updates took, so that pauses and validations do not count.
    pub fn tokens_per_second(&self) -> Option<f64> {
        let seconds = self.totals.training_seconds;
        let begun = self.forked_from().map_or(0, |from| from.tokens);
        (seconds > 0.0).then(|| self.tokens().saturating_sub(begun) as f64 / seconds)
    }

    /// Operations that the model asks for over the time the updates took; nothing where they are not counted.
    pub fn flops_per_second(&self) -> Option<f64> {
        let Totals { flops, training_seconds, .. } = self.totals;
        (flops > 0.0 && training_seconds > 0.0).then(|| flops / training_seconds)
    }

    /// The same as a share of the device's matmul peak, where that was measured before the run.
    pub fn mfu(&self) -> Option<f64> {
        let peak = self.header.as_ref()?.matmul_peak.as_ref()?.flops_per_second;
        Some(self.flops_per_second()? / peak)
    }

    /// Energy over the tokens that this run trained itself, of so many in all.
    pub fn joules_per_token(&self, tokens: u64) -> Option<f64> {
        let own = tokens.saturating_sub(self.forked_from().map_or(0, |from| from.tokens));
        (own > 0).then(|| self.totals.energy.joules().map(|joules| joules / own as f64))?
    }
}

#[cfg(test)]
mod tests;
