//! The pure state of the UI: [`State::update`] takes what happened and says what to do.
//!
//! No clock, no file, no thread, no terminal in here: time comes with [`Msg::Tick`], everything that touches
//! the world is an [`Effect`] that the shell carries out.

pub mod action;
mod call;
pub mod check;
mod clip;
mod draft;
mod effect;
pub mod filter;
pub mod focus;
pub mod fork;
pub mod form;
pub mod input;
pub mod leaving;
pub mod link;
pub mod look;
pub mod manage;
pub mod marker;
mod messages;
pub(crate) mod moving;
mod msg;
pub mod opened;
pub mod palette;
pub mod plot;
mod queue;
#[cfg(test)]
pub(crate) mod recorded;
mod replay;
pub mod room;
pub mod run;
pub mod runs;
mod samples;
pub mod series;
pub mod slice;
pub mod status;
pub mod tensors;
mod update;

use crate::config::{ConfigError, Layers};

use action::{Action, Screen};
pub use draft::Settings;
pub use effect::Effect;
use focus::{Context, Focus, Overlay, Panel};
use form::Form;
use input::TextLine;
use leaving::Others;
use link::{Control, Link};
use look::ThemeName;
pub use msg::Msg;
use palette::Palette;
use plot::Plot;
pub use replay::Replay;
use room::Rooms;
use run::{RunView, Status};
use runs::Runs;
use series::XAxis;
use tensors::Tensors;

/// Weights of the smoothing that `S` steps through; 0 shows the loss as it is.
pub const SMOOTHING: [f64; 4] = [0.9, 0.97, 0.99, 0.0];
/// Seconds a notice stays.
const NOTICE_SECONDS: f64 = 6.0;
/// Seconds after which a notice gives way to whoever goes on, and after which an error does.
const READ_SECONDS: f64 = 1.0;
const READ_ERROR_SECONDS: f64 = 3.0;
/// Seconds between two questions for statistics.
const ASK_SECONDS: f64 = 0.5;
/// Where the State screen's figures come from when they were read from the last checkpoint.
const CHECKPOINT: &str = "last checkpoint";
/// Seconds between two readings of the list of runs while it is open.
const LIST_SECONDS: f64 = 2.0;

/// Why a UI that only looks does not do it.
const READONLY: &str = "read-only: started with --readonly";

/// The run that is being watched.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunRef {
    /// Name of its directory.
    pub id: String,
    pub name: String,
    /// Its directory.
    pub path: String,
}

/// How the UI was started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Options {
    pub readonly: bool,
    /// Bytes of memory of this machine, when they are known.
    pub host_memory: Option<u64>,
}

/// A line at the bottom of the screen.
#[derive(Debug, Clone, PartialEq)]
pub struct Notice {
    pub text: String,
    pub error: bool,
    until: f64,
}

/// Everything on the screen.
#[derive(Debug, Clone)]
pub struct State {
    pub screen: Screen,
    pub focus: Focus,
    pub overlay: Overlay,
    pub options: Options,
    pub watching: Option<RunRef>,
    pub run: RunView,
    /// What is shown while the display is frozen.
    pub frozen: Option<Box<RunView>>,
    pub link: Link,
    /// The recording that is played; nothing while a run is watched.
    pub replay: Option<Replay>,
    pub tensors: Tensors,
    pub form: Form,
    pub runs: Runs,
    pub notice: Option<Notice>,
    pub log_y: bool,
    /// Index into [`SMOOTHING`].
    pub smoothing: usize,
    pub x_axis: XAxis,
    /// What the charts of the Train screen show.
    pub plot: Plot,
    pub theme: ThemeName,
    /// What is searched in the help, and whether it is being typed.
    pub search: TextLine,
    pub searching: bool,
    /// Lines the journal is scrolled back.
    pub journal_scroll: usize,
    /// A run was started and is not watched yet.
    pub starting: bool,
    /// The runs that were watched before and are live.
    pub others: Others,
    /// Checks of accumulation that were asked for.
    checks: u64,
    /// Memory of the draft's device.
    rooms: Rooms,
    /// The earlier run whose settings the draft took last.
    recent: Option<String>,
    /// Exit code to leave with once the run has ended.
    pub leaving: Option<i32>,
    /// Counts the changes that can be seen.
    pub revision: u64,
    pub now: f64,
    size: (u16, u16),
}

