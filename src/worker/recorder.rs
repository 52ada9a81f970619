//! The record of a loop that is not ours: it reports what it does, and everything that reads runs reads it.

mod start;

use std::{
    collections::BTreeMap,
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
        mpsc::{Receiver, RecvTimeoutError, TryRecvError},
    },
    time::{Duration, Instant},
};

use anyhow::{Context, bail};

use super::{
    commands::record as command_record,
    control::{Back, Incoming, Status},
    event_log::{EventLog, Events, Files},
    reserve,
    telemetry::{self, Telemetry},
};
use crate::{
    optim::{Entry, stats},
    protocol::{
        Alert, Answer, Command, Event, Level, Reason, RunEnded, StateReport, StateTensor, TensorState,
        Update, Validation,
        summary::{Measured, Summary},
    },
    run::{
        RunDir, atomic, export,
        lock::RunLock,
        record::Record,
        socket,
        summary::{self, Finish},
    },
};

pub use start::Loop;

/// How often a paused loop looks at the signals.
const PAUSED_TICK: Duration = Duration::from_millis(100);

/// One update, as the loop made it.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Progress {
    pub loss: f64,
    pub learning_rate: f64,
    /// Of all gradients together; not a number where it is not known.
    pub grad_norm: f64,
    /// Tokens or examples of this update.
    pub tokens: u64,
}

/// What lives as long as the run does.
#[derive(Debug)]
struct Open {
    log: EventLog,
    telemetry: Telemetry,
    _lock: RunLock,
}

/// A run that a loop reports. While it lives, `tui-train` lists and shows it, draws its screens, and stops and pauses it
/// where the loop asks [`Recorder::should_stop`]; afterwards it compares and exports it like any other.
///
/// Dropped without [`Recorder::finish`], the run is recorded as failed.
pub struct Recorder {
    run: RunDir,
    open: Option<Open>,
    events: Events,
    requests: Receiver<Incoming>,
    status: Arc<Status>,
    stop: Arc<AtomicBool>,
    started: Instant,
    /// The last update, or the beginning.
    last: Instant,
    /// Time since then that no update took.
    idle: Duration,
    made: u64,
    tokens: u64,
    paused: bool,
    /// Commands that are answered when what they ask for is done.
    waiting: Vec<(u64, Command, Back)>,
    /// State that has been given since the last update.
    state: Vec<TensorState>,
    /// What was told last.
    told: StateReport,
}

impl std::fmt::Debug for Recorder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recorder").field("run", &self.run).field("made", &self.made).finish_non_exhaustive()
    }
}

impl Recorder {
    /// The run's folder.
    pub const fn run(&self) -> &RunDir {
        &self.run
    }

    /// Updates reported so far.
    pub const fn updates(&self) -> u64 {
        self.made
    }

    /// One more update has been made.
    ///
    /// # Errors
    /// The record cannot be written any more.
    pub fn update(&mut self, progress: Progress) -> anyhow::Result<()> {
        self.tell_state()?;
        self.made += 1;
        self.tokens += progress.tokens;
        self.status.update.store(self.made, Relaxed);
        let busy = self.last.elapsed().saturating_sub(self.idle);
        (self.last, self.idle) = (Instant::now(), Duration::ZERO);
        self.send(Event::Update(Update {
            update: self.made,
            time: self.time(),
            tokens: self.tokens,
            micro_batches: 1,
            loss: progress.loss,
            learning_rate: progress.learning_rate,
            grad_norm: progress.grad_norm,
            tokens_per_second: progress.tokens as f64 / busy.as_secs_f64(),
            skipped: false,
            flops_per_second: None,
            mfu: None,
        }))?;
        self.answer(|command| *command == Command::Step);
        Ok(())
    }

    /// The loss on held-out data, a mean over so many targets.
    ///
    /// # Errors
    /// The record cannot be written any more.
    pub fn validation(&mut self, loss: f64, targets: u64) -> anyhow::Result<()> {
        let (update, time) = (self.made, self.time());
        self.send(Event::Validation(Validation {
            update,
            time,
            loss,
            tokens: targets,
            ..Validation::default()
        }))
    }

