//! Queueing the draft, a grid of it, and taking runs out of the queue again.

use super::{Effect, READONLY, State, action::Screen, focus::Overlay, run::Status};
use crate::protocol::Command;

impl State {
    /// Puts the draft at the end of the queue; on another screen than Setup it is shown first.
    pub(super) fn queue(&mut self) -> Vec<Effect> {
        if self.overlay == Overlay::StartBeside {
            self.overlay = Overlay::None;
        }
        if self.screen != Screen::Setup {
            self.say("this is the draft of the next run: {key:queue} queues it", false);
            return self.show(Screen::Setup);
        }
        let drafts = self.form.start().map(|draft| vec![draft]);
        match &drafts {
            Ok(draft) if !self.options.readonly && self.form.fork.is_some() => {
                let name = draft[0].1.clone();
                self.say(format!("queueing the fork {name}"), false);
                self.begin_fork(&name, true).into_iter().collect()
            }
            _ => self.enqueue(drafts),
        }
    }

    /// Queues every combination of some settings on top of the draft.
    pub(super) fn grid(&mut self, axes: &[String]) -> Vec<Effect> {
        let drafts = self.form.grid(axes);
        self.enqueue(drafts)
    }

    fn enqueue(&mut self, drafts: Result<Vec<(crate::config::Resolved, String)>, String>) -> Vec<Effect> {
        if self.options.readonly {
            self.say(READONLY, true);
            return Vec::new();
        }
        match drafts {
            Ok(drafts) => {
                let what =
                    if drafts.len() == 1 { "the draft".to_owned() } else { format!("{} runs", drafts.len()) };
                self.say(format!("queueing {what}"), false);
                vec![Effect::Queue { drafts }]
            }
            Err(why) => {
                self.say(format!("nothing is queued: {why}"), true);
                Vec::new()
            }
        }
    }

    /// Tells what was queued and reads the list again.
    pub(super) fn queued(&mut self, outcome: Result<Vec<String>, String>) -> Vec<Effect> {
        match outcome {
            Ok(names) => {
                self.form.unfork();
                match &names[..] {
                    [name] => self.say(format!("queued: {name} starts when its turn comes"), false),
                    names => self.say(format!("{} runs are queued, one after another", names.len()), false),
                }
            }
            Err(why) => {
                self.say(format!("nothing is queued: {why}"), true);
                return Vec::new();
            }
        }
        self.runs.asked = Some(self.now);
        vec![Effect::LoadRuns]
    }

    /// Asks whether the selected run is to leave the queue, and takes it out when it was asked already.
    pub(super) fn unqueue(&mut self) -> Vec<Effect> {
        if let Overlay::Unqueue { id, .. } = std::mem::take(&mut self.overlay) {
            // The list is read again at once, so that what is shown is what is.
            self.runs.asked = None;
            return vec![Effect::Unqueue { run: id }];
        }
        if self.screen != Screen::Runs {
            return match self.status() {
                Some(Status::Queued) => self.unqueue_watched(),
                _ => self.show(Screen::Runs),
            };
        }
        let selected = self.runs.rows.get(self.runs.selected);
        match selected {
            _ if self.options.readonly => self.say(READONLY, true),
            Some(row) if row.state == "queued" => {
                self.overlay = Overlay::Unqueue { id: row.id.clone(), name: row.name.clone() };
            }
            Some(row) => {
                let why = format!("{} does not wait in the queue: it is {}", row.name, row.state);
                self.say(why, true);
            }
            None => {}
        }
        Vec::new()
    }

    /// Asks whether the run on the screen, which waits, is to leave the queue.
    pub(super) fn unqueue_watched(&mut self) -> Vec<Effect> {
        match &self.watching {
            _ if self.options.readonly => self.say(READONLY, true),
            Some(run) => self.overlay = Overlay::Unqueue { id: run.id.clone(), name: run.name.clone() },
            None => {}
        }
        Vec::new()
    }

    /// Why a command goes nowhere while the run on the screen has no worker yet.
    pub(super) fn not_started(&self, command: &Command) -> String {
        let what = command.name().replace('_', " ");
        let why = self.link.waits.as_ref().map_or_else(String::new, |waits| waits.sentence());
        let then = if self.status() == Some(Status::Queued) { "; {key:stop} takes it out" } else { "" };
        format!("{what}: the run has not started, {why}{then}")
    }
}

#[cfg(test)]
mod tests {
    use crate::app::{
        Effect, Msg, Options, State,
        action::{Action, Screen},
        focus::{Context, Overlay},
        input::Input,
        recorded,
        run::{Status, Waiting},
    };
    use crate::{app::RunRef, run::queue::Waits};

    fn act(state: &mut State, action: Action) -> Vec<Effect> {
        state.update(Msg::Action(action))
    }

    fn said(state: &State) -> &str {
        state.notice.as_ref().map_or("", |notice| &notice.text)
    }

