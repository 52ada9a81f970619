//! What each message does: typed text, clicks, events, answers, the worker's life, the passing of time.

use super::{
    ASK_SECONDS, CHECKPOINT, Effect, LIST_SECONDS, RunRef, State,
    action::{Action, Screen},
    focus::{Overlay, Panel},
    form::Earlier,
    input::{Input, TextLine},
    link::{Control, Link},
    manage::Relabel,
    palette::Request,
    run::{RunView, Status},
};
use crate::protocol::{Answer, Command, Event, StateDetail};

/// Most values of a strip that are asked for.
pub(super) const STRIP: usize = 256;

impl State {
    pub(super) fn input(&mut self, input: Input) {
        if let Overlay::Palette(palette) = &mut self.overlay {
            palette.line.input(input);
            (palette.selected, palette.error) = (0, None);
        } else if self.searching && matches!(self.overlay, Overlay::Help { .. }) {
            self.search.input(input);
            self.overlay = Overlay::Help { scroll: 0 };
        } else if let Some(line) = &mut self.form.editing {
            line.input(input);
            self.form.preview();
        } else if self.runs.filtering && self.screen == Screen::Runs {
            self.runs.filter.input(input);
            self.runs.arrange();
        } else if self.tensors.filtering {
            self.tensors.filter.input(input);
            self.tensors.selected = 0;
        }
    }

    pub(super) fn submit(&mut self, next: bool) -> Vec<Effect> {
        if matches!(self.overlay, Overlay::Help { .. }) {
            self.searching = false;
            return Vec::new();
        }
        if let Overlay::Palette(palette) = &self.overlay {
            let request = palette.submit();
            return match request {
                Ok(request) => {
                    self.overlay = Overlay::None;
                    self.requested(request)
                }
                Err(why) => {
                    if let Overlay::Palette(palette) = &mut self.overlay {
                        palette.error = Some(why);
                    }
                    Vec::new()
                }
            };
        }
        if self.form.editing.is_some() {
            if self.form.submit() && next {
                self.form.step(1);
            }
        } else if self.screen == Screen::Runs {
            self.runs.filtering = false;
            return self.missing_curves();
        } else {
            self.tensors.filtering = false;
        }
        Vec::new()
    }

    pub(super) fn cancel(&mut self) {
        if matches!(self.overlay, Overlay::Palette(_)) {
            self.overlay = Overlay::None;
        } else if matches!(self.overlay, Overlay::Help { .. }) {
            (self.search, self.searching) = (TextLine::default(), false);
        } else if self.form.editing.is_some() {
            self.form.cancel();
        } else if self.screen == Screen::Runs {
            self.runs.filtering = false;
            self.runs.filter = TextLine::default();
            self.runs.arrange();
        } else {
            self.tensors.filtering = false;
            self.tensors.filter = TextLine::default();
        }
    }

    fn requested(&mut self, request: Request) -> Vec<Effect> {
        match request {
            Request::Do(action) => {
                if action == Action::Edit {
                    // By its name it is asked for wherever the focus is.
                    self.focus.set(Screen::Setup, Panel::Form);
                }
                return self.act(action);
            }
            Request::Set { key, value } => {
                self.screen = Screen::Setup;
                if let Err(why) = self.form.assign(&key, &value) {
                    self.say(why, true);
                }
            }
            Request::Grid(axes) => return self.grid(&axes),
            Request::Resume(set) => return self.resume_run(set),
            Request::Save(path) => return self.save_draft(&path),
            Request::Name(name) => {
                self.say(format!("the next run is called {name}"), false);
                self.form.name = Some(name);
            }
            Request::Watch(run) => {
                self.show(Screen::Train);
                return vec![Effect::Watch { run }];
            }
            Request::Beside(run) => {
                let known = self.runs.all.iter().find(|row| row.id == run || row.name == run);
                let (id, name) = known.map_or((run.clone(), run), |row| (row.id.clone(), row.name.clone()));
                return self.hold_beside(id, name);
            }
            Request::Picture(path) => return vec![Effect::Picture { path }],
            Request::Rename(name) => return self.relabel(Relabel::Name(name)),
            Request::Note(note) => return self.relabel(Relabel::Note(note)),
            Request::Export(format) => match &self.watching {
                Some(run) => return vec![Effect::Export { run: run.id.clone(), format }],
                None => self.say("no run is open: there is nothing to export", true),
            },
        }
        Vec::new()
    }

