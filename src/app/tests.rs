//! What a person relies on: keys do what they say, and nothing is sent that should not be.

use super::*;
use crate::protocol::{Reason, StateReport};

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
    assert!(state.update(Msg::Tick { now: 1.0 }).is_empty());
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
fn state_is_asked_for_twice_a_second_at_most_and_only_while_it_is_shown() {
    let mut state = watching(Screen::Train);
    assert!(state.update(Msg::Tick { now: 10.0 }).is_empty());
    assert_eq!(sent(&act(&mut state, Action::Show(Screen::State))).len(), 1);
    let asked: usize =
        (1..=100).map(|i| sent(&state.update(Msg::Tick { now: 10.0 + f64::from(i) * 0.05 })).len()).sum();
    assert!((9..=10).contains(&asked), "{asked} questions in five seconds");
    act(&mut state, Action::Show(Screen::Train));
    assert!(state.update(Msg::Tick { now: 30.0 }).is_empty());
}

#[test]
fn state_of_a_finished_run_is_read_from_its_checkpoint_once() {
    let mut state = watching(Screen::Train);
    state.update(Msg::Events(vec![recorded::ended(Reason::Finished, 300)]));
    state.update(Msg::Alive(false));
    let run = "20260301T101500-demo".to_owned();
    let effects = act(&mut state, Action::Show(Screen::State));
    assert_eq!(effects, [Effect::LoadState { run: run.clone() }]);
    assert!(state.update(Msg::Tick { now: 99.0 }).is_empty());
    let report = StateReport { update: 300, ..recorded::state_report("adafactor", 300) };
    state.update(Msg::State { run, report: Ok(report) });
    assert_eq!(state.tensors.source, "last checkpoint");
    let effects = act(&mut state, Action::Open);
    assert!(matches!(&effects[..], [Effect::LoadDetail { .. }]), "{effects:?}");
}

#[test]
fn once_a_run_has_ended_its_last_checkpoint_replaces_what_it_told_while_it_ran() {
    let run = "20260301T101500-demo".to_owned();
    let mut state = watching(Screen::Train);
    assert_eq!(sent(&act(&mut state, Action::Show(Screen::State))).len(), 1);
    let report = |update| recorded::state_report("adafactor", update);
    state.update(Msg::Answer { id: 1, answer: Answer::State(report(301)) });
    assert_eq!(state.tensors.source, "live");
    act(&mut state, Action::Open);
    let opened = state.tensors.opened.as_ref().unwrap().tensor.clone();
    let detail = |update| {
        let detail = recorded::detail("adafactor", &opened);
        Box::new(StateDetail { update, ..detail })
    };
    state.update(Msg::Answer { id: 2, answer: Answer::Opened(detail(301)) });

    state.update(Msg::Events(vec![recorded::ended(Reason::Finished, 302)]));
    assert_eq!(state.tensors.source, "reading the last checkpoint");
    state.update(Msg::Answer { id: 3, answer: Answer::State(report(301)) });
    assert_eq!(state.tensors.source, "reading the last checkpoint", "an answer that is late");
    let effects = state.update(Msg::Tick { now: 1.0 });
    let [Effect::LoadState { .. }, Effect::LoadDetail { tensor, .. }] = &*effects else {
        panic!("{effects:?}")
    };
    assert_eq!(*tensor, opened);
    state.update(Msg::State { run: run.clone(), report: Ok(report(302)) });
    state.update(Msg::Detail { run, detail: Ok(detail(302)) });
    assert!(state.update(Msg::Tick { now: 99.0 }).is_empty(), "it is read once");
    assert_eq!(state.tensors.source, "last checkpoint");
    assert_eq!(state.tensors.report.as_ref().unwrap().update, 302);
    assert_eq!(state.tensors.opened.as_ref().unwrap().detail.as_ref().unwrap().update, 302);
}

#[test]
fn what_was_seen_of_a_run_without_a_checkpoint_does_not_pass_for_its_end() {
    let mut state = watching(Screen::State);
    state.update(Msg::Alive(false));
    let effects = state.update(Msg::Tick { now: 1.0 });
    let [Effect::LoadState { run }] = &*effects else { panic!("{effects:?}") };
    state.update(Msg::State { run: run.clone(), report: Err("it has no checkpoint".into()) });
    assert!(state.tensors.report.is_some());
    assert_eq!(state.tensors.source, "as last seen");
    assert_eq!(state.notice.as_ref().unwrap().text, "it has no checkpoint");
    assert!(state.update(Msg::Tick { now: 9.0 }).is_empty());
}

