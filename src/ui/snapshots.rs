//! Every screen at three sizes, and every screen at any size.

use ratatui::{Terminal, backend::TestBackend, buffer::Buffer, layout::Rect};

use super::{Theme, hit, render, theme::Colours};
use crate::app::{
    Msg, State,
    action::{Action, Screen},
    check::Check,
    focus::{Overlay, Panel},
    input::TextLine,
    look::ThemeName,
    palette::Palette,
    recorded,
    tensors::{Beside, History, Opened, View},
};
use crate::protocol::Strip;

const SIZES: [(u16, u16); 3] = [(80, 24), (120, 40), (200, 60)];

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

fn snapshot(name: &str, state: &State, theme: &Theme, (width, height): (u16, u16)) {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/snapshots"));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| {
        insta::assert_snapshot!(format!("{name}_{width}x{height}"), drawn(state, theme, width, height));
    });
}

fn everywhere(name: &str, state: &State) {
    for size in SIZES {
        snapshot(name, state, &Theme::default(), size);
    }
}

fn opened(optimizer: &str) -> State {
    let mut state = recorded::watching(Screen::State, optimizer);
    let name = "model.layers.0.self_attn.q_proj.weight";
    let detail = Some(Box::new(recorded::detail(optimizer, name)));
    state.tensors.opened = Some(Opened { detail, cursor: 5, ..Opened::new(name) });
    state
}

/// An opened parameter, each with another side of it shown.
fn sides() -> Vec<(&'static str, State)> {
    let shown = |optimizer: &str, view: View| {
        let mut state = opened(optimizer);
        let tensor = state.tensors.opened.as_ref().map(|opened| opened.tensor.clone()).unwrap_or_default();
        let mut history = History::default();
        for update in (50..=300).step_by(50) {
            let mut report = recorded::state_report(optimizer, update);
            for found in &mut report.tensors {
                let scale = 1.0 + 200.0 / update as f64;
                found
                    .state
                    .values_mut()
                    .filter_map(|s| s.stats.as_mut())
                    .for_each(|stats| stats.rms *= scale);
            }
            history.push(&tensor, &report);
        }
        if let Some(opened) = &mut state.tensors.opened {
            opened.view = view;
            opened.history.load(history);
        }
        let mut other = recorded::detail("adamw", &tensor);
        let strips = std::mem::take(&mut other.strips);
        for axis in ["row, mean |x|", "column, mean |x|"] {
            other.strips.extend(strips.iter().map(|strip| Strip { axis: axis.into(), ..strip.clone() }));
        }
        let detail = Some(Ok(Box::new(other)));
        state.tensors.beside = Some(Beside { run: "b".into(), name: "nano-adamw".into(), detail });
        state
    };
    vec![
        ("spread", shown("adafactor", View::Spread)),
        ("spread_8bit", shown("adamw8bit", View::Spread)),
        ("gradient", shown("adafactor", View::Gradient)),
        ("history", shown("adafactor", View::History)),
        ("beside", shown("adafactor", View::Beside)),
    ]
}

fn states() -> Vec<(&'static str, State)> {
    let fresh =
        |screen| State::new(crate::config::Layers::new(), crate::app::Options::default(), screen).unwrap();
    let mut all = vec![
        ("train", recorded::watching(Screen::Train, "adamw")),
        ("state", recorded::watching(Screen::State, "adafactor")),
        ("opened", opened("adafactor")),
        ("setup", recorded::watching(Screen::Setup, "adafactor")),
        ("runs", recorded::watching(Screen::Runs, "adamw")),
        ("first_setup", fresh(Screen::Setup)),
        ("empty_train", fresh(Screen::Train)),
        ("empty_state", fresh(Screen::State)),
        ("empty_runs", fresh(Screen::Runs)),
    ];
    let mut overlaid = |name, overlay| {
        let mut state = recorded::watching(Screen::Train, "adamw");
        state.overlay = overlay;
        all.push((name, state));
    };
    overlaid("help", Overlay::Help { scroll: 0 });
    overlaid("palette", Overlay::Palette(Palette { line: TextLine::new("lr 1e-4"), ..Palette::default() }));
    overlaid("quit", Overlay::Quit);
    overlaid("start_beside", Overlay::StartBeside);
    let check = |answer| Overlay::Check(Check { number: 1, of: "run demo".into(), answer });
    overlaid("check_running", check(None));
    overlaid("check", check(Some(Ok(Box::new(recorded::check())))));
    overlaid("check_failed", check(Some(Err("texts/a.txt is empty: give a file with text in it".into()))));
    overlaid("samples_none", Overlay::Samples { back: 0, scroll: 0 });
    let mut written = recorded::watching(Screen::Train, "adamw");
    written.run.samples.extend([250, 300, 350].map(recorded::sample));
    written.overlay = Overlay::Samples { back: 1, scroll: 0 };
    all.push(("samples", written));
    all.push(("opened_8bit", opened("adamw8bit")));
    all.extend(sides());
    let mut scatter = recorded::watching(Screen::Runs, "adamw");
    scatter.runs.scatter = true;
    scatter.overlay = Overlay::Delete { run: "demo".into(), name: "demo".into() };
    all.push(("delete", scatter));
    all.push(("state_8bit", recorded::watching(Screen::State, "adamw8bit")));
    all.push(("classifying", recorded::classifying()));
    all.push(("gpu", recorded::on_gpu()));
    all
}

