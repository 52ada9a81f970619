use super::*;
use crate::app::{action::ACTIONS, palette, recorded};

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
fn capital_letters_work_with_and_without_the_shift_flag() {
    let state = recorded::watching(Screen::Train, "adamw");
    for modifiers in [KeyModifiers::NONE, KeyModifiers::SHIFT] {
        let msg = translate(&Keymap::default(), &state, KeyEvent::new(KeyCode::Char('S'), modifiers));
        assert!(matches!(msg, Some(Msg::Action(Action::Smoothing))));
    }
}
