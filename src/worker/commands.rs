//! How the engine obeys: commands are taken between micro-batches, recorded and answered.

use std::{
    io,
    sync::{atomic::Ordering::Relaxed, mpsc::RecvTimeoutError},
    time::Duration,
};

use super::{
    control::{Back, Incoming},
    engine::Engine,
};
use crate::{
    config::validate,
    protocol::{Answer, Command, CommandRecord, Event, Level, Reason, Request, StateReport},
    run::script::{Deed, Given},
};

/// How often a paused engine looks at the signals.
const PAUSED_TICK: Duration = Duration::from_millis(100);

/// Whether the engine trains, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    Running,
    Paused,
    /// Paused, but for the rest of this update.
    OneUpdate,
    /// Paused, but for one micro-batch.
    OneMicroBatch,
}

/// A command whose answer waits for the end of this update, this micro-batch, or the run.
pub(super) struct Waiting {
    id: u64,
    command: Command,
    back: Back,
}

/// Where a run's commands change its settings.
#[derive(Debug, Clone, PartialEq)]
pub struct Turn {
    pub update: u64,
    /// What changes, each `key=value`.
    pub set: Vec<String>,
    /// The commands behind that.
    pub script: Vec<Given>,
}

impl Engine<'_> {
    /// Obeys what has been asked; returns when a micro-batch may run, or false when the run is to stop now. A stop
    /// inside a window that is running lets the window finish, so that no work is lost.
    pub(super) fn obey(&mut self, inside_window: bool) -> bool {
        loop {
            self.follow_script();
            while let Ok(incoming) = self.around.requests.try_recv() {
                self.take(incoming);
            }
            self.stopping |= self.around.stop.load(Relaxed);
            let paused = self.mode == Mode::Paused;
            self.around.status.paused.store(paused, Relaxed);
            if self.stopping {
                return inside_window && !paused;
            }
            // A window that has begun belongs to the settings of before.
            if self.turn.is_some() {
                return false;
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

    /// Gives the commands whose update and micro-batch have come. The next one waits until a step is done, and behind other settings for
    /// whoever goes on with them.
    pub(super) fn follow_script(&mut self) {
        while !matches!(self.mode, Mode::OneUpdate | Mode::OneMicroBatch) && self.turn.is_none() {
            let here = (self.done.updates, self.in_window);
            let due = self.script.front().is_some_and(|given| (given.at_update, given.micro_batches) <= here);
            let Some(Given { deed, .. }) = due.then(|| self.script.pop_front()).flatten() else { break };
            match deed {
                Deed::Command(command) => {
                    let pauses = command == Command::Pause;
                    self.take(Incoming { request: Request { id: 0, command }, back: Back::nobody() });
                    self.paused_by_script |= pauses;
                }
                Deed::Settings(set) => self.turn = Some(set),
            }
        }
        if self.mode == Mode::Paused
            && self.paused_by_script
            && self.turn.is_none()
            && let Some(next) = self.script.front()
        {
            let (name, update) = (next.deed.name(), next.at_update);
            // Nobody may be there to do it.
            self.mode = Mode::Running;
            self.alert(
                Level::Warning,
                format!("paused by its commands, the run goes on to the next one: {name} at update {update}"),
            );
        }
    }

    /// Whether what looks like an end is one: the script may give a run that has made its updates more of them.
    pub(super) fn turns(&mut self, reason: Reason) -> Option<Turn> {
        let made = self.done.updates;
        let due = |given: &Given| given.at_update <= made && matches!(given.deed, Deed::Settings(_));
        if reason == Reason::Finished && self.script.iter().any(due) {
            self.follow_script();
        }
        let set = self.turn.take().filter(|_| {
            matches!(reason, Reason::Stopped | Reason::Finished) && self.intact && !self.stopping
        })?;
        Some(Turn { update: made, set, script: self.script.drain(..).collect() })
    }

    fn take(&mut self, Incoming { request, back }: Incoming) {
        let id = request.id;
        let refuse_unless_paused = |mode| (mode != Mode::Paused).then(|| "the run is not paused".to_owned());
        match &request.command {
            Command::Hello => {}
            Command::Inspect { names } => back.answer(id, Answer::State(self.report(names))),
            Command::Open { tensor, width } => {
                let answer = self.open(tensor, *width);
                back.answer(id, answer);
            }
            Command::Pause => {
                self.mode = Mode::Paused;
                self.paused_by_script = false;
                self.reject_waiting("a pause came before it was done");
                self.applied(id, &request.command, &back);
            }
            Command::Resume => {
                self.mode = Mode::Running;
                self.applied(id, &request.command, &back);
            }
            Command::LearningRate { value } => match value {
                Some(_) if validate::relative_step(&self.around.config) => {
                    let why = "relative_step: Adafactor sets its own rate".to_owned();
                    self.rejected(id, &request.command, &back, why);
                }
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
            Command::Checkpoint if self.done.updates == 0 => {
                self.rejected(id, &request.command, &back, "no update has been made yet".into());
            }
            Command::Checkpoint => self.checkpoint_asked_for(id, back),
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

    /// Answers once it is on the disk.
    fn checkpoint_asked_for(&mut self, id: u64, back: Back) {
        let (events, update, started) = (self.around.events.clone(), self.done.updates, self.around.started);
        let answer = back.clone();
        let told = move |written: Result<(), &io::Error>| {
            let why = written.err().map(|error| format!("the checkpoint was not written: {error}"));
            let time = started.elapsed().as_secs_f64();
            let _ = events.send(Event::Command(record(id, &Command::Checkpoint, update, time, why.clone())));
            answer.answer(
                id,
                why.map_or(Answer::Applied { at_update: update }, |why| Answer::Rejected { why }),
            );
        };
        if let Err(error) = self.checkpoint(Some(Box::new(told))) {
            let why = format!("the checkpoint could not be begun: {error}");
            self.rejected(id, &Command::Checkpoint, &back, why);
        }
    }

    pub(super) fn report(&self, names: &[String]) -> StateReport {
        StateReport {
            update: self.done.updates,
            optimizer: self.around.config.optimizer.name.as_str().to_owned(),
            tensors: self.training.state(names),
            shared: self.training.shared_state(),
        }
    }

    fn open(&mut self, tensor: &str, width: usize) -> Answer {
        match self.training.open(tensor, width) {
            Some(mut detail) => {
                detail.update = self.done.updates;
                Answer::Opened(Box::new(detail))
            }
            None => Answer::Rejected { why: format!("no parameter is named `{tensor}`") },
        }
    }

    /// Answers the steps that will not be made; a stop still waits for its end.
    pub(super) fn reject_waiting(&mut self, why: &str) {
        let waiting = std::mem::take(&mut self.waiting);
        let (stops, steps): (Vec<_>, Vec<_>) =
            waiting.into_iter().partition(|waiting| waiting.command == Command::Stop);
        self.waiting = stops;
        for Waiting { id, command, back } in steps {
            self.rejected(id, &command, &back, why.to_owned());
        }
    }

    pub(super) fn answer_waiting(&mut self, which: impl Fn(&Command) -> bool) {
        let (now, later) =
            std::mem::take(&mut self.waiting).into_iter().partition(|waiting| which(&waiting.command));
        self.waiting = later;
        for Waiting { id, command, back } in now {
            self.applied(id, &command, &back);
        }
    }

    fn applied(&self, id: u64, command: &Command, back: &Back) {
        self.record(id, command, None);
        back.answer(id, Answer::Applied { at_update: self.done.updates });
    }

    fn rejected(&self, id: u64, command: &Command, back: &Back, why: String) {
        self.record(id, command, Some(why.clone()));
        back.answer(id, Answer::Rejected { why });
    }

    fn record(&self, id: u64, command: &Command, why: Option<String>) {
        let told = record(id, command, self.done.updates, self.time(), why);
        self.send(Event::Command(CommandRecord { micro_batches: self.in_window, ..told }));
    }
}

/// What a command was and what became of it.
pub(super) fn record(
    id: u64,
    command: &Command,
    update: u64,
    time: f64,
    why: Option<String>,
) -> CommandRecord {
    let value = match command {
        Command::LearningRate { value } => *value,
        _ => None,
    };
    let outcome = if why.is_none() { "applied" } else { "rejected" }.to_owned();
    CommandRecord { id, name: command.name().to_owned(), outcome, update, micro_batches: 0, time, value, why }
}
