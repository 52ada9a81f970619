//! Leaving: what is asked while a run of this session is live, and what stops before.
//!
//! A run that this UI drove and then left for another one goes on unseen. Whoever leaves is asked about it as about the
//! one on the screen. An interrupt stops the run on the screen alone, and says what goes on.

use super::{Effect, RunRef, State, focus::Overlay, run::Status};
use crate::protocol::Command;

/// Seconds between two looks whether the runs that were left are still live.
const LOOK_SECONDS: f64 = 1.0;
/// Exit code of whoever leaves by an interrupt while a run is live.
const INTERRUPTED: i32 = 130;

/// Runs that this UI drove before the one on the screen and that were live when last looked at.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Others {
    pub runs: Vec<RunRef>,
    /// When they were looked at last, in seconds of the UI's clock.
    asked: Option<f64>,
    /// They were told to stop, and leaving waits for it.
    stopping: bool,
}

impl State {
    /// Names of the runs that somebody who leaves now leaves alone, the one on the screen first.
    pub fn live_here(&self) -> Vec<&str> {
        let watched = self.watching.as_ref().filter(|_| self.may_drive());
        watched.into_iter().chain(&self.others.runs).map(|run| &*run.name).collect()
    }

    /// Names of the runs that one that is started now trains beside, and of those that wait for their turn: what this UI
    /// watches or left, and whatever else the list tells of.
    pub fn beside(&self) -> (Vec<&str>, Vec<&str>) {
        let watched = self.watching.as_ref().filter(|_| self.is_live());
        let known = |id: &str| self.is_watched(id) || self.others.runs.iter().any(|run| run.id == id);
        let unknown = || self.runs.all.iter().filter(|row| !known(&row.id));
        let here = watched.into_iter().chain(&self.others.runs).map(|run| &*run.name);
        let live = here.chain(unknown().filter(|row| row.is_live()).map(|row| &*row.name)).collect();
        (live, unknown().filter(|row| row.state == "queued").map(|row| &*row.name).collect())
    }

    /// Asks what becomes of live runs; leaves when there are none.
    pub(super) fn quit(&mut self) -> Vec<Effect> {
        if self.live_here().is_empty() && !self.starting {
            return vec![Effect::Quit { code: 0 }];
        }
        self.overlay = Overlay::Quit;
        Vec::new()
    }

    /// Stops every live run of this session and leaves when all have ended.
    pub(super) fn stop_and_leave(&mut self) -> Vec<Effect> {
        self.overlay = Overlay::None;
        if self.live_here().is_empty() && !self.starting {
            return vec![Effect::Quit { code: 0 }];
        }
        self.leaving = Some(0);
        let mut effects = Vec::new();
        if !self.others.runs.is_empty() && !std::mem::replace(&mut self.others.stopping, true) {
            let names: Vec<&str> = self.others.runs.iter().map(|run| &*run.name).collect();
            let names = names.join(" and ");
            effects.extend(self.others.runs.iter().cloned().map(|run| Effect::StopRun { run }));
            self.say(format!("stopping {names}: leaving when the checkpoint is written"), false);
        }
        if self.may_drive() && !self.starting {
            effects.extend(self.command(Command::Stop));
        }
        effects
    }

    /// Stops the run on the screen and leaves when it has ended; leaves at once the second time, and when no run is
    /// driven from here. What was not looked at is not stopped.
    pub(super) fn interrupt(&mut self) -> Vec<Effect> {
        if self.leaving == Some(INTERRUPTED) || (!self.may_drive() && !self.starting) {
            return vec![Effect::Quit { code: self.leaving.unwrap_or(0) }];
        }
        self.leaving = Some(INTERRUPTED);
        self.overlay = Overlay::None;
        self.tell_interrupted();
        // What waits in the queue may have been read long ago.
        let mut effects: Vec<Effect> =
            self.runs.any_queued().then_some(Effect::LoadRuns).into_iter().collect();
        // A run that is just being started is stopped as soon as it is watched.
        if !self.link.stopping && !self.starting {
            effects.extend(self.command(Command::Stop));
        }
        effects
    }

    /// Says that the run on the screen stops, and what does not.
    pub(super) fn tell_interrupted(&mut self) {
        if self.leaving != Some(INTERRUPTED) {
            return;
        }
        let mut others: Vec<String> = match &self.others.runs[..] {
            // Those that stop are not told to go on.
            _ if self.others.stopping => Vec::new(),
            runs @ ([] | [_] | [_, _]) => runs.iter().map(|run| run.name.clone()).collect(),
            many => vec![format!("{} other runs", many.len())],
        };
        others.extend(self.runs.any_queued().then(|| "the queue".to_owned()));
        let plural = others.len() > 1 || self.others.runs.len() > 2;
        let text = match &others[..] {
            [] => "stopping: the run saves a checkpoint; Ctrl+C again leaves at once".to_owned(),
            others => format!(
                "stopping this run (Ctrl+C again: at once); {} {} on",
                others.join(" and "),
                if plural { "go" } else { "goes" }
            ),
        };
        self.say(text, false);
    }

