//! What becomes of the draft beside being started: kept in a file, or taken over from an earlier run.

use std::collections::BTreeMap;

use super::{Effect, State, action::Screen};

/// Settings as they are written in a file: full key and TOML value.
pub type Settings = BTreeMap<String, String>;

/// Settings as TOML, one line each.
pub(super) fn lines(settings: &Settings) -> String {
    settings.iter().map(|(key, value)| format!("{key} = {value}\n")).collect()
}

impl State {
    /// Writes what differs from the defaults into a new file, which starts the same run.
    pub(super) fn save_draft(&mut self, path: &str) -> Vec<Effect> {
        match self.form.start() {
            Ok((resolved, name)) => {
                let text = format!(
                    "# {name}: every key that is not here has its default.\n{}",
                    lines(&resolved.explicit)
                );
                vec![Effect::SaveDraft { path: path.to_owned(), text }]
            }
            Err(why) => {
                self.say(format!("the draft is not saved: {why}"), true);
                Vec::new()
            }
        }
    }

    /// Makes the draft that of an earlier run: of the newest one, then of the one before it, and so on.
    pub(super) fn recent(&mut self) -> Vec<Effect> {
        if self.screen != Screen::Setup {
            self.show(Screen::Setup);
        }
        let all: Vec<_> = self.runs.all.iter().filter(|row| row.problem.is_none()).collect();
        let at = self.recent.as_ref().and_then(|last| all.iter().position(|row| row.id == *last));
        let next = at.map_or(0, |at| at + 1);
        match all.get(next).map(|row| row.id.clone()) {
            Some(run) => {
                self.recent = Some(run.clone());
                vec![Effect::LoadDraft { run }]
            }
            None if all.is_empty() => {
                self.say("there is no earlier run whose settings could be taken", true);
                Vec::new()
            }
            None => {
                self.recent = None;
                self.say("that was the oldest run: once more begins with the newest", false);
                Vec::new()
            }
        }
    }

    /// Takes over the settings of an earlier run.
    pub(super) fn draft_read(&mut self, run: &str, settings: Result<Settings, String>) {
        let all = self.runs.all.iter().filter(|row| row.problem.is_none());
        let (mut at, mut count, mut name) = (None, 0, run.to_owned());
        for row in all {
            count += 1;
            if row.id == run {
                (at, name) = (Some(count), row.name.clone());
            }
        }
        match settings.and_then(|settings| self.form.replace(&settings)) {
            Ok(()) => {
                let place = at.map_or_else(String::new, |at| format!(", {at} of {count}"));
                self.say(format!("the draft has the settings of {name}{place}"), false);
            }
            Err(why) => self.say(format!("the settings of {name} cannot be taken: {why}"), true),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::{Msg, action::Action, input::Input, recorded};

    fn typed(state: &mut State, text: &str) -> Vec<Effect> {
        state.update(Msg::Action(Action::Palette));
        text.chars().for_each(|sign| drop(state.update(Msg::Input(Input::Char(sign)))));
        state.update(Msg::Submit)
    }

    fn said(state: &State) -> &str {
        state.notice.as_ref().map_or("", |notice| &notice.text)
    }

    #[test]
    fn the_draft_is_written_as_what_differs_from_the_defaults() {
        let mut state = recorded::watching(Screen::Setup, "adamw");
        state.form.assign("optimizer.lr", "5e-4").unwrap();
        let effects = typed(&mut state, "save wide.toml");
        let [Effect::SaveDraft { path, text }] = &effects[..] else { panic!("{effects:?}") };
        assert_eq!(path, "wide.toml");
        let again = crate::config::Layers::new().with_toml(text, path).unwrap().resolve().unwrap();
        assert_eq!(again.config, state.form.resolved.config);
        assert_eq!(text.lines().count(), 2, "{text}");
        assert!(typed(&mut state, "save").is_empty());
    }

    #[test]
    fn settings_of_earlier_runs_are_taken_one_after_another() {
        let mut state = recorded::watching(Screen::Setup, "adamw");
        state.form.assign("train.seed", "9").unwrap();
        let ids: Vec<String> = recorded::run_rows().into_iter().map(|row| row.id).collect();
        for id in &ids {
            let effects = state.update(Msg::Action(Action::Recent));
            assert_eq!(effects, [Effect::LoadDraft { run: id.clone() }]);
        }
        let settings = Settings::from([("optimizer.name".into(), "\"lion\"".into())]);
        state.update(Msg::Draft { run: ids[2].clone(), settings: Ok(settings) });
        assert!(said(&state).contains("demo, 3 of 3"), "{}", said(&state));
        let config = &state.form.resolved.config;
        assert_eq!((config.optimizer.name.as_str(), config.train.seed), ("lion", 1), "nothing else stays");
        assert!(state.update(Msg::Action(Action::Recent)).is_empty() && said(&state).contains("oldest"));
        assert_eq!(state.update(Msg::Action(Action::Recent)), [Effect::LoadDraft { run: ids[0].clone() }]);
        let wrong = Settings::from([("train.seed".into(), "\"x\"".into())]);
        state.update(Msg::Draft { run: ids[0].clone(), settings: Ok(wrong) });
        assert!(said(&state).contains("cannot be taken") && said(&state).contains("train.seed"));
        assert_eq!(state.form.optimizer().as_str(), "lion", "the draft stays as it was");
    }
}
