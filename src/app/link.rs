//! The line to the watched run's worker: who holds control, what was asked, what was answered.

use std::collections::VecDeque;

use super::status::Waiting;
use crate::protocol::Command;

/// Questions and commands whose answer is still awaited, at most.
const PENDING: usize = 64;

/// Whether commands can be given.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Control {
    /// No worker is connected.
    #[default]
    None,
    /// This UI drives the run.
    Full,
    /// This UI only looks, and why.
    ReadOnly(String),
}

/// A command on its way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pending {
    pub id: u64,
    pub text: String,
    /// The worker has it and will apply it at the next boundary.
    pub queued: bool,
}

/// The line to the worker.
#[derive(Debug, Clone, Default)]
pub struct Link {
    pub control: Control,
    /// The worker is gone: its lock is free.
    pub gone: bool,
    /// Why there is none yet.
    pub waits: Option<Waiting>,
    pub pending: VecDeque<Pending>,
    /// When the record grew last, in seconds since the UI started.
    pub heard: f64,
    /// A worker was seen after the record had been read: what comes now is news.
    pub followed: bool,
    /// When somebody who looks elsewhere was last called for a warning.
    pub called: Option<f64>,
    /// A stop was sent.
    pub stopping: bool,
    /// Commands that came before the worker listened.
    held: Vec<Command>,
    next_id: u64,
}

impl Link {
    /// Notes that a command is being sent and gives it a number.
    pub fn ask(&mut self, command: &Command) -> u64 {
        self.next_id += 1;
        self.stopping |= *command == Command::Stop;
        if !command.only_looks() {
            if self.pending.len() == PENDING {
                self.pending.pop_front();
            }
            let text = match command {
                Command::LearningRate { value: Some(value) } => format!("learning rate {value:e}"),
                other => other.name().replace('_', " "),
            };
            self.pending.push_back(Pending { id: self.next_id, text, queued: false });
        }
        self.next_id
    }

    /// Keeps a command until the worker listens; one of each is enough.
    pub fn hold(&mut self, command: Command) {
        if !self.held.contains(&command) {
            self.held.push(command);
        }
    }

    /// Takes what was kept, in order.
    pub fn held(&mut self) -> Vec<Command> {
        std::mem::take(&mut self.held)
    }

    /// Notes that the command is queued.
    pub fn queued(&mut self, id: u64) {
        if let Some(pending) = self.pending.iter_mut().find(|pending| pending.id == id) {
            pending.queued = true;
        }
    }

    /// Takes a command off the list: it was answered.
    pub fn answered(&mut self, id: u64) -> Option<Pending> {
        let at = self.pending.iter().position(|pending| pending.id == id)?;
        self.pending.remove(at)
    }
}
