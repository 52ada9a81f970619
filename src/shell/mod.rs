//! The UI's hold on the world: terminal, keys, signals, threads that read, and the effects of the pure state.
//!
//! ```text
//! terminal   raw mode and the alternate screen, given back whatever happens
//! watch      a thread that follows one run's record and speaks to its worker
//! replay     a thread that plays the record of a run that has ended
//! apart      what starts, stops and queues runs, each on a thread of its own
//! load       a thread that reads lists, curves, checkpoints and comparisons
//! check      a check of accumulation in a process of its own
//! draft      the draft as a file
//! room       the memory of the draft's device
//! session    the loop: drain, update, draw when something changed, wait for a key
//! watchdog   ends the process when the loop cannot any more
//! glass      what is on the terminal, so that only what has changed is sent
//! outside    the terminal's clipboard, bell, notices and title
//! picture    one frame as text or SVG, without a terminal
//! ```

pub mod apart;
pub mod check;
pub mod draft;
pub mod following;
pub mod glass;
pub mod load;
pub mod outside;
pub mod picture;
pub mod replay;
pub mod room;
pub mod session;
mod signals;
pub mod terminal;
pub mod watch;
pub mod watchdog;

use crate::{
    app::{
        Msg, Options, RunRef, State,
        action::Screen,
        look::{Call, Signs, ThemeName},
        room::Room,
    },
    config::{DeviceName, Layers},
    run::{Home, RunDir},
    ui::{keys::Keys, theme::Theme},
};

/// What the UI opens with.
#[derive(Debug, Clone)]
pub enum Start {
    /// The draft of the next run.
    Setup,
    /// This run.
    Watch(RunDir),
    /// The list of runs.
    Runs,
}

/// How the UI is started.
#[derive(Debug, Clone)]
pub struct Launch {
    pub home: Home,
    pub start: Start,
    /// What files, environment and flags set: the draft starts from it.
    pub layers: Layers,
    /// Look, do not touch.
    pub readonly: bool,
    /// Play the run's record instead of watching the run: seconds of it in one second.
    pub replay: Option<f64>,
    /// The signs to draw with; without, what the locale and the terminal can show.
    pub signs: Option<Signs>,
    pub theme: ThemeName,
    /// Whether the mouse is listened to.
    pub mouse: bool,
    /// How somebody who looks elsewhere is told what has become of the run.
    pub call: Call,
    /// Whether the window is given a title.
    pub title: bool,
    pub keys: Keys,
    /// Reads the memory of a GPU; nothing where nobody can.
    pub gpu: fn(DeviceName) -> Option<Room>,
}

impl Launch {
    /// The UI on a run or on the draft, as most people want it.
    pub fn new(home: Home, start: Start, layers: Layers) -> Self {
        Self {
            home,
            start,
            layers,
            readonly: false,
            replay: None,
            signs: None,
            theme: ThemeName::Dark,
            mouse: true,
            call: Call::None,
            title: false,
            keys: Keys::default(),
            gpu: |_| None,
        }
    }

    /// What the terminal can do and was asked for; the state says with which colours.
    fn look(&self) -> Theme {
        let offered = Theme::detect(false, |name| std::env::var(name).ok());
        let look = self.signs.map_or(offered, |signs| offered.drawn_with(signs));
        Theme { keys: self.keys, ..look }
    }

    fn state(&self) -> anyhow::Result<State> {
        let options =
            Options { readonly: self.readonly, host_memory: room::of_host().map(|room| room.total) };
        let screen = match self.start {
            Start::Setup => Screen::Setup,
            Start::Watch(_) => Screen::Train,
            Start::Runs => Screen::Runs,
        };
        let mut state = State::new(self.layers.clone(), options, screen)?;
        state.theme = self.theme;
        if let Start::Watch(run) = &self.start {
            state.update(Msg::Watching { run: reference(run) });
        }
        Ok(state)
    }
}

/// Opens the UI and returns the exit code when it is left.
///
/// # Errors
/// The terminal cannot be used or the draft's base cannot be resolved.
pub fn run(launch: Launch) -> anyhow::Result<i32> {
    session::run(launch)
}

/// The run as the state names it.
fn reference(run: &RunDir) -> RunRef {
    RunRef { id: run.id().to_owned(), name: run.name(), path: run.path().display().to_string() }
}
