//! The loss on the held-out data.

use super::Engine;
use crate::{
    config::Task,
    protocol::{Event, Validation},
    worker::trainer::Evaluation,
};

/// Held-out sequences in one validation of a language model: enough for a steady figure, few enough to cost little.
const VALIDATION_SEQUENCES: usize = 128;

impl Engine<'_> {
    /// Unless it is known for this update, or there is nothing held out.
    pub(super) fn validate(&mut self) {
        let dataset = &self.around.dataset;
        if !self.can_validate
            || dataset.validation_sequences() == 0
            || self.last_validation == self.done.updates
        {
            return;
        }
        // The loss of an earlier update is not this one's, whatever comes of it.
        (self.last_validation, self.val_loss) = (self.done.updates, None);
        let config = &self.around.config;
        let limit = match config.model.arch.task() {
            Task::LanguageModel => VALIDATION_SEQUENCES,
            // Accuracy and F1 are those of all rows; and a task of its own holds out what it wants to see.
            Task::Classification | Task::Own => usize::MAX,
        };
        let mut batches = dataset.validation_batches(config.train.micro_batch, limit);
        let Evaluation { loss, targets, accuracy, f1, f1_macro } = self.training.evaluate(&mut batches);
        if dataset.fault().is_err() {
            // Not all of it could be read. The run ends at the next window.
            return;
        }
        self.val_loss = Some(loss);
        self.best_val = self.best_val.min(loss);
        self.send(Event::Validation(Validation {
            update: self.done.updates,
            time: self.time(),
            loss,
            tokens: targets,
            accuracy,
            f1,
            f1_macro,
        }));
        self.write_text();
    }
}
