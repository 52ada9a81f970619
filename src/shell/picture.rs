//! One frame without a terminal: as plain text, or as SVG.

use ratatui::{buffer::Buffer, layout::Rect};

use super::{Launch, Start, watch::why_not_started};
use crate::{
    app::{Msg, State, action::Screen, link::Control},
    run::{Tail, lock, standing},
    ui::{
        self, svg,
        theme::{Colours, Theme},
    },
};

/// Bytes of the record read at once.
const PIECE: u64 = 1 << 20;

/// The state once everything that is on disk now was read.
fn state(launch: &Launch, screen: Option<Screen>) -> anyhow::Result<State> {
    let mut state = launch.state()?;
    if let Start::Watch(run) = &launch.start {
        let begun = standing::has_begun(run);
        let live = lock::is_live(run);
        let mut tail = Tail::open(run).with_newest_state();
        while tail.each(PIECE, |event| drop(state.update(Msg::Events(vec![event]))))? {}
        state.update(Msg::Unreadable(tail.skipped()));
        if !live && begun {
            state.update(Msg::Alive(false));
        } else if !live {
            state.update(Msg::Waits(why_not_started(run)));
        }
        if live {
            state.link.control = Control::None;
        }
    }
    if let Some(screen) = screen {
        state.screen = screen;
    }
    Ok(state)
}

/// One frame as lines of text.
///
/// # Errors
/// The record cannot be read.
pub fn text(launch: &Launch, screen: Option<Screen>, width: u16, height: u16) -> anyhow::Result<String> {
    let theme = Theme { colours: Colours::None, ..launch.look() };
    let buffer = draw(&state(launch, screen)?, &theme, width, height);
    let mut text = String::new();
    for y in 0..height {
        let row: String = (0..width).filter_map(|x| buffer.cell((x, y))).map(|cell| cell.symbol()).collect();
        text.push_str(row.trim_end());
        text.push('\n');
    }
    Ok(text)
}

/// One frame as an SVG picture.
///
/// # Errors
/// The record cannot be read.
pub fn svg(launch: &Launch, screen: Option<Screen>, width: u16, height: u16) -> anyhow::Result<String> {
    // A picture brings its own dots: what the terminal can show does not matter.
    let theme = Theme { colours: Colours::True, ..Theme::default() }
        .drawn_with(launch.signs.unwrap_or_default())
        .named(launch.theme);
    Ok(svg::themed(&draw(&state(launch, screen)?, &theme, width, height), launch.theme))
}

fn draw(state: &State, theme: &Theme, width: u16, height: u16) -> Buffer {
    let area = Rect::new(0, 0, width, height);
    let mut buffer = Buffer::empty(area);
    ui::render(state, theme, area, &mut buffer);
    buffer
}
