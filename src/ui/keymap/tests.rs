use super::*;
use crate::app::{action::ACTIONS, focus::Overlay, palette, recorded};

#[test]
fn no_key_is_told_twice_at_the_bottom() {
    for context in [Train, Tensors, Setup, Runs] {
        let hints = hints(&Keymap::default(), context);
        let keys: Vec<&str> = hints.iter().map(|hint| hint.key.as_str()).collect();
        for key in &keys {
            assert_eq!(keys.iter().filter(|other| *other == key).count(), 1, "{key} in {context:?}");
        }
    }
}

#[test]
fn no_key_does_two_things_in_one_context() {
    let mut seen = Vec::new();
    for binding in BINDINGS {
        for key in binding.keys {
            assert!(!seen.contains(&(binding.context, *key)), "{key} twice in {:?}", binding.context);
            seen.push((binding.context, *key));
        }
    }
}

#[test]
fn every_action_of_a_key_is_in_the_palette() {
    let names: Vec<_> = palette::choices().map(|choice| choice.name).collect();
    for binding in BINDINGS.iter().filter(|binding| binding.action != Action::Palette) {
        let about = ACTIONS.iter().find(|about| about.action == binding.action);
        let about = about.unwrap_or_else(|| panic!("{:?} has no name", binding.action));
        assert!(names.contains(&about.name), "{}", about.name);
    }
}

#[test]
fn every_line_of_help_fits_the_palette_and_the_help() {
    for choice in palette::choices() {
        assert!(choice.help.chars().count() <= 46, "{}", choice.help);
        assert!(choice.name.len() + choice.argument.len() < 22, "{}", choice.name);
    }
    for binding in BINDINGS {
        let keys: Vec<String> = binding.keys.iter().map(ToString::to_string).collect();
        assert!(keys.join(", ").len() <= 16, "{keys:?}");
    }
}

#[test]
fn under_an_overlay_no_key_reaches_the_run() {
    for context in [Help, Quit, StartBeside, Unqueue, Delete, Fork, Check, Samples] {
        for c in ['p', 'x', ' ', '.', ','] {
            assert_eq!(lookup(&Keymap::default(), context, letter(c)), None, "{c:?} in {context:?}");
        }
    }
    let lookup = |context, c| lookup(&Keymap::default(), context, letter(c));
    assert_eq!(lookup(Context::Runs, ' '), Some(Action::Mark));
    assert_eq!(lookup(Context::Runs, 'p'), Some(Action::PauseResume));
    assert_eq!(lookup(Context::Setup, ' '), None);
}

#[test]
fn enter_starts_from_the_form_and_enlarges_the_plan_and_so_does_the_key_that_edits() {
    let mut state = recorded::watching(Screen::Setup, "adamw");
    let keys = Keymap::default();
    let press = |state: &State, code| match translate(&keys, state, KeyEvent::new(code, KeyModifiers::NONE)) {
        Some(Msg::Action(action)) => action,
        other => panic!("{other:?}"),
    };
    assert_eq!(press(&state, KeyCode::Enter), Action::Start);
    let draft = state.form.clone();
    state.update(Msg::Action(Action::FocusNext));
    for key in [KeyCode::Enter, KeyCode::Char('e')] {
        for zoomed in [true, false] {
            let action = press(&state, key);
            assert!(state.update(Msg::Action(action)).is_empty(), "{action:?}");
            assert_eq!((state.focus.zoomed, state.panel()), (zoomed, Panel::Plan), "{key:?}");
        }
    }
    assert_eq!(state.form.resolved.config, draft.resolved.config, "the draft is left alone");
    assert!(state.form.editing.is_none());
    assert_eq!(press(&state, KeyCode::Char('s')), Action::Start);
    // By its name it edits wherever the focus is.
    state.form.assign("train.seed", "2").unwrap();
    state.update(Msg::Action(Action::Palette));
    "edit".chars().for_each(|c| drop(state.update(Msg::Input(Input::Char(c)))));
    state.update(Msg::Submit);
    assert!(state.form.editing.is_some() && state.panel() == Panel::Form);
}

#[test]
fn keys_go_to_the_text_while_it_is_typed() {
    let mut state = recorded::watching(Screen::Setup, "adamw");
    state.form.assign("train.seed", "1").unwrap();
    state.update(Msg::Action(Action::Edit));
    let keys = Keymap::default();
    let press = |code| translate(&keys, &state, KeyEvent::new(code, KeyModifiers::NONE));
    assert!(matches!(press(KeyCode::Char('q')), Some(Msg::Input(Input::Char('q')))));
    assert!(matches!(press(KeyCode::Tab), Some(Msg::SubmitAndNext)));
    let interrupt = translate(&keys, &state, KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL));
    assert!(matches!(interrupt, Some(Msg::Action(Action::Interrupt))));
}

#[test]
fn the_commands_are_gone_through_by_lines_and_pages_while_one_is_typed() {
    let mut state = recorded::watching(Screen::Train, "adamw");
    state.update(Msg::Action(Action::Palette));
    let chosen = |state: &State| match &state.overlay {
        Overlay::Palette(palette) => palette.selected,
        other => panic!("{other:?}"),
    };
    for (code, at) in [(KeyCode::Down, 1), (KeyCode::PageDown, 17), (KeyCode::Up, 16), (KeyCode::PageUp, 0)] {
        let key = KeyEvent::new(code, KeyModifiers::NONE);
        let msg = translate(&Keymap::default(), &state, key).unwrap();
        state.update(msg);
        assert_eq!(chosen(&state), at, "{code:?}");
    }
}

#[test]
fn capital_letters_work_with_and_without_the_shift_flag() {
    let state = recorded::watching(Screen::Train, "adamw");
    for modifiers in [KeyModifiers::NONE, KeyModifiers::SHIFT] {
        let msg = translate(&Keymap::default(), &state, KeyEvent::new(KeyCode::Char('S'), modifiers));
        assert!(matches!(msg, Some(Msg::Action(Action::Smoothing))));
    }
}
