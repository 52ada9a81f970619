//! Every screen and overlay at four sizes as text, and their colours in two themes; and every screen at any size.

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
<<<<<<< HEAD
    everywhere(states::runs());
=======
    everywhere("runs", &recorded::watching(Screen::Runs, "adamw"));
}

/// The rows of a screen, each with the style of its signs below, and what the letters stand for.
fn styled(state: &State, theme: &Theme, width: u16, height: u16) -> String {
    let area = Rect::new(0, 0, width, height);
    let mut buffer = Buffer::empty(area);
    render(state, theme, area, &mut buffer);
    let mut styles = Vec::new();
    let mut text = String::new();
    for y in 0..height {
        let (mut signs, mut letters) = (String::new(), String::new());
        for x in 0..width {
            let cell = &buffer[(x, y)];
            let style = (cell.fg, cell.bg, cell.modifier);
            let at = styles.iter().position(|known| *known == style).unwrap_or_else(|| {
                styles.push(style);
                styles.len() - 1
            });
            signs.push_str(cell.symbol());
            let blank = cell.symbol() == " " && !cell.modifier.contains(ratatui::style::Modifier::REVERSED);
            letters.push(if blank { ' ' } else { char::from(b'a' + at as u8) });
        }
        text.push_str(&format!("{}\n{}\n", signs.trim_end(), letters.trim_end()));
    }
    for (at, (fg, bg, modifier)) in styles.iter().enumerate() {
        text.push_str(&format!("{} {fg} on {bg} {modifier:?}\n", char::from(b'a' + at as u8)));
    }
    text
}

#[test]
fn themes() {
    let state = recorded::watching(Screen::Train, "adamw");
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/snapshots"));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    for name in ThemeName::ALL {
        let theme = Theme { colours: Colours::True, ..Theme::default() }.named(name);
        settings.bind(|| {
            insta::assert_snapshot!(format!("theme_{}_80x24", name.as_str()), styled(&state, &theme, 80, 24));
        });
    }
    let sixteen = Theme { colours: Colours::Sixteen, ..Theme::default() }.named(ThemeName::Light);
    settings.bind(|| insta::assert_snapshot!("theme_light_sixteen_80x24", styled(&state, &sixteen, 80, 24)));
}

fn act(state: &mut State, actions: &[Action]) {
    for action in actions {
        state.update(Msg::Action(*action));
    }
}

#[test]
fn how_far_the_data_is_stands_beside_a_run_that_is_starting() {
    let mut state = recorded::watching(Screen::Train, "adamw");
    let run = state.watching.clone().unwrap();
    state.update(Msg::Watching { run });
    state.update(Msg::Alive(true));
    state.update(Msg::Preparing("tokenizing 43 %".to_owned()));
    for (width, height) in SIZES {
        let screen = drawn(&state, &Theme::default(), width, height);
        assert!(screen.contains("starting") && screen.contains("tokenizing 43 %"), "{screen}");
    }
    state.update(Msg::Events(recorded::demo(3)));
    assert!(!drawn(&state, &Theme::default(), 200, 60).contains("tokenizing"));
}

#[test]
fn a_part_of_the_run_under_a_cursor() {
    let mut state = recorded::watching(Screen::Train, "adamw");
    let area = Rect::new(0, 0, 120, 40);
    let Some(super::Hit::Chart { panel, update }) = hit(&state, area, 38, 12) else { panic!("no chart") };
    assert!((130..150).contains(&update), "{update}");
    state.update(Msg::Point { panel, update });
    state.update(Msg::Point { panel, update: 140 });
    act(&mut state, &[Action::ZoomIn]);
    snapshot("cursor", &state, &Theme::default(), (120, 40));
    snapshot("cursor", &state, &Theme::default(), (80, 24));
    act(&mut state, &[Action::WholeRun, Action::LogX, Action::LogAxis, Action::NextXAxis]);
    snapshot("log_x", &state, &Theme::default(), (120, 40));
}

#[test]
fn marked_runs_over_the_loss() {
    let mut state = recorded::watching(Screen::Runs, "adamw");
    state.screen = Screen::Train;
    act(&mut state, &[Action::Overlay]);
    snapshot("overlaid", &state, &Theme::default(), (120, 40));
}

#[test]
fn zoomed_panels() {
    for (name, panel) in [("zoomed_schedule", Panel::Schedule), ("zoomed_memory", Panel::Memory)] {
        let mut state = recorded::watching(Screen::Train, "adamw");
        state.focus.set(Screen::Train, panel);
        act(&mut state, &[Action::Zoom]);
        snapshot(name, &state, &Theme::default(), (80, 24));
    }
}

#[test]
fn blocks_only() {
    let theme = Theme { blocks: true, ..Theme::default() };
    snapshot("blocks_train", &recorded::watching(Screen::Train, "adamw"), &theme, (80, 24));
    for (name, state) in states() {
        let text = drawn(&state, &theme, 120, 40);
        let odd: Vec<char> = text.chars().filter(|c| ('\u{2800}'..='\u{28ff}').contains(c)).collect();
        assert!(odd.is_empty(), "{name}: {odd:?}");
    }
}

#[test]
fn runs_in_order_filtered_and_as_a_scatter() {
    let mut state = recorded::watching(Screen::Runs, "adamw");
    for action in [Action::SortPrevious, Action::Scatter] {
        state.update(Msg::Action(action));
    }
    for size in [(80, 24), (200, 60)] {
        snapshot("runs_scatter", &state, &Theme::default(), size);
    }
    state.update(Msg::Action(Action::Filter));
    for letter in "adaf".chars() {
        state.update(Msg::Input(crate::app::input::Input::Char(letter)));
    }
    snapshot("runs_filtered", &state, &Theme::default(), (80, 24));
>>>>>>> h1
}

#[test]
fn overlays() {
    everywhere(states::overlays());
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
    assert!(state.run.peaks().allocator.unwrap() > header.ledger.state_bytes + header.ledger.parameter_bytes);
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
