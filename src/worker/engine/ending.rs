//! How a run ends: what is kept of it, and what is said when its device gives up.

use std::io;

use super::Engine;
use crate::{
    backend::devices,
    protocol::{Level, Reason},
    run::{checkpoint as stored, script::Given},
    worker::{
        commands::Turn,
        fault::{self, Fault, Phase},
    },
};

/// Why there is no checkpoint: they failed, or none was due.
const UNWRITABLE: &str = "no checkpoint could be written";
const NONE_YET: &str = "no checkpoint had been written, checkpoint.every_updates writes some";

/// What went wrong behind the last update.
enum Unfinished {
    Fault(Fault),
    /// The last checkpoint could not be written.
    Unkept(io::Error),
}

impl Engine<'_> {
    /// Ends what ended so, or turned to other settings: with a last checkpoint and a last validation, which may go wrong.
    pub(super) fn end(
        &mut self,
        reason: Reason,
        message: Option<String>,
        turn: Option<Turn>,
    ) -> (Reason, Option<String>, Option<Turn>) {
        match self.finish() {
            Err(Unfinished::Fault(fault)) => {
                let (why, sentence) = self.give_up(&fault);
                if reason.exit_code() == 0 {
                    return (why, sentence, None);
                }
                // A run that had failed already ended for that.
                if let Some(sentence) = sentence {
                    self.alert(Level::Error, sentence);
                }
                (reason, message, None)
            }
            Err(Unfinished::Unkept(error)) if reason.is_complete() && turn.is_none() => {
                (Reason::Failed, Some(self.unkept(&error)), None)
            }
            // What was stopped goes on from the checkpoint before.
            Ok(()) | Err(Unfinished::Unkept(_)) => (reason, message, turn),
        }
    }

    /// The device has no more memory or is lost: what the window had asked for is given back, and the parameters are not
    /// asked for again where they cannot be had.
    pub(super) fn give_up(&mut self, fault: &Fault) -> (Reason, Option<String>) {
        let advice = fault.advice(&self.around.config);
        let mut sentence = fault.sentence(&self.around.config, self.phase, advice.as_ref());
        self.advised = advice.map(|advice| advice.settings).unwrap_or_default();
        self.intact = matches!(fault, Fault::OutOfMemory { .. })
            && matches!(self.phase, Phase::Passes | Phase::LastCheckpoint | Phase::LastValidation);
        self.can_validate = false;
        if self.intact {
            self.training.discard_window();
            devices::give_back_memory();
        }
        let due = (1..=self.done.updates).contains(&self.around.config.checkpoint.every_updates);
        let without = if due { UNWRITABLE } else { NONE_YET };
        if self.phase == Phase::LastValidation {
            if self.last_checkpoint == Some(self.done.updates) {
                sentence.push_str(&format!("; the checkpoint of update {} is written", self.done.updates));
            } else if self.done.updates > 0 {
                sentence.push_str("; the last checkpoint was not written; ");
                sentence.push_str(&self.what_is_left(without));
            }
        } else if !self.intact && self.done.updates > 0 {
            sentence.push_str("; ");
            sentence.push_str(&self.what_is_left(without));
        }
        (fault.reason(), Some(sentence))
    }

    /// The end of a sentence about parameters that are lost; `without` where no checkpoint is left.
    fn what_is_left(&mut self, without: &str) -> String {
        // One may be on its way to the disk.
        let _ = self.keeper.wait();
        let left = stored::latest_checkpoint(&self.around.run).ok().flatten();
        left.map_or_else(
            || without.to_owned(),
            |checkpoint| format!("what is left is the checkpoint of update {}", checkpoint.update),
        )
    }

    /// Why a run whose last checkpoint is not on the disk has failed, though all of its updates are made: nobody has what they
    /// came to.
    fn unkept(&mut self, error: &io::Error) -> String {
        let (updates, left) = (self.done.updates, self.what_is_left(UNWRITABLE));
        format!("all {updates} updates are made, but their checkpoint was not written: {error}; {left}")
    }

    /// The last checkpoint and the last validation. The checkpoint is on the disk before the validation asks for memory, which
    /// may be what ends the process, and is told behind it, as what it keeps depends on the loss.
    fn finish(&mut self) -> Result<(), Unfinished> {
        if let Some(Given { at_update, deed, .. }) = self.script.front() {
            let left = self.script.len();
            let message =
                format!("the run ended before {left} of its commands: {} at update {at_update}", deed.name());
            self.alert(Level::Warning, message);
        }
        self.phase = Phase::LastCheckpoint;
        let kept = fault::guard(|| self.keep_last());
        let before = (self.last_validation, self.val_loss);
        let fault = match &kept {
            Ok(_) => {
                self.phase = Phase::LastValidation;
                fault::guard(|| self.validate()).err()
            }
            Err(fault) => Some(fault.clone()),
        };
        if fault.is_some() {
            (self.last_validation, self.val_loss) = before;
        }
        let mut unkept = None;
        match kept {
            Ok(Ok(Some(kept))) => self.tell_last(kept),
            Ok(Err(error)) => unkept = Some(error),
            Ok(Ok(None)) | Err(_) => {}
        }
        // Its failure has been told.
        let _ = self.keeper.wait();
        let unfinished = fault.map(Unfinished::Fault).or_else(|| unkept.map(Unfinished::Unkept));
        unfinished.map_or(Ok(()), Err)
    }

    /// Answers whoever stopped the run, and refuses what came too late.
    pub(super) fn answer_all(&mut self, goes_on: bool) {
        self.reject_waiting(if goes_on { "its settings changed first" } else { "the run ended first" });
        self.answer_waiting(|_| true);
    }
}
