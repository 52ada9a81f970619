//! Drawing: a pure function of [`State`]. Nothing in here changes anything.

pub mod axis;
pub mod chart;
pub mod colours;
pub mod footer;
pub mod format;
pub mod help;
pub mod keymap;
pub mod keys;
pub mod layout;
pub mod legend;
pub mod mouse;
pub mod overlay;
pub mod screens;
pub mod settings;
pub mod sgr;
mod small;
pub mod svg;
pub mod theme;
pub mod tiny;
pub mod widgets;

#[cfg(test)]
mod glass;
#[cfg(test)]
mod snapshots;
#[cfg(test)]
mod storms;

use crossterm::event::{KeyCode, KeyEvent};
use ratatui::{
    Frame,
    buffer::Buffer,
    layout::Rect,
    style::Modifier,
    text::{Line, Span},
};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::{
    app::{
        Msg, State,
        action::{Action, Screen},
        focus::{Overlay, Panel},
        link::Control,
        run::Status,
        runs::Order,
    },
    run::text::is_harmful,
};

use screens::{curves, run_list, runs, setup, tensors, train};
use theme::{Role, Theme};
use widgets::{span, write, write_right};

/// Draws the whole screen.
pub fn draw(state: &State, theme: &Theme, frame: &mut Frame<'_>) {
    render(state, theme, frame.area(), frame.buffer_mut());
}

/// Draws the whole screen into a buffer. Whatever a run says of itself, nothing gets there that does something to a
/// terminal instead of standing on it.
pub fn render(state: &State, theme: &Theme, area: Rect, buffer: &mut Buffer) {
    paint(state, theme, area, buffer);
    for cell in &mut buffer.content {
        // Nearly all there is, and known at a glance.
        let harmless =
            matches!(cell.symbol().as_bytes(), [b' '..=b'~'] | [0xe2, 0x94..=0x96 | 0xa0..=0xa3, _]);
        if !harmless && cell.symbol().chars().any(is_harmful) {
            cell.set_symbol(" ");
        }
        // Both at once is what each terminal makes of it; a faint text on a bold frame is faint.
        if cell.modifier.contains(Modifier::BOLD | Modifier::DIM) {
            cell.modifier.remove(Modifier::BOLD);
        }
    }
    mend(buffer);
}

/// Takes out every wide sign whose second column something else was drawn over: a terminal would put it off its place.
fn mend(buffer: &mut Buffer) {
    let width = usize::from(buffer.area.width);
    for at in 0..buffer.content.len() {
        let symbol = buffer.content[at].symbol();
        // Lines, blocks and braille are narrow, and nearly all there is.
        let narrow = |sign: char| {
            sign < '\u{1100}' || matches!(sign, '\u{2500}'..='\u{259f}' | '\u{2800}'..='\u{28ff}')
        };
        if symbol.chars().next().is_none_or(narrow) && symbol.chars().nth(1).is_none() {
            continue;
        }
        // A sign joined of several is as wide as each terminal thinks: the first of them is what all agree on.
        let width_of = |sign: char| sign.width().unwrap_or(0);
        let joined = symbol.chars().skip(1).any(|sign| width_of(sign) > 0);
        if joined || symbol.chars().map(width_of).sum::<usize>() != symbol.width() {
            let first = symbol.chars().next().unwrap_or(' ');
            buffer.content[at].set_char(first);
        }
        let columns = buffer.content[at].symbol().width();
        let room = width - at % width;
        let free = |other: usize| buffer.content.get(at + other).is_some_and(|cell| cell.symbol() == " ");
        if columns > room || !(1..columns).all(free) {
            buffer.content[at].set_symbol(" ");
        }
    }
}

fn paint(state: &State, theme: &Theme, area: Rect, buffer: &mut Buffer) {
    if layout::is_tiny(area) {
        tiny::draw(state, theme, area, buffer);
        return theme.simplify(buffer);
    }
    header(state, theme, layout::header(area), buffer);
    if state.screen == Screen::Train {
        train::status(state, theme, layout::status(state, area), buffer);
    }
    let panels = layout::panels(state, area);
    for (panel, place) in &panels {
        draw_panel(state, *panel, theme, *place, buffer);
    }
    if let [(panel, place)] = panels[..] {
        which(state, panel, theme, place, buffer);
    }
    footer::draw(state, theme, layout::footer(area), buffer);
    overlay::draw(state, theme, area, buffer);
    theme.simplify(buffer);
}

