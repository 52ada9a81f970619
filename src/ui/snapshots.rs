//! Every screen and overlay at four sizes as text, and their colours in two themes; and every screen at any size.

mod keys;
mod limits;
mod looks;
mod states;
mod styles;

use ratatui::{Terminal, backend::TestBackend};

use super::{Theme, hit, render};
use crate::app::{Msg, State};

/// Without room for more than one panel, the usual one, a large one, a very large one.
const SIZES: [(u16, u16); 4] = [(40, 10), (80, 24), (120, 40), (200, 60)];

fn drawn(state: &State, theme: &Theme, width: u16, height: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| super::draw(state, theme, frame)).unwrap();
    let buffer = terminal.backend().buffer();
    let row = |y| {
        let row: String = (0..width).map(|x| buffer[(x, y)].symbol().to_owned()).collect();
        row.trim_end().to_owned()
    };
    (0..height).map(row).collect::<Vec<_>>().join("\n")
}

/// Holds a text against the one that is kept in that folder of the snapshots.
fn kept(folder: &str, name: &str, text: &str) {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(format!("{}/tests/snapshots/{folder}", env!("CARGO_MANIFEST_DIR")));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, text));
}

fn snapshot(name: &str, state: &State, theme: &Theme, (width, height): (u16, u16)) {
    kept("", &format!("{name}_{width}x{height}"), &drawn(state, theme, width, height));
}

fn everywhere(screens: Vec<(&'static str, State)>) {
    for (name, state) in screens {
        for size in SIZES {
            snapshot(name, &state, &Theme::default(), size);
        }
        kept("styles", name, &styles::map(&state, &SIZES));
    }
}

#[test]
fn train() {
    everywhere(states::train());
}

#[test]
fn tensors() {
    everywhere(states::tensors());
}

#[test]
fn opened_tensor() {
    everywhere(states::opened_sides());
}

#[test]
fn setup() {
    everywhere(states::setup());
}

#[test]
fn runs() {
    everywhere(states::runs());
}

#[test]
fn overlays() {
    everywhere(states::overlays());
}

#[test]
fn a_run_that_failed_before_its_first_update_is_not_said_to_start() {
    let screen = drawn(&states::out_of_memory(), &Theme::default(), 80, 24);
    assert!(!screen.contains("is starting"), "{screen}");
    let second = screen.lines().nth(2).unwrap_or_default();
    assert!(second.contains("out of memory on flex: 512 GiB were asked for"), "{screen}");
    let events = screen.lines().skip(3).collect::<Vec<_>>().join(" ");
    for words in ["512 GiB", "train.micro_batch"] {
        assert!(events.contains(words), "{words}: {screen}");
    }
}

/// The smallest that anything is said on, all in one file.
#[test]
fn tiny() {
    let frame = |(name, state): (&str, State)| {
        let rows: Vec<String> =
            drawn(&state, &Theme::default(), 20, 5).split('\n').map(|row| format!("|{row:<20}|")).collect();
        format!("{name}\n{}\n", rows.join("\n"))
    };
    let text: Vec<String> = states::all().into_iter().map(frame).collect();
    kept("", "all_20x5", &text.join("\n"));
}

/// A peak that was read once, before the model was made, is not what an ended run says.
#[test]
fn a_short_run_that_has_ended_tells_the_peaks_of_its_summary() {
    let state = crate::app::recorded::short();
    let header = state.run.header.as_ref().unwrap();
    assert!(state.run.peaks.allocator.unwrap() > header.ledger.state_bytes + header.ledger.parameter_bytes);
}

#[test]
fn stepping_shows_before_and_after() {
    let mut state = states::stepped();
    let text = drawn(&state, &Theme::default(), 120, 40);
    assert!(text.contains("since update 300: by at most 25.0%"), "{text}");
    assert!(text.contains(", before "), "{text}");
    state.update(Msg::Events(vec![crate::app::recorded::command("resume", 301, None)]));
    assert!(!drawn(&state, &Theme::default(), 120, 40).contains("since update"));
}
