//! Small parts of panels: frames, rows of labels and values, bars, heat strips.

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
    if row < area.height && area.width > 0 {
        buffer.set_line(area.x, area.y + row, line, area.width);
    }
}

/// Writes a line that ends at the area's right edge.
pub fn write_right(area: Rect, row: u16, line: &Line<'_>, buffer: &mut Buffer) {
    let width = (line.width() as u16).min(area.width);
    let at = Rect { x: area.right() - width, width, ..area };
    write(at, row, line, buffer);
}

/// A text in a role's style.
pub fn span(text: impl Into<String>, role: Role, theme: &Theme) -> Span<'static> {
    Span::styled(text.into(), theme.style(role))
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

/// The step from 0 to 8 of each value on a logarithmic scale between the smallest and the largest; values of 0
/// or below, and what is no number, take the lowest.
pub fn heat_steps(values: &[f64]) -> Vec<u8> {
    let usable = |value: &f64| value.is_finite() && *value > 0.0;
    let sizes = || values.iter().map(|value| value.abs()).filter(usable);
    // A logarithm costs more than all the rest: each value's is taken once.
    let (least, most) = (sizes().fold(f64::INFINITY, f64::min), sizes().fold(0.0, f64::max));
    let high = most.log10();
    // Entries that were never touched would leave all others in one shade.
    let low = least.log10().max(high - 6.0);
    let step = |value: &f64| {
        let value = value.abs();
        if !usable(&value) {
            return 0;
        }
        if high - low < 1e-9 {
            return 4;
        }
        (((value.log10() - low) / (high - low)).clamp(0.0, 1.0) * 8.0).round() as u8
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
}
