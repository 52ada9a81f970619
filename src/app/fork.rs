//! Forking a run: choose one of its checkpoints, draft the new run on the Setup screen, start or queue it.

use super::{
    Effect, READONLY, State,
    action::Screen,
    focus::{Overlay, Panel},
    form::Origin,
};
use crate::config::Layers;

/// A run whose checkpoints one is chosen of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    pub run: String,
    pub name: String,
    /// Updates of its checkpoints, the newest first.
    pub updates: Vec<u64>,
    pub selected: usize,
}

impl Choice {
    /// The update of the chosen checkpoint.
    pub fn chosen(&self) -> Option<u64> {
        self.updates.get(self.selected).copied()
    }
}

impl State {
    /// Asks for the checkpoints of a run to fork, and for the settings of the chosen one when they are shown.
    pub(super) fn fork_run(&mut self) -> Vec<Effect> {
        if let Overlay::Fork(choice) = std::mem::take(&mut self.overlay) {
            let Some(update) = choice.chosen() else { return Vec::new() };
            return vec![Effect::LoadFork { run: choice.run, update }];
        }
        if self.options.readonly {
            self.say(READONLY, true);
            return Vec::new();
        }
        match self.subject() {
            Some((run, _)) => vec![Effect::LoadCheckpoints { run }],
            None => {
                self.say("choose the run to fork on screen {key:runs}", true);
                Vec::new()
            }
        }
    }

    /// Shows the checkpoints, or says why there is none to fork.
    pub(super) fn checkpoints_read(&mut self, run: String, name: String, found: Result<Vec<u64>, String>) {
        match found {
            Ok(mut updates) => {
                updates.sort_unstable_by(|a, b| b.cmp(a));
                self.overlay = Overlay::Fork(Choice { run, name, updates, selected: 0 });
            }
            Err(why) => self.say(why, true),
        }
    }

    /// Opens the draft of the fork.
    pub(super) fn fork_read(&mut self, origin: Origin, base: Result<Box<Layers>, String>) -> Vec<Effect> {
        let drafted = base.and_then(|base| self.form.fork(origin, *base));
        if let Err(why) = drafted {
            self.say(why, true);
            return Vec::new();
        }
        let effects = self.show(Screen::Setup);
        self.focus.set(Screen::Setup, Panel::Form);
        self.say(
            "change what the fork is to do otherwise; {key:start} starts it, {key:back} drops it",
            false,
        );
        effects
    }

    /// The effect that starts or queues the fork that is drafted; nothing when none is.
    pub(super) fn begin_fork(&self, name: &str, queued: bool) -> Option<Effect> {
        let Origin { run, update, .. } = self.form.fork.clone()?;
        let (set, name) = (self.form.assignments(), name.to_owned());
        Some(Effect::Fork { run, update, set, name, queued })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::{Msg, action::Action, focus::Context, recorded};

    const RUN: &str = "20260301T102000-nano-adafactor";

    fn act(state: &mut State, action: Action) -> Vec<Effect> {
        state.update(Msg::Action(action))
    }

    fn said(state: &State) -> &str {
        state.notice.as_ref().map_or("", |notice| &notice.text)
    }

    /// The draft of a fork of a run that has ended.
    fn drafted() -> State {
        let mut state = recorded::watching(Screen::Runs, "adamw");
        state.runs.select(1);
        assert_eq!(act(&mut state, Action::Fork), [Effect::LoadCheckpoints { run: RUN.into() }]);
        let found = Ok(vec![100, 200, 600]);
        state.update(Msg::Checkpoints { run: RUN.into(), name: "nano-adafactor".into(), found });
        assert_eq!(state.context(), Context::Fork);
        act(&mut state, Action::Down);
        assert_eq!(act(&mut state, Action::Fork), [Effect::LoadFork { run: RUN.into(), update: 200 }]);
        let origin = Origin { run: RUN.into(), name: "nano-adafactor".into(), update: 200 };
        let base = Layers::new().with_assignment("optimizer.name=adafactor").unwrap();
        state.update(Msg::ForkBase { origin, base: Ok(Box::new(base)) });
        state
    }

    #[test]
    fn a_fork_is_drafted_from_the_chosen_checkpoint_and_started() {
        let mut state = drafted();
        assert_eq!((state.screen, state.context()), (Screen::Setup, Context::Setup));
        assert_eq!(state.form.value("optimizer.name"), "adafactor");
        state.form.assign("train.max_updates", "900").unwrap();
        // The watched run is live: starting beside it is asked first, as for any other draft.
        act(&mut state, Action::Start);
        assert_eq!(state.context(), Context::StartBeside);
        let effects = act(&mut state, Action::Start);
        let [Effect::Fork { run, update: 200, set, queued: false, .. }] = &effects[..] else {
            panic!("{effects:?}")
        };
        assert_eq!((&**run, &set[..]), (RUN, &["train.max_updates=900".to_owned()][..]));
        assert!(state.starting);
        assert!(state.form.fork.is_some(), "until it has started the draft stays, to be mended");
        state.update(Msg::Failed("a fork has nothing to do".into()));
        assert!(!state.starting && state.form.fork.is_some());
        act(&mut state, Action::Start);
        act(&mut state, Action::Start);
        state.update(Msg::Watching { run: crate::app::RunRef { id: "f".into(), ..Default::default() } });
        assert!(state.form.fork.is_none() && state.form.value("optimizer.name") == "adamw");
    }

    #[test]
    fn a_fork_is_queued_and_no_grid_is_made_of_it() {
        let mut state = drafted();
        let effects = act(&mut state, Action::Queue);
        assert!(matches!(&effects[..], [Effect::Fork { queued: true, .. }]), "{effects:?}");
        state.update(Msg::Queued(Err("the disk is full".into())));
        assert!(state.form.fork.is_some());
        assert!(state.form.grid(&["train.seed=1,2".into()]).unwrap_err().contains("fork"));
        state.update(Msg::Queued(Ok(vec!["next".into()])));
        assert!(state.form.fork.is_none());
    }

    #[test]
    fn escape_drops_the_fork_and_a_run_without_checkpoints_says_why() {
        let mut state = drafted();
        act(&mut state, Action::Back);
        assert!(state.form.fork.is_none());
        assert_eq!((state.screen, state.form.value("optimizer.name").as_str()), (Screen::Setup, "adamw"));
        let why = "run x has no checkpoint: it waits in the queue".to_owned();
        state.update(Msg::Checkpoints { run: "x".into(), name: "x".into(), found: Err(why) });
        assert!(said(&state).contains("waits in the queue"));
        state.options.readonly = true;
        act(&mut state, Action::Show(Screen::Runs));
        assert_eq!(act(&mut state, Action::Fork), []);
        assert!(said(&state).contains("read-only"));
    }
}