#[test]
fn train() {
    everywhere("train", &recorded::watching(Screen::Train, "adamw"));
}

#[test]
fn state() {
    everywhere("state", &recorded::watching(Screen::State, "adafactor"));
}

#[test]
fn opened_tensor() {
    everywhere("opened", &opened("adafactor"));
}

#[test]
fn eight_bit_state() {
    for size in [(80, 24), (200, 60)] {
        snapshot("opened_8bit", &opened("adamw8bit"), &Theme::default(), size);
    }
    let state = recorded::watching(Screen::State, "adamw8bit");
    snapshot("state_8bit", &state, &Theme::default(), (200, 60));
}

#[test]
fn train_of_a_classification() {
    for size in [(80, 24), (120, 40)] {
        snapshot("classifying", &recorded::classifying(), &Theme::default(), size);
    }
}

#[test]
fn state_of_a_classification() {
    let mut state = recorded::classifying();
    state.update(Msg::Action(Action::Show(Screen::State)));
    state.tensors.step(10);
    snapshot("classifying_state", &state, &Theme::default(), (80, 24));
}

#[test]
fn train_on_a_gpu() {
    let mut state = recorded::on_gpu();
    everywhere("gpu", &state);
    let area = Rect::new(0, 0, 120, 40);
    let Some(super::Hit::Panel { panel, row }) = hit(&state, area, 110, 6) else { panic!("no panel") };
    state.update(Msg::Click { panel, row });
    state.update(Msg::Action(Action::Zoom));
    snapshot("gpu_zoomed", &state, &Theme::default(), (80, 24));
}

/// A run that was over before a second reading of its memory.
#[test]
fn train_of_a_short_run_that_has_ended() {
    let state = recorded::short();
    snapshot("ended", &state, &Theme::default(), (80, 24));
    let header = state.run.header.as_ref().unwrap();
    assert!(state.run.peaks().allocator.unwrap() > header.ledger.state_bytes + header.ledger.parameter_bytes);
}

/// Rows of a parameter that are more than a strip has values.
#[test]
fn opened_tensor_with_grouped_rows() {
    let mut state = opened("adafactor");
    if let Some(detail) = state.tensors.opened.as_mut().and_then(|opened| opened.detail.as_mut()) {
        for strip in &mut detail.strips {
            strip.axis = "element; 2 to a cell".into();
            strip.length = 2 * strip.values.len() as u64 - 1;
        }
    }
    for size in [(80, 24), (120, 40)] {
        snapshot("opened_grouped", &state, &Theme::default(), size);
    }
}

/// The same parameter from every side.
#[test]
fn sides_of_an_opened_tensor() {
    for (name, state) in sides() {
        for size in [(80, 24), (200, 60)] {
            snapshot(name, &state, &Theme::default(), size);
        }
    }
}

#[test]
fn state_by_layer() {
    let mut state = recorded::watching(Screen::State, "adafactor");
    for action in [Action::GroupLayers, Action::Down, Action::Down, Action::Down, Action::SortNext] {
        state.update(Msg::Action(action));
    }
    state.tensors.folded.insert("model.layers.0".into());
    snapshot("state_layers", &state, &Theme::default(), (80, 24));
}

#[test]
fn stepping_shows_before_and_after() {
    let mut state = opened("adafactor");
    state.update(Msg::Events(vec![recorded::command("pause", 300, None)]));
    let mut next = recorded::detail("adafactor", "model.layers.0.self_attn.q_proj.weight");
    next.update = 301;
    next.strips.iter_mut().for_each(|strip| strip.values.iter_mut().for_each(|value| *value *= 1.25));
    state.update(Msg::Answer { id: 9, answer: crate::protocol::Answer::Opened(Box::new(next)) });
    let text = drawn(&state, &Theme::default(), 120, 40);
    assert!(text.contains("since update 300: by at most 25.0%"), "{text}");
    assert!(text.contains(", before "), "{text}");
    snapshot("stepped", &state, &Theme::default(), (120, 40));
    state.update(Msg::Events(vec![recorded::command("resume", 301, None)]));
    assert!(!drawn(&state, &Theme::default(), 120, 40).contains("since update"));
}

#[test]
fn setup_of_a_classification() {
    let mut state = recorded::watching(Screen::Setup, "adamw");
    state.form.assign("model.preset", "distilbert-nano").unwrap();
    snapshot("setup_classification", &state, &Theme::default(), (80, 24));
}

#[test]
fn setup() {
    let mut state = recorded::watching(Screen::Setup, "adamw");
    for action in [Action::NextOptimizer, Action::NextOptimizer, Action::AccumulateUp] {
        state.update(Msg::Action(action));
    }
    everywhere("setup", &state);
}

