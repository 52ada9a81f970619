//! What a person relies on: keys do what they say, and nothing is sent that should not be.

use super::*;
use crate::{
    app::input::Input,
    protocol::{Answer, Command, Event, Reason, StateDetail, StateReport},
};

mod charts;
mod tensors;

fn watching(screen: Screen) -> State {
    recorded::watching(screen, "adafactor")
}

fn idle() -> State {
    State::new(Layers::new(), Options::default(), Screen::Setup).unwrap()
}

fn act(state: &mut State, action: Action) -> Vec<Effect> {
    state.update(Msg::Action(action))
}

fn sent(effects: &[Effect]) -> Vec<Command> {
    let command = |effect: &Effect| match effect {
        Effect::Send { command, .. } => Some(command.clone()),
        _ => None,
    };
    effects.iter().filter_map(command).collect()
}

#[test]
fn pause_sends_resume_once_the_run_is_paused() {
    let mut state = watching(Screen::Train);
    assert_eq!(sent(&act(&mut state, Action::PauseResume)), [Command::Pause]);
    assert_eq!(state.link.pending.len(), 1);
    state.update(Msg::Answer { id: 1, answer: Answer::Applied { at_update: 300 } });
    assert!(state.link.pending.is_empty());
    assert!(act(&mut state, Action::StepUpdate).is_empty(), "stepping a running run");
    state.update(Msg::Events(vec![recorded::command("pause", 300, None)]));
    assert_eq!(sent(&act(&mut state, Action::StepUpdate)), [Command::Step]);
    assert_eq!(sent(&act(&mut state, Action::PauseResume)), [Command::Resume]);
}

#[test]
fn a_second_ui_looks_and_does_not_touch() {
    let mut state = watching(Screen::Train);
    state.update(Msg::Connected(Control::ReadOnly("another UI drives this run".into())));
    for action in [Action::PauseResume, Action::Stop, Action::Checkpoint, Action::LearningRate(None)] {
        assert!(act(&mut state, action).is_empty(), "{action:?}");
        assert!(state.notice.as_ref().unwrap().text.contains("another UI"));
    }
    assert_eq!(act(&mut state, Action::Interrupt), [Effect::Quit { code: 0 }]);
}

#[test]
fn interrupting_a_live_run_stops_it_and_leaves_when_it_has_ended() {
    let mut state = watching(Screen::Train);
    assert_eq!(sent(&act(&mut state, Action::Interrupt)), [Command::Stop]);
    assert!(state.update(Msg::Events(vec![recorded::ended(Reason::Stopped, 300)])).is_empty());
    assert_eq!(state.update(Msg::Alive(false)), [Effect::Quit { code: 130 }]);
}

#[test]
fn interrupting_twice_leaves_at_once() {
    let mut state = watching(Screen::Train);
    act(&mut state, Action::Interrupt);
    assert_eq!(act(&mut state, Action::Interrupt), [Effect::Quit { code: 130 }]);
}

#[test]
fn interrupting_before_the_worker_listens_stops_it_as_soon_as_it_does() {
    let mut state = watching(Screen::Train);
    state.link = Link::default();
    assert!(act(&mut state, Action::Interrupt).is_empty());
    assert!(sent(&state.update(Msg::Tick { now: 1.0 })).is_empty());
    state.update(Msg::Connected(Control::Full));
    assert_eq!(sent(&state.update(Msg::Tick { now: 2.0 })), [Command::Stop]);
    assert!(state.update(Msg::Tick { now: 3.0 }).is_empty(), "it is sent once");
}

#[test]
fn without_a_live_run_quitting_asks_nothing() {
    let mut state = idle();
    assert_eq!(act(&mut state, Action::Interrupt), [Effect::Quit { code: 0 }]);
    assert_eq!(act(&mut state, Action::Quit), [Effect::Quit { code: 0 }]);
}

#[test]
fn with_a_live_run_quitting_asks_what_becomes_of_it() {
    let mut state = watching(Screen::Train);
    assert!(act(&mut state, Action::Quit).is_empty());
    assert_eq!(state.context(), Context::Quit);
    act(&mut state, Action::Back);
    assert_eq!(state.overlay, Overlay::None);
    act(&mut state, Action::Quit);
    assert_eq!(act(&mut state, Action::Detach), [Effect::Quit { code: 0 }]);
    assert_eq!(sent(&act(&mut state, Action::StopAndLeave)), [Command::Stop]);
    state.update(Msg::Events(vec![recorded::ended(Reason::Stopped, 300)]));
    assert_eq!(state.update(Msg::Alive(false)), [Effect::Quit { code: 0 }]);
}

