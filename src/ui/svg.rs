//! A drawn screen as an SVG picture: a grid of cells in a monospace font.

use std::fmt::Write;

use ratatui::{
    buffer::Buffer,
    style::{Color, Modifier},
};

use super::colours;
use crate::{app::look::ThemeName, run::export::escape::markup};

const CELL_WIDTH: f64 = 8.4;
/// The height of a line of the fonts named below, so that borders meet.
const CELL_HEIGHT: f64 = 16.4;
const FONT_SIZE: f64 = 14.0;
const MARGIN: f64 = 12.0;
/// Side of a braille dot.
const DOT: f64 = 2.4;

/// The colours that are none of a cell's own.
struct Paper {
    background: String,
    foreground: String,
}

/// The picture of a buffer in the dark theme.
pub fn picture(buffer: &Buffer) -> String {
    themed(buffer, ThemeName::Dark)
}

/// The picture of a buffer on the background of its theme.
pub fn themed(buffer: &Buffer, theme: ThemeName) -> String {
    let palette = colours::palette(theme);
    let hex = |(r, g, b): colours::Rgb| format!("#{r:02x}{g:02x}{b:02x}");
    let paper = Paper { background: hex(palette.background), foreground: hex(palette.foreground) };
    let area = buffer.area;
    let width = f64::from(area.width) * CELL_WIDTH + 2.0 * MARGIN;
    let height = f64::from(area.height) * CELL_HEIGHT + 2.0 * MARGIN;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.1} {height:.1}\" width=\"{width:.0}\" \
         height=\"{height:.0}\">\n<style>text{{font-family:ui-monospace,'DejaVu Sans Mono',Menlo,Consolas,monospace;\
         font-size:{FONT_SIZE}px}}</style>\n\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"{}\"/>\n",
        paper.background
    );
    for y in area.top()..area.bottom() {
        let mut x = area.left();
        while x < area.right() {
            let first = &buffer[(x, y)];
            let (start, style) = (x, (first.fg, first.bg, first.modifier));
            let mut text = String::new();
            while x < area.right() {
                let cell = &buffer[(x, y)];
                if (cell.fg, cell.bg, cell.modifier) != style {
                    break;
                }
                text.push_str(cell.symbol());
                x += 1;
            }
            run(&mut svg, &text, (start - area.left(), y - area.top(), x - start), style, &paper);
        }
    }
    svg.push_str("</svg>\n");
    svg
}

/// One piece of a row in one style.
fn run(
    svg: &mut String,
    text: &str,
    (x, y, cells): (u16, u16, u16),
    (fg, bg, modifier): (Color, Color, Modifier),
    page: &Paper,
) {
    let reversed = modifier.contains(Modifier::REVERSED);
    let (mut ink, mut paper) = (colour(fg, &page.foreground), colour(bg, &page.background));
    if reversed {
        std::mem::swap(&mut ink, &mut paper);
    }
    let left = MARGIN + f64::from(x) * CELL_WIDTH;
    let top = MARGIN + f64::from(y) * CELL_HEIGHT;
    if paper != page.background {
        let width = f64::from(cells) * CELL_WIDTH;
        let _ = writeln!(
            svg,
            "<rect x=\"{left:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"{CELL_HEIGHT}\" fill=\"{paper}\"/>"
        );
    }
    if text.trim().is_empty() {
        return;
    }
    // A full block, or the upper half of one, is a box in any font.
    for (block, height) in [('█', CELL_HEIGHT), ('▀', CELL_HEIGHT / 2.0)] {
        if text.chars().all(|sign| sign == block) {
            let width = f64::from(cells) * CELL_WIDTH;
            let _ = writeln!(
                svg,
                "<rect x=\"{left:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"{height}\" fill=\"{ink}\"/>"
            );
            return;
        }
    }
    let weight = if modifier.contains(Modifier::BOLD) { " font-weight=\"bold\"" } else { "" };
    let faint = if modifier.contains(Modifier::DIM) { " opacity=\"0.6\"" } else { "" };
    let style = format!("fill=\"{ink}\"{weight}{faint}");
    let base = top + CELL_HEIGHT * 0.79;
    for (at, piece) in pieces(text) {
        let left = left + at as f64 * CELL_WIDTH;
        let _ = match dots(&piece, left, top) {
            Some(path) => writeln!(svg, "<path d=\"{path}\" {style}/>"),
            None => writeln!(svg, "<text x=\"{left:.1}\" y=\"{base:.1}\" {style}>{}</text>", markup(&piece)),
        };
    }
}