    /// Does what a line of the palette says; one that takes words after it is put there to be typed on.
    pub(super) fn choose(&mut self, at: usize) -> Vec<Effect> {
        if let Overlay::Fork(choice) = &mut self.overlay {
            choice.selected = at.min(choice.updates.len().saturating_sub(1));
        }
        let Overlay::Palette(palette) = &mut self.overlay else { return Vec::new() };
        palette.selected = at;
        if palette.complete() { Vec::new() } else { self.submit(false) }
    }

    pub(super) fn click(&mut self, panel: Panel, row: Option<usize>) {
        if self.overlay != Overlay::None {
            return;
        }
        if self.form.editing.is_some() {
            self.form.cancel();
        }
        self.focus.set(self.screen, panel);
        match (panel, row) {
            (Panel::Tensors, Some(row)) if self.tensors.opened.is_none() => self.tensors.selected = row,
            (Panel::Form, Some(row)) => self.form.focus_row(row),
            (Panel::List, Some(row)) => self.runs.select(row.min(self.runs.rows.len().saturating_sub(1))),
            _ => {}
        }
    }

    pub(super) fn point(&mut self, panel: Panel, update: u64) {
        self.click(panel, None);
        if self.overlay == Overlay::None {
            self.replot(|plot, made| plot.point(update, made));
        }
    }

    pub(super) fn zoom_at(&mut self, panel: Panel, update: u64, closer: bool) {
        self.click(panel, None);
        if self.overlay == Overlay::None {
            self.replot(|plot, made| plot.zoom_round(closer, Some(update), made));
        }
    }

    pub(super) fn watch(&mut self, run: RunRef) {
        self.leave_behind(&run);
        self.forget_watched();
        self.watching = Some(run);
        let started = std::mem::take(&mut self.starting);
        if started {
            self.form.unfork();
        }
        self.leaving = self.leaving.filter(|_| started);
        self.notice = None;
        self.screen = Screen::Train;
        self.focus.zoomed = false;
    }

    /// Takes everything off the screens that belongs to the watched run.
    pub(super) fn forget_watched(&mut self) {
        (self.watching, self.replay, self.frozen) = (None, None, None);
        (self.run, self.link) = (RunView::default(), Link::default());
        self.link.heard = self.now;
        self.tensors.clear();
        self.journal_scroll = 0;
        self.plot.reset();
        self.plot.cursor = None;
    }

    pub(super) fn events(&mut self, events: &[Event]) -> Vec<Effect> {
        self.link.heard = self.now;
        let mut effects = Vec::new();
        for event in events {
            self.run.apply(event);
            effects.extend(self.call(event));
            match event {
                Event::State(report) => {
                    self.tensors.merge(report.clone(), "log");
                    if let Some(opened) = &mut self.tensors.opened {
                        opened.history.live(&opened.tensor, report);
                    }
                }
                Event::Header(header) => {
                    self.form.last = Some(Earlier::new(&*header.run, &*header.name, &header.config));
                }
                Event::Resumed(resumed) => {
                    self.tensors.clear();
                    if let Some(header) = &resumed.header {
                        self.form.last = Some(Earlier::new(&*header.run, &*header.name, &header.config));
                    }
                }
                Event::RunEnded(_) => self.tensors.outdated(),
                Event::Sample(_) => self.sample_came(),
                _ => {}
            }
        }
        effects.extend(self.leave_if_over());
        effects
    }

    pub(super) fn alive(&mut self, alive: bool) -> Vec<Effect> {
        if !alive && !self.link.gone && self.run.ended.is_none() {
            // It crashed: what it would have answered next is what its last checkpoint holds.
            self.tensors.outdated();
        }
        let went = !alive && !self.link.gone;
        (self.link.gone, self.link.waits) = (!alive, None);
        self.link.followed |= alive;
        if !alive {
            self.link.control = Control::None;
            self.link.pending.clear();
        }
        let mut effects: Vec<Effect> =
            if went { self.call_crash().into_iter().collect() } else { Vec::new() };
        effects.extend(self.leave_if_over());
        effects
    }

    pub(super) fn connected(&mut self, control: Control) {
        if let Control::ReadOnly(why) = &control
            && control != self.link.control
        {
            self.say(format!("read-only: {why}"), false);
        }
        self.link.control = control;
    }

