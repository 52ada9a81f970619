//! The engine: one thread that owns every tensor and turns windows of data into updates, obeying commands between
//! micro-batches.

mod ending;
mod saving;
mod validation;

use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
        mpsc::Receiver,
    },
    time::{Duration, Instant},
};

use super::{
    commands::{Mode, Turn, Waiting},
    control::{Incoming, Status},
    event_log::Events,
    fault::{self, Phase},
    keeper::Keeper,
    trainer::{Outcome, Training},
};
use crate::{
    config::{Config, schedule},
    data::{Cursor, DataError, Dataset, Window as Batches},
    protocol::{Alert, Command, Event, Level, Reason, Update, Window},
    run::{RunDir, checkpoint::Progress, script::Given, text},
};

/// Least time between two `window` events.
const WINDOW_EVENTS: Duration = Duration::from_millis(250);

/// What the engine needs from around it.
#[derive(Debug)]
pub struct Surroundings {
    pub run: RunDir,
    pub config: Config,
    pub dataset: Dataset,
    pub total_updates: u64,
    /// Operations a second that the device's products of matrices come to, where that is known.
    pub matmul_peak: Option<f64>,
    pub events: Events,
    pub requests: Receiver<Incoming>,
    /// Commands that are given at fixed updates, in their order.
    pub script: Vec<Given>,
    pub status: Arc<Status>,
    /// Set by a signal: finish the update, checkpoint, end.
    pub stop: Arc<AtomicBool>,
    /// When the run started; of a run that goes on, as long ago as it had run.
    pub started: Instant,
    pub from: Start,
}

/// Where a run begins: at its beginning, or where a checkpoint was written.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Start {
    /// Updates made.
    pub update: u64,
    /// Real input tokens trained.
    pub tokens: u64,
    /// The first sequence of the next update.
    pub cursor: Cursor,
    pub progress: Progress,
}

/// How a run ended, when it did not end by a panic.
#[derive(Debug, Clone, PartialEq)]
pub struct Ending {
    pub reason: Reason,
    pub message: Option<String>,
    pub done: Done,
    /// It has not ended: it goes on with other settings.
    pub turn: Option<Turn>,
    /// Settings with which it would not run out of memory again; none when it did not run out.
    pub advised: Vec<(&'static str, String)>,
}

/// What was trained.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Done {
    pub updates: u64,
    /// Real input tokens.
    pub tokens: u64,
    /// Spent on forward, backward and optimizer: no pause, no validation.
    pub busy: Duration,
}

/// The state of the loop.
pub(super) struct Engine<'a> {
    pub(super) around: &'a Surroundings,
    pub(super) training: &'a mut dyn Training,
    pub(super) mode: Mode,
    pub(super) stopping: bool,
    pub(super) done: Done,
    cursor: Cursor,
    skipped_in_a_row: u64,
    pub(super) lr_override: Option<f64>,
    pub(super) waiting: Vec<Waiting>,
    /// Commands of the script that are still to be given.
    pub(super) script: VecDeque<Given>,
    /// Settings that the script changes here.
    pub(super) turn: Option<Vec<String>>,
    /// Micro-batches of the next update that are done.
    pub(super) in_window: u64,
    /// A command of the script paused the run, and nobody has said anything since.
    pub(super) paused_by_script: bool,
    since_event: Since,
    last_window_event: Instant,
    last_validation: u64,
    /// Loss of the validation after that update.
    val_loss: Option<f64>,
    /// The lowest of this worker's validations.
    best_val: f64,
    keeper: Keeper,
    /// The update of the newest checkpoint that was begun, and has not failed.
    last_checkpoint: Option<u64>,
    /// When it was begun.
    last_checkpoint_at: Instant,
    /// That training waited for a checkpoint to be written has been told.
    told_of_waiting: bool,
    phase: Phase,
    /// Whether all parameters and all state are those of the last update.
    pub(super) intact: bool,
    /// Whether there is memory to evaluate with, and a device.
    can_validate: bool,
    advised: Vec<(&'static str, String)>,
}

/// What was trained since the last update event.
#[derive(Default)]
struct Since {
    tokens: u64,
    /// Operations that the model asked for.
    flops: f64,
    busy: Duration,
}