    /// Remembers the run on the screen, which another one takes the place of, while it is live and driven from here.
    pub(super) fn leave_behind(&mut self, next: &RunRef) {
        if let Some(run) = self.watching.clone().filter(|_| self.may_drive()) {
            self.others.runs.push(run);
        }
        self.others.runs.retain(|run| run.id != next.id);
    }

    /// Asks from time to time which of the runs that were left are still live.
    pub(super) fn look_after_others(&mut self) -> Option<Effect> {
        let waits = self.others.asked.is_some_and(|asked| self.now - asked < LOOK_SECONDS);
        if waits || self.others.runs.is_empty() {
            return None;
        }
        self.others.asked = Some(self.now);
        Some(Effect::LookAlive { runs: self.others.runs.clone() })
    }

    /// Forgets those that have ended.
    pub(super) fn others_alive(&mut self, live: &[String]) -> Vec<Effect> {
        self.others.runs.retain(|run| live.contains(&run.id));
        self.leave_if_over()
    }

    /// A question about live runs is none any more once they have ended.
    pub(super) fn close_settled_question(&mut self) {
        let told = match self.overlay {
            Overlay::Quit if self.live_here().is_empty() && !self.starting => "no run is live any more",
            Overlay::StartBeside if self.beside() == (Vec::new(), Vec::new()) => {
                "no run trains any more: {key:start} starts the draft"
            }
            _ => return,
        };
        self.overlay = Overlay::None;
        self.say(told, false);
    }

    /// Leaves once nothing is waited for any more.
    pub(super) fn leave_if_over(&self) -> Vec<Effect> {
        let Some(code) = self.leaving else { return Vec::new() };
        // The worker removes its lock and socket after its last line: wait until it is gone.
        let lingers =
            matches!(self.status(), Some(Status::Ended(_))) && !self.link.gone && self.replay.is_none();
        let others = self.others.stopping && !self.others.runs.is_empty();
        if self.starting || self.may_drive() || lingers || others {
            return Vec::new();
        }
        vec![Effect::Quit { code }]
    }
}

#[cfg(test)]
mod tests {
    use crate::{
        app::{
            Effect, Msg, RunRef, State,
            action::{Action, Screen},
            focus::{Context, Overlay},
            link::Control,
            recorded,
            runs::RunRow,
        },
        protocol::{Command, Reason},
    };

    fn act(state: &mut State, action: Action) -> Vec<Effect> {
        state.update(Msg::Action(action))
    }

    fn said(state: &State) -> &str {
        state.notice.as_ref().map_or("", |notice| &notice.text)
    }

    #[test]
    fn a_run_that_the_list_tells_of_is_asked_about_before_another_is_started() {
        let mut state = recorded::watching(Screen::Setup, "adamw");
        state.update(Msg::Events(vec![recorded::ended(Reason::Finished, 600)]));
        state.update(Msg::Alive(false));
        let mut rows = recorded::run_rows();
        rows[0].state = "queued".into();
        state.update(Msg::Runs(rows.clone()));
        assert_eq!(state.beside(), (Vec::new(), vec!["nano-sgd"]));
        assert!(act(&mut state, Action::Start).is_empty());
        assert_eq!(state.context(), Context::StartBeside);
        act(&mut state, Action::Back);
        // While it drafts the list is read again, until nothing of it is live.
        assert!(state.update(Msg::Tick { now: 100.0 }).contains(&Effect::LoadRuns));
        rows[0].state = "done".into();
        state.update(Msg::Runs(rows));
        assert!(!state.update(Msg::Tick { now: 200.0 }).contains(&Effect::LoadRuns));
        assert!(matches!(act(&mut state, Action::Start)[..], [Effect::Start { .. }]));
    }

    fn other() -> RunRef {
        RunRef { id: "other".into(), name: "other".into(), path: "/runs/other".into() }
    }

    /// A live run was left for one that has ended.
    fn left() -> State {
        let mut state = recorded::watching(Screen::Train, "adamw");
        state.update(Msg::Watching { run: other() });
        state.update(Msg::Events(vec![recorded::ended(Reason::Finished, 600)]));
        state.update(Msg::Alive(false));
        state
    }

    #[test]
    fn who_leaves_is_asked_about_a_live_run_that_is_not_on_the_screen() {
        let mut state = left();
        assert!(!state.is_live());
        assert_eq!(act(&mut state, Action::Quit), []);
        assert_eq!((state.context(), state.live_here()), (Context::Quit, vec!["demo"]));
        assert_eq!(act(&mut state, Action::Detach), [Effect::Quit { code: 0 }]);
        // It ended meanwhile: nothing is asked any more.
        act(&mut state, Action::Back);
        let effects = state.update(Msg::Tick { now: 5.0 });
        assert!(
            matches!(&effects[..], [Effect::LookAlive { runs }] if runs[0].name == "demo"),
            "{effects:?}"
        );
        assert_eq!(state.update(Msg::Tick { now: 5.1 }), [], "once a second is enough");
        state.update(Msg::Others { live: vec!["20260301T101500-demo".into()] });
        assert_eq!(state.live_here(), ["demo"]);
        state.update(Msg::Others { live: Vec::new() });
        assert_eq!(act(&mut state, Action::Quit), [Effect::Quit { code: 0 }]);
    }

