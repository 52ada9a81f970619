//! Everything a person can do, in one table that the key table, the help and the command palette share.

use super::look::ThemeName;

/// The four screens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Screen {
    #[default]
    Train,
    State,
    Setup,
    Runs,
}

impl Screen {
    /// Every screen, in the order of their keys.
    pub const ALL: [Self; 4] = [Self::Train, Self::State, Self::Setup, Self::Runs];

    /// The name on the tab.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Train => "Train",
            Self::State => "State",
            Self::Setup => "Setup",
            Self::Runs => "Runs",
        }
    }
}

/// Something to do.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Action {
    Show(Screen),
    Help,
    Palette,
    Quit,
    /// Ctrl+C, or a signal that asks the program to end.
    Interrupt,
    /// Ctrl+Z: give the terminal back and stop this program, not the run.
    Suspend,
    Back,
    FocusNext,
    FocusPrevious,
    Up,
    Down,
    Left,
    Right,
    PageUp,
    PageDown,
    Home,
    End,
    /// Enter, where it does not start the draft.
    Open,
    Zoom,
    PauseResume,
    StepUpdate,
    StepMicroBatch,
    Stop,
    Checkpoint,
    /// Overrides the scheduled rate; `None` gives it back to the schedule.
    LearningRate(Option<f64>),
    Freeze,
    LogAxis,
    Smoothing,
    NextXAxis,
    LogX,
    ZoomIn,
    ZoomOut,
    Earlier,
    Later,
    WholeRun,
    Overlay,
    /// The look of the screens; `None` is the next one.
    Theme(Option<ThemeName>),
    Filter,
    NextMatch,
    PreviousMatch,
    SortNext,
    SortPrevious,
    SortReverse,
    /// State tensors under their layers, or flat.
    GroupLayers,
    /// The next side of the opened tensor.
    NextView,
    /// The same tensor of another run, and of the next one.
    Beside,
    Start,
    Edit,
    Reset,
    /// The settings of an earlier run as the draft, one run after another.
    Recent,
    NextOptimizer,
    AccumulateUp,
    AccumulateDown,
    Mark,
    /// In a question: leave, the run goes on.
    Detach,
    /// In a question: stop the run, wait for its checkpoint, leave.
    StopAndLeave,
    Refresh,
    /// Memory against loss in place of the curves, and back.
    Scatter,
    /// Go on with the selected run.
    ResumeRun,
    /// Move the selected run to the trash folder, once it is confirmed.
    Delete,
    /// A new run from a checkpoint of the selected one: choose it, then draft it.
    Fork,
    /// Another name for the selected run.
    Rename,
    /// A note on the selected run.
    Note,
    /// The curves from each run's fork point, or from the start.
    AlignFork,
    /// Put the draft at the end of the queue.
    Queue,
    /// Take the selected run out of the queue; asks first.
    Unqueue,
    /// Compare 1 x B with B x 1.
    CheckAccumulation,
    /// The figure under the cursor, or the selected row's, to the clipboard.
    Copy,
    /// The command that resumes or repeats the run to the clipboard.
    CopyCommand,
    /// The help, with only those lines that hold a text.
    SearchHelp,
    /// The texts that the model wrote, and back.
    Samples,
}

/// An action's name in the palette and its line of help.
#[derive(Debug, Clone, Copy)]
pub struct About {
    pub action: Action,
    /// Typed after `:`.
    pub name: &'static str,
    /// What may follow the name; empty when nothing does.
    pub argument: &'static str,
    pub help: &'static str,
}

const fn about(action: Action, name: &'static str, help: &'static str) -> About {
    About { action, name, argument: "", help }
}