/// Trains until the data, the schedule or a person ends it.
///
/// # Errors
/// The data stopped with an error.
pub fn train(
    around: &Surroundings,
    training: &mut dyn Training,
    windows: impl Iterator<Item = Result<Batches, DataError>>,
) -> Result<Ending, DataError> {
    let now = Instant::now();
    let Start { update, tokens, cursor, progress } = around.from;
    around.status.update.store(update, Relaxed);
    let mut engine = Engine {
        around,
        training,
        mode: Mode::Running,
        stopping: false,
        done: Done {
            updates: update,
            tokens,
            busy: Duration::try_from_secs_f64(progress.busy).unwrap_or_default(),
        },
        cursor,
        // A run that ended for them, and is gone on with all the same, has as many tries again.
        skipped_in_a_row: if progress.skipped_in_a_row < around.config.train.max_skipped {
            progress.skipped_in_a_row
        } else {
            0
        },
        lr_override: progress.learning_rate,
        waiting: Vec::new(),
        script: around.script.iter().cloned().collect(),
        turn: None,
        in_window: 0,
        paused_by_script: false,
        since_event: Since::default(),
        last_window_event: now,
        last_validation: progress.last_validation,
        val_loss: progress.val_loss,
        best_val: f64::INFINITY,
        keeper: Keeper::new(around.run.clone(), around.config.checkpoint.clone(), around.events.clone()),
        last_checkpoint: (update > 0).then_some(update),
        last_checkpoint_at: now,
        told_of_waiting: false,
        phase: Phase::default(),
        intact: true,
        can_validate: true,
        advised: Vec::new(),
    };
    // Commands of updates that an earlier worker made were given by it.
    let made = engine.done.updates;
    engine.script.retain(|given| given.at_update >= made);
    let (reason, message) = engine.run(windows)?;
    let turn = engine.turns(reason);
    let (reason, message, turn) = engine.end(reason, message, turn);
    engine.answer_all(turn.is_some());
    Ok(Ending { reason, message, done: engine.done, turn, advised: engine.advised })
}