    #[test]
    fn a_question_about_a_live_run_closes_when_it_has_ended() {
        let ended = || Msg::Events(vec![recorded::ended(Reason::Finished, 600)]);
        let mut state = recorded::watching(Screen::Train, "adamw");
        act(&mut state, Action::Quit);
        assert_eq!(state.context(), Context::Quit);
        state.update(ended());
        assert_eq!((state.context(), said(&state)), (Context::Train, "no run is live any more"));
        assert_eq!(act(&mut state, Action::Quit), [Effect::Quit { code: 0 }]);
        let mut state = recorded::watching(Screen::Setup, "adamw");
        act(&mut state, Action::Start);
        assert_eq!(state.context(), Context::StartBeside);
        state.update(ended());
        assert_eq!(state.context(), Context::StartBeside, "another one of the list is live");
        state.update(Msg::Runs(Vec::new()));
        assert_eq!(state.context(), Context::Setup);
    }

    #[test]
    fn starting_beside_a_live_run_that_is_not_on_the_screen_is_asked_about() {
        let mut state = left();
        act(&mut state, Action::Show(Screen::Setup));
        assert_eq!(act(&mut state, Action::Start), []);
        assert_eq!(state.context(), Context::StartBeside);
        assert!(matches!(&act(&mut state, Action::Start)[..], [Effect::Start { .. }]));
    }

    #[test]
    fn stopping_stops_every_run_and_leaves_when_all_have_ended() {
        let mut state = recorded::watching(Screen::Train, "adamw");
        state.update(Msg::Watching { run: other() });
        state.update(Msg::Connected(Control::Full));
        act(&mut state, Action::Quit);
        assert_eq!(state.live_here(), ["other", "demo"]);
        let effects = act(&mut state, Action::StopAndLeave);
        assert!(
            matches!(
                &effects[..],
                [Effect::StopRun { run }, Effect::Send { command: Command::Stop, .. }] if run.name == "demo"
            ),
            "{effects:?}"
        );
        assert_eq!(state.update(Msg::Events(vec![recorded::ended(Reason::Stopped, 20)])), []);
        assert_eq!(state.update(Msg::Alive(false)), [], "the other one saves its checkpoint");
        assert_eq!(state.update(Msg::Others { live: Vec::new() }), [Effect::Quit { code: 0 }]);
    }

    #[test]
    fn going_back_to_a_run_takes_it_off_the_list_and_who_only_looks_is_not_asked() {
        let mut state = left();
        let demo = RunRef { id: "20260301T101500-demo".into(), name: "demo".into(), ..RunRef::default() };
        state.update(Msg::Watching { run: demo });
        assert!(state.others.runs.is_empty());
        state.update(Msg::Connected(Control::ReadOnly("another UI drives this run".into())));
        state.update(Msg::Watching { run: other() });
        state.update(Msg::Alive(false));
        assert_eq!(act(&mut state, Action::Quit), [Effect::Quit { code: 0 }]);
        assert_eq!(state.overlay, Overlay::None);
    }

    #[test]
    fn an_interrupt_stops_the_run_on_the_screen_and_waits_for_no_other() {
        let mut state = recorded::watching(Screen::Train, "adamw");
        state.update(Msg::Watching { run: other() });
        state.update(Msg::Connected(Control::Full));
        assert_eq!(act(&mut state, Action::Interrupt).len(), 1);
        assert_eq!(said(&state), "stopping this run (Ctrl+C again: at once); demo goes on");
        state.update(Msg::Events(vec![recorded::ended(Reason::Stopped, 20)]));
        assert_eq!(state.update(Msg::Alive(false)), [Effect::Quit { code: 130 }]);
    }

    #[test]
    fn an_interrupt_says_that_the_queue_goes_on_and_asks_whether_it_still_does() {
        let mut state = recorded::watching(Screen::Train, "adamw");
        let row = |state: &str| RunRow { id: "next".into(), state: state.into(), ..RunRow::default() };
        state.update(Msg::Runs(vec![row("queued")]));
        let effects = act(&mut state, Action::Interrupt);
        assert!(
            matches!(&effects[..], [Effect::LoadRuns, Effect::Send { command: Command::Stop, .. }]),
            "{effects:?}"
        );
        assert!(said(&state).ends_with("the queue goes on"), "{}", said(&state));
        state.update(Msg::Runs(vec![row("stopped")]));
        assert!(said(&state).starts_with("stopping: the run saves"), "{}", said(&state));
        state.update(Msg::Runs(vec![row("queued")]));
        state.others.runs = vec![other(); 3];
        state.tell_interrupted();
        assert!(said(&state).ends_with("3 other runs and the queue go on"), "{}", said(&state));
    }
}
