//! What a check of accumulation found, over the screen.

use ratatui::{
    buffer::Buffer,
    layout::Rect,
    text::{Line, Span},
};

use crate::{
    app::check::Check,
    protocol::AccumulationCheck,
    ui::{
        format,
        theme::{Role, Theme},
        widgets::{dialog, paragraph, span, write},
    },
};

/// Columns of the box.
pub(in crate::ui) const WIDTH: u16 = 70;
/// Columns of a figure's name, and of a figure.
const NAME: usize = 20;
const FIGURE: usize = 12;
/// The same where two figures would not have room beside such a name.
const NARROW: (usize, usize) = (14, 11);

/// Draws the overlay.
pub fn draw(check: &Check, theme: &Theme, area: Rect, buffer: &mut Buffer) {
    let room = usize::from(WIDTH.min(area.width).saturating_sub(4));
    let waiting = "computing one window's gradient twice, in a process of its own; a run goes on beside it";
    let found = match &check.answer {
        Some(Ok(found)) => found,
        Some(Err(why)) => return short(check, why, Role::Bad, room, theme, area, buffer),
        None => return short(check, waiting, Role::Dim, room, theme, area, buffer),
    };
    let (explained, notes) = (explanation(found), found.notes.join("; "));
    let lines = |text: &str| if text.is_empty() { 0 } else { format::wrap(text, room).len() + 1 };
    let mut rows = figures(check, found, room, theme);
    let height = rows.len() + lines(&explained) + lines(&notes) + 2;
    let inside = dialog(area, (WIDTH, height as u16), "accumulation check", buffer, theme);
    if usize::from(inside.height) < rows.len() {
        rows.retain(|line| line.width() > 0);
    }
    let mut row = 0;
    for line in &rows {
        write(inside, row, line, buffer);
        row += 1;
    }
    row = paragraph(inside, row + 1, &explained, Role::Text, buffer, theme);
    if !notes.is_empty() {
        paragraph(inside, row + 1, &notes, Role::Warning, buffer, theme);
    }
}

/// A box with one sentence.
fn short(check: &Check, text: &str, role: Role, room: usize, theme: &Theme, area: Rect, buffer: &mut Buffer) {
    let height = format::wrap(text, room).len() as u16 + 4;
    let inside = dialog(area, (WIDTH, height), "accumulation check", buffer, theme);
    write(inside, 0, &Line::from(span(format::cut(&check.of, room), Role::Strong, theme)), buffer);
    paragraph(inside, 2, text, role, buffer, theme);
}

fn figures(check: &Check, found: &AccumulationCheck, room: usize, theme: &Theme) -> Vec<Line<'static>> {
    let rows = format::count(found.rows);
    let wide = NAME + 2 * FIGURE <= room;
    let (columns, width) = if wide { (NAME, FIGURE) } else { NARROW };
    let name = |text: &str| span(format!("{:<columns$}", format::cut(text, columns)), Role::Dim, theme);
    let figure = |text: String| span(format!("{text:>width$}"), Role::Strong, theme);
    let beside = |text: String| {
        span(format!("  {}", format::cut(&text, room.saturating_sub(columns + width + 2))), Role::Dim, theme)
    };
    let pair = |text: &str, figures: [String; 2]| {
        let [at_once, in_parts] = figures;
        Line::from(vec![name(text), figure(at_once), figure(in_parts)])
    };
    let rows_word = if found.rows == 1 { "row" } else { "rows" };
    let of = format!(
        "{}, {rows} {rows_word}, {} targets, {}",
        check.of,
        format::count(found.targets),
        found.device
    );
    let holds = if !found.compares() {
        span("nothing to compare", Role::Warning, theme)
    } else if found.holds {
        span("✓ the same gradient but for rounding", Role::Good, theme)
    } else {
        span("✗ NOT the same gradient", Role::Bad, theme)
    };
    let line = |parts: Vec<Span<'static>>| Line::from(parts);
    vec![
        line(vec![span(format::cut(&of, room), Role::Strong, theme)]),
        line(vec![holds]),
        Line::default(),
        pair("", [format!("1 x {rows}"), format!("{rows} x 1")]),
        pair("loss", found.loss.map(format::loss)),
        pair("gradient norm", found.grad_norm.map(format::number)),
        line(vec![
            name(if wide { "largest difference" } else { "difference" }),
            figure(format::number(found.largest_difference)),
            beside(found.worst.first().map_or_else(String::new, |worst| format!("in {}", worst.name))),
        ]),
        line(vec![
            name(if wide { "rounding allows" } else { "allowed" }),
            figure(format::number(found.tolerance)),
            beside(format!("of {} at most", format::number(found.largest_gradient))),
        ]),
        line(vec![
            name("mean of means"),
            figure(format::number(found.naive_largest_difference)),
            beside("off, by averaging their means".to_owned()),
        ]),
    ]
}

/// What it means, in a sentence or two.
fn explanation(found: &AccumulationCheck) -> String {
    let rule = "Every micro-batch is divided by the targets of the whole window";
    if !found.holds {
        return format!(
            "{rule}, so that accumulating should change nothing but the order of sums; here it changes more, and \
             runs with other micro-batches are not comparable."
        );
    }
    if !found.compares() {
        return "The effective batch is one row, which is one micro-batch either way: raise train.micro_batch or \
                train.accumulate to compare something."
            .to_owned();
    }
    if found.naive_differs() {
        let share = format::share(found.naive_largest_difference / found.largest_gradient);
        return format!(
            "{rule}, so that accumulating changes memory and speed alone. Averaging the means of unequal \
             micro-batches would have been off by {share} of the largest gradient."
        );
    }
    format!(
        "{rule}, so that accumulating changes memory and speed alone. Here all have the same number of targets, and \
         even the mean of their means would be right."
    )
}