impl Engine<'_> {
    fn run(
        &mut self,
        windows: impl Iterator<Item = Result<Batches, DataError>>,
    ) -> Result<(Reason, Option<String>), DataError> {
        if self.done.updates >= self.around.total_updates {
            return Ok((Reason::Finished, None));
        }
        for window in windows {
            let window = window?;
            window.check(self.around.config.model.vocab_size)?;
            match fault::guard(|| self.window(&window)) {
                Ok(true) => {}
                Ok(false) => return Ok((Reason::Stopped, None)),
                Err(fault) => return Ok(self.give_up(&fault)),
            }
            if self.skipped_in_a_row >= self.around.config.train.max_skipped {
                let clip = if self.around.config.clip.max_norm > 0.0 { "lower" } else { "switch on" };
                let message = format!(
                    "{} had a loss or gradient that is not finite: lower optimizer.lr, {clip} clip.max_norm, or raise \
                     schedule.warmup_updates",
                    match self.skipped_in_a_row {
                        1 => "an update".to_owned(),
                        many => format!("{many} updates in a row"),
                    }
                );
                return Ok((Reason::NotFinite, Some(message)));
            }
            if self.done.updates >= self.around.total_updates {
                return Ok((Reason::Finished, None));
            }
            if self.stopping {
                return Ok((Reason::Stopped, None));
            }
        }
        self.around.dataset.fault()?;
        Ok((
            if self.done.updates >= self.around.total_updates { Reason::Finished } else { Reason::DataEnded },
            None,
        ))
    }

    /// One update. False: a stop came while the window was paused, so that it was dropped.
    fn window(&mut self, window: &Batches) -> bool {
        let count = window.micro_batches.len() as u64;
        let mut busy = Duration::ZERO;
        for (batch, pass) in window.passes(self.done.updates + 1) {
            self.in_window = pass.micro_batch;
            if !self.obey(pass.micro_batch > 0) {
                self.training.discard_window();
                self.in_window = 0;
                return false;
            }
            let start = Instant::now();
            self.phase = Phase::Passes;
            self.training.micro_batch(batch, pass);
            busy += start.elapsed();
            let done = pass.micro_batch + 1;
            self.in_window = done;
            let single = self.mode == Mode::OneMicroBatch;
            if count > 1 && (single || self.last_window_event.elapsed() >= WINDOW_EVENTS) {
                self.last_window_event = Instant::now();
                self.send(Event::Window(Window {
                    update: self.done.updates + 1,
                    micro_batches: done,
                    of: count,
                }));
            }
            if single && done < count {
                self.mode = Mode::Paused;
                self.answer_waiting(|command| *command == Command::StepMicroBatch);
            }
        }
        self.in_window = 0;
        self.update(window, busy);
        if matches!(self.mode, Mode::OneUpdate | Mode::OneMicroBatch) {
            self.mode = Mode::Paused;
        }
        self.answer_waiting(|command| matches!(command, Command::Step | Command::StepMicroBatch));
        true
    }

    fn update(&mut self, window: &Batches, mut busy: Duration) {
        let config = &self.around.config;
        let next = self.done.updates + 1;
        let last = next == self.around.total_updates;
        let every = |interval: u64| interval > 0 && next.is_multiple_of(interval);
        let scheduled = schedule::of(config, self.around.total_updates, next);
        let lr = self.lr_override.unwrap_or(scheduled);
        // Whoever makes one update wants to see what that one did.
        let stepped = matches!(self.mode, Mode::OneUpdate | Mode::OneMicroBatch);
        let measure = every(config.log.state_every) || stepped;

        let start = Instant::now();
        self.phase = Phase::Update;
        let outcome = self.training.update(lr, measure);
        self.phase = Phase::Passes;
        busy += start.elapsed();
        let epoch_ends = config.train.epochs.is_some() && self.cursor.epoch < window.after.epoch;
        self.cursor = window.after;
        self.done.tokens += window.tokens();
        self.since_event.tokens += window.tokens();
        self.since_event.flops += self.flops(window);
        self.since_event.busy += busy;
        self.done.busy += busy;
        if outcome.empty || outcome.skipped {
            self.pass_over(window, outcome, lr);
            if epoch_ends {
                self.validate();
            }
            return;
        }
        self.skipped_in_a_row = 0;
        self.done.updates = next;
        self.around.status.update.store(next, Relaxed);
        if every(config.log.every_updates) || last || next == 1 {
            self.send_update(window, outcome, lr);
        }
        if measure && config.log.state_every > 0 {
            let mut report = self.report(&[]);
            // It is said of all of them by the report.
            report.tensors.iter_mut().for_each(|tensor| tensor.measured_at = None);
            self.send(Event::State(report));
        }
        let before = self.best_val;
        if (every(config.train.validate_every) || epoch_ends) && !last {
            self.validate();
        }
        let improved = self.best_val < before;
        if saving::is_wanted(&config.checkpoint, next, self.last_checkpoint_at.elapsed(), improved)
            && !last
            && let Err(error) = self.checkpoint(None)
        {
            self.alert(Level::Error, format!("a checkpoint could not be begun: {error}"));
        }
    }

    /// A window that makes no update: parameters, state and schedule stay as they are. One without a target is no sign
    /// of trouble and does not count.
    fn pass_over(&mut self, window: &Batches, outcome: Outcome, lr: f64) {
        if outcome.empty {
            let message = format!(
                "a window of {} micro-batches has no target to learn from: it was passed over, and update {} takes the \
                 next",
                window.micro_batches.len(),
                self.done.updates + 1
            );
            return self.alert(Level::Warning, message);
        }
        self.skipped_in_a_row += 1;
        self.send_update(window, outcome, lr);
        self.alert(
            Level::Warning,
            format!(
                "update {} skipped: loss {} and gradient norm {} are not both finite; parameters, state and schedule \
                 were left alone",
                self.done.updates + 1,
                text::loss(outcome.loss),
                text::loss(outcome.grad_norm)
            ),
        );
    }

    fn send_update(&mut self, window: &Batches, outcome: Outcome, lr: f64) {
        let Since { tokens, flops, busy } = std::mem::take(&mut self.since_event);
        let flops_per_second = (flops > 0.0).then(|| digits(flops / busy.as_secs_f64()));
        let peak = self.around.matmul_peak;
        self.send(Event::Update(Update {
            update: self.done.updates + u64::from(outcome.skipped),
            time: self.time(),
            tokens: self.done.tokens,
            micro_batches: window.micro_batches.len() as u64,
            loss: outcome.loss,
            learning_rate: lr,
            grad_norm: outcome.grad_norm,
            tokens_per_second: tokens as f64 / busy.as_secs_f64(),
            flops_per_second,
            mfu: flops_per_second.zip(peak).map(|(flops, peak)| digits(flops / peak)),
            skipped: outcome.skipped,
        }));
    }

    /// Operations that the model asks for in a window.
    fn flops(&self, window: &Batches) -> f64 {
        self.training.flops().map_or(0.0, |flops| flops.rows(window.lengths()))
    }

    pub(super) fn alert(&self, level: Level, message: String) {
        self.send(Event::Alert(Alert { update: self.done.updates, time: self.time(), level, message }));
    }

    pub(super) fn time(&self) -> f64 {
        self.around.started.elapsed().as_secs_f64()
    }

    /// The writer outlives the engine; should it have failed, the run goes on and `finish` reports the failure.
    pub(super) fn send(&self, event: Event) {
        let _ = self.around.events.send(event);
    }
}

/// Five digits: no clock tells more, and a record of a million updates is read faster.
fn digits(value: f64) -> f64 {
    format!("{value:.4e}").parse().unwrap_or(value)
}

#[cfg(test)]
mod tests;
