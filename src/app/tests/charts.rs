//! What the charts show: cursor, zoom, other runs, and a display that stands still.

use super::*;

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
fn the_same_list_again_is_no_reason_to_draw() {
    let mut state = watching(Screen::Runs);
    let before = state.revision;
    state.update(Msg::Runs(recorded::run_rows()));
    assert_eq!(state.revision, before);
    state.update(Msg::Runs(recorded::run_rows()[1..].to_vec()));
    assert!(state.revision > before);
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
