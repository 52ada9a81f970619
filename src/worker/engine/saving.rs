//! Checkpoints, copied between two updates and written beside training.

use std::time::{Duration, Instant};

use super::Engine;
use crate::{
    config::CheckpointConfig,
    protocol::{self, Event, Level},
    run::checkpoint::Progress,
    worker::{
        checkpoint::{Position, Snapshot},
        keeper::{Kept, Told},
    },
};

/// Least time between a checkpoint and one of the best validation so far: where the loss falls at every validation, writing
/// must not become most of the work.
const BEST_APART: Duration = Duration::from_secs(10);
/// Waiting that is worth a word.
const LONG: Duration = Duration::from_secs(1);

/// Whether there is one after that update. `since` is the time since the last one was begun, and `improved` says that the
/// validation after the update was the best so far.
pub(super) fn is_wanted(config: &CheckpointConfig, update: u64, since: Duration, improved: bool) -> bool {
    let (updates, seconds) = (config.every_updates, config.every_seconds);
    let best = improved && config.keep_best && (updates > 0 || seconds > 0) && since >= BEST_APART;
    best || (updates > 0 && update.is_multiple_of(updates))
        || (seconds > 0 && since >= Duration::from_secs(seconds))
}

impl Engine<'_> {
    /// Copies everything for a checkpoint and has it written beside training. There is none before the first update,
    /// and no second one of an update whose first is on the disk.
    pub(in crate::worker) fn checkpoint(&mut self, told: Option<Told>) -> std::io::Result<()> {
        if !self.intact {
            return Ok(());
        }
        if !self.is_due() {
            if let Some(told) = told {
                told(Ok(()));
            }
            return Ok(());
        }
        let (snapshot, time) = self.copy()?;
        self.keeper.begin(snapshot, time, told)?;
        (self.last_checkpoint, self.last_checkpoint_at) = (Some(self.done.updates), Instant::now());
        Ok(())
    }

    /// The checkpoint that a run ends with, on the disk when this returns, and not told yet; nothing where none is due.
    ///
    /// # Errors
    /// It could not be written, which is said in the record.
    pub(super) fn keep_last(&mut self) -> std::io::Result<Option<Kept>> {
        if !self.intact || !self.is_due() {
            return Ok(None);
        }
        let (snapshot, time) = self.copy().inspect_err(|error| {
            self.alert(Level::Error, format!("the last checkpoint could not be begun: {error}"));
        })?;
        let kept = self.keeper.keep(snapshot, time)?;
        self.last_checkpoint = Some(self.done.updates);
        Ok(Some(kept))
    }

    /// Tells of that checkpoint, with the loss of the validation since.
    pub(super) fn tell_last(&self, mut kept: Kept) {
        let progress = self.progress(kept.info.progress.time);
        let changed = kept.info.progress != progress;
        kept.info.progress = progress;
        self.keeper.tell(kept, changed);
    }

    /// Whether the update has no checkpoint yet.
    fn is_due(&mut self) -> bool {
        let update = self.done.updates;
        if self.keeper.look().is_err() {
            self.last_checkpoint = None;
        }
        update > 0 && (self.last_checkpoint != Some(update) || self.keeper.wait().is_err())
    }

    /// Everything as it is now, and the time.
    fn copy(&mut self) -> std::io::Result<(Snapshot, f64)> {
        self.wait_for_the_last_one();
        let time = self.time();
        let update = self.done.updates;
        let position = Position {
            update,
            tokens: self.done.tokens,
            config: &self.around.config,
            cursor: self.cursor,
            progress: self.progress(time),
        };
        let snapshot = Snapshot::take(&self.around.run, &*self.training, position)?;
        self.send(Event::Snapshot(protocol::Snapshot { update, time }));
        // What cannot be begun is due again.
        self.last_checkpoint = None;
        Ok((snapshot, time))
    }

    fn progress(&self, time: f64) -> Progress {
        Progress {
            time,
            busy: self.done.busy.as_secs_f64(),
            skipped_in_a_row: self.skipped_in_a_row,
            learning_rate: self.lr_override,
            last_validation: self.last_validation,
            val_loss: self.val_loss.filter(|_| self.last_validation == self.done.updates),
        }
    }

    /// One copy at a time: the one before must be on the disk. What became of it is told by who writes it.
    fn wait_for_the_last_one(&mut self) {
        let begun = Instant::now();
        let _ = self.keeper.wait();
        let waited = begun.elapsed();
        if waited >= LONG && !std::mem::replace(&mut self.told_of_waiting, true) {
            let message = format!(
                "training waited {:.1} s for the last checkpoint to be written: they are closer together than this disk \
                 can take, raise checkpoint.every_updates or checkpoint.every_seconds",
                waited.as_secs_f64()
            );
            self.alert(Level::Warning, message);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_due_by_updates_by_the_clock_and_for_the_best_validation() {
        let config = |every_updates, every_seconds, keep_best| CheckpointConfig {
            every_updates,
            every_seconds,
            keep_last: 2,
            keep_best,
        };
        let seconds = Duration::from_secs;
        assert!(is_wanted(&config(20, 0, false), 40, seconds(0), false));
        assert!(!is_wanted(&config(20, 0, true), 41, seconds(999), false));
        assert!(is_wanted(&config(0, 60, true), 41, seconds(60), false));
        assert!(is_wanted(&config(0, 600, true), 41, seconds(10), true), "the loss has never been lower");
        assert!(!is_wanted(&config(0, 600, true), 41, seconds(9), true), "the last one is too young");
        assert!(!is_wanted(&config(0, 600, false), 41, seconds(99), true));
        assert!(!is_wanted(&config(0, 0, true), 41, seconds(99), true), "none but at the end are wanted");
    }
}
