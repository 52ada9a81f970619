//! The checkpoints of a run that is to be forked, over the screen.

use ratatui::{buffer::Buffer, layout::Rect, text::Line};

use crate::{
    app::{fork::Choice, tensors::first_visible},
    ui::{
        format,
        theme::{Role, Theme},
        widgets::{dialog, paragraph, span, write},
    },
};

/// Columns of the box.
const WIDTH: u16 = 54;

/// Draws the overlay.
pub fn draw(choice: &Choice, theme: &Theme, area: Rect, buffer: &mut Buffer) {
    let listed = choice.updates.len() as u16;
    let height = (listed + 7).min(area.height.saturating_sub(2)).min(20);
    let inside = dialog(area, (WIDTH, height), "fork a run", buffer, theme);
    let room = usize::from(inside.width);
    let name = format::elide(&choice.name, room.saturating_sub(24).max(8));
    let above =
        paragraph(inside, 0, &format!("{name}: start from its checkpoint of"), Role::Text, buffer, theme);
    let rows = usize::from(inside.height.saturating_sub(above + 2));
    let first = first_visible(choice.selected, choice.updates.len(), rows);
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
    let keys = vec![
        span("Enter", Role::Key, theme),
        span(" draft it  ", Role::Text, theme),
        span("Esc", Role::Key, theme),
        span(" cancel", Role::Text, theme),
    ];
    write(inside, last, &Line::from(keys), buffer);
}
