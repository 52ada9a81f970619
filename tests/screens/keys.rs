//! Every key of the table on every screen; keys of one's own; what is copied and told outside the screen.

use std::time::{Duration, Instant};

use crossterm::event::KeyCode;
use tui_train::{
    app::{action::Action, focus::Context},
    ui::{
        keymap::{BINDINGS, lookup},
        keys::{Key, Keymap},
    },
};

use super::terminal::Terminal;
use crate::support::Sandbox;

/// What a terminal sends for a key.
fn sent(key: Key) -> String {
    match key.code {
        KeyCode::Char(c) if key.control => char::from(c.to_ascii_uppercase() as u8 & 0x1f).to_string(),
        KeyCode::Char(c) => c.to_string(),
        KeyCode::Enter => "\r".into(),
        KeyCode::Esc => ESC.into(),
        KeyCode::Tab => "\t".into(),
        KeyCode::BackTab => "\x1b[Z".into(),
        KeyCode::Backspace => "\x7f".into(),
        KeyCode::Delete => "\x1b[3~".into(),
        KeyCode::Insert => "\x1b[2~".into(),
        KeyCode::Home => "\x1b[H".into(),
        KeyCode::End => "\x1b[F".into(),
        KeyCode::PageUp => "\x1b[5~".into(),
        KeyCode::PageDown => "\x1b[6~".into(),
        KeyCode::Up => "\x1b[A".into(),
        KeyCode::Down => "\x1b[B".into(),
        KeyCode::Right => "\x1b[C".into(),
        KeyCode::Left => "\x1b[D".into(),
        KeyCode::F(number @ 1..=4) => format!("\x1bO{}", char::from(b'O' + number)),
        other => panic!("{other:?} is not sent by this test"),
    }
}

const SCREENS: [(Context, &str, &str); 4] = [
    (Context::Train, "1", "learning rate"),
    (Context::State, "2", "optimizer state"),
    (Context::Setup, "3", "next run"),
    (Context::Runs, "4", "runs "),
];

/// Every key that does something on that screen, each once.
fn keys_of(context: Context) -> Vec<(Key, Action)> {
    let mut keys: Vec<(Key, Action)> = Vec::new();
    for binding in BINDINGS.iter().filter(|b| b.context == context || b.context == Context::Global) {
        for key in binding.keys {
            if let Some(action) = lookup(&Keymap::default(), context, *key)
                && !keys.iter().any(|(known, _)| known == key)
            {
                keys.push((*key, action));
            }
        }
    }
    keys
}

/// What is seen once the action is done; nothing where that depends on what is there.
fn seen(action: Action) -> Option<&'static str> {
    Some(match action {
        Action::Help => "Everywhere",
        Action::Palette => "command",
        Action::Theme(_) => "theme ",
        Action::Start | Action::Queue | Action::Stop | Action::Checkpoint | Action::ResumeRun => "",
        Action::Copy | Action::CopyCommand => "copied ",
        Action::CheckAccumulation => "accumulation check",
        Action::Freeze => "frozen",
        Action::Samples => "earlier, later",
        Action::Rename | Action::Note | Action::Fork => "started with --readonly",
        Action::AlignFork => "from fork",
        Action::Recent => "the draft has the settings of",
        Action::Show(screen) => match screen.as_str() {
            "Train" => "learning rate",
            "State" => "optimizer state",
            "Setup" => "next run",
            _ => "runs ",
        },
        _ => return None,
    })
    .filter(|text| !text.is_empty())
}