/// The text in pieces that have a place of their own, with the cell each begins at: ASCII words whole, every other sign
/// alone, since fonts do not agree on its width. Blanks are left out, since readers do not agree on several of them.
fn pieces(text: &str) -> Vec<(usize, String)> {
    let mut pieces: Vec<(usize, String)> = Vec::new();
    let mut joins = false;
    for (at, sign) in text.chars().enumerate() {
        match pieces.last_mut() {
            Some((_, word)) if joins && sign.is_ascii_graphic() => word.push(sign),
            _ if matches!(sign, ' ' | '\u{2800}') => {}
            _ => pieces.push((at, sign.to_string())),
        }
        joins = sign.is_ascii_graphic();
    }
    pieces
}

/// The dots of a braille sign as squares: no font is needed to draw them where they belong.
fn dots(sign: &str, left: f64, top: f64) -> Option<String> {
    /// Column and row of each bit.
    const PLACES: [(f64, f64); 8] =
        [(0.0, 0.0), (0.0, 1.0), (0.0, 2.0), (1.0, 0.0), (1.0, 1.0), (1.0, 2.0), (0.0, 3.0), (1.0, 3.0)];
    let code = sign.chars().next().map(u32::from).filter(|code| (0x2800..0x2900).contains(code))?;
    let (width, height) = (CELL_WIDTH / 2.0, CELL_HEIGHT / 4.0);
    let mut path = String::new();
    for (bit, (column, row)) in PLACES.into_iter().enumerate() {
        if code >> bit & 1 == 1 {
            let (x, y) = (left + (column + 0.2) * width, top + (row + 0.2) * height);
            let _ = write!(path, "M{x:.1} {y:.1}h{DOT}v{DOT}h-{DOT}z");
        }
    }
    Some(path)
}

fn colour(colour: Color, default: &str) -> String {
    let name = match colour {
        Color::Rgb(r, g, b) => return format!("#{r:02x}{g:02x}{b:02x}"),
        Color::Black => "#16181f",
        Color::Red | Color::LightRed => "#e45656",
        Color::Green | Color::LightGreen => "#6eb96e",
        Color::Yellow | Color::LightYellow => "#e8aa40",
        Color::Blue | Color::LightBlue => "#588ce6",
        Color::Magenta | Color::LightMagenta => "#be82dc",
        Color::Cyan | Color::LightCyan => "#46afe1",
        Color::Gray | Color::White => "#d8dae4",
        Color::DarkGray => "#80848f",
        Color::Reset | Color::Indexed(_) => default,
    };
    name.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui::{layout::Rect, style::Style};

    #[test]
    fn every_row_is_drawn_and_markup_is_escaped() {
        let mut buffer = Buffer::empty(Rect::new(0, 0, 12, 2));
        buffer.set_string(0, 0, "a<b & c", Style::default().fg(Color::Rgb(1, 2, 3)));
        buffer.set_string(0, 1, "second", Style::default().add_modifier(Modifier::REVERSED));
        let svg = picture(&buffer);
        assert!(svg.contains(">a&lt;b</text>") && svg.contains(">&amp;</text>") && svg.contains("#010203"));
        assert!(svg.contains(">second</text>") && svg.matches("<rect").count() == 2);
        assert!(!svg.contains("<path"), "no braille yet");
        buffer.set_string(0, 1, "⡀x", Style::default());
        let drawn = picture(&buffer);
        assert!(
            drawn.matches("<path").count() == 1 && drawn.contains(">xcond</text>"),
            "a dot needs no font"
        );
        let half = Style::reset().fg(Color::Rgb(1, 2, 3)).bg(Color::Rgb(4, 5, 6));
        buffer.set_string(0, 1, "▀▀", half);
        let drawn = picture(&buffer);
        assert!(
            drawn.contains("height=\"8.2\" fill=\"#010203\"") && drawn.contains("fill=\"#040506\""),
            "{drawn}"
        );
        assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"));
    }
}
