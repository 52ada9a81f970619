//! Random histories on random screens: whatever a person does and a run tells, every frame stays on the glass.

use crossterm::event::{KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use proptest::prelude::*;
use ratatui::{buffer::Buffer, layout::Rect};
use unicode_width::UnicodeWidthStr;

use super::{Theme, mouse, render, theme::Colours};
use crate::{
    app::{
        Msg, RunRef, State,
        action::{ACTIONS, Screen},
        input::Input,
        look::ThemeName,
        recorded,
    },
    protocol::{Alert, Event, Level, Update, Validation, Window},
};

/// Names as people give them, and as nobody should.
const NAMES: [&str; 9] = [
    "demo",
    "",
    "日本語の実験・長い名前のラン",
    "👩‍👩‍👧‍👦🏳️‍🌈",
    "e\u{301}a\u{308}\u{200d}\u{200b}",
    "مرحبا بالعالم",
    "tab\tbell\x07esc\x1b[31m",
    "ｗｉｄｅ　ｎａｍｅ",
    "a-very-long-name-that-goes-on-and-on-and-on-and-on-and-on-and-on-and-on-and-on-and-on",
];

#[derive(Debug, Clone)]
pub(super) enum Step {
    Act(usize),
    Type(char),
    Submit,
    Cancel,
    Size(u16, u16),
    Click(u16, u16),
    Updates { count: u64, loss: f64, norm: f64, rate: f64 },
    Validation(f64),
    Window(u64, u64),
    Alert(usize),
    Resume(u64),
    Watch(usize),
    Alive(bool),
    Tick(f64),
}

fn figure() -> impl Strategy<Value = f64> {
    prop_oneof![
        6 => 0.01..20.0f64,
        1 => Just(f64::NAN),
        1 => Just(f64::INFINITY),
        1 => Just(f64::NEG_INFINITY),
        1 => Just(0.0),
        1 => Just(-1e300),
        1 => Just(1e300),
        1 => Just(5e-324),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (0..ACTIONS.len()).prop_map(Step::Act),
        1 => prop_oneof![any::<char>(), Just('日'), Just('a')].prop_map(Step::Type),
        1 => Just(Step::Submit),
        1 => Just(Step::Cancel),
        4 => (1..=400u16, 1..=120u16).prop_map(|(width, height)| Step::Size(width, height)),
        3 => (0..400u16, 0..120u16).prop_map(|(column, row)| Step::Click(column, row)),
        9 => happening(),
    ]
}

/// What a run tells, and the passing of time.
pub(super) fn happening() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (1..40u64, figure(), figure(), figure())
            .prop_map(|(count, loss, norm, rate)| Step::Updates { count, loss, norm, rate }),
        1 => figure().prop_map(Step::Validation),
        1 => (0..40u64, 0..40u64).prop_map(|(done, of)| Step::Window(done, of)),
        1 => (0..NAMES.len()).prop_map(Step::Alert),
        1 => (0..400u64).prop_map(Step::Resume),
        1 => (0..NAMES.len()).prop_map(Step::Watch),
        1 => any::<bool>().prop_map(Step::Alive),
        1 => (0.0..1e6f64).prop_map(Step::Tick),
    ]
}

