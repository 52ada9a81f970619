//! What can go wrong with a run directory, each in one sentence: what, where, what to do.

use std::path::{Path, PathBuf};

use thiserror::Error;

use super::standing::State;

/// A run directory that cannot be found, read, written or spoken to.
#[derive(Debug, Error)]
pub enum RunError {
    #[error(
        "there is no folder for runs: neither TUI_TRAIN_HOME, XDG_STATE_HOME nor HOME is set; set TUI_TRAIN_HOME to a folder"
    )]
    NoHome,
    #[error("{} cannot be written ({source}): set TUI_TRAIN_HOME to a folder that can", .path.display())]
    HomeNotWritable { path: PathBuf, source: std::io::Error },
    #[error("{what} {}: {source}", .path.display())]
    Io { what: &'static str, path: PathBuf, source: std::io::Error },
    #[error("{}: {problem}", .path.display())]
    Damaged { path: PathBuf, problem: String },
    #[error(
        "{}: this program, version {}, does not know the setting `{key}`, which a newer one wrote, and would ignore it: {}",
        .path.display(), env!("CARGO_PKG_VERSION"), newer()
    )]
    UnknownSetting { path: PathBuf, key: String },
    #[error("there are no runs in {} yet: `tui-train run` starts one", .0.display())]
    NoRuns(PathBuf),
    #[error("no run is called `{text}`; the newest are: {candidates}")]
    Unknown { text: String, candidates: String },
    #[error("`{text}` could be any of {count} runs, write more of it: {candidates}")]
    Ambiguous { text: String, count: usize, candidates: String },
    #[error("{} is not a run: it has neither run.toml nor events.jsonl", .0.display())]
    NotARun(PathBuf),
    #[error("run {0} is already being trained by another process")]
    Locked(String),
    #[error(
        "{} cannot be locked ({source}), and two processes could train one run: set TUI_TRAIN_HOME to a folder on a file system with locks",
        .path.display()
    )]
    NoLocks { path: PathBuf, source: std::io::Error },
    #[error("run {0} is not live: no worker is training it")]
    NotLive(String),
    #[error("run {run} did not answer `{command}` within {seconds} s")]
    NoAnswer { run: String, command: &'static str, seconds: u64 },
    #[error("the worker of run {0} closed the connection before it answered")]
    Closed(String),
    #[error("run {run} has no checkpoint: {}", no_checkpoint(*.state, .run))]
    NoCheckpoint { run: String, state: State },
    #[error(
        "run {run} has no checkpoint: `{name}` was trained by a loop of its own, which keeps its weights to itself; `tui-train inspect {run}` shows what it told of its state"
    )]
    OwnLoop { run: String, name: String },
    #[error("run {run} has no checkpoint of update {update}; it has those of {known}")]
    NoSuchCheckpoint { run: String, update: u64, known: String },
    #[error(
        "no checkpoint of run {run} can be used ({problem}): remove its folder `checkpoints` to start over from update 0"
    )]
    NoGoodCheckpoint { run: String, problem: String },
    #[error("{problem}; {}", older(*.good))]
    BadCheckpoint { problem: String, good: Option<u64> },
    #[error(
        "run {run} has made {made} updates, and its settings end it at {total}: give it more with --set \
         train.max_updates={}, or start another run from an earlier checkpoint with `tui-train fork --at UPDATE`",
        2 * .made.max(.total)
    )]
    AllMade { run: String, made: u64, total: u64 },
    #[error(
        "a fork of run {run} at update {update} that ends at update {total} has nothing to do: set train.max_updates above \
         {update}, or fork an earlier checkpoint with --at"
    )]
    NothingLeft { run: String, update: u64, total: u64 },
    #[error(
        "model.weights cannot be set for a fork, which begins with the weights of its checkpoint: start a new run with them, \
         `tui-train run --set model.weights=...`"
    )]
    WeightsOfAFork,
    #[error(
        "run {run} was forked from run {parent}, which is not beside it: without its record nobody knows what trains it \
         from the first update; put it back"
    )]
    NoParent { run: String, parent: String },
    #[error("{} exists already, and nothing is overwritten: name another place with -o, or replace it with --force", .0.display())]
    Taken(PathBuf),
    #[error("{}", no_tensor(.pattern, .nearest.as_deref()))]
    NoTensor { pattern: String, nearest: Option<String> },
    #[error(transparent)]
    Config(#[from] crate::config::ConfigError),
}

impl RunError {
    /// Names the file in an I/O error. `what` reads like `cannot read`.
    pub fn io(what: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { what, path, source }
    }

    /// The exit code of a command that ends with this error: 2 when what was asked for does not exist.
    pub const fn exit_code(&self) -> i32 {
        match self {
            Self::NoHome
            | Self::NoRuns(_)
            | Self::Unknown { .. }
            | Self::Ambiguous { .. }
            | Self::NotARun(_)
            | Self::NoTensor { .. }
            | Self::NoCheckpoint { .. }
            | Self::OwnLoop { .. }
            | Self::NoSuchCheckpoint { .. }
            | Self::AllMade { .. }
            | Self::NothingLeft { .. }
            | Self::WeightsOfAFork
            | Self::Taken(_)
            | Self::Config(_) => 2,
            _ => 1,
        }
    }
}

/// Why there is none, and what to do.
fn no_checkpoint(state: State, run: &str) -> String {
    match state {
        State::Queued => "it waits in the queue and has not started".to_owned(),
        State::Live | State::Paused => {
            "the first is written on stop, at the end, after checkpoint.every_updates, or \
                                        with c on its screens"
                .to_owned()
        }
        State::Crashed | State::Stopped | State::Failed => {
            format!("it ended before one was written; `tui-train resume {run}` starts it over")
        }
        State::Done => "its folder `checkpoints` is empty or was removed".to_owned(),
    }
}

/// How a program comes to know the settings of a newer one.
fn newer() -> String {
    if cfg!(feature = "libtorch") {
        format!("build it again with `{}`", super::libtorch::BUILD)
    } else {
        "train it with the newer one".to_owned()
    }
}

fn older(good: Option<u64>) -> String {
    match good {
        Some(update) => format!("the checkpoint of update {update} is whole: use that one"),
        None => "no other checkpoint of the run is whole".to_owned(),
    }
}

fn no_tensor(pattern: &str, nearest: Option<&str>) -> String {
    match nearest {
        Some(near) => format!("no parameter matches `{pattern}`; the nearest name is `{near}`"),
        None => format!("no parameter matches `{pattern}`"),
    }
}
