//! Alerts, commands and their answers, newest at the bottom.

use ratatui::{buffer::Buffer, layout::Rect, text::Line};

use crate::{
    app::{State, focus::Panel, run::Entry},
    protocol::Level,
    ui::{
        format,
        theme::{Role, Theme},
        widgets::{frame, span, title, write},
    },
};

/// Draws the panel.
pub fn draw(state: &State, theme: &Theme, area: Rect, buffer: &mut Buffer) {
    let focused = state.panel() == Panel::Journal;
    let inside = frame(title("events", focused, theme), focused, area, buffer, theme);
    let width = usize::from(inside.width);
    let mut lines: Vec<Line<'static>> = Vec::new();
    // Bottom up, so that only what is seen is wrapped.
    for pending in state.link.pending.iter().rev() {
        let what = if pending.queued { "queued" } else { "sent" };
        lines.push(Line::from(span(format!("› {}: {what}", pending.text), Role::Warning, theme)));
    }
    let height = usize::from(inside.height);
    for entry in state.view().journal.iter().rev().skip(state.journal_scroll) {
        if lines.len() >= height {
            break;
        }
        lines.extend(wrapped(entry, width, theme).into_iter().rev());
    }
    if lines.is_empty() {
        let text = "nothing yet: commands and alerts appear here";
        for (row, line) in format::wrap(text, width).into_iter().enumerate() {
            write(inside, row as u16, &Line::from(span(line, Role::Dim, theme)), buffer);
        }
        return;
    }
    lines.truncate(height);
    for (row, line) in lines.iter().rev().enumerate() {
        write(inside, row as u16, line, buffer);
    }
}

fn wrapped(entry: &Entry, width: usize, theme: &Theme) -> Vec<Line<'static>> {
    let (sign, role) = match entry.level {
        Level::Info => ("·", Role::Text),
        Level::Warning => ("!", Role::Warning),
        Level::Error => ("✗", Role::Bad),
    };
    let place = format!("{:>5} {sign} ", entry.update);
    let indent = place.chars().count();
    let texts = format::wrap(&entry.text, width.saturating_sub(indent).max(8));
    let first = |at: usize| if at == 0 { place.clone() } else { " ".repeat(indent) };
    texts
        .into_iter()
        .enumerate()
        .map(|(at, text)| Line::from(vec![span(first(at), Role::Dim, theme), span(text, role, theme)]))
        .collect()
}