pub(super) fn do_it(state: &mut State, step: Step, area: &mut Rect) {
    let at = state.run.done();
    let msg = match step {
        Step::Act(at) => Msg::Action(ACTIONS[at].action),
        Step::Type(sign) => Msg::Input(Input::Char(sign)),
        Step::Submit => Msg::Submit,
        Step::Cancel => Msg::Cancel,
        Step::Size(width, height) => {
            *area = Rect::new(0, 0, width, height);
            Msg::Size { width, height }
        }
        Step::Click(column, row) => {
            let kind = MouseEventKind::Down(MouseButton::Left);
            let event = MouseEvent { kind, column, row, modifiers: KeyModifiers::NONE };
            mouse::messages(state, &Theme::default(), *area, event)
                .into_iter()
                .for_each(|msg| drop(state.update(msg)));
            return;
        }
        Step::Updates { count, loss, norm, rate } => {
            let update = |update: u64| {
                Event::Update(Update {
                    update,
                    time: update as f64 * 0.1,
                    tokens: update * 512,
                    micro_batches: 1,
                    loss,
                    learning_rate: rate,
                    grad_norm: norm,
                    tokens_per_second: norm,
                    flops_per_second: None,
                    mfu: None,
                    skipped: !norm.is_finite(),
                })
            };
            Msg::Events((at + 1..=at + count).map(update).collect())
        }
        Step::Validation(loss) => {
            Msg::Events(vec![Event::Validation(Validation { update: at, loss, ..Validation::default() })])
        }
        Step::Window(micro_batches, of) => {
            Msg::Events(vec![Event::Window(Window { update: at + 1, micro_batches, of })])
        }
        Step::Alert(name) => Msg::Events(vec![Event::Alert(Alert {
            update: at,
            time: at as f64,
            level: Level::Warning,
            message: NAMES[name].into(),
        })]),
        Step::Resume(from) => Msg::Events(vec![Event::resumed(from.min(at))]),
        Step::Watch(name) => {
            let run = RunRef { id: "r".into(), name: NAMES[name].into(), path: NAMES[name].into() };
            state.update(Msg::Watching { run });
            Msg::Events(recorded::demo(30))
        }
        Step::Alive(alive) => Msg::Alive(alive),
        Step::Tick(now) => Msg::Tick { now },
    };
    state.update(msg);
}

/// Every cell holds a sign that has room where it stands.
fn is_on_the_glass(buffer: &Buffer, area: Rect) -> Result<(), TestCaseError> {
    prop_assert_eq!(buffer.area, area);
    for y in 0..area.height {
        for x in 0..area.width {
            let width = buffer[(x, y)].symbol().width() as u16;
            prop_assert!(x + width <= area.width, "{:?} at {x},{y} of {area}", buffer[(x, y)].symbol());
            let covered = (1..width).all(|more| buffer[(x + more, y)].symbol() == " ");
            prop_assert!(covered, "{:?} at {x},{y} is drawn over", buffer[(x, y)].symbol());
            prop_assert!(!buffer[(x, y)].symbol().chars().any(char::is_control), "a control sign at {x},{y}");
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_frame_stays_on_the_glass(
        first in 0..4usize,
        optimizer in prop_oneof![Just("adamw"), Just("adafactor"), Just("adamw8bit")],
        steps in prop::collection::vec(step(), 1..24),
        looks in prop::collection::vec((0..3usize, 0..5usize, 0..3u8), 24),
    ) {
        let mut state = recorded::watching(Screen::ALL[first], optimizer);
        let mut area = Rect::new(0, 0, 80, 24);
        for (step, (colours, theme, signs)) in steps.into_iter().zip(looks) {
            do_it(&mut state, step, &mut area);
            let colours = [Colours::None, Colours::Sixteen, Colours::True][colours];
            let theme = Theme { colours, ascii: signs == 1, blocks: signs == 2, ..Theme::default() }
                .named(ThemeName::ALL[theme]);
            let mut buffer = Buffer::empty(area);
            render(&state, &theme, area, &mut buffer);
            is_on_the_glass(&buffer, area)?;
        }
    }

    #[test]
    fn a_storm_of_sizes_harms_no_screen(
        first in 0..4usize,
        sizes in prop::collection::vec((1..=400u16, 1..=120u16), 1..12),
        zoomed in any::<bool>(),
        panel in 0..6usize,
        name in 0..NAMES.len(),
    ) {
        let mut state = recorded::watching(Screen::ALL[first], "adafactor");
        if let Some(run) = &mut state.watching {
            NAMES[name].clone_into(&mut run.name);
        }
        (0..panel).for_each(|_| state.focus.step(state.screen, true));
        state.focus.zoomed = zoomed;
        for (width, height) in sizes {
            state.update(Msg::Size { width, height });
            let area = Rect::new(0, 0, width, height);
            let mut buffer = Buffer::empty(area);
            render(&state, &Theme::default(), area, &mut buffer);
            is_on_the_glass(&buffer, area)?;
        }
    }
}
