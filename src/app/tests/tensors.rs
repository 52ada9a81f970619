//! The optimizer's state: when it is asked for, where it comes from, what an opened tensor is held against.

use super::*;
use crate::app::tensors::{History, View};

fn opened_tensor(state: &mut State) -> String {
    act(state, Action::Show(Screen::State));
    act(state, Action::Open);
    state.tensors.opened.as_ref().unwrap().tensor.clone()
}

#[test]
fn state_is_asked_for_twice_a_second_at_most_and_only_while_it_is_shown() {
    let mut state = watching(Screen::Train);
    assert!(sent(&state.update(Msg::Tick { now: 10.0 })).is_empty());
    assert_eq!(sent(&act(&mut state, Action::Show(Screen::State))).len(), 1);
    let asked: usize =
        (1..=100).map(|i| sent(&state.update(Msg::Tick { now: 10.0 + f64::from(i) * 0.05 })).len()).sum();
    assert!((9..=10).contains(&asked), "{asked} questions in five seconds");
    act(&mut state, Action::Show(Screen::Train));
    assert!(sent(&state.update(Msg::Tick { now: 30.0 })).is_empty());
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
fn what_cannot_be_opened_says_so_where_its_values_would_be() {
    let mut state = watching(Screen::State);
    let opened = opened_tensor(&mut state);
    let problem = |state: &State| state.tensors.opened.as_ref().unwrap().problem.clone();
    // Nobody waits for it by number.
    let why = "a loop of its own keeps its tensors to itself".to_owned();
    state.update(Msg::Answer { id: 9, answer: Answer::Rejected { why: why.clone() } });
    assert_eq!((problem(&state), state.notice.is_none()), (Some(why.clone()), true));
    // A command is told as ever.
    act(&mut state, Action::PauseResume);
    let id = state.link.pending.back().unwrap().id;
    state.update(Msg::Answer { id, answer: Answer::Rejected { why: "no".into() } });
    assert_eq!(state.notice.take().unwrap().text, "pause: no");
    assert_eq!(problem(&state), Some(why));
    let detail = Box::new(recorded::detail("adafactor", &opened));
    state.update(Msg::Answer { id: 10, answer: Answer::Opened(detail) });
    assert_eq!(problem(&state), None);
    // What is there stays.
    state.update(Msg::Answer { id: 11, answer: Answer::Rejected { why: "gone".into() } });
    assert!(problem(&state).is_none() && state.notice.as_ref().unwrap().text == "gone");

    // A run that has ended: its checkpoint cannot be read.
    let mut state = watching(Screen::State);
    state.update(Msg::Events(vec![recorded::ended(Reason::Finished, 300)]));
    state.update(Msg::Alive(false));
    opened_tensor(&mut state);
    let run = state.watching.as_ref().unwrap().id.clone();
    state.update(Msg::Detail { run, detail: Err("it has no checkpoint".into()) });
    assert_eq!(problem(&state).unwrap(), "it has no checkpoint");
}

#[test]
fn the_history_of_a_tensor_is_read_once_and_when_it_is_looked_at() {
    let mut state = watching(Screen::State);
    let tensor = opened_tensor(&mut state);
    let run = state.watching.clone().unwrap().id;
    let mut asked = Vec::new();
    for _ in 0..2 * View::ALL.len() {
        asked.extend(act(&mut state, Action::NextView));
    }
    asked.retain(|effect| matches!(effect, Effect::LoadHistory { .. }));
    assert_eq!(asked, [Effect::LoadHistory { run: run.clone(), tensor: tensor.clone() }]);
    let mut history = History::default();
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
    assert_eq!(state.tensors.opened.as_ref().unwrap().view, View::Beside);
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