fn draw_panel(state: &State, panel: Panel, theme: &Theme, area: Rect, buffer: &mut Buffer) {
    match panel {
        Panel::Schedule => screens::schedule::draw(state, theme, area, buffer),
        Panel::Loss | Panel::Gradient | Panel::Speed => curves::draw(state, panel, theme, area, buffer),
        Panel::Memory => screens::memory::draw(state, theme, area, buffer),
        Panel::Journal => screens::journal::draw(state, theme, area, buffer),
        Panel::Tensors => tensors::draw(state, theme, area, buffer),
        Panel::Form => setup::form(state, theme, area, buffer),
        Panel::Plan => screens::plan::draw(state, theme, area, buffer),
        Panel::List => run_list::list(state, theme, area, buffer),
        Panel::Curves => runs::curves(state, theme, area, buffer),
        Panel::Compare => runs::compare(state, theme, area, buffer),
    }
}

/// Which of the screen's panels is shown where only one has room, and the key that leads to the next.
fn which(state: &State, panel: Panel, theme: &Theme, area: Rect, buffer: &mut Buffer) {
    let all = state.screen.panels();
    let Some(at) = all.iter().position(|known| *known == panel).filter(|_| all.len() > 1) else { return };
    let key = theme.keys.told("{key:focus-next}", state.context());
    let text = format!(" {key} {}/{} ", at + 1, all.len());
    let width = text.width() as u16;
    let Some(x) = area.right().checked_sub(width + 1).filter(|x| *x > area.x) else { return };
    // What the panel says of itself stays.
    if (x..x + width).all(|x| matches!(buffer[(x, area.y)].symbol(), "━" | "─")) {
        write(Rect { x, width, height: 1, ..area }, 0, &Line::from(span(text, Role::Dim, theme)), buffer);
    }
}

/// The sign and colour of a status.
pub fn status_mark(status: Status) -> (&'static str, Role) {
    match status {
        Status::Queued | Status::Starting => ("○", Role::Warning),
        Status::TakenOut => ("○", Role::Bad),
        Status::Live => ("●", Role::Good),
        Status::Paused => ("‖", Role::Warning),
        Status::Ended(reason) if reason.exit_code() == 0 => ("✓", Role::Good),
        Status::Ended(_) | Status::Crashed => ("✗", Role::Bad),
    }
}

fn header(state: &State, theme: &Theme, area: Rect, buffer: &mut Buffer) {
    let mut spans = Vec::new();
    for tab in layout::tabs(area, state.screen, &theme.keys) {
        if tab.screen.is_none() {
            spans.push(span(tab.text, Role::Title, theme));
        } else if tab.screen == Some(state.screen) {
            spans.push(Span::styled(tab.text, theme.style(Role::Focused).reversed()));
        } else {
            spans.push(span(tab.text, Role::Dim, theme));
        }
    }
    let left = Line::from(spans);
    let room = usize::from(area.width).saturating_sub(left.width() + 1);
    write(area, 0, &left, buffer);
    let Some((status, run)) = state.status().zip(state.watching.as_ref()) else {
        write_right(area, 0, &Line::from(span("no run yet ", Role::Dim, theme)), buffer);
        return;
    };
    // What is played from its record was live once.
    let (said, role) = match state.replay.filter(|_| status.is_live()) {
        Some(replay) => (format!("{} ", replay.label()), Role::Warning),
        None => {
            let (sign, role) = status_mark(status);
            (format!("{sign} {} ", status.as_str().replace('_', " ")), role)
        }
    };
    let mut right = vec![span(said, role, theme)];
    let mut used: usize = right.iter().map(Span::width).sum();
    let mut named = 0;
    let mut add = |text: String, role, after_name: bool| {
        let length = text.width();
        if used + length <= room {
            used += length;
            let at = if after_name { named } else { 0 };
            named += usize::from(!after_name);
            right.insert(at, span(text, role, theme));
        }
    };
    if let Some(missing) = state.missing() {
        add(format!("{missing} "), Role::Warning, false);
    }
    if state.frozen.is_some() {
        add("frozen ".to_owned(), Role::Warning, false);
    }
    if let Some(replay) = state.replay {
        if !status.is_live() {
            add(format!("{} ", replay.label()), Role::Warning, false);
        }
    } else if state.options.readonly || matches!(state.link.control, Control::ReadOnly(_)) {
        add("read-only ".to_owned(), Role::Warning, false);
    }
    add(format!("{}  ", format::elide(&run.name, room.saturating_sub(16).clamp(8, 40))), Role::Strong, false);
    if let Some(header) = &state.view().header {
        add(format!("{} on {}  ", header.config.optimizer.name, header.device), Role::Dim, true);
    }
    write_right(area, 0, &Line::from(right), buffer);
}

