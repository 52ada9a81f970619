//! Telling somebody who looks elsewhere that a run has ended, failed or warned.

use super::{Effect, State, run::Status};
use crate::{
    protocol::{Event, Level},
    run::text::{count, loss},
};

/// Seconds between two calls for warnings; the end is always told.
const SECONDS: f64 = 30.0;

impl State {
    /// Whether what comes now is news: it is not the record of what happened before this run was looked at.
    fn is_news(&self) -> bool {
        self.link.followed && self.replay.is_none() && self.leaving.is_none()
    }

    /// The call for an event, if it is news and worth one.
    pub(super) fn call(&mut self, event: &Event) -> Option<Effect> {
        let name = &self.watching.as_ref().filter(|_| self.is_news())?.name;
        let text = match event {
            Event::RunEnded(ended) => {
                let summary = &ended.summary;
                let val = summary.final_val_loss;
                let val = val.map_or_else(String::new, |val| format!(", validation loss {}", loss(val)));
                let reason = ended.reason.as_str().replace('_', " ");
                format!("{name}: {reason} after {} updates{val}", count(summary.updates))
            }
            Event::Alert(alert) if alert.level != Level::Info => {
                let lately = self.link.called.is_some_and(|called| self.now - called < SECONDS);
                if lately {
                    return None;
                }
                let text = format!("{name}: {}", alert.message);
                self.link.called = Some(self.now);
                text
            }
            _ => return None,
        };
        Some(Effect::Call { text })
    }

    /// The call for a worker that has died without a word.
    pub(super) fn call_crash(&self) -> Option<Effect> {
        let name = &self.watching.as_ref().filter(|_| self.is_news())?.name;
        (self.status() == Some(Status::Crashed)).then(|| Effect::Call { text: format!("{name}: crashed") })
    }
}

#[cfg(test)]
mod tests {
    use crate::{
        app::{Effect, Msg, State, action::Screen, recorded},
        protocol::{Alert, Event, Level, Reason},
    };

    fn calls(state: &mut State, msg: Msg) -> Vec<String> {
        let text = |effect: Effect| match effect {
            Effect::Call { text } => Some(text),
            _ => None,
        };
        state.update(msg).into_iter().filter_map(text).collect()
    }

    fn alert(level: Level) -> Msg {
        let alert = Alert { update: 300, time: 9.0, level, message: "the loss is no number".into() };
        Msg::Events(vec![Event::Alert(alert)])
    }

    fn followed() -> State {
        let mut state = recorded::watching(Screen::Train, "adamw");
        state.update(Msg::Alive(true));
        state
    }

    #[test]
    fn the_end_and_a_warning_call_and_what_was_before_does_not() {
        let mut state = recorded::watching(Screen::Train, "adamw");
        state.link.followed = false;
        assert!(calls(&mut state, alert(Level::Error)).is_empty(), "the record is still being read");
        state.update(Msg::Alive(true));
        let name = state.watching.as_ref().unwrap().name.clone();
        assert_eq!(calls(&mut state, alert(Level::Info)).len(), 0);
        assert_eq!(calls(&mut state, alert(Level::Error)), [format!("{name}: the loss is no number")]);
        assert!(calls(&mut state, alert(Level::Error)).is_empty(), "one for many");
        state.update(Msg::Tick { now: state.now + 100.0 });
        assert_eq!(calls(&mut state, alert(Level::Warning)).len(), 1);
        let told = calls(&mut state, Msg::Events(vec![recorded::ended(Reason::Finished, 300)]));
        assert!(told.len() == 1 && told[0].contains("finished after 300 updates"), "{told:?}");
        assert!(calls(&mut state, Msg::Alive(false)).is_empty(), "it is told once");
    }

    #[test]
    fn a_crash_calls_once_and_who_leaves_is_not_called() {
        let mut state = followed();
        let told = calls(&mut state, Msg::Alive(false));
        assert!(told.len() == 1 && told[0].ends_with("crashed"), "{told:?}");
        assert!(calls(&mut state, Msg::Alive(false)).is_empty());
        let mut state = followed();
        state.leaving = Some(0);
        assert!(calls(&mut state, Msg::Events(vec![recorded::ended(Reason::Stopped, 300)])).is_empty());
    }
}
