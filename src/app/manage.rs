//! What is done with one run of the list: going on with it, naming it, writing a note on it, moving it to the trash.

use super::{
    Effect, READONLY, State, action::Screen, focus::Overlay, input::TextLine, palette::Palette, run::Status,
    runs::RunRow,
};

/// What a person changes of a run that has been made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Relabel {
    Name(String),
    /// Empty: the note is taken away.
    Note(String),
}

impl State {
    /// The selected run, if this UI may change what is on the disk and nothing else holds the run.
    fn at_rest(&mut self, what: &str) -> Option<(String, String)> {
        if self.screen != Screen::Runs {
            self.say(format!("choose the run on screen {{key:runs}}, then {what} it"), true);
            return None;
        }
        let row = self.runs.rows.get(self.runs.selected)?;
        let (id, name) = (row.id.clone(), row.name.clone());
        let why = match &*row.state {
            _ if self.options.readonly => READONLY.to_owned(),
            "live" | "paused" => format!("{name} is live: stop it first"),
            "queued" => format!("{name} waits in the queue: take it out with {{key:unqueue}} first"),
            _ => return Some((id, name)),
        };
        self.say(why, true);
        None
    }

    /// The run on the screen, under the same conditions.
    fn watched_at_rest(&mut self) -> Option<(String, String)> {
        let Some(run) = &self.watching else {
            self.say("no run is open: choose one on screen {key:runs}", true);
            return None;
        };
        let found = (run.id.clone(), run.name.clone());
        let why = match self.status() {
            _ if self.options.readonly => READONLY.to_owned(),
            Some(Status::Ended(_) | Status::Crashed) => return Some(found),
            Some(Status::Queued) => format!("{} waits in the queue", found.1),
            _ => format!("{} is live", found.1),
        };
        self.say(why, true);
        None
    }

    /// Goes on with the selected run, or with the one on the screen, these settings changed, and watches it.
    pub(super) fn resume_run(&mut self, set: Vec<String>) -> Vec<Effect> {
        let found = match self.screen {
            Screen::Runs => self.at_rest("resume"),
            _ => self.watched_at_rest(),
        };
        let Some((run, name)) = found else { return Vec::new() };
        if self.starting {
            self.say("a run is being started already", true);
            return Vec::new();
        }
        self.say(format!("going on with {name}"), false);
        self.starting = true;
        vec![Effect::Resume { run, set }]
    }

    /// The run that a command without one means: the selected one of the list, elsewhere the one on the screen.
    pub(super) fn subject(&self) -> Option<(String, String)> {
        if self.screen == Screen::Runs {
            return self.runs.rows.get(self.runs.selected).map(|row| (row.id.clone(), row.name.clone()));
        }
        self.watching.as_ref().map(|run| (run.id.clone(), run.name.clone()))
    }

    /// Opens the palette with the present name of the run in it, or its note.
    pub(super) fn ask_label(&mut self, name: bool) {
        if self.options.readonly {
            return self.say(READONLY, true);
        }
        let Some((id, called)) = self.subject() else {
            return self.say("choose a run on screen {key:runs}", true);
        };
        if self.screen == Screen::Runs {
            // It stays the selected one while a new run comes into the list.
            self.runs.select(self.runs.selected);
        }
        let note = || self.runs.all.iter().find(|row| row.id == id).and_then(|row| row.note.clone());
        let text =
            if name { format!("rename {called}") } else { format!("note {}", note().unwrap_or_default()) };
        self.overlay = Overlay::Palette(Palette { line: TextLine::new(text), ..Palette::default() });
    }

    /// Gives the run that is meant another name, or writes a note on it.
    pub(super) fn relabel(&mut self, label: Relabel) -> Vec<Effect> {
        if self.options.readonly {
            self.say(READONLY, true);
            return Vec::new();
        }
        match self.subject() {
            Some((run, _)) => vec![Effect::Relabel { run, label }, Effect::LoadRuns],
            None => {
                self.say("choose a run on screen {key:runs}", true);
                Vec::new()
            }
        }
    }

    /// The run on the screen is called what the list calls it.
    pub(super) fn renamed(&mut self) {
        let Some(run) = &mut self.watching else { return };
        let listed = self.runs.all.iter().find(|row| row.id == run.id && !row.name.is_empty());
        if let Some(row) = listed {
            run.name.clone_from(&row.name);
        }
    }