impl State {
    /// A fresh UI whose draft starts from `base`.
    ///
    /// # Errors
    /// When `base` cannot be resolved.
    pub fn new(base: Layers, options: Options, screen: Screen) -> Result<Self, ConfigError> {
        Ok(Self {
            screen,
            focus: Focus::default(),
            overlay: Overlay::None,
            options,
            watching: None,
            run: RunView::default(),
            frozen: None,
            link: Link::default(),
            replay: None,
            tensors: Tensors::default(),
            form: Form::new(base)?,
            runs: Runs::default(),
            notice: None,
            log_y: false,
            smoothing: 0,
            x_axis: XAxis::Update,
            plot: Plot::default(),
            theme: ThemeName::default(),
            search: TextLine::default(),
            searching: false,
            journal_scroll: 0,
            starting: false,
            others: Others::default(),
            checks: 0,
            rooms: Rooms::default(),
            recent: None,
            leaving: None,
            revision: 0,
            now: 0.0,
            size: (80, 24),
        })
    }

    /// The run as it is to be drawn: frozen, or as it is now.
    pub fn view(&self) -> &RunView {
        self.frozen.as_deref().unwrap_or(&self.run)
    }

    /// Where the watched run stands; nothing when none is watched.
    pub fn status(&self) -> Option<Status> {
        self.watching.as_ref().map(|_| match (self.run.status(self.link.gone), &self.link.waits) {
            (Status::Starting, Some(waits)) => waits.status(),
            (status, _) => status,
        })
    }

    /// Whether a worker trains the watched run.
    pub fn is_live(&self) -> bool {
        self.replay.is_none() && self.status().is_some_and(Status::is_live)
    }

    /// What is missing of the watched run, in words, when it should be training and shows no sign of it.
    pub fn missing(&self) -> Option<String> {
        let status = self.status().filter(|status| matches!(status, Status::Live | Status::Paused))?;
        let quiet = if self.replay.is_some() { 0.0 } else { self.now - self.link.heard };
        self.run.pulse.missing(quiet, status == Status::Paused)
    }

    /// Whether this UI may drive the watched run.
    pub fn may_drive(&self) -> bool {
        self.is_live() && !self.options.readonly && !matches!(self.link.control, Control::ReadOnly(_))
    }

    /// The focused panel.
    pub fn panel(&self) -> Panel {
        self.focus.panel(self.screen)
    }

    /// Where a key is looked up first.
    pub fn context(&self) -> Context {
        match &self.overlay {
            Overlay::Help { .. } if self.searching => return Context::Text,
            Overlay::Help { .. } => return Context::Help,
            Overlay::Palette(_) => return Context::Palette,
            Overlay::Quit => return Context::Quit,
            Overlay::StartBeside => return Context::StartBeside,
            Overlay::Delete { .. } => return Context::Delete,
            Overlay::Unqueue { .. } => return Context::Unqueue,
            Overlay::Fork(_) => return Context::Fork,
            Overlay::Check(_) => return Context::Check,
            Overlay::Samples { .. } => return Context::Samples,
            Overlay::None => {}
        }
        match self.screen {
            Screen::Setup if self.form.editing.is_some() => Context::Text,
            Screen::State if self.tensors.filtering => Context::Text,
            Screen::Runs if self.runs.filtering => Context::Text,
            Screen::Train => Context::Train,
            Screen::State => Context::State,
            Screen::Setup => Context::Setup,
            Screen::Runs => Context::Runs,
        }
    }

    /// Columns and lines of the screen.
    pub fn size(&self) -> (u16, u16) {
        self.size
    }

    /// Takes what happened and says what to do.
    pub fn update(&mut self, msg: Msg) -> Vec<Effect> {
        let awaited = self.awaited_check();
        let (open, said) = (self.overlay != Overlay::None, self.notice.as_ref().map(|notice| notice.until));
        let mut effects = self.take(msg);
        // What was said before an overlay opened would hide the keys that close it.
        if !open && self.overlay != Overlay::None && self.leaving.is_none() {
            self.notice.take_if(|notice| Some(notice.until) == said);
        }
        self.close_settled_question();
        if awaited.is_some() && self.awaited_check() != awaited {
            effects.insert(0, Effect::StopCheck);
        }
        effects
    }