    #[test]
    fn the_draft_is_queued_while_a_run_is_live() {
        let mut state = recorded::watching(Screen::Setup, "adamw");
        assert!(state.is_live());
        act(&mut state, Action::Start);
        assert_eq!(state.context(), Context::StartBeside);
        let effects = act(&mut state, Action::Queue);
        let [Effect::Queue { drafts }] = &effects[..] else { panic!("{effects:?}") };
        assert_eq!(drafts.len(), 1);
        assert_eq!(state.overlay, Overlay::None);
        assert!(!state.starting, "the run that is watched stays");
        assert_eq!(state.update(Msg::Queued(Ok(vec!["next".into()]))), [Effect::LoadRuns]);
        assert!(said(&state).contains("next"));
    }

    #[test]
    fn a_grid_from_the_palette_queues_the_product_or_says_what_is_wrong() {
        let mut state = recorded::watching(Screen::Train, "adamw");
        let mut typed = |text: &str| {
            act(&mut state, Action::Palette);
            text.chars().for_each(|c| _ = state.update(Msg::Input(Input::Char(c))));
            let effects = state.update(Msg::Submit);
            (effects, said(&state).to_owned())
        };
        let (effects, _) = typed("grid optimizer.name=adamw,adafactor train.accumulate=1,2");
        let [Effect::Queue { drafts }] = &effects[..] else { panic!("{effects:?}") };
        let accumulates: Vec<_> = drafts.iter().map(|(draft, _)| draft.config.train.accumulate).collect();
        assert_eq!(accumulates, [1, 2, 1, 2]);
        let (effects, told) = typed("grid optimizer.name=adamw,adamm");
        assert_eq!(effects, []);
        assert!(told.contains("nothing is queued") && told.contains("adamm"), "{told}");
    }

    #[test]
    fn a_queued_run_is_removed_once_it_was_asked() {
        let mut state = recorded::watching(Screen::Runs, "adamw");
        let mut rows = recorded::run_rows();
        rows[0].state = "queued".into();
        let id = rows[0].id.clone();
        state.update(Msg::Runs(rows));
        assert_eq!(act(&mut state, Action::Unqueue), []);
        assert_eq!(state.context(), Context::Unqueue);
        act(&mut state, Action::Back);
        assert_eq!(state.overlay, Overlay::None);
        act(&mut state, Action::Unqueue);
        assert_eq!(act(&mut state, Action::Unqueue), [Effect::Unqueue { run: id }]);
        state.runs.select(1);
        assert_eq!(act(&mut state, Action::Unqueue), []);
        assert!(said(&state).contains("does not wait"), "{}", said(&state));
    }

    /// A run is watched that waits behind another one.
    fn waiting() -> State {
        let mut state = recorded::watching(Screen::Train, "adamw");
        state.update(Msg::Alive(false));
        state.update(Msg::Watching {
            run: RunRef { id: "q".into(), name: "next".into(), ..RunRef::default() },
        });
        let waits =
            Waits { place: 2, of: 3, behind: vec!["busy".into()], after: Some("first".into()), runner: true };
        state.update(Msg::Waits(Some(Waiting::InLine(waits))));
        state
    }

    #[test]
    fn a_watched_run_that_waits_takes_no_command_and_leaves_the_queue_when_it_is_to_stop() {
        let mut state = waiting();
        assert_eq!((state.status(), state.is_live()), (Some(Status::Queued), false));
        for action in [Action::PauseResume, Action::StepUpdate, Action::Checkpoint] {
            assert_eq!(act(&mut state, action), []);
            let told = said(&state);
            assert!(
                told.contains("has not started, place 2 of 3") && told.contains("{key:stop} takes it out"),
                "{told}"
            );
            assert!(state.link.held().is_empty(), "nothing is kept for later");
        }
        assert_eq!(act(&mut state, Action::Stop), []);
        assert_eq!(state.context(), Context::Unqueue);
        assert_eq!(act(&mut state, Action::Unqueue), [Effect::Unqueue { run: "q".into() }]);
        state.update(Msg::Waits(Some(Waiting::TakenOut)));
        assert_eq!(state.status(), Some(Status::TakenOut));
        act(&mut state, Action::Stop);
        assert!(said(&state).contains("taken out of the queue"), "{}", said(&state));
        assert_eq!(act(&mut state, Action::Quit), [Effect::Quit { code: 0 }], "the queue needs no UI");
    }

    #[test]
    fn a_run_whose_turn_has_come_is_starting_and_asked_about() {
        let mut state = waiting();
        assert_eq!(act(&mut state, Action::Show(Screen::State)), [], "there is no checkpoint to read");
        state.update(Msg::Alive(true));
        assert_eq!(state.status(), Some(Status::Starting));
        act(&mut state, Action::Quit);
        assert_eq!(state.context(), Context::Quit);
    }

    #[test]
    fn who_only_looks_queues_nothing() {
        let mut state = recorded::watching(Screen::Setup, "adamw");
        state.options = Options { readonly: true, ..state.options };
        assert_eq!(act(&mut state, Action::Queue), []);
        assert!(said(&state).contains("read-only"));
    }
}
