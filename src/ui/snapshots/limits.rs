//! Any size, any number, any click.

use ratatui::{buffer::Buffer, layout::Rect};

use super::{SIZES, Theme, drawn, hit, render, states};
use crate::{
    app::{
        Msg,
        action::{Action, Screen},
        focus::{Overlay, Panel},
        recorded,
        series::XAxis,
    },
    ui::{Hit, layout},
};

#[test]
fn no_size_panics() {
    let mut sizes: Vec<(u16, u16)> = (1..=44).flat_map(|w| (1..=26).map(move |h| (w, h))).collect();
    sizes.extend((45..=130).step_by(5).flat_map(|w| [1, 9, 10, 11, 14, 19, 20, 24, 33].map(|h| (w, h))));
    sizes.push((400, 120));
    for (nth, (name, mut state)) in states::all().into_iter().enumerate() {
        for panel in 0..state.screen.panels().len() {
            state.focus.step(state.screen, true);
            for (at, &(width, height)) in sizes.iter().enumerate() {
                // Each panel of each screen at each size is many: all sizes are met, not each by all.
                if (at + panel + nth) % 7 != 0 {
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
    let mut events = states::not_finite(301, 399);
    for event in &mut events {
        if let crate::protocol::Event::Update(update) = event {
            (update.tokens_per_second, update.learning_rate, update.time) = (f64::NAN, f64::NAN, f64::NAN);
        }
    }
    state.update(Msg::Events(events));
    for log in [false, true] {
        state.log_y = log;
        for axis in [XAxis::Update, XAxis::Time] {
            state.x_axis = axis;
            assert!(drawn(&state, &Theme::default(), 120, 40).contains("nan"));
        }
    }
}

#[test]
fn a_click_focuses_what_it_hits() {
    let mut state = recorded::watching(Screen::Train, "adamw");
    let area = Rect::new(0, 0, 120, 40);
    assert_eq!(hit(&state, area, 13, 0), Some(Hit::Tab(Screen::Train)));
    let Some(Hit::Panel { panel, .. }) = hit(&state, area, 110, 6) else { panic!("no panel") };
    state.update(Msg::Click { panel, row: None });
    assert_eq!(state.panel(), Panel::Memory);
    let mut state = recorded::watching(Screen::Runs, "adamw");
    let Some(Hit::Panel { panel, row }) = hit(&state, area, 10, 4) else { panic!("no list") };
    state.update(Msg::Click { panel, row });
    assert_eq!(state.runs.selected, 1);
    let mut state = recorded::watching(Screen::Train, "adamw");
    let Some(Hit::Chart { panel, update }) = hit(&state, area, 38, 12) else { panic!("no chart") };
    assert!(panel == Panel::Loss && (130..150).contains(&update), "{update}");
    state.update(Msg::Point { panel, update });
    assert_eq!(state.cursor(), Some(update));
}

/// The line of the form that is clicked is the one that is drawn there, however much is explained below the list.
#[test]
fn a_click_on_the_form_takes_the_field_under_it() {
    let area = Rect::new(0, 0, 80, 24);
    let mut state = recorded::watching(Screen::Setup, "adamw");
    for row in 3..12 {
        let text = drawn(&state, &Theme::default(), area.width, area.height);
        let line = text.split('\n').nth(usize::from(row)).unwrap().to_owned();
        if let Some(Hit::Panel { panel, row: Some(at) }) = hit(&state, area, 4, row) {
            state.update(Msg::Click { panel, row: Some(at) });
            let key = state.form.field().unwrap().key;
            let name = key.rsplit('.').next().unwrap();
            assert!(
                line.contains(name) || line.contains("──") || line.contains("optimizer"),
                "{key}: {line}"
            );
        }
        state.update(Msg::Action(Action::Home));
    }
}

/// Whatever is written on a frame, its corners stay.
#[test]
fn nothing_is_written_over_the_corner_of_a_panel() {
    for (name, mut state) in states::all().into_iter().filter(|(_, state)| state.overlay == Overlay::None) {
        // A notice takes lines of its own for a while.
        state.notice = None;
        for (width, height) in SIZES {
            let area = Rect::new(0, 0, width, height);
            let mut buffer = Buffer::empty(area);
            render(&state, &Theme::default(), area, &mut buffer);
            for (panel, place) in layout::panels(&state, area) {
                let (right, bottom) = (place.right() - 1, place.bottom() - 1);
                let corners = [(place.x, place.y), (right, place.y), (place.x, bottom), (right, bottom)];
                let signs: String = corners.map(|corner| buffer[corner].symbol().to_owned()).concat();
                assert!(["╭╮╰╯", "┏┓┗┛"].contains(&&*signs), "{name} {width}x{height} {panel:?}: {signs}");
            }
        }
    }
}

#[test]
fn every_preset_is_told_where_there_is_room() {
    let state = recorded::watching(Screen::Setup, "adamw");
    for (width, height) in [(80, 24), (120, 40), (200, 60)] {
        let text = drawn(&state, &Theme::default(), width, height);
        for preset in crate::config::presets::PRESETS {
            assert!(text.contains(preset.name), "{} at {width}x{height}: {text}", preset.name);
        }
    }
    assert!(drawn(&state, &Theme::default(), 40, 10).contains("1 of 7"));
}

#[test]
fn how_far_the_data_is_stands_beside_a_run_that_is_starting() {
    let mut state = recorded::watching(Screen::Train, "adamw");
    let run = state.watching.clone().unwrap();
    state.update(Msg::Watching { run });
    state.update(Msg::Alive(true));
    state.update(Msg::Preparing("tokenizing 43 %".to_owned()));
    for (width, height) in &SIZES[1..] {
        let screen = drawn(&state, &Theme::default(), *width, *height);
        assert!(screen.contains("starting") && screen.contains("tokenizing 43 %"), "{screen}");
    }
    state.update(Msg::Events(recorded::demo(3)));
    assert!(!drawn(&state, &Theme::default(), 200, 60).contains("tokenizing"));
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
