//! What each action does to the state.

use super::{
    Effect, READONLY, SMOOTHING, State,
    action::{Action, Screen},
    focus::{Overlay, Panel},
    form::{Earlier, FieldError},
    input::TextLine,
    link::Control,
    palette::Palette,
    replay::REFUSED,
    run::Status,
    tensors::Opened,
};
use crate::protocol::Command;

impl State {
    /// Does one action.
    pub(super) fn act(&mut self, action: Action) -> Vec<Effect> {
        match action {
            Action::Show(screen) => return self.show(screen),
            Action::Help => {
                (self.search, self.searching) = (TextLine::default(), false);
                self.overlay = match self.overlay {
                    Overlay::Help { .. } => Overlay::None,
                    _ => Overlay::Help { scroll: 0 },
                }
            }
            Action::Palette => self.overlay = Overlay::Palette(Palette::default()),
            Action::Quit => return self.quit(),
            Action::Detach => return vec![Effect::Quit { code: 0 }],
            Action::Interrupt => return self.interrupt(),
            Action::Suspend => return vec![Effect::Suspend],
            Action::StopAndLeave => return self.stop_and_leave(),
            Action::Back => self.back(),
            Action::FocusNext => self.focus.step(self.screen, true),
            Action::FocusPrevious => self.focus.step(self.screen, false),
            Action::Up => return self.step(-1),
            Action::Down => return self.step(1),
            Action::PageUp => return self.step(-self.page()),
            Action::PageDown => return self.step(self.page()),
            Action::Home => return self.step(isize::MIN / 2),
            Action::End => return self.step(isize::MAX / 2),
            Action::Left => self.sideways(false),
            Action::Right => self.sideways(true),
            Action::Open => return self.open(),
            Action::Zoom => self.focus.zoomed = !self.focus.zoomed,
            Action::PauseResume if self.replay.is_some() => return self.pause_replay(),
            Action::PauseResume if self.run.paused => return self.command(Command::Resume),
            Action::PauseResume => return self.command(Command::Pause),
            Action::StepUpdate | Action::StepMicroBatch if self.is_live() && !self.run.paused => {
                self.say("stepping needs a paused run: press {key:pause} first", true);
            }
            Action::StepUpdate => return self.command(Command::Step),
            Action::StepMicroBatch => return self.command(Command::StepMicroBatch),
            Action::Stop if self.status() == Some(Status::Queued) => return self.unqueue_watched(),
            Action::Stop => return self.command(Command::Stop),
            Action::Checkpoint => return self.command(Command::Checkpoint),
            Action::LearningRate(value) => return self.command(Command::LearningRate { value }),
            Action::Freeze => {
                self.frozen = match self.frozen.take() {
                    Some(_) => None,
                    None => Some(Box::new(self.run.clone())),
                }
            }
            Action::LogAxis => self.log_y = !self.log_y,
            Action::Smoothing => self.smoothing = (self.smoothing + 1) % SMOOTHING.len(),
            Action::NextXAxis => self.x_axis = self.x_axis.next(),
            Action::LogX => self.plot.log_x = !self.plot.log_x,
            Action::ZoomIn => self.replot(|plot, made| plot.zoom(true, made)),
            Action::ZoomOut => self.replot(|plot, made| plot.zoom(false, made)),
            Action::Earlier => self.replot(|plot, made| plot.scroll(false, made)),
            Action::Later => self.replot(|plot, made| plot.scroll(true, made)),
            Action::WholeRun => {
                self.plot.reset();
                self.plot.cursor = None;
            }
            Action::Overlay => return self.overlay_runs(),
            Action::Theme(name) => {
                self.theme = name.unwrap_or_else(|| self.theme.next());
                self.say(format!("theme {}", self.theme.as_str()), false);
            }
            Action::Filter if self.screen == Screen::Runs => self.runs.filtering = true,
            Action::Filter => {
                let shown = self.show(Screen::State);
                (self.tensors.filtering, self.tensors.opened) = (true, None);
                return shown;
            }
            Action::NextMatch => return self.step(1),
            Action::PreviousMatch => return self.step(-1),
            Action::SortNext if self.screen == Screen::Runs => self.runs.order_step(true),
            Action::SortPrevious if self.screen == Screen::Runs => self.runs.order_step(false),
            Action::SortReverse if self.screen == Screen::Runs => {
                self.runs.reverse = !self.runs.reverse;
                self.runs.arrange();
            }
            Action::SortNext => self.tensors.sort_step(true),
            Action::SortPrevious => self.tensors.sort_step(false),
            Action::SortReverse => self.tensors.reverse = !self.tensors.reverse,
            Action::GroupLayers => {
                let shown = self.show(Screen::State);
                self.tensors.grouped = !self.tensors.grouped;
                return shown;
            }
            Action::NextView => return self.next_view(),
            Action::Beside => return self.next_beside(),
            Action::Start => return self.start(false),
            Action::Queue => return self.queue(),
            Action::Unqueue => return self.unqueue(),
            // The plan has nothing to edit.
            Action::Edit if self.screen == Screen::Setup && self.panel() == Panel::Plan => {
                self.focus.zoomed = !self.focus.zoomed;
            }
            Action::Edit => {
                self.screen = Screen::Setup;
                self.focus.set(Screen::Setup, Panel::Form);
                self.form.edit();
            }
            Action::Reset => self.form.reset(),
            Action::Recent => return self.recent(),
            Action::NextOptimizer => self.form.next_optimizer(),
            Action::AccumulateUp => self.form.accumulate(true),
            Action::AccumulateDown => self.form.accumulate(false),
            Action::Mark => return self.mark(),
            Action::CheckAccumulation => return self.check(),
            Action::Copy => return self.copy(),
            Action::CopyCommand => return self.copy_command(),
            Action::SearchHelp => {
                (self.search, self.searching) = (TextLine::default(), true);
                self.overlay = Overlay::Help { scroll: 0 };
            }
            Action::Samples => self.show_samples(),
            Action::Scatter => {
                self.runs.scatter = !self.runs.scatter;
                return if self.screen == Screen::Runs { Vec::new() } else { self.show(Screen::Runs) };
            }
            Action::ResumeRun => return self.resume_run(Vec::new()),
            Action::Fork => return self.fork_run(),
            Action::Rename => self.ask_label(true),
            Action::Note => self.ask_label(false),
            Action::AlignFork => return self.align_fork(),
            Action::Delete => return self.delete_run(),
            Action::Refresh => {
                self.runs.asked = Some(self.now);
                self.runs.curves.clear();
                return vec![Effect::LoadRuns];
            }
        }
        Vec::new()
    }