/// Every action.
pub const ACTIONS: &[About] = &[
    about(Action::Show(Screen::Train), "train", "the Train screen"),
    about(Action::Show(Screen::State), "state", "the State screen: the optimizer's tensors"),
    about(Action::Show(Screen::Setup), "setup", "the Setup screen: the next run, its memory"),
    about(Action::Show(Screen::Runs), "runs", "the Runs screen: all runs"),
    about(Action::PauseResume, "pause", "pause training, or resume it"),
    about(Action::StepUpdate, "step", "one update while paused"),
    about(Action::StepMicroBatch, "micro-step", "one micro-batch while paused"),
    about(Action::Checkpoint, "checkpoint", "write a checkpoint now"),
    About {
        action: Action::LearningRate(None),
        name: "lr",
        argument: "RATE",
        help: "override the rate; alone: follow the schedule",
    },
    about(Action::Stop, "stop", "stop the run; it saves a checkpoint first"),
    about(Action::Start, "start", "start the draft as a new run"),
    about(Action::Queue, "queue", "queue the draft: it starts by itself"),
    about(Action::Unqueue, "unqueue", "take the selected run out of the queue"),
    about(Action::Edit, "edit", "edit the focused field"),
    about(Action::Reset, "reset", "the focused field back to its default"),
    about(Action::Recent, "recent", "the draft as an earlier run was; again: before"),
    about(Action::NextOptimizer, "optimizer", "next optimizer in the draft"),
    about(Action::AccumulateUp, "accumulate-up", "twice the accumulation in the draft"),
    about(Action::AccumulateDown, "accumulate-down", "half the accumulation in the draft"),
    about(Action::Mark, "mark", "mark the run to compare it"),
    about(Action::CheckAccumulation, "accumulation-check", "1 x B against B x 1: is the gradient the same?"),
    about(Action::Samples, "samples", "texts the model wrote at each validation"),
    about(Action::Scatter, "scatter", "memory against loss, with the Pareto front"),
    about(Action::ResumeRun, "resume-run", "go on with the selected run"),
    about(Action::Fork, "fork", "a new run from the selected one's checkpoint"),
    About {
        action: Action::Rename,
        name: "rename",
        argument: "NAME",
        help: "another name for the selected run",
    },
    About {
        action: Action::Note,
        name: "note",
        argument: "TEXT",
        help: "a note on the selected run; - takes it away",
    },
    about(Action::AlignFork, "align-fork", "runs: x from each run's fork point, or not"),
    about(Action::Delete, "delete", "the selected run to the trash; asks first"),
    about(Action::Refresh, "refresh", "read the list of runs again"),
    about(Action::Freeze, "freeze", "freeze the display; training goes on"),
    about(Action::LogAxis, "log", "logarithmic or linear y axis"),
    about(Action::Smoothing, "smoothing", "how much the loss is smoothed"),
    about(Action::NextXAxis, "x-axis", "x by updates, tokens or time"),
    about(Action::LogX, "log-x", "logarithmic or linear x axis"),
    about(Action::ZoomIn, "zoom-in", "charts: half as many updates"),
    about(Action::ZoomOut, "zoom-out", "charts: twice as many updates"),
    about(Action::Earlier, "earlier", "charts: scroll to earlier updates"),
    about(Action::Later, "later", "charts: scroll to later updates"),
    about(Action::WholeRun, "whole-run", "charts: the whole run again, no cursor"),
    about(Action::Overlay, "overlay", "the marked runs over the loss, or not"),
    About {
        action: Action::Theme(None),
        name: "theme",
        argument: "NAME",
        help: "the next look, or the one of that name",
    },
    about(Action::Filter, "filter", "filter tensors or runs: text or glob"),
    about(Action::NextMatch, "next", "next row"),
    about(Action::PreviousMatch, "previous", "previous row"),
    about(Action::SortNext, "sort-next", "sort by the next column"),
    about(Action::SortPrevious, "sort-previous", "sort by the column before"),
    about(Action::SortReverse, "sort-reverse", "reverse the order"),
    about(Action::GroupLayers, "group", "tensors under their layers, or flat"),
    about(Action::NextView, "view", "the next side of the opened tensor"),
    about(Action::Beside, "beside", "the tensor beside another run's; then the next"),
    about(Action::Open, "open", "open or zoom what has the focus"),
    about(Action::Zoom, "zoom", "zoom the focused panel, and back"),
    about(Action::FocusNext, "focus-next", "focus the next panel"),
    about(Action::FocusPrevious, "focus-previous", "focus the panel before"),
    about(Action::Up, "up", "up"),
    about(Action::Down, "down", "down"),
    about(Action::Left, "left", "left; a chart's cursor; the choice before"),
    about(Action::Right, "right", "right; a chart's cursor; the next choice"),
    about(Action::PageUp, "page-up", "a page up"),
    about(Action::PageDown, "page-down", "a page down"),
    about(Action::Home, "first", "to the first"),
    about(Action::End, "last", "to the last"),
    about(Action::Copy, "copy", "copy the figure under the cursor"),
    about(Action::CopyCommand, "copy-command", "copy the command that resumes or repeats it"),
    about(Action::SearchHelp, "search-help", "the help: only lines with a text in them"),
    about(Action::Back, "back", "out of one layer; never stops a run"),
    about(Action::Help, "help", "this help"),
    about(Action::Palette, "palette", "the command palette"),
    about(Action::Detach, "detach", "leave; the run goes on"),
    about(Action::StopAndLeave, "stop-and-quit", "stop and save the run, then leave"),
    about(Action::Quit, "quit", "leave; asks when a run is live"),
    about(Action::Suspend, "suspend", "stop this program, not the run; `fg` goes on"),
    about(Action::Interrupt, "interrupt", "stop the run, leave when it ended; twice: now"),
];

impl Action {
    /// Name and help of this action.
    pub fn about(self) -> &'static About {
        ACTIONS.iter().find(|about| about.action.is(self)).unwrap_or(&ACTIONS[0])
    }

    /// Whether both are one action, whatever is given with it.
    pub fn is(self, other: Self) -> bool {
        match (self, other) {
            (Self::LearningRate(_), Self::LearningRate(_)) | (Self::Theme(_), Self::Theme(_)) => true,
            (one, another) => one == another,
        }
    }
}
