//! A recording that is played instead of a run that is watched.

/// Why a command goes nowhere while a recording is played.
pub(super) const REFUSED: &str =
    "a replay: what is shown is over and takes no commands; {key:pause} pauses the replay";

/// A recording and how it is played; the shell owns its clock.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Replay {
    /// Seconds of the run in one second; infinite: as fast as it can be read.
    pub speed: f64,
    pub paused: bool,
}

impl Replay {
    /// The words on the screen.
    pub fn label(self) -> String {
        match (self.paused, self.speed.is_finite()) {
            (true, _) => "replay paused".to_owned(),
            (false, true) => format!("replay {}x", self.speed),
            (false, false) => "replay".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::app::{
        Effect, Msg,
        action::{Action, Screen},
        recorded,
    };

    #[test]
    fn a_replay_is_paused_and_takes_no_commands_and_another_run_ends_it() {
        let mut state = recorded::watching(Screen::Train, "adamw");
        state.update(Msg::Replaying { speed: 10.0 });
        assert_eq!(state.replay.unwrap().label(), "replay 10x");
        for paused in [true, false] {
            let effects = state.update(Msg::Action(Action::PauseResume));
            assert_eq!(effects, [Effect::PauseReplay { paused }]);
        }
        let commands =
            [Action::Stop, Action::Checkpoint, Action::StepUpdate, Action::LearningRate(Some(0.1))];
        for action in commands {
            assert!(state.update(Msg::Action(action)).is_empty(), "{action:?}");
            assert!(state.notice.as_ref().unwrap().text.contains("takes no commands"), "{action:?}");
        }
        assert!(!state.is_live() && !state.may_drive());
        assert_eq!(state.update(Msg::Action(Action::Quit)), [Effect::Quit { code: 0 }], "no question");
        state.update(Msg::Watching { run: state.watching.clone().unwrap() });
        assert!(state.replay.is_none());
    }
}