    pub(super) fn show(&mut self, screen: Screen) -> Vec<Effect> {
        self.overlay = Overlay::None;
        if self.screen != screen {
            self.screen = screen;
            self.focus.zoomed = false;
        }
        match screen {
            Screen::Runs => {
                self.runs.asked = Some(self.now);
                vec![Effect::LoadRuns]
            }
            Screen::State => self.ask_state(),
            Screen::Train | Screen::Setup => Vec::new(),
        }
    }

    fn back(&mut self) {
        if matches!(self.overlay, Overlay::Help { .. }) && !self.search.text().is_empty() {
            self.search = TextLine::default();
        } else if self.overlay != Overlay::None {
            self.overlay = Overlay::None;
        } else if self.screen == Screen::Train && self.plot.cursor.is_some() {
            self.plot.cursor = None;
        } else if self.screen == Screen::State && self.tensors.opened.is_some() {
            self.tensors.opened = None;
        } else if self.focus.zoomed {
            self.focus.zoomed = false;
        } else if self.screen == Screen::State && !self.tensors.filter.text().is_empty() {
            self.tensors.filter = TextLine::default();
        } else if self.screen == Screen::Setup && self.form.unfork() {
            self.say("the fork is dropped: this is the draft from before", false);
        } else if self.screen == Screen::Runs && !self.runs.filter.text().is_empty() {
            self.runs.filter = TextLine::default();
            self.runs.arrange();
        } else if self.frozen.is_some() {
            self.frozen = None;
        } else if self.leaving.is_none() {
            self.notice = None;
        }
    }

    /// Sends a command to the worker if there is one that listens to this UI.
    pub(super) fn command(&mut self, command: Command) -> Vec<Effect> {
        let why = match (&self.link.control, self.status()) {
            _ if command.only_looks() => None,
            _ if self.replay.is_some() => Some(REFUSED.to_owned()),
            (_, None) => {
                Some("no run is open: set one up on screen {key:setup} and press {key:start}".to_owned())
            }
            (_, Some(Status::Queued | Status::TakenOut)) => Some(self.not_started(&command)),
            (_, Some(status)) if !status.is_live() => {
                Some(format!("the run is no longer live ({}): nothing to command", status.as_str()))
            }
            _ if self.options.readonly => Some(READONLY.to_owned()),
            (Control::ReadOnly(why), _) => Some(format!("read-only: {why}")),
            (Control::None, _) => {
                let what = command.name().replace('_', " ");
                self.link.hold(command.clone());
                Some(format!("{what}: given as soon as the worker listens"))
            }
            (Control::Full, _) => None,
        };
        if let Some(why) = why {
            // A stop that was asked for before the worker listens is given as soon as it does.
            if self.leaving.is_none() || command != Command::Stop {
                self.say(why, true);
            }
            return Vec::new();
        }
        let id = self.link.ask(&command);
        vec![Effect::Send { id, command }]
    }

