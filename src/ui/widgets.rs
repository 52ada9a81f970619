//! Small parts of panels: frames, rows of labels and values, bars, heat strips.

use std::borrow::Cow;

use ratatui::{
    buffer::Buffer,
    layout::Rect,
    style::Style,
    text::{Line, Span},
    widgets::{Block, BorderType, Clear, Widget},
};

use super::{
    format,
    theme::{Role, Theme},
};

/// A frame with a title; the focused one is highlighted and marked by a sign. Returns the inside.
pub fn frame(title: Line<'_>, focused: bool, area: Rect, buffer: &mut Buffer, theme: &Theme) -> Rect {
    let border = theme.style(if focused { Role::Focused } else { Role::Border });
    let kind = if focused && !theme.ascii { BorderType::Thick } else { BorderType::Rounded };
    let block = Block::bordered().border_type(kind).border_style(border).title(title);
    let inside = block.inner(area);
    block.render(area, buffer);
    inside
}

/// A title of one word.
pub fn title(text: &str, focused: bool, theme: &Theme) -> Line<'static> {
    let style = theme.style(if focused { Role::Focused } else { Role::Title });
    let mark = if focused { "▶" } else { " " };
    Line::from(Span::styled(format!("{mark}{text} "), style))
}

/// Writes a line cut to the area's width at a row counted from its top; nothing below its bottom.
pub fn write(area: Rect, row: u16, line: &Line<'_>, buffer: &mut Buffer) {
    if row >= area.height || area.width == 0 {
        return;
    }
    let (mut x, y) = (area.x, area.y + row);
    for span in line {
        let style = line.style.patch(span.style);
        if !span.content.chars().all(is_one_cell) {
            (x, _) = buffer.set_stringn(x, y, &span.content, usize::from(area.right() - x), style);
            continue;
        }
        // Nearly all text. To look for signs that are joined of several, and for wide ones, takes five times as long.
        for sign in span.content.chars().take(usize::from(area.right() - x)) {
            if let Some(cell) = buffer.cell_mut((x, y)) {
                cell.set_char(sign).set_style(style);
            }
            x += 1;
        }
    }
}

/// Whether that character is one column wide and never joined with the one before it: ASCII, arrows, mathematical signs,
/// frames, blocks, braille.
const fn is_one_cell(sign: char) -> bool {
    matches!(sign, ' '..='~' | '\u{2190}'..='\u{22ff}' | '\u{2500}'..='\u{259f}' | '\u{2800}'..='\u{28ff}')
}

/// Writes a line that ends at the area's right edge.
pub fn write_right(area: Rect, row: u16, line: &Line<'_>, buffer: &mut Buffer) {
    let width = (line.width() as u16).min(area.width);
    let at = Rect { x: area.right() - width, width, ..area };
    write(at, row, line, buffer);
}

/// A text in a role's style.
pub fn span<'a>(text: impl Into<Cow<'a, str>>, role: Role, theme: &Theme) -> Span<'a> {
    Span::styled(text, theme.style(role))
}

/// A bar of `width` cells filled to `share`.
pub fn gauge(share: f64, width: usize, theme: &Theme, role: Role) -> Vec<Span<'static>> {
    let share = if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 };
    let full = ((share * width as f64).round() as usize).min(width);
    vec![span("█".repeat(full), role, theme), span("░".repeat(width - full), Role::Border, theme)]
}

/// Parts of a whole in one bar. Without colours each part is filled with its letter.
pub fn stacked(parts: &[(u64, Role, char)], whole: u64, width: usize, theme: &Theme) -> Vec<Span<'static>> {
    let letters = theme.colours == super::theme::Colours::None || theme.ascii;
    let mut spans = Vec::with_capacity(parts.len() + 1);
    let (mut sum, mut used) = (0u64, 0usize);
    for (bytes, role, letter) in parts {
        sum = sum.saturating_add(*bytes);
        let end = (sum as f64 / whole.max(1) as f64 * width as f64).round() as usize;
        let cells = end.min(width).saturating_sub(used);
        used += cells;
        let fill = if letters { letter.to_string() } else { "█".to_owned() };
        spans.push(span(fill.repeat(cells), *role, theme));
    }
    spans.push(span("░".repeat(width - used), Role::Border, theme));
    spans
}

/// Shades from little to much.
const SHADES: [char; 9] = [' ', '·', '░', '░', '▒', '▒', '▓', '▓', '█'];
const PLAIN_SHADES: [char; 9] = [' ', '.', ':', '-', '=', '+', '*', '#', '@'];

/// Decades below the largest value that have shades of their own.
pub const DECADES: f64 = 6.0;

