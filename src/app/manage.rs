//! Going on with a run, and moving one to the trash.

use super::{Effect, State, action::Screen, focus::Overlay};

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
            _ if self.options.readonly => "read-only: started with --readonly".to_owned(),
            "live" | "paused" => format!("{name} is live: stop it first"),
            "queued" => format!("{name} waits in the queue: take it out with {{key:unqueue}} first"),
            _ => return Some((id, name)),
        };
        self.say(why, true);
        None
    }

    /// Goes on with the selected run and watches it.
    pub(super) fn resume_run(&mut self) -> Vec<Effect> {
        let Some((run, name)) = self.at_rest("resume") else { return Vec::new() };
        if self.starting {
            self.say("a run is being started already", true);
            return Vec::new();
        }
        self.say(format!("going on with {name}"), false);
        self.starting = true;
        vec![Effect::Resume { run }]
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

    #[test]
    fn going_on_with_a_run_is_asked_for_once() {
        let mut state = recorded::watching(Screen::Runs, "adamw");
        state.runs.select(1);
        let effects = act(&mut state, Action::ResumeRun);
        assert_eq!(effects, [Effect::Resume { run: "20260301T102000-nano-adafactor".into() }]);
        assert!(act(&mut state, Action::ResumeRun).is_empty());
        state.update(Msg::Failed("it has made all of its updates".into()));
        assert_eq!(act(&mut state, Action::ResumeRun).len(), 1, "after it failed it may be tried again");
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