/// Looks often: hundreds of keys are waited for.
fn until(terminal: &Terminal, what: &str, condition: impl Fn(&str) -> bool) -> String {
    let begun = Instant::now();
    loop {
        let screen = terminal.screen();
        if condition(&screen) {
            return screen;
        }
        assert!(begun.elapsed() < crate::support::DEADLINE, "waited for {what}; the screen shows\n{screen}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// One Esc, whatever follows it: a single one before another key would be Alt.
const ESC: &str = "\x1b\x1b";
/// The line of the palette.
const PALETTE: &str = ":█";

#[test]
fn every_key_of_the_table_does_what_it_says_on_every_screen_and_harms_none() {
    let sandbox = Sandbox::new();
    sandbox.train("first", &["train.max_updates=12", "schedule.warmup_updates=1", "log.state_every=4"]);
    sandbox.train(
        "second",
        &[
            "train.max_updates=12",
            "schedule.warmup_updates=1",
            "optimizer.name=adafactor",
            "log.state_every=4",
        ],
    );
    // Somebody who only looks can press anything.
    let mut terminal = Terminal::start(&sandbox, &["attach", "second", "--readonly"], &[], 40, 120);
    terminal.wait_text("12 / 12");
    let leaves = |action: &Action| matches!(action, Action::Quit | Action::Interrupt | Action::Suspend);
    let (mut pressed, mut watched) = (0, 0);
    for (context, number, mark) in SCREENS {
        terminal.press(number);
        until(&terminal, &format!("screen {number}"), |screen| screen.contains(mark));
        for (key, action) in keys_of(context).into_iter().filter(|(_, action)| !leaves(action)) {
            terminal.press(&sent(key));
            pressed += 1;
            if let Some(text) = seen(action) {
                watched += 1;
                let what = format!("{text:?} after {key} for {action:?} on screen {number}");
                until(&terminal, &what, |screen| screen.contains(text));
            }
            // Out of whatever is open, and back to where it began; then the palette answers that all was obeyed.
            terminal.press(&ESC.repeat(6));
            terminal.press(&format!("{number}:"));
            let what = format!("the palette after {key} for {action:?} on screen {number}");
            let screen = until(&terminal, &what, |screen| screen.contains(PALETTE));
            assert!(screen.contains("tui-train"), "{screen}");
            terminal.press(ESC);
            until(&terminal, "the palette to close", |screen| {
                !screen.contains(PALETTE) && screen.contains(mark)
            });
        }
    }
    assert!(pressed > 120 && watched > 30, "{pressed} keys, {watched} of them watched");
    assert_eq!(sandbox.runs().len(), 2, "who only looks starts nothing");
    terminal.press("q");
    assert_eq!(terminal.end(), 0);
}

#[test]
fn keys_and_look_of_ones_own_hold_and_are_shown() {
    let sandbox = Sandbox::new();
    sandbox.train("own", &["train.max_updates=6", "schedule.warmup_updates=1"]);
    let file = sandbox.file(
        "ui.toml",
        "theme = \"light\"\n[keys]\nquit = \"Q\"\nqueue = []\nruns = \"F4\"\n[on.train]\nsmoothing = [\"z\", \"F2\"]\n",
    );
    let own = [("TUI_TRAIN_UI", &*file)];
    let mut terminal = Terminal::start_with(&sandbox, &["attach", "own"], &[], &own, 30, 110);
    let screen = terminal.wait("the first frame", |screen| screen.contains("6 / 6"));
    assert!(
        screen.contains(" F4 Runs") && screen.contains("Q quit") && screen.contains("z smooth"),
        "{screen}"
    );
    terminal.wait_text("smoothed 0.9 ");
    terminal.press("\x1bOQ");
    terminal.wait_text("smoothed 0.97");
    terminal.press("T");
    terminal.wait_text("theme high-contrast");
    // The old keys do nothing; the new one leads to the other screen.
    terminal.press("4q\x1bOS");
    terminal.wait_text("runs 1");
    terminal.press("?");
    terminal.wait_text("Everywhere");
    terminal.press("/smooth");
    let help = terminal.wait("only what was searched", |screen| !screen.contains("Everywhere"));
    assert!(help.contains("z, F2") && help.contains("how much the loss is smoothed"), "{help}");
    terminal.press("\r");
    terminal.press(&format!("{ESC}{ESC}"));
    terminal.wait("the help to close", |screen| !screen.contains("z, F2"));
    terminal.press(":quit");
    let palette = terminal.wait_text("leave; asks when a run is live");
    assert!(palette.lines().any(|line| line.contains("leave; asks") && line.contains(" Q ")), "{palette}");
    terminal.press(ESC);
    terminal.press("Q");
    assert_eq!(terminal.end(), 0);
}

#[test]
fn a_mistake_in_the_settings_is_one_sentence_and_exit_code_2() {
    let sandbox = Sandbox::new();
    sandbox.train("wrong", &["train.max_updates=6", "schedule.warmup_updates=1"]);
    for (text, parts) in [
        ("\n[keys]\npuase = \"p\"\n", ["line 3", "did you mean `pause`?"]),
        ("[keys]\nlog = \"S\"\n", ["line 2", "`log` and `smoothing`"]),
        ("thema = \"dark\"\n", ["line 1", "`theme`"]),
    ] {
        let file = sandbox.file("ui.toml", text);
        let output = sandbox.run(&["attach", "wrong", "--once", "--ui", &file]);
        let told = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{told}");
        assert!(told.contains("ui.toml") && told.trim_end().lines().count() == 1, "{told}");
        assert!(parts.iter().all(|part| told.contains(part)), "{told}");
    }
    let output = sandbox.run(&["config", "keys"]);
    let template = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && template.contains("# pause = "), "{template}");
}