/// What a key asks for on a screen of that size.
pub fn pressed(state: &State, theme: &Theme, area: Rect, event: KeyEvent) -> Option<Msg> {
    let msg = keymap::translate(&theme.keys, state, event);
    let Overlay::Help { scroll } = state.overlay else { return msg };
    // Only here it is known how long the help is.
    let action = match (msg, event.code) {
        (Some(Msg::Action(action)), _) => action,
        (None, KeyCode::Up) => Action::Up,
        (None, KeyCode::Down) => Action::Down,
        (None, KeyCode::PageUp) => Action::PageUp,
        (None, KeyCode::PageDown) => Action::PageDown,
        (msg, _) => return msg,
    };
    help::moved(state, theme, area, scroll, action).map(Msg::HelpTo).or(Some(Msg::Action(action)))
}

/// What a mouse click or the wheel hits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hit {
    Tab(Screen),
    Panel {
        panel: Panel,
        /// Line of the panel's list.
        row: Option<usize>,
    },
    /// The head of a column of the list of runs.
    Head(Order),
    /// The plot of a chart, at that update.
    Chart {
        panel: Panel,
        update: u64,
    },
}

/// What lies at that cell, with the program's own keys.
pub fn hit(state: &State, area: Rect, column: u16, row: u16) -> Option<Hit> {
    hit_with(state, &keys::Keymap::default(), area, column, row)
}

/// What lies at that cell below the overlays.
pub fn hit_with(state: &State, keys: &keys::Keymap, area: Rect, column: u16, row: u16) -> Option<Hit> {
    if layout::is_tiny(area) {
        return None;
    }
    let at = ratatui::layout::Position { x: column, y: row };
    if layout::header(area).contains(at) {
        let tabs = layout::tabs(layout::header(area), state.screen, keys);
        return tabs.into_iter().find(|tab| tab.place.contains(at)).and_then(|tab| tab.screen).map(Hit::Tab);
    }
    let (panel, place) = layout::panels(state, area).into_iter().find(|(_, place)| place.contains(at))?;
    if let Some(update) = curves::update_at(state, panel, place, column, row) {
        return Some(Hit::Chart { panel, update });
    }
    if let Some(order) = run_list::head_at(state, panel, place, column, row) {
        return Some(Hit::Head(order));
    }
    let line = row.checked_sub(place.y).map(usize::from);
    let row = line.and_then(|line| match panel {
        Panel::Form => setup::row_at(state, place, line),
        Panel::Tensors => tensors::row_at(state, place, line),
        Panel::List => run_list::row_at(state, place, line),
        _ => None,
    });
    Some(Hit::Panel { panel, row })
}

#[cfg(test)]
mod tests {
    use ratatui::style::Style;

    use super::*;

    #[test]
    fn of_signs_that_terminals_join_in_different_ways_the_first_stays() {
        for (text, cells) in [
            ("d\u{11341}x", ["d", " ", "x"]),
            ("e\u{301}xy", ["e\u{301}", "x", "y"]),
            ("日x", ["日", " ", "x"]),
            ("👩\u{200d}🔬x", ["👩", " ", "x"]),
        ] {
            let mut buffer = Buffer::empty(Rect::new(0, 0, 3, 1));
            buffer.set_string(0, 0, text, Style::default());
            mend(&mut buffer);
            let found: Vec<_> = buffer.content.iter().map(|cell| cell.symbol()).collect();
            assert_eq!(found, cells, "{text}");
        }
    }
}
