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
                self.go_back(resumed.from_update);
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
mod tests {
    use super::*;
    use crate::{
        protocol::{Host, Level, Resumed, Snapshot},
        run::sample::{self, update, validation},
    };

    fn fold(events: &[Event]) -> Record {
        let mut record = Record::default();
        events.iter().for_each(|event| record.apply(event));
        record
    }

    fn checkpoint(update: u64) -> Event {
        Event::Checkpoint(CheckpointWritten {
            update,
            time: update as f64 / 2.0,
            path: format!("checkpoints/{update:08}"),
            bytes: 10,
        })
    }

    fn host(update: u64, peak: u64) -> Event {
        Event::Host(Host {
            update,
            time: update as f64,
            allocator: Some(peak / 2),
            allocator_peak: Some(peak),
            ..Host::default()
        })
    }

    #[test]
    fn figures_are_those_of_the_events() {
        let record = fold(&[
            update(1, 5.0),
            host(1, 100),
            update(2, 3.0),
            validation(2, 3.5),
            update(3, 4.0),
            host(3, 80),
            validation(3, 3.6),
        ]);
        assert_eq!((record.updates(), record.tokens(), record.skipped_updates()), (3, 1536, 0));
        assert_eq!((record.final_train_loss(), record.best_train_loss()), (Some(4.0), Some(3.0)));
        assert_eq!((record.final_val_loss(), record.best_val_loss()), (Some(3.6), Some(3.5)));
        assert_eq!(record.totals.peaks.allocator, Some(100));
        assert_eq!(record.tokens_per_second(), Some(1024.0));
        assert_eq!(record.validations[0].tokens, 1024);
    }

    #[test]
    fn a_skipped_update_is_counted_and_its_loss_is_not_used() {
        let Event::Update(mut bad) = update(2, f64::NAN) else { unreachable!() };
        bad.skipped = true;
        let record = fold(&[update(1, 5.0), Event::Update(bad)]);
        assert_eq!(record.skipped_updates(), 1);
        assert_eq!((record.final_train_loss(), record.best_train_loss()), (Some(5.0), Some(5.0)));
    }

    #[test]
    fn a_resumed_run_is_what_it_would_be_without_the_updates_it_dropped() {
        let start = [update(1, 5.0), host(1, 100), update(2, 4.0), validation(2, 4.1), checkpoint(2)];
        let alert = Alert { update: 3, time: 1.0, level: Level::Error, message: "lost".into() };
        let lost = [update(3, 1.0), host(3, 900), validation(3, 0.5), Event::Alert(alert), checkpoint(4)];
        let after = [update(3, 3.0), validation(3, 3.1)];
        let resumed = [Event::resumed(2)];
        let mut told = fold(&[&start[..], &lost, &resumed, &after].concat());
        assert_eq!(told.resumed, [2]);
        told.resumed.clear();
        assert_eq!(told, fold(&[&start[..], &after].concat()));
    }

    #[test]
    fn a_changed_setting_is_known_with_the_update_from_which_it_holds() {
        let resumed = |from_update, before: &str| {
            let changed = vec![["train.max_updates", before, "x"].map(str::to_owned)];
            Event::Resumed(Box::new(Resumed { from_update, changed, ..Resumed::default() }))
        };
        let record =
            fold(&[update(1, 5.0), update(2, 5.0), resumed(2, "600"), update(3, 4.0), Event::resumed(1)]);
        let known = record.changed.iter().map(|change| (change.from_update, &*change.before));
        assert_eq!(known.collect::<Vec<_>>(), [(1, "600")], "the updates since the second were dropped");
    }

    #[test]
    fn a_run_that_resumes_without_a_checkpoint_starts_over() {
        let record = fold(&[update(1, 5.0), host(1, 9), Event::resumed(0)]);
        assert_eq!((record.updates(), record.best_train_loss()), (0, None));
        assert_eq!(record.totals, Totals::default());
    }