    /// Asks whether the selected run is to go to the trash, and moves it when it was asked already.
    pub(super) fn delete_run(&mut self) -> Vec<Effect> {
        if let Overlay::Delete { run, .. } = &self.overlay {
            let run = run.clone();
            self.overlay = Overlay::None;
            return vec![Effect::Delete { run }, Effect::LoadRuns];
        }
        if let Some((run, name)) = self.at_rest("delete") {
            self.overlay = Overlay::Delete { run, name };
        }
        Vec::new()
    }

    /// A run is in the trash: nothing of it stays on the screens.
    pub(super) fn deleted(&mut self, run: &str, told: String) -> Vec<Effect> {
        self.say(told, false);
        if self.is_watched(run) { self.unwatch() } else { Vec::new() }
    }

    /// The watched run rests and is no longer in the list where it was: somebody else moved or removed its folder.
    pub(super) fn unwatch_if_gone(&mut self, rows: &[RunRow]) -> Vec<Effect> {
        let Some(run) = self.watching.as_ref().filter(|_| !self.is_live()) else { return Vec::new() };
        let was_there = self.runs.all.iter().any(|row| row.id == run.id);
        if !was_there || rows.iter().any(|row| row.id == run.id) {
            return Vec::new();
        }
        let told = format!("{} is no longer there: its folder was moved or removed", run.name);
        self.say(told, false);
        self.unwatch()
    }

    /// The draft is held against a run that is there: where that one was deleted, against the newest.
    pub(super) fn forget_earlier_if_gone(&mut self, rows: &[RunRow]) {
        let followed = self.runs.all.iter().find(|row| self.form.follows(&row.id));
        if followed.is_some_and(|followed| !rows.iter().any(|row| row.id == followed.id)) {
            self.form.last = None;
        }
    }

