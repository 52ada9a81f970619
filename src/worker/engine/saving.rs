//! Checkpoints, copied between two updates and written beside training.

use std::time::Instant;

use super::Engine;
use crate::{
    protocol::{self, Event},
    run::checkpoint::Progress,
    worker::{
        checkpoint::{Position, Snapshot},
        keeper::{Kept, Told},
    },
};

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

    /// The checkpoint that a run ends with, on the disk when this returns, and not told yet; nothing where none is due, or
    /// where it could not be written, which is told.
    pub(super) fn keep_last(&mut self) -> std::io::Result<Option<Kept>> {
        if !self.intact || !self.is_due() {
            return Ok(None);
        }
        let (snapshot, time) = self.copy()?;
        let kept = self.keeper.keep(snapshot, time);
        self.last_checkpoint = kept.as_ref().map(|_| self.done.updates);
        Ok(kept)
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
        // One copy at a time: the one before must be on the disk. What became of it has been told.
        let _ = self.keeper.wait();
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
}
