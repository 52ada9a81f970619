//! Checkpoints, copied between two updates and written beside training.

use std::time::Instant;

use super::Engine;
use crate::{
    protocol::{self, Event},
    run::checkpoint::Progress,
    worker::{
        checkpoint::{Position, Snapshot},
        keeper::Told,
    },
};

impl Engine<'_> {
    /// Copies everything for a checkpoint and has it written beside training. There is none before the first update,
    /// and no second one of an update whose first is on the disk.
    pub(in crate::worker) fn checkpoint(&mut self, told: Option<Told>) -> std::io::Result<()> {
        if !self.intact {
            return Ok(());
        }
        let update = self.done.updates;
        if self.keeper.look().is_err() {
            self.last_checkpoint = None;
        }
        if update == 0 || (self.last_checkpoint == Some(update) && self.keeper.wait().is_ok()) {
            if let Some(told) = told {
                told(Ok(()));
            }
            return Ok(());
        }
        // One copy at a time: the one before must be on the disk. What became of it has been told.
        let _ = self.keeper.wait();
        let time = self.time();
        let position = Position {
            update,
            tokens: self.done.tokens,
            config: &self.around.config,
            cursor: self.cursor,
            progress: Progress {
                time,
                busy: self.done.busy.as_secs_f64(),
                skipped_in_a_row: self.skipped_in_a_row,
                learning_rate: self.lr_override,
                last_validation: self.last_validation,
                val_loss: self.val_loss.filter(|_| self.last_validation == update),
            },
        };
        let snapshot = Snapshot::take(&self.around.run, &*self.training, position)?;
        self.send(Event::Snapshot(protocol::Snapshot { update, time }));
        // What cannot be begun is due again.
        self.last_checkpoint = None;
        self.keeper.begin(snapshot, time, told)?;
        (self.last_checkpoint, self.last_checkpoint_at) = (Some(update), Instant::now());
        Ok(())
    }
}