    fn take(&mut self, msg: Msg) -> Vec<Effect> {
        // What tells nothing new draws nothing.
        let silent = match &msg {
            Msg::Tick { .. } | Msg::Room { .. } => true,
            Msg::Runs(rows) => self.runs.loaded && rows.iter().eq(self.runs.all.iter().map(|row| &**row)),
            _ => false,
        };
        self.revision += u64::from(!silent);
        if matches!(msg, Msg::Action(_) | Msg::Input(_) | Msg::Click { .. } | Msg::Tab(_)) {
            self.was_read();
        }
        match msg {
            Msg::Tick { now } => return self.tick(now),
            Msg::Action(action) => return self.act(action),
            Msg::Input(input) => self.input(input),
            Msg::Command(text) => {
                let line = TextLine::new(text);
                self.overlay = Overlay::Palette(Palette { line, ..Palette::default() });
            }
            Msg::Submit => return self.submit(false),
            Msg::SubmitAndNext => return self.submit(true),
            Msg::Cancel => self.cancel(),
            Msg::Click { panel, row } => self.click(panel, row),
            Msg::Point { panel, update } => self.point(panel, update),
            Msg::ZoomAt { panel, update, closer } => self.zoom_at(panel, update, closer),
            Msg::Tab(screen) => return self.act(Action::Show(screen)),
            Msg::Sort(column) => self.tensors.sort_by(column),
            Msg::Choose(at) => return self.choose(at),
            Msg::HelpTo(line) => {
                if let Overlay::Help { scroll } = &mut self.overlay {
                    *scroll = line;
                }
            }
            Msg::Watching { run } => self.watch(run),
            Msg::Replaying { speed } => self.replay = Some(Replay { speed, paused: false }),
            Msg::Events(events) => return self.events(&events),
            Msg::Preparing(line) => self.run.preparing = Some(line),
            Msg::Unreadable(lines) => self.run.unreadable(lines),
            Msg::Started { .. } => {}
            Msg::Crash(lines) => self.run.crashed(lines),
            Msg::Alive(alive) => return self.alive(alive),
            Msg::Waits(waits) => self.link.waits = waits,
            Msg::Others { live } => return self.others_alive(&live),
            Msg::Connected(control) => self.connected(control),
            Msg::Answer { id, answer } => self.answered(id, answer),
            Msg::Runs(rows) => {
                let mut effects = Vec::new();
                self.forget_earlier_if_gone(&rows);
                if !silent {
                    effects = self.unwatch_if_gone(&rows);
                    if self.runs.load(rows) {
                        effects.extend(self.compare_marked());
                    }
                    self.tell_interrupted();
                }
                self.renamed();
                if self.form.last.is_none() {
                    self.form.last = self.runs.newest_config();
                }
                effects.extend(self.missing_curves());
                return effects;
            }
            Msg::Deleted { run, told } => return self.deleted(&run, told),
            Msg::Curves { run, curves } => {
                self.runs.curves.insert(run, curves);
            }
            Msg::Comparison(Ok(comparison)) => {
                if comparison.runs == self.runs.marked {
                    self.runs.comparison = Some(comparison);
                    self.runs.problem = None;
                }
            }
            Msg::Comparison(Err(problem)) => self.runs.problem = Some(problem),
            Msg::State { run, report } if self.is_watched(&run) => match report {
                Ok(report) => self.tensors.merge(report, CHECKPOINT),
                Err(problem) => self.unread(problem),
            },
            Msg::Detail { run, detail } if self.is_watched(&run) => match detail {
                Ok(detail) => self.opened(detail),
                Err(problem) => self.not_opened(problem),
            },
            Msg::Detail { run, detail } => self.beside_read(&run, detail),
            Msg::History { run, tensor, history } if self.is_watched(&run) => {
                self.history_read(&tensor, history);
            }
            Msg::State { .. } | Msg::History { .. } => {}
            Msg::Checked { number, answer } => self.checked(number, answer),
            Msg::Checkpoints { run, name, found } => self.checkpoints_read(run, name, found),
            Msg::ForkBase { origin, base } => return self.fork_read(origin, base),
            Msg::SortBy(order) => {
                self.focus.set(Screen::Runs, Panel::List);
                self.runs.sort_by(order);
            }
            Msg::Room { asked, device, room } => {
                self.revision += u64::from(self.room_told(asked, device, room));
            }
            Msg::Draft { run, settings } => self.draft_read(&run, settings),
            Msg::Queued(outcome) => return self.queued(outcome),
            Msg::Done(text) => self.say(text, false),
            Msg::Failed(text) => {
                self.say(text, true);
                if std::mem::take(&mut self.starting)
                    && let Some(code) = self.leaving
                {
                    return vec![Effect::Quit { code }];
                }
            }
            Msg::Size { width, height } => self.size = (width, height),
        }
        Vec::new()
    }

    /// Shows a line at the bottom for some seconds.
    pub fn say(&mut self, text: impl Into<String>, error: bool) {
        self.notice = Some(Notice { text: text.into(), error, until: self.now + NOTICE_SECONDS });
    }

    /// Who goes on after a moment has read what was said.
    fn was_read(&mut self) {
        let now = self.now;
        let read = |notice: &mut Notice| {
            let seconds = if notice.error { READ_ERROR_SECONDS } else { READ_SECONDS };
            now - (notice.until - NOTICE_SECONDS) > seconds
        };
        if self.leaving.is_none() {
            self.notice.take_if(read);
        }
    }

    fn is_watched(&self, id: &str) -> bool {
        self.watching.as_ref().is_some_and(|run| run.id == id)
    }
}

#[cfg(test)]
mod tests;
