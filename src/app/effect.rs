//! What the screens want done outside.

use super::{RunRef, manage::Relabel};
use crate::{
    config::{DeviceName, Resolved},
    protocol::Command,
};

/// What to do.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    Send {
        id: u64,
        command: Command,
    },
    Start {
        resolved: Box<Resolved>,
        name: String,
    },
    /// Put these at the end of the queue: settings and names.
    Queue {
        drafts: Vec<(Resolved, String)>,
    },
    /// Take the run of that id out of the queue.
    Unqueue {
        run: String,
    },
    /// Tell a run that is not watched to stop.
    StopRun {
        run: RunRef,
    },
    /// Look which of these are live.
    LookAlive {
        runs: Vec<RunRef>,
    },
    /// Watch the run of that id, prefix, name or path.
    Watch {
        run: String,
    },
    /// Watch no run any more.
    Unwatch,
    /// Go on with a run that is not live, these settings changed.
    Resume {
        run: String,
        set: Vec<String>,
    },
    /// Start a run from that checkpoint of another one with these settings changed, or put it at the end of the queue.
    Fork {
        run: String,
        update: u64,
        set: Vec<String>,
        name: String,
        queued: bool,
    },
    /// Find the checkpoints of a run that is to be forked.
    LoadCheckpoints {
        run: String,
    },
    /// Read what was set by hand for that run when that checkpoint was written.
    LoadFork {
        run: String,
        update: u64,
    },
    /// Give a run another name, or write a note on it.
    Relabel {
        run: String,
        label: Relabel,
    },
    /// Move a run to the trash folder.
    Delete {
        run: String,
    },
    LoadRuns,
    LoadCurves {
        run: String,
    },
    Compare {
        runs: Vec<String>,
    },
    LoadState {
        run: String,
    },
    LoadDetail {
        run: String,
        tensor: String,
        width: usize,
    },
    /// Read what the record says of one parameter.
    LoadHistory {
        run: String,
        tensor: String,
    },
    Export {
        run: String,
        format: String,
    },
    /// Draw the screen as it is into that file.
    Picture {
        path: String,
    },
    /// Give a text to the terminal's clipboard; `what` it is, in words.
    Copy {
        what: String,
        text: String,
    },
    /// The same of the command that trains a run again from its beginning.
    CopyAgain {
        run: String,
    },
    /// Tell somebody who looks elsewhere.
    Call {
        text: String,
    },
    /// Check accumulation with these settings, as TOML; the answer carries the number.
    Check {
        number: u64,
        settings: String,
    },
    /// Nobody waits for the running check any more.
    StopCheck,
    /// Look at the memory of that device; `asked` is what the draft calls it.
    LoadRoom {
        asked: DeviceName,
        device: DeviceName,
    },
    /// Read what was set by hand for that run.
    LoadDraft {
        run: String,
    },
    /// Write a new file.
    SaveDraft {
        path: String,
        text: String,
    },
    /// Stop the clock of the replay, or let it go on.
    PauseReplay {
        paused: bool,
    },
    /// Stop this program until the shell lets it go on.
    Suspend,
    /// Leave with that exit code.
    Quit {
        code: i32,
    },
}
