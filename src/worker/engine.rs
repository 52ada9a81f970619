//! The engine: one thread that owns every tensor and turns windows of data into updates, obeying commands between
//! micro-batches.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
        mpsc::{Receiver, RecvTimeoutError},
    },
    time::{Duration, Instant},
};

use super::{
    checkpoint::{self, Position},
    control::{Back, Incoming, Status},
    event_log::Events,
    trainer::{Outcome, Training},
};
use crate::{
    config::{Config, schedule},
    data::{Cursor, DataError, Dataset, Window as Batches},
    protocol::{
        Alert, Answer, CheckpointWritten, Command, CommandRecord, Event, Level, Reason, StateReport, Update,
        Validation, Window,
    },
    run::{RunDir, checkpoint as stored},
};

/// Held-out sequences in one validation: enough for a steady figure, few enough to cost little.
const VALIDATION_SEQUENCES: usize = 128;
/// Least time between two `window` events.
const WINDOW_EVENTS: Duration = Duration::from_millis(250);
/// How often a paused engine looks at the signals.
const PAUSED_TICK: Duration = Duration::from_millis(100);

/// What the engine needs from around it.
#[derive(Debug)]
pub struct Surroundings {
    pub run: RunDir,
    pub config: Config,
    pub dataset: Dataset,
    pub total_updates: u64,
    pub events: Events,
    pub requests: Receiver<Incoming>,
    pub status: Arc<Status>,
    /// Set by a signal: finish the update, checkpoint, end.
    pub stop: Arc<AtomicBool>,
    pub started: Instant,
}

/// How a run ended, when it did not end by a panic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ending {
    pub reason: Reason,
    pub message: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Running,
    Paused,
    /// Paused, but for the rest of this update.
    OneUpdate,
    /// Paused, but for one micro-batch.
    OneMicroBatch,
}

/// The state of the loop.
pub(super) struct Engine<'a> {
    around: &'a Surroundings,
    training: &'a mut dyn Training,
    mode: Mode,
    stopping: bool,
    updates: u64,
    tokens: u64,
    cursor: Cursor,
    skipped_in_a_row: u64,
    lr_override: Option<f64>,
    /// Commands whose answer waits for the end of this update, this micro-batch, or the run.
    waiting: Vec<Waiting>,
    since_event: Since,
    last_window_event: Instant,
    last_checkpoint: Option<u64>,
}

struct Waiting {
    id: u64,
    command: Command,
    back: Back,
}

/// What was trained since the last update event.
struct Since {
    tokens: u64,
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
    let mut engine = Engine {
        around,
        training,
        mode: Mode::Running,
        stopping: false,
        updates: 0,
        tokens: 0,
        cursor: Cursor::default(),
        skipped_in_a_row: 0,
        lr_override: None,
        waiting: Vec::new(),
        since_event: Since { tokens: 0, busy: Duration::ZERO },
        last_window_event: now,
        last_checkpoint: None,
    };
    let ending = engine.run(windows)?;
    engine.finish();
    Ok(ending)
}