#[test]
fn setup_with_a_mistake() {
    let mut state = recorded::watching(Screen::Setup, "adamw");
    state.form.assign("train.micro_batch", "4").unwrap();
    state.update(Msg::Action(Action::Edit));
    state.form.editing = Some(TextLine::new("0"));
    state.update(Msg::Submit);
    snapshot("setup_mistake", &state, &Theme::default(), (80, 24));
}

#[test]
fn runs() {
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
}

#[test]
fn overlays() {
    for (name, state) in states() {
        if ["help", "palette", "quit", "start_beside", "delete"].contains(&name)
            || name.starts_with("check")
            || name.starts_with("samples")
        {
            snapshot(name, &state, &Theme::default(), (80, 24));
        }
    }
}

#[test]
fn the_models_speed_stands_where_there_is_room() {
    let mut state = recorded::watching(Screen::Train, "adamw");
    if let Some(update) = &mut state.run.update {
        (update.flops_per_second, update.mfu) = (Some(3.92e9), Some(0.0912));
    }
    let wide = drawn(&state, &Theme::default(), 200, 60);
    assert!(wide.contains("model 3.92 GFLOP/s  MFU 9.12 %"), "{wide}");
}

#[test]
fn nothing_is_open_yet() {
    for (name, state) in states() {
        if name.starts_with("empty") || name == "first_setup" {
            snapshot(name, &state, &Theme::default(), (80, 24));
        }
    }
}

#[test]
fn small_and_zoomed() {
    let mut state = recorded::watching(Screen::Train, "adamw");
    snapshot("small_train", &state, &Theme::default(), (40, 10));
    snapshot("too_small", &state, &Theme::default(), (20, 5));
    state.focus.step(Screen::Train, false);
    state.update(Msg::Action(Action::Zoom));
    snapshot("zoomed_events", &state, &Theme::default(), (80, 24));
    snapshot("small_setup", &recorded::watching(Screen::Setup, "adamw"), &Theme::default(), (50, 16));
}

#[test]
fn ascii_only() {
    let theme = Theme { colours: Colours::None, ascii: true, ..Theme::default() };
    snapshot("ascii_train", &recorded::watching(Screen::Train, "adamw"), &theme, (80, 24));
    for (name, state) in states() {
        let text = drawn(&state, &theme, 120, 40);
        let odd: Vec<char> = text.chars().filter(|c| !c.is_ascii()).collect();
        assert!(odd.is_empty(), "{name}: {odd:?}");
    }
}

#[test]
fn no_size_panics() {
    let mut sizes: Vec<(u16, u16)> = (1..=44).flat_map(|w| (1..=26).map(move |h| (w, h))).collect();
    sizes.extend((45..=130).step_by(5).flat_map(|w| [1, 9, 10, 11, 14, 19, 20, 24, 33].map(|h| (w, h))));
    sizes.push((400, 120));
    for (name, mut state) in states() {
        for panel in 0..state.screen.panels().len() {
            state.focus.step(state.screen, true);
            for (at, &(width, height)) in sizes.iter().enumerate() {
                // Each panel at each size is many screens: one panel takes every size, the others a third.
                if panel > 0 && at % 3 != 0 {
                    continue;
                }
                let area = Rect::new(0, 0, width, height);
                let mut buffer = Buffer::empty(area);
                let theme = Theme { ascii: at % 5 == 0, ..Theme::default() };
                render(&state, &theme, area, &mut buffer);
                assert_eq!(buffer.area, area, "{name}");
                hit(&state, area, width / 2, height / 2);
                hit(&state, area, width - 1, height - 1);
            }
        }
    }
}

#[test]
fn numbers_that_are_none_do_no_harm() {
    let mut state = recorded::watching(Screen::Train, "adamw");
    for at in 301..400 {
        let mut event = recorded::demo(1).into_iter().nth(1).unwrap();
        if let crate::protocol::Event::Update(update) = &mut event {
            update.update = at;
            (update.loss, update.grad_norm) = (f64::NAN, f64::INFINITY);
            (update.tokens_per_second, update.learning_rate, update.time) = (f64::NAN, f64::NAN, f64::NAN);
        }
        state.update(Msg::Events(vec![event]));
    }
    for log in [false, true] {
        state.log_y = log;
        for axis in [crate::app::series::XAxis::Update, crate::app::series::XAxis::Time] {
            state.x_axis = axis;
            assert!(drawn(&state, &Theme::default(), 120, 40).contains("nan"));
        }
    }
}

#[test]
fn a_click_focuses_what_it_hits() {
    let mut state = recorded::watching(Screen::Train, "adamw");
    let area = Rect::new(0, 0, 120, 40);
    assert_eq!(hit(&state, area, 13, 0), Some(super::Hit::Tab(Screen::Train)));
    let Some(super::Hit::Panel { panel, .. }) = hit(&state, area, 110, 6) else { panic!("no panel") };
    state.update(Msg::Click { panel, row: None });
    assert_eq!(state.panel(), crate::app::focus::Panel::Memory);
    let mut state = recorded::watching(Screen::Runs, "adamw");
    let Some(super::Hit::Panel { panel, row }) = hit(&state, area, 10, 4) else { panic!("no list") };
    state.update(Msg::Click { panel, row });
    assert_eq!(state.runs.selected, 1);
}