#[test]
fn enter_on_setup_starts_the_draft_once_it_is_valid() {
    let mut state = idle();
    let effects = act(&mut state, Action::Open);
    let [Effect::Start { resolved, name }] = &*effects else { panic!("{effects:?}") };
    assert_eq!((name.as_str(), resolved.config.train.max_updates), ("llama-nano-adamw", Some(600)));
    state.form.assign("model.num_attention_heads", "6").unwrap_err();
    assert!(act(&mut state, Action::Start).is_empty());
    assert!(state.notice.as_ref().unwrap().error);
}

#[test]
fn a_run_that_is_being_started_is_started_once_and_can_be_stopped() {
    let mut state = idle();
    assert_eq!(act(&mut state, Action::Start).len(), 1);
    assert!(act(&mut state, Action::Start).is_empty(), "a second press starts nothing");
    assert!(act(&mut state, Action::Interrupt).is_empty());
    state.update(Msg::Watching { run: RunRef { id: "r".into(), ..RunRef::default() } });
    state.update(Msg::Connected(Control::Full));
    assert_eq!(sent(&state.update(Msg::Tick { now: 1.0 })), [Command::Stop]);

    let mut state = idle();
    act(&mut state, Action::Start);
    act(&mut state, Action::Interrupt);
    let effects = state.update(Msg::Failed("no room on the disk".into()));
    assert_eq!(effects, [Effect::Quit { code: 130 }]);
}

#[test]
fn starting_beside_a_live_run_asks_first() {
    let mut state = watching(Screen::Setup);
    assert!(act(&mut state, Action::Start).is_empty());
    assert_eq!(state.context(), Context::StartBeside);
    assert!(matches!(&act(&mut state, Action::Start)[..], [Effect::Start { .. }]));
}

#[test]
fn on_other_screens_start_shows_the_draft_first() {
    let mut state = watching(Screen::Train);
    assert!(act(&mut state, Action::Start).is_empty());
    assert_eq!((state.screen, state.context()), (Screen::Setup, Context::Setup));
}

#[test]
fn while_a_field_is_edited_every_key_belongs_to_it() {
    let mut state = idle();
    state.form.assign("train.seed", "1").unwrap();
    act(&mut state, Action::Edit);
    assert_eq!(state.context(), Context::Text);
    for input in [Input::Clear, Input::Char('4'), Input::Char('2')] {
        state.update(Msg::Input(input));
    }
    state.update(Msg::SubmitAndNext);
    assert_eq!(state.form.resolved.config.train.seed, 42);
    assert_ne!(state.form.field().unwrap().key, "train.seed");
    act(&mut state, Action::Edit);
    state.update(Msg::Input(Input::Char('x')));
    state.update(Msg::Cancel);
    assert_eq!(state.context(), Context::Setup);
}

#[test]
fn escape_steps_out_one_layer_and_never_stops_a_run() {
    let mut state = watching(Screen::State);
    act(&mut state, Action::Open);
    act(&mut state, Action::Help);
    act(&mut state, Action::Back);
    assert!(state.overlay == Overlay::None && state.tensors.opened.is_some());
    act(&mut state, Action::Back);
    assert!(state.tensors.opened.is_none());
    for _ in 0..5 {
        assert!(act(&mut state, Action::Back).is_empty());
    }
}

#[test]
fn marking_two_runs_asks_for_their_curves_and_a_comparison() {
    let mut state = watching(Screen::Train);
    act(&mut state, Action::Show(Screen::Runs));
    state.runs.select(1);
    act(&mut state, Action::Mark);
    act(&mut state, Action::Down);
    let effects = act(&mut state, Action::Mark);
    assert!(effects.iter().any(|effect| matches!(effect, Effect::Compare { runs } if runs.len() == 2)));
    let curves = effects.iter().filter(|effect| matches!(effect, Effect::LoadCurves { .. })).count();
    assert_eq!(curves, 1, "those of the run on the screen are read as it goes on");
    assert!(!sent(&effects).contains(&Command::Pause));
}

#[test]
fn a_marked_run_that_goes_takes_its_comparison_along() {
    let mut state = watching(Screen::Runs);
    let mut rows = recorded::run_rows();
    let marked = rows.iter().map(|row| row.id.clone()).collect::<Vec<_>>();
    state.runs.marked = marked.clone();
    let comparison = super::runs::Comparison { runs: marked, ..Default::default() };
    state.update(Msg::Comparison(Ok(comparison)));
    let kept = state.update(Msg::Runs(rows.clone()));
    assert!(state.runs.comparison.is_some() && !kept.iter().any(|e| matches!(e, Effect::Compare { .. })));
    rows.remove(0);
    let effects = state.update(Msg::Runs(rows.clone()));
    assert_eq!(state.runs.comparison, None);
    assert!(effects.iter().any(|effect| matches!(effect, Effect::Compare { runs } if runs.len() == 2)));
    rows.remove(0);
    let effects = state.update(Msg::Runs(rows));
    assert!(!effects.iter().any(|effect| matches!(effect, Effect::Compare { .. })), "one is no comparison");
}