    pub(super) fn answered(&mut self, id: u64, answer: Answer) {
        match answer {
            Answer::Queued => self.link.queued(id),
            Answer::Applied { .. } => {
                self.link.answered(id);
            }
            Answer::Rejected { why } => match self.link.answered(id) {
                Some(sent) => self.say(format!("{}: {why}", sent.text), true),
                // Whoever only looks waits for no answer, but where a parameter is opened.
                None => self.not_opened(why),
            },
            Answer::Welcome { paused, .. } => self.run.paused = paused,
            // An answer that comes after the end is older than the checkpoint that is read instead.
            Answer::State(_) | Answer::Opened(_) if !self.is_live() => {}
            Answer::State(report) => self.tensors.merge(report, "live"),
            Answer::Opened(detail) => self.opened(detail),
        }
    }

    /// The last checkpoint cannot be read: what is here already stays, and does not pass for what the run ended with.
    pub(super) fn unread(&mut self, problem: String) {
        if self.tensors.report.is_some() {
            "as last seen".clone_into(&mut self.tensors.source);
            self.say(problem, true);
        } else {
            self.tensors.source = problem;
        }
    }

    /// The opened parameter cannot be read: that stands where it would, and beside what was read of it before.
    pub(super) fn not_opened(&mut self, problem: String) {
        match &mut self.tensors.opened {
            Some(opened) if opened.detail.is_none() => opened.problem = Some(problem),
            _ => self.say(problem, true),
        }
    }

    pub(super) fn opened(&mut self, mut detail: Box<StateDetail>) {
        self.tensors.complete(&mut detail.tensor);
        if let Some(opened) = &mut self.tensors.opened
            && opened.tensor == detail.tensor.name
        {
            opened.show(detail);
        }
    }

    pub(super) fn tick(&mut self, now: f64) -> Vec<Effect> {
        self.now = now;
        if self.notice.as_ref().is_some_and(|notice| notice.until < now) && self.leaving.is_none() {
            self.notice = None;
            self.revision += 1;
        }
        let mut effects = Vec::new();
        if self.link.control == Control::Full {
            for command in self.link.held() {
                effects.extend(self.command(command));
            }
        }
        let stop_waits = self.leaving.is_some() && self.link.control == Control::Full;
        if stop_waits && self.is_live() && !self.link.stopping {
            effects.extend(self.command(Command::Stop));
        }
        if self.screen == Screen::State && self.frozen.is_none() {
            effects.extend(self.ask_state());
        }
        effects.extend(self.ask_room());
        let listed = self.runs.asked.is_some_and(|asked| now - asked < LIST_SECONDS);
        // Whoever drafts is asked about what else trains, and not about what has ended since.
        let drafting = || self.screen == Screen::Setup && self.beside() != (Vec::new(), Vec::new());
        if !listed && (self.screen == Screen::Runs || drafting()) {
            self.runs.asked = Some(now);
            effects.push(Effect::LoadRuns);
        }
        effects.extend(self.look_after_others());
        effects
    }

    /// Asks for what the State screen shows: at most twice a second, and only for the names in view.
    pub(super) fn ask_state(&mut self) -> Vec<Effect> {
        let Some(run) = self.watching.as_ref().map(|run| run.id.clone()) else { return Vec::new() };
        let waits = self.tensors.asked.is_some_and(|asked| self.now - asked < ASK_SECONDS);
        if waits {
            return Vec::new();
        }
        if self.is_live() && self.link.control != Control::None {
            self.tensors.asked = Some(self.now);
            let command = match &self.tensors.opened {
                Some(opened) => Command::Open { tensor: opened.tensor.clone(), width: STRIP },
                None => Command::Inspect { names: self.tensors.in_view(usize::from(self.size.1)) },
            };
            return self.command(command);
        }
        // While a recording is played its own statistics are shown, not those of its end.
        let playing = self.replay.is_some() && self.status().is_some_and(Status::is_live);
        let unmade = matches!(self.status(), Some(Status::Queued | Status::TakenOut));
        if self.is_live() || playing || unmade {
            return Vec::new();
        }
        // A run that is not live does not change: what was read of it stays.
        if self.tensors.asked.is_some() {
            return Vec::new();
        }
        self.tensors.asked = Some(self.now);
        let mut effects = Vec::new();
        if self.tensors.source != CHECKPOINT {
            effects.push(Effect::LoadState { run: run.clone() });
        }
        if let Some(opened) = &self.tensors.opened {
            effects.push(Effect::LoadDetail { run, tensor: opened.tensor.clone(), width: STRIP });
        }
        effects
    }
}