impl Engine<'_> {
    fn run(
        &mut self,
        windows: impl Iterator<Item = Result<Batches, DataError>>,
    ) -> Result<Ending, DataError> {
        let ended = |reason| Ending { reason, message: None };
        for window in windows {
            let window = window?;
            if !self.window(&window) {
                return Ok(ended(Reason::Stopped));
            }
            if self.skipped_in_a_row > self.around.config.train.max_skipped {
                let message = format!(
                    "{} updates in a row had a loss or gradient that is not finite: lower optimizer.lr or clip.max_norm, \
                     or raise schedule.warmup_updates",
                    self.skipped_in_a_row
                );
                return Ok(Ending { reason: Reason::NotFinite, message: Some(message) });
            }
            if self.stopping {
                return Ok(ended(Reason::Stopped));
            }
            if self.updates >= self.around.total_updates {
                return Ok(ended(Reason::Finished));
            }
        }
        Ok(ended(if self.updates >= self.around.total_updates {
            Reason::Finished
        } else {
            Reason::DataEnded
        }))
    }

    /// One update. False: a stop came while the window was paused, so that it was dropped.
    fn window(&mut self, window: &Batches) -> bool {
        let count = window.micro_batches.len() as u64;
        let mut busy = Duration::ZERO;
        for (done, batch) in window.micro_batches.iter().enumerate() {
            if !self.obey(done > 0) {
                self.training.discard_window();
                return false;
            }
            let start = Instant::now();
            self.training.micro_batch(batch, window.target_tokens);
            busy += start.elapsed();
            let done = done as u64 + 1;
            let single = self.mode == Mode::OneMicroBatch;
            if count > 1 && (single || self.last_window_event.elapsed() >= WINDOW_EVENTS) {
                self.last_window_event = Instant::now();
                self.send(Event::Window(Window { update: self.updates + 1, micro_batches: done, of: count }));
            }
            if single && done < count {
                self.mode = Mode::Paused;
                self.answer_waiting(|command| *command == Command::StepMicroBatch);
            }
        }
        self.update(window, busy);
        if matches!(self.mode, Mode::OneUpdate | Mode::OneMicroBatch) {
            self.mode = Mode::Paused;
            self.answer_waiting(|command| matches!(command, Command::Step | Command::StepMicroBatch));
        }
        true
    }

    fn update(&mut self, window: &Batches, mut busy: Duration) {
        let config = &self.around.config;
        let next = self.updates + 1;
        let last = next == self.around.total_updates;
        let every = |interval: u64| interval > 0 && next.is_multiple_of(interval);
        let scheduled = schedule::of(config, self.around.total_updates, next);
        let lr = self.lr_override.unwrap_or(scheduled);
        let measure = every(config.log.state_every);

        let start = Instant::now();
        let outcome = self.training.update(lr, measure);
        busy += start.elapsed();
        self.cursor = window.after;
        self.tokens += window.target_tokens;
        self.since_event.tokens += window.target_tokens;
        self.since_event.busy += busy;
        if outcome.skipped {
            self.skip(window, outcome, lr);
            return;
        }
        self.skipped_in_a_row = 0;
        self.updates = next;
        self.around.status.update.store(next, Relaxed);
        if every(config.log.every_updates) || last || next == 1 {
            self.send_update(window, outcome, lr);
        }
        if measure {
            let report = self.report(&[]);
            self.send(Event::State(report));
        }
        if every(config.train.validate_every) && !last {
            self.validate();
        }
        if every(config.checkpoint.every_updates) && !last {
            let _ = self.checkpoint();
        }
    }

    /// A window whose gradient cannot be used: parameters, state and schedule stay as they are.
    fn skip(&mut self, window: &Batches, outcome: Outcome, lr: f64) {
        self.skipped_in_a_row += 1;
        self.send_update(window, outcome, lr);
        self.alert(
            Level::Warning,
            format!(
                "update {} skipped: loss {} and gradient norm {} are not both finite; parameters, state and schedule \
                 were left alone",
                self.updates + 1,
                outcome.loss,
                outcome.grad_norm
            ),
        );
    }

    fn send_update(&mut self, window: &Batches, outcome: Outcome, lr: f64) {
        let Since { tokens, busy } =
            std::mem::replace(&mut self.since_event, Since { tokens: 0, busy: Duration::ZERO });
        self.send(Event::Update(Update {
            update: self.updates + u64::from(outcome.skipped),
            time: self.time(),
            tokens: self.tokens,
            micro_batches: window.micro_batches.len() as u64,
            loss: outcome.loss,
            learning_rate: lr,
            grad_norm: outcome.grad_norm,
            tokens_per_second: tokens as f64 / busy.as_secs_f64(),
            skipped: outcome.skipped,
        }));
    }

    /// The last validation and the last checkpoint, then the answers to whoever stopped the run.
    fn finish(&mut self) {
        self.validate();
        if let Err(error) = self.checkpoint() {
            self.alert(Level::Error, format!("the last checkpoint could not be written: {error}"));
        }
        self.answer_waiting(|_| true);
    }

    fn validate(&mut self) {
        let dataset = &self.around.dataset;
        if dataset.validation_sequences() == 0 || self.updates == 0 {
            return;
        }
        let size = self.around.config.train.micro_batch;
        let (loss, tokens) =
            self.training.evaluate(&mut dataset.validation_batches(size, VALIDATION_SEQUENCES));
        self.send(Event::Validation(Validation { update: self.updates, time: self.time(), loss, tokens }));
    }

    fn checkpoint(&mut self) -> std::io::Result<()> {
        if self.updates == 0 || self.last_checkpoint == Some(self.updates) {
            return Ok(());
        }
        let config = &self.around.config;
        let position = Position {
            update: self.updates,
            tokens: self.tokens,
            optimizer: config.optimizer.name.as_str(),
            cursor: self.cursor,
        };
        let bytes = checkpoint::write(&self.around.run, &*self.training, position)?;
        self.last_checkpoint = Some(self.updates);
        let path = self.around.run.checkpoint(self.updates);
        let path = path.strip_prefix(self.around.run.path()).unwrap_or(&path).display().to_string();
        self.send(Event::Checkpoint(CheckpointWritten {
            update: self.updates,
            time: self.time(),
            path,
            bytes,
        }));
        if let Err(error) = stored::prune(&self.around.run, config.checkpoint.keep_last) {
            self.alert(Level::Warning, format!("an old checkpoint could not be removed: {error}"));
        }
        Ok(())
    }

    /// Obeys what has been asked; returns when a micro-batch may run, or false when the run is to stop now. A stop
    /// inside a window that is running lets the window finish, so that no work is lost.
    fn obey(&mut self, inside_window: bool) -> bool {
        loop {
            while let Ok(incoming) = self.around.requests.try_recv() {
                self.take(incoming);
            }
            self.stopping |= self.around.stop.load(Relaxed);
            let paused = self.mode == Mode::Paused;
            self.around.status.paused.store(paused, Relaxed);
            if self.stopping {
                return inside_window && !paused;
            }
            if !paused {
                return true;
            }
            match self.around.requests.recv_timeout(PAUSED_TICK) {
                Ok(incoming) => self.take(incoming),
                Err(RecvTimeoutError::Timeout) => {}
                // Nobody can resume a run whose socket is gone: train on.
                Err(RecvTimeoutError::Disconnected) => self.mode = Mode::Running,
            }
        }
    }

    fn take(&mut self, Incoming { request, back }: Incoming) {
        let id = request.id;
        let refuse_unless_paused = |mode| (mode != Mode::Paused).then(|| "the run is not paused".to_owned());
        match &request.command {
            Command::Hello => {}
            Command::Inspect { names } => back.answer(id, Answer::State(self.report(names))),
            Command::Open { tensor, width } => back.answer(id, self.open(tensor, *width)),
            Command::Pause => {
                self.mode = Mode::Paused;
                self.applied(id, &request.command, &back);
            }
            Command::Resume => {
                self.mode = Mode::Running;
                self.applied(id, &request.command, &back);
            }
            Command::LearningRate { value } => match value {
                Some(value) if !(0.0..=1000.0).contains(value) => {
                    self.rejected(
                        id,
                        &request.command,
                        &back,
                        format!("a rate of {value} is not from 0 to 1000"),
                    );
                }
                value => {
                    self.lr_override = *value;
                    self.applied(id, &request.command, &back);
                }
            },
            Command::Checkpoint => match self.checkpoint() {
                Ok(()) if self.updates == 0 => {
                    self.rejected(id, &request.command, &back, "no update has been made yet".into());
                }
                Ok(()) => self.applied(id, &request.command, &back),
                Err(error) => {
                    self.rejected(
                        id,
                        &request.command,
                        &back,
                        format!("the checkpoint was not written: {error}"),
                    );
                }
            },
            Command::Step | Command::StepMicroBatch => {
                if let Some(why) = refuse_unless_paused(self.mode) {
                    return self.rejected(id, &request.command, &back, why);
                }
                self.mode =
                    if request.command == Command::Step { Mode::OneUpdate } else { Mode::OneMicroBatch };
                self.waiting.push(Waiting { id, command: request.command, back });
            }
            Command::Stop => {
                self.stopping = true;
                self.waiting.push(Waiting { id, command: request.command, back });
            }
        }
    }

    fn report(&self, names: &[String]) -> StateReport {
        StateReport {
            update: self.updates,
            optimizer: self.around.config.optimizer.name.as_str().to_owned(),
            tensors: self.training.state(names),
        }
    }

    fn open(&self, tensor: &str, width: usize) -> Answer {
        match self.training.open(tensor, width) {
            Some(mut detail) => {
                detail.update = self.updates;
                Answer::Opened(Box::new(detail))
            }
            None => Answer::Rejected { why: format!("no parameter is named `{tensor}`") },
        }
    }

    fn answer_waiting(&mut self, which: impl Fn(&Command) -> bool) {
        let (now, later) =
            std::mem::take(&mut self.waiting).into_iter().partition(|waiting| which(&waiting.command));
        self.waiting = later;
        for Waiting { id, command, back } in now {
            self.applied(id, &command, &back);
        }
    }

    fn applied(&self, id: u64, command: &Command, back: &Back) {
        self.record(id, command, None);
        back.answer(id, Answer::Applied { at_update: self.updates });
    }

    fn rejected(&self, id: u64, command: &Command, back: &Back, why: String) {
        self.record(id, command, Some(why.clone()));
        back.answer(id, Answer::Rejected { why });
    }

    fn record(&self, id: u64, command: &Command, why: Option<String>) {
        let value = match command {
            Command::LearningRate { value } => *value,
            _ => None,
        };
        let outcome = if why.is_none() { "applied" } else { "rejected" }.to_owned();
        let name = command.name().to_owned();
        self.send(Event::Command(CommandRecord {
            id,
            name,
            outcome,
            update: self.updates,
            time: self.time(),
            value,
            why,
        }));
    }

    fn alert(&self, level: Level, message: String) {
        self.send(Event::Alert(Alert { update: self.updates, time: self.time(), level, message }));
    }

    fn time(&self) -> f64 {
        self.around.started.elapsed().as_secs_f64()
    }

    /// The writer outlives the engine; should it have failed, the run goes on and `finish` reports the failure.
    fn send(&self, event: Event) {
        let _ = self.around.events.send(event);
    }
}