#[test]
fn arrows_on_the_plan_leave_the_form_alone() {
    let mut state = watching(Screen::Setup);
    let drafted = |state: &State| (state.form.resolved.clone(), state.form.field().unwrap().key);
    let before = drafted(&state);
    act(&mut state, Action::FocusNext);
    for action in [Action::Right, Action::Left, Action::Down, Action::Up, Action::PageDown] {
        act(&mut state, action);
    }
    assert_eq!(drafted(&state), before);
    act(&mut state, Action::FocusNext);
    act(&mut state, Action::Right);
    assert_ne!(state.form.resolved, before.0, "there they are the form's");
}

#[test]
fn the_palette_sets_a_rate_and_explains_a_wrong_one() {
    let mut state = watching(Screen::Train);
    act(&mut state, Action::Palette);
    "lr 1e-4".chars().for_each(|c| drop(state.update(Msg::Input(Input::Char(c)))));
    let sent = sent(&state.update(Msg::Submit));
    assert_eq!(sent, [Command::LearningRate { value: Some(1e-4) }]);
    act(&mut state, Action::Palette);
    "lr x".chars().for_each(|c| drop(state.update(Msg::Input(Input::Char(c)))));
    assert!(state.update(Msg::Submit).is_empty());
    assert!(matches!(&state.overlay, Overlay::Palette(palette) if palette.error.is_some()));
}

#[test]
fn a_refused_command_says_why() {
    let mut state = watching(Screen::Train);
    act(&mut state, Action::Checkpoint);
    state.update(Msg::Answer { id: 1, answer: Answer::Rejected { why: "the disk is full".into() } });
    let notice = state.notice.as_ref().unwrap();
    assert!(notice.error && notice.text.contains("checkpoint: the disk is full"));
    assert!(state.link.pending.is_empty());
}

#[test]
fn an_accumulation_check_runs_on_the_draft_or_on_the_run_that_is_shown() {
    let mut state = watching(Screen::Train);
    state.form.assign("train.seed", "9").unwrap();
    let effects = act(&mut state, Action::CheckAccumulation);
    assert_eq!(
        effects,
        [Effect::Check { number: 1, settings: String::new() }],
        "nothing was set for the run"
    );
    assert_eq!(state.context(), Context::Check);
    assert_eq!(act(&mut state, Action::Back), [Effect::StopCheck], "nobody waits for it any more");
    act(&mut state, Action::Show(Screen::Setup));
    let effects = act(&mut state, Action::CheckAccumulation);
    assert_eq!(effects, [Effect::Check { number: 2, settings: "train.seed = 9\n".into() }]);
    // An answer to the check before is no answer to this one.
    state.update(Msg::Checked { number: 1, answer: Err("too late".into()) });
    assert!(matches!(&state.overlay, Overlay::Check(check) if check.answer.is_none()));
    state.update(Msg::Checked { number: 2, answer: Ok(Box::new(recorded::check())) });
    assert!(matches!(&state.overlay, Overlay::Check(check) if matches!(check.answer, Some(Ok(_)))));
    assert!(act(&mut state, Action::Back).is_empty());
    assert_eq!(state.overlay, Overlay::None);
}

#[test]
fn what_cannot_be_checked_says_why() {
    let mut state = idle();
    state.form.assign("model.num_attention_heads", "6").unwrap_err();
    assert!(act(&mut state, Action::CheckAccumulation).is_empty());
    let notice = state.notice.as_ref().unwrap();
    assert!(notice.error && notice.text.contains("num_attention_heads"), "{}", notice.text);
    let mut state = idle();
    state.update(Msg::Watching { run: RunRef::default() });
    assert!(act(&mut state, Action::CheckAccumulation).is_empty() && state.notice.is_some());
}

#[test]
fn the_theme_is_chosen_by_key_or_by_name() {
    let mut state = idle();
    act(&mut state, Action::Theme(None));
    assert_eq!(state.theme, ThemeName::Light);
    act(&mut state, Action::Palette);
    for sign in "theme colour-blind".chars() {
        state.update(Msg::Input(input::Input::Char(sign)));
    }
    state.update(Msg::Submit);
    assert_eq!(state.theme, ThemeName::ColourBlind);
}
