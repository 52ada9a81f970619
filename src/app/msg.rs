//! What can happen to the screens.

use super::{
    RunRef, Settings,
    action::{Action, Screen},
    focus::Panel,
    form::Origin,
    input::Input,
    link::Control,
    room::Room,
    run::Waiting,
    runs::{Comparison, Curves, Order, RunRow},
    tensors::{Column, History},
};
use crate::{
    config::{DeviceName, Layers},
    protocol::{AccumulationCheck, Answer, Event, StateDetail, StateReport},
};

/// What happened.
#[derive(Debug, Clone)]
pub enum Msg {
    /// Seconds since the UI started.
    Tick {
        now: f64,
    },
    Action(Action),
    Input(Input),
    /// The palette with that typed already.
    Command(&'static str),
    /// A line of text is finished: Enter.
    Submit,
    /// A line of text is finished and the next field follows: Tab.
    SubmitAndNext,
    /// A line of text is dropped: Esc.
    Cancel,
    /// A mouse click on a panel, and the line of its list that was hit.
    Click {
        panel: Panel,
        row: Option<usize>,
    },
    /// A mouse click into a chart, on that update.
    Point {
        panel: Panel,
        update: u64,
    },
    /// The wheel over a chart, on that update.
    ZoomAt {
        panel: Panel,
        update: u64,
        closer: bool,
    },
    /// A mouse click on a tab.
    Tab(Screen),
    /// A mouse click on the head of a column of the table.
    Sort(Column),
    /// A mouse click on that line of the palette, or of the checkpoints to fork.
    Choose(usize),
    /// The first line shown of the help.
    HelpTo(usize),
    /// Another run is being watched from here on.
    Watching {
        run: RunRef,
    },
    /// The run is not watched but played from its record: seconds of it in one second.
    Replaying {
        speed: f64,
    },
    Events(Vec<Event>),
    /// How far the data of the watched run is, which has not begun.
    Preparing(String),
    /// So many lines of the watched run's record cannot be read.
    Unreadable(u64),
    /// A run was started; its directory, and what is to be known of it that its record does not say. The shell watches it.
    Started {
        run: String,
        notes: Vec<String>,
    },
    /// The watched run's worker died; what is known about it, line by line.
    Crash(Vec<String>),
    /// A run was moved to the trash; what is told of it.
    Deleted {
        run: String,
        told: String,
    },
    /// Whether a worker holds the watched run's lock.
    Alive(bool),
    /// Why the watched run has no worker yet.
    Waits(Option<Waiting>),
    /// Ids of those that are live of the runs that were asked about.
    Others {
        live: Vec<String>,
    },
    Connected(Control),
    Answer {
        id: u64,
        answer: Answer,
    },
    Runs(Vec<RunRow>),
    Curves {
        run: String,
        curves: Curves,
    },
    Comparison(Result<Comparison, String>),
    /// State read from a checkpoint.
    State {
        run: String,
        report: Result<StateReport, String>,
    },
    Detail {
        run: String,
        detail: Result<Box<StateDetail>, String>,
    },
    /// What the record says of one parameter of that run.
    History {
        run: String,
        tensor: String,
        history: Result<Box<History>, String>,
    },
    /// What a check of accumulation found, or why it found nothing.
    Checked {
        number: u64,
        answer: Result<Box<AccumulationCheck>, String>,
    },
    /// Updates of the checkpoints of a run that is to be forked, or why there are none.
    Checkpoints {
        run: String,
        name: String,
        found: Result<Vec<u64>, String>,
    },
    /// What was set by hand for a run when that checkpoint was written.
    ForkBase {
        origin: Origin,
        base: Result<Box<Layers>, String>,
    },
    /// A click on the head of a column of the list of runs.
    SortBy(Order),
    /// The memory of the device that was asked for, and which device that is.
    Room {
        asked: DeviceName,
        device: DeviceName,
        room: Option<Room>,
    },
    /// What was set by hand for a run.
    Draft {
        run: String,
        settings: Result<Settings, String>,
    },
    /// Runs were queued, by name, or none was and why.
    Queued(Result<Vec<String>, String>),
    /// Something was done that is worth a line.
    Done(String),
    /// Something went wrong, in one sentence.
    Failed(String),
    /// Lines that fit the screen.
    Size {
        width: u16,
        height: u16,
    },
}
