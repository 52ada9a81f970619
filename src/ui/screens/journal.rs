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
    for (at, entry) in state.view().journal.iter().rev().skip(state.journal_scroll).enumerate() {
        if lines.len() >= height {
            break;
        }
        // What is longer than the panel shows its beginning, where it says what happened.
        let rows = if at == 0 { height - lines.len() } else { usize::MAX };
        lines.extend(wrapped(entry, width, rows, theme).into_iter().rev());
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

/// At most so many lines; the last one says that there is more.
fn wrapped(entry: &Entry, width: usize, rows: usize, theme: &Theme) -> Vec<Line<'static>> {
    let (sign, role) = match entry.level {
        Level::Info => ("·", Role::Text),
        Level::Warning => ("!", Role::Warning),
        Level::Error => ("✗", Role::Bad),
    };
    let place = format!("{:>5} {sign} ", entry.update);
    let indent = place.chars().count();
    let room = width.saturating_sub(indent).max(8);
    let mut texts = format::wrap(&entry.text, room);
    if texts.len() > rows {
        texts.truncate(rows);
        if let Some(last) = texts.last_mut() {
            *last = format::cut(&format!("{last}{}", " ".repeat(room)), room - 1);
            let end = last.trim_end_matches('…').trim_end().len();
            last.replace_range(end.., " …");
        }
    }
    let first = |at: usize| if at == 0 { place.clone() } else { " ".repeat(indent) };
    texts
        .into_iter()
        .enumerate()
        .map(|(at, text)| Line::from(vec![span(first(at), Role::Dim, theme), span(text, role, theme)]))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_longer_than_the_panel_shows_its_beginning() {
        let text = "one two three four five six seven eight nine ten eleven twelve";
        let entry = Entry { update: 3, time: 0.0, level: Level::Error, text: text.into() };
        let lines = |rows| -> Vec<String> {
            wrapped(&entry, 28, rows, &Theme::default()).iter().map(ToString::to_string).collect()
        };
        let whole = lines(usize::MAX);
        assert_eq!(whole.join(" ").split_whitespace().skip(2).collect::<Vec<_>>().join(" "), text);
        let cut = lines(2);
        assert_eq!((cut.len(), &cut[0]), (2, &whole[0]));
        assert!(cut[1].ends_with('…') && cut[1].chars().count() <= 28, "{cut:?}");
        assert!(cut[1].trim_end_matches('…').trim().starts_with("five"), "{cut:?}");
        assert_eq!(lines(whole.len()), whole, "what fits is not marked");
    }
}