/// The step from 0 to 8 of each value on a logarithmic scale between the smallest and the largest; values of 0
/// or below, and what is no number, take the lowest.
pub fn heat_steps(values: &[f64]) -> Vec<u8> {
    let usable = |value: &f64| value.is_finite() && *value > 0.0;
    let sizes = || values.iter().map(|value| value.abs()).filter(usable);
    // A logarithm costs more than all the rest: each value's is taken once, of two, which is the quickest.
    let (least, most) = (sizes().fold(f64::INFINITY, f64::min), sizes().fold(0.0, f64::max));
    let high = most.log2();
    // Entries that were never touched would leave all others in one shade.
    let low = least.log2().max(high - DECADES * std::f64::consts::LOG2_10);
    let step = |value: &f64| {
        let value = value.abs();
        if !usable(&value) {
            return 0;
        }
        if high - low < 1e-9 {
            return 4;
        }
        (((value.log2() - low) / (high - low)).clamp(0.0, 1.0) * 8.0 + 0.5) as u8
    };
    values.iter().map(step).collect()
}

/// One cell of a heat strip.
pub fn heat_cell(step: u8, theme: &Theme) -> (String, Style) {
    let at = usize::from(step.min(8));
    if theme.ascii {
        return (PLAIN_SHADES[at].to_string(), Style::default());
    }
    match theme.colours {
        super::theme::Colours::True => ("█".to_owned(), theme.style(Role::Heat(step))),
        _ => (SHADES[at].to_string(), theme.style(Role::Heat(step))),
    }
}

/// A box of that size in the middle of the screen.
pub fn placed(area: Rect, (width, height): (u16, u16)) -> Rect {
    let (width, height) = (width.min(area.width), height.min(area.height));
    Rect { x: area.x + (area.width - width) / 2, y: area.y + (area.height - height) / 2, width, height }
}

/// What a box leaves for text: a frame, and a blank beside it on both sides.
pub fn inner(place: Rect) -> Rect {
    Rect {
        x: place.x + 2,
        y: place.y + 1,
        width: place.width.saturating_sub(4),
        height: place.height.saturating_sub(2),
    }
}

/// Clears a box in the middle of the screen and frames it. Returns the inside.
pub fn dialog(area: Rect, size: (u16, u16), heading: &str, buffer: &mut Buffer, theme: &Theme) -> Rect {
    let place = placed(area, size);
    Clear.render(place, buffer);
    let title = Line::from(span(format!(" {heading} "), Role::Focused, theme));
    let inside = frame(title, true, place, buffer, theme);
    Rect { x: inside.x + 1, width: inside.width.saturating_sub(2), ..inside }
}

/// Writes wrapped text from `row` on and returns the row below it.
pub fn paragraph(
    area: Rect,
    mut row: u16,
    text: &str,
    role: Role,
    buffer: &mut Buffer,
    theme: &Theme,
) -> u16 {
    for line in format::wrap(text, usize::from(area.width)) {
        write(area, row, &Line::from(span(line, role, theme)), buffer);
        row += 1;
    }
    row
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;

    fn width(spans: &[Span<'_>]) -> usize {
        spans.iter().map(Span::width).sum()
    }

    #[test]
    fn bars_have_exactly_their_width() {
        let theme = Theme::default();
        for cells in 0..50 {
            for share in [f64::NAN, -1.0, 0.0, 0.3, 1.0, 7.0] {
                assert_eq!(width(&gauge(share, cells, &theme, Role::Good)), cells);
            }
            let parts =
                [(10, Role::Parameters, 'p'), (u64::MAX, Role::Gradients, 'g'), (3, Role::Optimizer, 'o')];
            assert_eq!(width(&stacked(&parts, 20, cells, &theme)), cells);
            assert_eq!(width(&stacked(&parts[..1], 0, cells, &theme)), cells);
        }
    }

    #[test]
    fn heat_follows_the_logarithm_and_survives_anything() {
        assert_eq!(heat_steps(&[1e-4, 1e-2, 1.0]), [0, 4, 8]);
        assert_eq!(heat_steps(&[f64::NAN, 0.0, -1e-4, 1.0]), [0, 0, 0, 8]);
        assert_eq!(heat_steps(&[2.0, 2.0]), [4, 4]);
        assert!(heat_steps(&[]).is_empty());
    }

    proptest! {
        #[test]
        fn text_is_written_as_the_library_does(
            texts in vec("[ -~\u{2190}-\u{28ff}\u{300}-\u{310}\u{fe0e}\u{fe0f}\u{200d}日本é😀⌚]{0,12}", 1..4),
            width in 0_u16..30,
        ) {
            let line = Line::from_iter(texts);
            let whole = Rect::new(0, 0, 40, 1);
            let (mut ours, mut theirs) = (Buffer::empty(whole), Buffer::empty(whole));
            write(Rect { x: 3, width, ..whole }, 0, &line, &mut ours);
            theirs.set_line(3, 0, &line, width);
            prop_assert_eq!(ours, theirs);
        }
    }
}