    #[test]
    fn a_checkpoint_is_of_the_moment_it_was_copied_whenever_it_reached_the_disk() {
        let copied = Event::Snapshot(Snapshot { update: 2, time: 1.0 });
        let start = [update(1, 5.0), update(2, 4.0), copied];
        let expected = fold(&start).totals;
        let late = [update(3, 3.0), checkpoint(2), update(4, 2.0)];
        // Killed before it could be told: it is on the disk all the same.
        let never = [update(3, 3.0)];
        for after in [&late[..], &never] {
            let told = fold(&[&start[..], after, &[Event::resumed(2)]].concat());
            assert_eq!((&told.totals, told.updates()), (&expected, 2));
            assert_eq!((told.tokens(), told.best_train_loss()), (1024, Some(4.0)));
        }
    }

    #[test]
    fn an_update_skipped_before_the_checkpoint_was_copied_stays_skipped() {
        let skipped = |number| {
            let Event::Update(mut bad) = update(number, f64::NAN) else { unreachable!() };
            bad.skipped = true;
            Event::Update(bad)
        };
        let copied = Event::Snapshot(Snapshot { update: 1, time: 1.0 });
        let record =
            fold(&[update(1, 5.0), skipped(2), copied, skipped(2), checkpoint(1), Event::resumed(1)]);
        assert_eq!(record.skipped_updates(), 1);
    }

    #[test]
    fn energy_and_operations_are_added_up_over_workers() {
        let host = |update, joules| {
            Event::Host(Host { update, time: update as f64, gpu_energy: Some(joules), ..Host::default() })
        };
        let once = fold(&[host(0, 0.0)]);
        assert_eq!(once.totals.energy.joules(), None, "one reading tells nothing");
        let start = [host(0, 0.0), update(1, 5.0), host(1, 40.0), checkpoint(1), host(2, 60.0)];
        let record = fold(&start);
        assert_eq!(record.totals.energy.joules(), Some(60.0));
        assert_eq!(record.joules_per_token(512), Some(60.0 / 512.0));
        // What was lost is not in the run, and the next worker counts from 0.
        let on = fold(&[&start[..], &[Event::resumed(1), host(1, 0.0), host(2, 7.0)]].concat());
        assert_eq!(on.totals.energy.joules(), Some(47.0));

        let Event::Update(mut fast) = update(1, 5.0) else { unreachable!() };
        fast.flops_per_second = Some(3e9);
        let record = fold(&[Event::Update(fast)]);
        assert_eq!((record.flops_per_second(), record.mfu()), (Some(3e9), None));
    }

    #[test]
    fn pause_and_resume_are_known_from_the_commands_that_were_applied() {
        let command = |name: &str, outcome: &str| {
            Event::Command(CommandRecord {
                micro_batches: 0,
                id: 1,
                name: name.into(),
                outcome: outcome.into(),
                update: 1,
                time: 1.0,
                value: None,
                why: None,
            })
        };
        assert!(fold(&[command("pause", "applied"), command("step", "applied")]).paused);
        assert!(!fold(&[command("pause", "rejected")]).paused);
        assert!(!fold(&[command("pause", "applied"), command("resume", "applied")]).paused);
    }

    #[test]
    fn a_record_is_read_from_its_folder_with_its_bad_lines_counted() {
        let (_folder, run) = sample::run("record");
        assert_eq!(Record::read(&run).unwrap(), Record::default());
        let mut writer = crate::run::EventWriter::create(&run, &sample::header(&run)).unwrap();
        writer.append(&update(1, 5.0)).unwrap();
        let mut text = std::fs::read_to_string(run.events()).unwrap();
        text += "garbage\n{\"torn";
        std::fs::write(run.events(), text).unwrap();
        let mut seen = 0;
        let record = Record::read_with(&run, |_| seen += 1).unwrap();
        assert_eq!((seen, record.skipped_lines, record.updates()), (2, 1, 1));
    }
}
