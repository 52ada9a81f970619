//! Commands to a live run, and their answers.

use serde::{Deserialize, Serialize};

use super::{StateDetail, StateReport, number};

/// One line to the worker.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// Chosen by the sender; the reply carries it.
    pub id: u64,
    pub command: Command,
}

/// What a person may ask of a live run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "name", rename_all = "snake_case")]
pub enum Command {
    /// Claims control for a UI. One at a time: a second one is told to be read-only.
    Hello,
    Pause,
    Resume,
    /// One update while paused.
    Step,
    /// One micro-batch while paused.
    StepMicroBatch,
    Stop,
    Checkpoint,
    /// Overrides the scheduled rate from the next update on; `None` returns to the schedule.
    LearningRate {
        #[serde(default, skip_serializing_if = "Option::is_none", with = "number::optional")]
        value: Option<f64>,
    },
    /// Statistics of the named parameters' state; no names: of all.
    Inspect {
        #[serde(default)]
        names: Vec<String>,
    },
    /// One parameter's state opened, each strip of at most `width` values.
    Open {
        tensor: String,
        width: usize,
    },
}

impl Command {
    /// The name in logs and JSON.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Hello => "hello",
            Self::Pause => "pause",
            Self::Resume => "resume",
            Self::Step => "step",
            Self::StepMicroBatch => "step_micro_batch",
            Self::Stop => "stop",
            Self::Checkpoint => "checkpoint",
            Self::LearningRate { .. } => "learning_rate",
            Self::Inspect { .. } => "inspect",
            Self::Open { .. } => "open",
        }
    }

    /// Whether the command only looks: such commands are not recorded in the run's log.
    pub const fn only_looks(&self) -> bool {
        matches!(self, Self::Hello | Self::Inspect { .. } | Self::Open { .. })
    }
}

/// One line from the worker.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reply {
    pub id: u64,
    pub answer: Answer,
}

/// What became of a request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Answer {
    Applied {
        at_update: u64,
    },
    /// Taken, and will be applied at the next boundary; an `applied` with the same id follows.
    Queued,
    Rejected {
        why: String,
    },
    /// To [`Command::Hello`]: whether this connection holds control.
    Welcome {
        control: bool,
        paused: bool,
        update: u64,
    },
    State(StateReport),
    Opened(Box<StateDetail>),
}