    /// What the optimizer keeps for one parameter after the last update: name, shape and values of each tensor, a number
    /// having the shape `[]`. What is given between two updates is told together.
    ///
    /// # Errors
    /// The values are not as many as the shape says, or the parameter has been given already.
    pub fn state(
        &mut self,
        parameter: &str,
        shape: &[usize],
        tensors: &[(&str, &[usize], &[f32])],
    ) -> anyhow::Result<()> {
        if self.state.iter().any(|known| known.name == parameter) {
            bail!("the state of `{parameter}` is given twice for update {}", self.made);
        }
        let mut state = BTreeMap::new();
        for (name, shape, values) in tensors {
            if values.len() != shape.iter().product::<usize>() {
                bail!(
                    "`{name}` of `{parameter}` has {} values, and its shape {shape:?} another number",
                    values.len()
                );
            }
            let entry = Entry::host("state", Arc::new(values.to_vec()));
            let described = stats::describe(&[entry]).pop();
            let described = described.map(|tensor| StateTensor { shape: shape.to_vec(), ..tensor });
            state.extend(described.map(|tensor| ((*name).to_owned(), tensor)));
        }
        self.state.push(TensorState {
            name: parameter.to_owned(),
            shape: shape.to_vec(),
            step: self.made,
            update_ratio: None,
            measured_at: None,
            figures: BTreeMap::new(),
            state,
        });
        Ok(())
    }

    /// Something that a person should know.
    ///
    /// # Errors
    /// The record cannot be written any more.
    pub fn warn(&self, message: impl Into<String>) -> anyhow::Result<()> {
        let (update, time) = (self.made, self.time());
        self.send(Event::Alert(Alert { update, time, level: Level::Warning, message: message.into() }))
    }

    /// Whether somebody wants the loop to stop. Ask before each update: a pause waits here.
    pub fn should_stop(&mut self) -> bool {
        let begun = Instant::now();
        loop {
            let incoming = match self.paused_now() {
                false => match self.requests.try_recv() {
                    Ok(incoming) => incoming,
                    Err(TryRecvError::Empty | TryRecvError::Disconnected) => break,
                },
                true => match self.requests.recv_timeout(PAUSED_TICK) {
                    Ok(incoming) => incoming,
                    Err(RecvTimeoutError::Timeout) => continue,
                    // Nobody can resume a run whose socket is gone.
                    Err(RecvTimeoutError::Disconnected) => break,
                },
            };
            self.take(incoming);
        }
        self.idle += begun.elapsed();
        self.stop.load(Relaxed)
    }

    /// Ends the run and writes its summary.
    ///
    /// # Errors
    /// The record could not be written.
    pub fn finish(mut self, reason: Reason) -> anyhow::Result<()> {
        self.end(reason, None)
    }

    /// Whether the loop is to wait now: nobody has asked it to stop or to make one more update.
    fn paused_now(&self) -> bool {
        let steps = self.waiting.iter().any(|(_, command, _)| *command == Command::Step);
        self.paused && !steps && !self.stop.load(Relaxed)
    }

    fn take(&mut self, Incoming { request, back }: Incoming) {
        let id = request.id;
        match request.command {
            Command::Inspect { names } => {
                let mut report = self.told.clone();
                report.tensors.retain(|tensor| names.is_empty() || names.contains(&tensor.name));
                back.answer(id, Answer::State(report));
            }
            Command::Hello => {}
            Command::Open { .. } => {
                back.answer(
                    id,
                    Answer::Rejected { why: "a loop of its own keeps its tensors to itself".into() },
                );
            }
            Command::Pause | Command::Resume => {
                self.paused = request.command == Command::Pause;
                self.status.paused.store(self.paused, Relaxed);
                self.applied(id, &request.command, &back);
            }
            Command::Step if !self.paused => {
                self.rejected(id, &request.command, &back, "the run is not paused");
            }
            Command::Stop => {
                self.stop.store(true, Relaxed);
                self.waiting.push((id, request.command, back));
            }
            Command::Step => self.waiting.push((id, request.command, back)),
            Command::StepMicroBatch | Command::LearningRate { .. } | Command::Checkpoint => {
                self.rejected(id, &request.command, &back, "a loop of its own does that itself");
            }
        }
    }