    fn pause_replay(&mut self) -> Vec<Effect> {
        let Some(replay) = &mut self.replay else { return Vec::new() };
        replay.paused = !replay.paused;
        vec![Effect::PauseReplay { paused: replay.paused }]
    }

    fn overlay_runs(&mut self) -> Vec<Effect> {
        self.plot.overlay = !self.plot.overlay;
        if self.plot.overlay && self.runs.marked.is_empty() {
            self.say("no run is marked: mark some on screen {key:runs} with {key:mark}", false);
        }
        self.missing_curves()
    }

    fn open(&mut self) -> Vec<Effect> {
        match self.panel() {
            Panel::Tensors => {
                if self.tensors.opened.is_some() || self.tensors.fold() {
                    return Vec::new();
                }
                if let Some(tensor) = self.tensors.selected_name() {
                    self.tensors.opened = Some(Opened::new(tensor));
                    self.tensors.asked = None;
                    let mut effects = self.ask_state();
                    effects.extend(self.ask_beside());
                    return effects;
                }
            }
            Panel::List => {
                if let Some(run) = self.runs.selected_id() {
                    let mut effects = vec![Effect::Watch { run }];
                    effects.extend(self.show(Screen::Train));
                    return effects;
                }
            }
            Panel::Form => return self.start(false),
            _ => self.focus.zoomed = !self.focus.zoomed,
        }
        Vec::new()
    }

    /// Starts the draft; on another screen than Setup it is shown first.
    fn start(&mut self, beside: bool) -> Vec<Effect> {
        if self.overlay == Overlay::StartBeside && !beside {
            self.overlay = Overlay::None;
            return self.start(true);
        }
        if self.screen != Screen::Setup {
            self.say("this is the draft of the next run: {key:start} starts it", false);
            return self.show(Screen::Setup);
        }
        if self.options.readonly {
            self.say(READONLY, true);
            return Vec::new();
        }
        match self.form.start() {
            Ok(_) if self.starting => {
                self.say("a run is being started already", true);
                Vec::new()
            }
            Err(why) => {
                self.say(format!("the draft cannot start: {why}"), true);
                Vec::new()
            }
            Ok(_) if !beside && self.beside() != (Vec::new(), Vec::new()) => {
                self.overlay = Overlay::StartBeside;
                Vec::new()
            }
            Ok((resolved, name)) => {
                self.say(format!("starting {name}"), false);
                self.starting = true;
                if let Some(fork) = self.begin_fork(&name, false) {
                    return vec![fork];
                }
                self.form.last = Some(Earlier::new("", &*name, &resolved.config));
                vec![Effect::Start { resolved: Box::new(resolved), name }]
            }
        }
    }

    fn mark(&mut self) -> Vec<Effect> {
        if self.screen != Screen::Runs {
            return self.show(Screen::Runs);
        }
        if let Err(why) = self.runs.mark() {
            self.say(why, true);
        }
        let mut effects = self.missing_curves();
        effects.extend(self.compare_marked());
        effects
    }

    /// Asks for the comparison of the marked runs, where there are several.
    pub(super) fn compare_marked(&self) -> Option<Effect> {
        (self.runs.marked.len() > 1).then(|| Effect::Compare { runs: self.runs.marked.clone() })
    }

    /// Asks for curves that are to be shown and are not here, or belong to a run that goes on.
    pub(super) fn missing_curves(&self) -> Vec<Effect> {
        let overlaid = self.screen == Screen::Train && self.plot.overlay && !self.runs.marked.is_empty();
        if self.screen != Screen::Runs && !overlaid {
            return Vec::new();
        }
        self.runs
            .shown()
            .into_iter()
            .filter(|row| !self.is_followed(&row.id))
            .filter(|row| row.is_live() || !self.runs.curves.contains_key(&row.id))
            .map(|row| Effect::LoadCurves { run: row.id.clone() })
            .collect()
    }
}

impl State {
    /// The message beside a field, when it belongs to that field.
    pub fn field_error(&self, key: &str) -> Option<&FieldError> {
        self.form.error.as_ref().filter(|error| error.key == key)
    }
}
