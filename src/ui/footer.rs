//! The line at the bottom: a notice, or the keys of what is on the screen. A click on a key presses it.

use ratatui::{buffer::Buffer, layout::Rect, text::Line};
use unicode_width::UnicodeWidthStr;

use super::{
    format,
    keymap::{self, Hint},
    theme::{Role, Theme},
    widgets::{span, write},
};
use crate::app::State;

/// The keys that have room, each with its place.
pub fn hints(state: &State, theme: &Theme, area: Rect) -> Vec<(Rect, Hint)> {
    let mut placed = Vec::new();
    if state.notice.is_some() {
        return placed;
    }
    let mut used: u16 = 1;
    let live = state.is_live();
    for mut hint in keymap::hints(&theme.keys, state.context()) {
        if !live && matches!(hint.word, "pause" | "checkpoint" | "stop") {
            continue;
        }
        if hint.word == "pause" && state.run.paused {
            hint.word = "resume";
        }
        let length = (hint.key.width() + hint.word.width() + 3) as u16;
        if used.saturating_add(length) > area.width {
            continue;
        }
        placed.push((Rect { x: area.x + used - 1, width: length, ..area }, hint));
        used += length;
    }
    placed
}

/// Draws the line.
pub fn draw(state: &State, theme: &Theme, area: Rect, buffer: &mut Buffer) {
    if let Some(notice) = &state.notice {
        let role = if notice.error { Role::Bad } else { Role::Good };
        let sign = if notice.error { "✗" } else { "›" };
        let told = theme.keys.told(&notice.text, state.context());
        let text = format::cut(&told, usize::from(area.width).saturating_sub(4));
        write(area, 0, &Line::from(span(format!(" {sign} {text}"), role, theme)), buffer);
        return;
    }
    for (place, hint) in hints(state, theme, area) {
        let spans = vec![
            span(format!(" {}", hint.key), Role::Key, theme),
            span(format!(" {} ", hint.word), Role::Dim, theme),
        ];
        write(place, 0, &Line::from(spans), buffer);
    }
}