    fn answer(&mut self, which: impl Fn(&Command) -> bool) {
        let (now, later) =
            std::mem::take(&mut self.waiting).into_iter().partition(|(_, command, _)| which(command));
        self.waiting = later;
        let now: Vec<(u64, Command, Back)> = now;
        for (id, command, back) in now {
            self.applied(id, &command, &back);
        }
    }

    fn applied(&self, id: u64, command: &Command, back: &Back) {
        // Should it not be written, the next update tells.
        let _ = self.send(Event::Command(command_record(id, command, self.made, self.time(), None)));
        back.answer(id, Answer::Applied { at_update: self.made });
    }

    fn rejected(&self, id: u64, command: &Command, back: &Back, why: &str) {
        let why = why.to_owned();
        let _ =
            self.send(Event::Command(command_record(id, command, self.made, self.time(), Some(why.clone()))));
        back.answer(id, Answer::Rejected { why });
    }

    fn tell_state(&mut self) -> anyhow::Result<()> {
        if self.state.is_empty() {
            return Ok(());
        }
        let tensors = std::mem::take(&mut self.state);
        self.told = StateReport { update: self.made, tensors, ..self.told.clone() };
        self.send(Event::State(self.told.clone()))
    }

    fn time(&self) -> f64 {
        self.started.elapsed().as_secs_f64()
    }

    fn send(&self, event: Event) -> anyhow::Result<()> {
        self.events.send(event).with_context(|| format!("run {} cannot be recorded", self.run.id()))
    }

    fn end(&mut self, reason: Reason, message: Option<String>) -> anyhow::Result<()> {
        let told = self.tell_state();
        self.answer(|_| true);
        let Some(Open { log, telemetry, _lock }) = self.open.take() else { return Ok(()) };
        drop(telemetry);
        // The writer ends when nobody can send to it any more.
        self.events = Events::closed();
        let wall_seconds = self.time();
        let told_state = &self.told;
        let (writer, record, written) = log.finish().context("the record of the run could not be written")?;
        let so_far = Finish::so_far(&record);
        let measured = Measured {
            state_elements: told_state.elements(),
            state_bytes: told_state.bytes(),
            peak_host_rss: telemetry::resident_peak().or(so_far.measured.peak_host_rss),
            peak_source: "the operating system; parameters and state as the loop told them".to_owned(),
            ..so_far.measured
        };
        let finish = Finish { reason, wall_seconds, measured, ..so_far };
        let closed = close(&self.run, writer, &record, written, finish, message);
        socket::remove(&self.run);
        told.and(closed)
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        let what = if std::thread::panicking() { "panicked" } else { "ended without saying how" };
        // Nobody is left to be told.
        let _ = self.end(Reason::Failed, Some(format!("the loop {what}")));
    }
}

fn sum_up(run: &RunDir, summary: &Summary) -> io::Result<()> {
    atomic::write_file(&run.summary_json(), &serde_json::to_vec_pretty(summary)?)?;
    atomic::write_file(&run.summary_md(), export::markdown::summary(summary).as_bytes())
}

/// Writes the summary of a run and the last line of its record, whose events before that one were `written` or not.
///
/// # Errors
/// A part of it could not be written.
pub(super) fn close(
    run: &RunDir,
    mut writer: Files,
    record: &Record,
    written: io::Result<()>,
    finish: Finish,
    message: Option<String>,
) -> anyhow::Result<()> {
    let reason = finish.reason;
    let summary = summary::build(record, finish).context("the record has no header")?;
    let summary = summary::of_folder(summary, run);
    reserve::give_back(run);
    // A folder that was deleted under the run does not come back.
    let summed_up = if run.events().exists() { sum_up(run, &summary) } else { Ok(()) };
    writer.append(&Event::RunEnded(Box::new(RunEnded { reason, message, summary })))?;
    writer.sync()?;
    written.context("a part of the run's record could not be written")?;
    summed_up.context("the summary could not be written")
}
