//! The checkpoints of a run that is to be forked, over the screen.

use ratatui::{
    buffer::Buffer,
    layout::{Position, Rect},
    text::Line,
};

use crate::{
    app::{action::Action, focus::Context, fork::Choice, tensors::first_visible},
    ui::{
        format,
        theme::{Role, Theme},
        widgets::{dialog, inner, paragraph, placed, span, write},
    },
};

/// Columns of the box.
const WIDTH: u16 = 54;

fn size(choice: &Choice, area: Rect) -> (u16, u16) {
    let listed = choice.updates.len() as u16;
    (WIDTH, (listed + 7).min(area.height.saturating_sub(2)).min(20))
}

/// The box of the overlay.
pub fn place(choice: &Choice, area: Rect) -> Rect {
    placed(area, size(choice, area))
}

/// What stands over the list.
fn question(choice: &Choice, room: usize) -> String {
    let name = format::elide(&choice.name, room.saturating_sub(24).max(8));
    format!("{name}: start from its checkpoint of")
}

/// The first checkpoint that is seen, and how many are, below so many lines.
fn seen(choice: &Choice, inside: Rect, above: u16) -> (usize, usize) {
    let rows = usize::from(inside.height.saturating_sub(above + 2));
    (first_visible(choice.selected, choice.updates.len(), rows), rows)
}

/// The checkpoint of the list at a cell.
pub fn row_at(choice: &Choice, area: Rect, at: Position) -> Option<usize> {
    let inside = inner(place(choice, area));
    let room = usize::from(inside.width);
    let above = format::wrap(&question(choice, room), room).len() as u16;
    let (first, rows) = seen(choice, inside, above);
    let line = usize::from(at.y.checked_sub(inside.y + above)?);
    Some(first + line).filter(|row| inside.contains(at) && line < rows && *row < choice.updates.len())
}

/// Draws the overlay.
pub fn draw(choice: &Choice, context: Context, theme: &Theme, area: Rect, buffer: &mut Buffer) {
    let inside = dialog(area, size(choice, area), "fork a run", buffer, theme);
    let text = question(choice, usize::from(inside.width));
    let above = paragraph(inside, 0, &text, Role::Text, buffer, theme);
    let (first, rows) = seen(choice, inside, above);
    for (row, (at, update)) in (above..).zip(choice.updates.iter().enumerate().skip(first).take(rows)) {
        let newest = if at == 0 { ", the newest" } else { "" };
        let text = format!("  update {}{newest}", format::count(*update));
        write(inside, row, &Line::from(span(text, Role::Strong, theme)), buffer);
        if at == choice.selected {
            let place = Rect { y: inside.y + row, height: 1, ..inside };
            buffer.set_style(place, theme.style(Role::Selected));
        }
    }
    let last = inside.height.saturating_sub(1);
    let mut keys = Vec::new();
    for (action, word) in [(Action::Fork, " draft it  "), (Action::Back, " cancel")] {
        let key = theme.keys.first(action, context).map(|key| key.to_string()).unwrap_or_default();
        keys.extend([span(key, Role::Key, theme), span(word, Role::Text, theme)]);
    }
    write(inside, last, &Line::from(keys), buffer);
}