    fn unwatch(&mut self) -> Vec<Effect> {
        self.forget_watched();
        let mut effects = vec![Effect::Unwatch];
        effects.extend(self.leave_if_over());
        effects
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::{Msg, action::Action, focus::Context, recorded};

    fn act(state: &mut State, action: Action) -> Vec<Effect> {
        state.update(Msg::Action(action))
    }

    #[test]
    fn a_run_is_deleted_only_when_it_rests_and_after_a_question() {
        let mut state = recorded::watching(Screen::Runs, "adamw");
        state.runs.select(0);
        assert!(act(&mut state, Action::Delete).is_empty());
        assert!(state.notice.as_ref().unwrap().text.contains("is live"));
        assert_eq!(state.context(), Context::Runs);
        act(&mut state, Action::Down);
        assert!(act(&mut state, Action::Delete).is_empty());
        assert_eq!(state.context(), Context::Delete);
        act(&mut state, Action::Back);
        assert_eq!(state.context(), Context::Runs);
        act(&mut state, Action::Delete);
        let run = "20260301T102000-nano-adafactor".to_owned();
        assert_eq!(act(&mut state, Action::Delete), [Effect::Delete { run }, Effect::LoadRuns]);
        state.options.readonly = true;
        assert!(act(&mut state, Action::Delete).is_empty() && act(&mut state, Action::ResumeRun).is_empty());
        assert_eq!(state.context(), Context::Runs);
    }

    /// Watching the run in the third line of the list, which has ended.
    fn ended() -> State {
        let mut state = recorded::watching(Screen::State, "adamw");
        state.update(Msg::Events(vec![recorded::ended(crate::protocol::Reason::Finished, 600)]));
        state.update(Msg::Alive(false));
        act(&mut state, Action::Open);
        assert!(state.tensors.opened.is_some() && state.status().is_some());
        state
    }

    #[test]
    fn nothing_of_a_deleted_run_stays_on_the_screens() {
        let mut state = ended();
        let run = "20260301T101500-demo".to_owned();
        let told = "moved to the trash".to_owned();
        assert_eq!(state.update(Msg::Deleted { run, told: told.clone() }), [Effect::Unwatch]);
        assert!(state.watching.is_none() && state.status().is_none() && state.run.header.is_none());
        assert!(state.tensors.opened.is_none() && state.tensors.report.is_none());
        assert_eq!(state.notice.as_ref().unwrap().text, told);
        assert!(act(&mut state, Action::Show(Screen::State)).is_empty(), "nothing is asked of it any more");
        // Another one than the watched one leaves that alone.
        let mut state = ended();
        assert!(state.update(Msg::Deleted { run: "another".into(), told }).is_empty());
        assert!(state.watching.is_some());
    }

    #[test]
    fn a_watched_run_that_leaves_the_list_is_left_unless_it_never_was_in_it() {
        let mut state = ended();
        let without: Vec<RunRow> = recorded::run_rows().into_iter().take(2).collect();
        assert!(state.update(Msg::Runs(without.clone())).contains(&Effect::Unwatch));
        assert!(state.watching.is_none());
        assert!(state.notice.as_ref().unwrap().text.starts_with("demo is no longer there"));
        // A run in a folder of its own is in no list.
        let mut state = ended();
        state.watching.as_mut().unwrap().id = "elsewhere".into();
        assert!(!state.update(Msg::Runs(without)).contains(&Effect::Unwatch));
        assert!(state.watching.is_some());
    }

    #[test]
    fn the_draft_is_held_against_the_newest_run_once_that_before_is_deleted() {
        let mut state = ended();
        assert_eq!(state.form.last.as_ref().unwrap().name, "demo");
        let without: Vec<RunRow> = recorded::run_rows().into_iter().take(2).collect();
        state.update(Msg::Runs(without));
        assert_eq!(state.form.last.as_ref().unwrap().name, "nano-sgd");
    }

    #[test]
    fn going_on_with_a_run_is_asked_for_once() {
        let mut state = recorded::watching(Screen::Runs, "adamw");
        state.runs.select(1);
        let effects = act(&mut state, Action::ResumeRun);
        let run = "20260301T102000-nano-adafactor".into();
        assert_eq!(effects, [Effect::Resume { run, set: Vec::new() }]);
        assert!(act(&mut state, Action::ResumeRun).is_empty());
        state.update(Msg::Failed("it has made all of its updates".into()));
        assert_eq!(act(&mut state, Action::ResumeRun).len(), 1, "after it failed it may be tried again");
    }

    #[test]
    fn the_run_on_the_screen_goes_on_once_it_has_ended() {
        let mut state = recorded::watching(Screen::Train, "adamw");
        let id = state.watching.as_ref().unwrap().id.clone();
        assert!(act(&mut state, Action::ResumeRun).is_empty(), "it is live");
        state.update(Msg::Alive(false));
        assert_eq!(act(&mut state, Action::ResumeRun), [Effect::Resume { run: id, set: Vec::new() }]);
        let mut state = recorded::watching(Screen::Train, "adamw");
        state.update(Msg::Alive(false));
        state.options.readonly = true;
        assert!(act(&mut state, Action::ResumeRun).is_empty());
        state.watching = None;
        assert!(act(&mut state, Action::ResumeRun).is_empty());
    }

    #[test]
    fn a_run_is_named_and_noted_from_the_list_and_from_the_palette() {
        let mut state = recorded::watching(Screen::Runs, "adamw");
        state.runs.select(2);
        let id = "20260301T101500-demo";
        act(&mut state, Action::Rename);
        let Overlay::Palette(palette) = &state.overlay else { panic!("{:?}", state.overlay) };
        assert_eq!(palette.line.text(), "rename demo");
        for letter in "-2".chars() {
            state.update(Msg::Input(crate::app::input::Input::Char(letter)));
        }
        let label = Relabel::Name("demo-2".into());
        assert_eq!(state.update(Msg::Submit), [Effect::Relabel { run: id.into(), label }, Effect::LoadRuns]);
        let mut rows = recorded::run_rows();
        (rows[2].name, rows[2].note) = ("demo-2".into(), Some("the first".into()));
        state.update(Msg::Runs(rows));
        assert_eq!(state.watching.as_ref().unwrap().name, "demo-2", "it is the run on the screen, too");
        act(&mut state, Action::Note);
        let Overlay::Palette(palette) = &state.overlay else { panic!("{:?}", state.overlay) };
        assert_eq!(palette.line.text(), "note the first");
        act(&mut state, Action::Back);
        state.runs.filter = TextLine::new("FIRST");
        state.runs.arrange();
        assert_eq!(state.runs.rows.len(), 1, "a note is found");
        state.options.readonly = true;
        act(&mut state, Action::Rename);
        assert_eq!(state.overlay, Overlay::None);
    }

    #[test]
    fn typing_a_filter_narrows_the_list_and_escape_gives_it_back() {
        let mut state = recorded::watching(Screen::Runs, "adamw");
        act(&mut state, Action::Filter);
        assert_eq!((state.screen, state.context()), (Screen::Runs, Context::Text));
        for letter in "sgd".chars() {
            state.update(Msg::Input(crate::app::input::Input::Char(letter)));
        }
        assert_eq!(state.runs.rows.len(), 1);
        state.update(Msg::Submit);
        assert_eq!((state.context(), state.runs.rows.len()), (Context::Runs, 1));
        act(&mut state, Action::Back);
        assert_eq!(state.runs.rows.len(), 3);
    }
}