#[test]
fn a_frozen_display_stands_still_while_the_run_goes_on() {
    let mut state = watching(Screen::Train);
    act(&mut state, Action::Freeze);
    let before = state.view().done();
    state.update(Msg::Events(recorded::demo(400)));
    assert_eq!(state.view().done(), before);
    act(&mut state, Action::Freeze);
    assert_eq!(state.view().done(), 400);
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
    assert_eq!(curves, 2);
    assert!(!sent(&effects).contains(&Command::Pause));
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

fn opened_tensor(state: &mut State) -> String {
    act(state, Action::Show(Screen::State));
    act(state, Action::Open);
    state.tensors.opened.as_ref().unwrap().tensor.clone()
}

#[test]
fn the_history_of_a_tensor_is_read_once_and_when_it_is_looked_at() {
    let mut state = watching(Screen::State);
    let tensor = opened_tensor(&mut state);
    let run = state.watching.clone().unwrap().id;
    let mut asked = Vec::new();
    for _ in 0..2 * tensors::View::ALL.len() {
        asked.extend(act(&mut state, Action::NextView));
    }
    asked.retain(|effect| matches!(effect, Effect::LoadHistory { .. }));
    assert_eq!(asked, [Effect::LoadHistory { run: run.clone(), tensor: tensor.clone() }]);
    let mut history = tensors::History::default();
    history.push(&tensor, &recorded::state_report("adafactor", 300));
    state.update(Msg::History { run, tensor, history: Ok(Box::new(history)) });
    state.update(Msg::Events(vec![Event::State(recorded::state_report("adafactor", 350))]));
    let opened = state.tensors.opened.as_ref().unwrap();
    assert!(opened.history.loaded);
    assert_eq!(opened.history.update_ratio.last_place().unwrap().update, 350);
}

#[test]
fn a_tensor_is_held_against_the_next_run_of_the_same_model() {
    let mut state = watching(Screen::State);
    act(&mut state, Action::Beside);
    assert!(state.notice.as_ref().unwrap().text.contains("open a tensor first"));
    let tensor = opened_tensor(&mut state);
    state.runs.marked.push("20260301T102000-nano-adafactor".into());
    let loads = |effects: &[Effect]| -> Vec<String> {
        let run = |effect: &Effect| match effect {
            Effect::LoadDetail { run, .. } => Some(run.clone()),
            _ => None,
        };
        effects.iter().filter_map(run).collect()
    };
    assert_eq!(loads(&act(&mut state, Action::Beside)), ["20260301T102000-nano-adafactor"]);
    assert_eq!(state.tensors.opened.as_ref().unwrap().view, tensors::View::Beside);
    let detail = |name: &str| Ok(Box::new(recorded::detail("adafactor", name)));
    let answer = |run: &str, detail| Msg::Detail { run: run.into(), detail };
    state.update(answer("20260301T102000-nano-adafactor", detail("model.norm.weight")));
    assert!(state.tensors.beside.as_ref().unwrap().detail.is_none(), "an answer about another tensor");
    state.update(answer("20260301T102000-nano-adafactor", detail(&tensor)));
    assert!(state.tensors.beside.as_ref().unwrap().detail.is_some());
    assert!(state.tensors.opened.as_ref().unwrap().detail.is_none(), "it is not this run's");
    assert_eq!(loads(&act(&mut state, Action::Beside)), ["20260301T103000-nano-sgd"]);
    act(&mut state, Action::Back);
    act(&mut state, Action::Down);
    act(&mut state, Action::Down);
    let effects = act(&mut state, Action::Open);
    assert_eq!(loads(&effects), ["20260301T103000-nano-sgd"], "the next tensor is held against it, too");
}

#[test]
fn the_arrows_move_a_cursor_over_the_charts_and_escape_takes_it_away() {
    let mut state = watching(Screen::Train);
    act(&mut state, Action::Left);
    assert_eq!(state.cursor(), Some(300), "it appears at the newest update");
    act(&mut state, Action::Left);
    assert!(state.cursor() < Some(300));
    act(&mut state, Action::Home);
    assert_eq!(state.cursor(), Some(1));
    act(&mut state, Action::Up);
    assert!(state.slice(100).bounds.is_some(), "up zooms in");
    act(&mut state, Action::Back);
    assert!(state.cursor().is_none() && state.slice(100).bounds.is_some());
    act(&mut state, Action::WholeRun);
    assert_eq!(state.slice(100).bounds, None);
    state.update(Msg::Point { panel: Panel::Gradient, update: 77 });
    assert_eq!((state.panel(), state.cursor()), (Panel::Gradient, Some(77)));
    state.update(Msg::Events(vec![Event::resumed(50)]));
    assert_eq!(state.cursor(), Some(50), "what it stood on is no more");
}

#[test]
fn another_run_is_shown_whole_and_without_a_cursor() {
    let mut state = watching(Screen::Train);
    act(&mut state, Action::ZoomIn);
    act(&mut state, Action::Left);
    state.update(Msg::Watching { run: RunRef { id: "b".into(), ..RunRef::default() } });
    assert!(state.plot.cursor.is_none());
    act(&mut state, Action::ZoomIn);
    assert!(state.notice.as_ref().unwrap().text.contains("no update yet"));
}

#[test]
fn overlaying_asks_for_the_curves_of_the_marked_runs() {
    let mut state = watching(Screen::Train);
    assert!(act(&mut state, Action::Overlay).is_empty());
    assert!(state.notice.as_ref().unwrap().text.contains("screen {key:runs}"));
    act(&mut state, Action::Overlay);
    state.runs.marked.push("20260301T102000-nano-adafactor".into());
    let effects = act(&mut state, Action::Overlay);
    assert_eq!(effects, [Effect::LoadCurves { run: "20260301T102000-nano-adafactor".into() }]);
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
