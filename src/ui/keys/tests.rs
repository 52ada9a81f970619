use super::*;
use crate::app::action::Screen;

fn key(text: &str) -> Key {
    text.parse().unwrap()
}

fn change(place: Option<Context>, action: Action, keys: &[&str]) -> Change {
    Change { place, action, keys: keys.iter().map(|text| key(text)).collect(), line: 7 }
}

#[test]
fn every_key_of_the_table_is_read_back_as_it_is_shown() {
    for key in BINDINGS.iter().flat_map(|binding| binding.keys) {
        assert_eq!(key.to_string().parse(), Ok(*key));
    }
    assert_eq!(key("ctrl+x"), Key { code: KeyCode::Char('x'), control: true });
    assert_eq!((key("f12").code, key("pageup").code), (KeyCode::F(12), KeyCode::PageUp));
    assert_ne!(key("a"), key("A"));
}

#[test]
fn a_key_that_no_terminal_sends_is_told_what_to_write() {
    for (text, told) in [
        ("entr", "did you mean `Enter`?"),
        ("Ctrl+I", "Tab"),
        ("ctrl+1", "Ctrl with a letter"),
        ("Shift+Up", "Shift"),
        ("alt+x", "Alt"),
        ("", "no key"),
        ("F13", "no key"),
    ] {
        let error = text.parse::<Key>().unwrap_err();
        assert!(error.contains(told), "{text}: {error}");
    }
}

#[test]
fn a_change_holds_wherever_the_action_has_a_key_and_one_for_a_place_beats_it() {
    let pause = Action::PauseResume;
    let keys = Keymap::default()
        .with(&[change(Some(Context::Train), pause, &["F6"]), change(None, pause, &["F5", "P"])])
        .unwrap();
    assert_eq!(keys.find(Context::Train, key("F6")), Some(pause));
    assert_eq!(keys.find(Context::Train, key("F5")), None);
    assert_eq!(keys.find(Context::State, key("P")), Some(pause));
    assert_eq!(keys.find(Context::Global, key("p")), None);
    assert_eq!(keys.first(pause, Context::Train), Some(key("F6")));
    assert_eq!(keys.first(pause, Context::Runs), Some(key("F5")));
    assert_eq!(keys.told("{key:pause}, {key:lr} {key:no} {key:", Context::Train), "F6, :lr {key:no} {key:");
    // An action that has no key of its own gets one.
    let rate = Action::LearningRate(None);
    let keys = Keymap::default().with(&[change(None, rate, &["F5"])]).unwrap();
    assert_eq!(keys.find(Context::Global, key("F5")), Some(rate));
}

#[test]
fn a_clash_names_both_actions_and_the_place() {
    let wrong = |changes: &[Change]| Keymap::default().with(changes).unwrap_err();
    let (line, told) = wrong(&[change(None, Action::Smoothing, &["y"])]);
    assert!(line == 7 && told.contains("`log` and `smoothing`") && told.contains("Train"), "{told}");
    // A screen's own key would take one away that holds everywhere.
    let (_, told) = wrong(&[change(None, Action::Smoothing, &["q"])]);
    assert!(told.contains("`smoothing` and `quit`"), "{told}");
    let (_, told) = wrong(&[change(None, Action::Quit, &["S"])]);
    assert!(told.contains("`smoothing` and `quit`"), "{told}");
    let (_, told) = wrong(&[change(Some(Context::Quit), Action::Detach, &["Up"])]);
    assert!(told.contains("`detach` and `up`"), "{told}");
    assert!(wrong(&[change(None, Action::Interrupt, &[])]).1.contains("way out"));
    // Both at once change places.
    let swapped = [change(None, Action::Smoothing, &["y"]), change(None, Action::LogAxis, &["S"])];
    assert!(Keymap::default().with(&swapped).is_ok());
    assert!(Keymap::default().with(&[change(None, Action::Show(Screen::Runs), &[])]).is_ok());
}

#[test]
fn the_table_itself_is_no_clash() {
    let all: Vec<Change> = BINDINGS
        .iter()
        .map(|binding| Change {
            place: Some(binding.context),
            action: binding.action,
            keys: binding.keys.to_vec(),
            line: 1,
        })
        .collect();
    assert_eq!(Keymap::default().with(&all), Ok(Keymap::default()));
}
