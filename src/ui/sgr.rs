//! A drawn screen as text: plain, or with the sequences that give a terminal its colours.

use ratatui::{
    buffer::{Buffer, Cell},
    style::{Color, Modifier},
};
use unicode_width::UnicodeWidthStr;

/// Takes colours and weight back.
const RESET: &str = "\x1b[0m";

/// The cells of a row, those left out that a wide sign before them covers.
fn row(buffer: &Buffer, y: u16) -> Vec<&Cell> {
    let mut cells = Vec::with_capacity(usize::from(buffer.area.width));
    let mut x = buffer.area.left();
    while x < buffer.area.right() {
        let cell = &buffer[(x, y)];
        x += (cell.symbol().width() as u16).max(1);
        cells.push(cell);
    }
    cells
}

/// The lines of a screen without colours and without blanks at their ends.
pub fn plain(buffer: &Buffer) -> String {
    let mut text = String::new();
    for y in buffer.area.top()..buffer.area.bottom() {
        let line: String = row(buffer, y).into_iter().map(Cell::symbol).collect();
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// The same with colours, bold, dim and reversed. Every line ends as it began: without any.
pub fn coloured(buffer: &Buffer) -> String {
    let mut text = String::new();
    for y in buffer.area.top()..buffer.area.bottom() {
        let mut cells = row(buffer, y);
        while cells.last().is_some_and(|cell| cell.symbol() == " " && style(cell).is_empty()) {
            cells.pop();
        }
        let mut now = String::new();
        let mut shows_blanks = false;
        for cell in cells {
            let style = style(cell);
            // A blank may stand in any colour, as long as nothing is seen of it.
            let unseen = cell.symbol() == " " && style.is_empty() && !shows_blanks;
            if style != now && !unseen {
                if !now.is_empty() {
                    text.push_str(RESET);
                }
                if !style.is_empty() {
                    text.push_str(&format!("\x1b[{style}m"));
                }
                now = style;
                shows_blanks = has_ground(cell);
            }
            text.push_str(cell.symbol());
        }
        if !now.is_empty() {
            text.push_str(RESET);
        }
        text.push('\n');
    }
    text
}

/// Whether something would be seen of a blank in that cell's style.
fn has_ground(cell: &Cell) -> bool {
    cell.bg != Color::Reset || cell.modifier.intersects(Modifier::REVERSED | Modifier::UNDERLINED)
}

/// The numbers of a cell's sequence; empty where it has no style. The colour and weight of a blank cannot be seen.
fn style(cell: &Cell) -> String {
    let blank = cell.symbol() == " ";
    let mut numbers: Vec<String> = Vec::new();
    for (modifier, number) in
        [(Modifier::BOLD, "1"), (Modifier::DIM, "2"), (Modifier::UNDERLINED, "4"), (Modifier::REVERSED, "7")]
    {
        let seen = !blank || matches!(modifier, Modifier::REVERSED | Modifier::UNDERLINED);
        if cell.modifier.contains(modifier) && seen {
            numbers.push(number.to_owned());
        }
    }
    if !blank || cell.modifier.contains(Modifier::REVERSED) {
        numbers.extend(colour(cell.fg, 30));
    }
    numbers.extend(colour(cell.bg, 40));
    numbers.join(";")
}

/// The numbers of a colour: `base` is 30 for the sign, 40 for what is behind it.
fn colour(colour: Color, base: u8) -> Option<String> {
    let bright = base + 60;
    let number = match colour {
        Color::Reset => return None,
        Color::Black => base,
        Color::Red => base + 1,
        Color::Green => base + 2,
        Color::Yellow => base + 3,
        Color::Blue => base + 4,
        Color::Magenta => base + 5,
        Color::Cyan => base + 6,
        Color::Gray => base + 7,
        Color::DarkGray => bright,
        Color::LightRed => bright + 1,
        Color::LightGreen => bright + 2,
        Color::LightYellow => bright + 3,
        Color::LightBlue => bright + 4,
        Color::LightMagenta => bright + 5,
        Color::LightCyan => bright + 6,
        Color::White => bright + 7,
        Color::Rgb(r, g, b) => return Some(format!("{};2;{r};{g};{b}", base + 8)),
        Color::Indexed(at) => return Some(format!("{};5;{at}", base + 8)),
    };
    Some(number.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        app::{action::Screen, look::ThemeName, recorded},
        ui::{
            render,
            theme::{Colours, Theme},
        },
    };
    use ratatui::{layout::Rect, style::Style};

    #[test]
    fn wide_signs_take_two_columns_and_lines_end_without_style() {
        let mut buffer = Buffer::empty(Rect::new(0, 0, 10, 2));
        buffer.set_string(0, 0, "日本x", Style::default());
        buffer.set_string(0, 1, "ab", Style::default().fg(Color::Red).add_modifier(Modifier::BOLD));
        buffer.set_string(2, 1, "c", Style::default().fg(Color::Rgb(1, 2, 3)).bg(Color::Indexed(9)));
        assert_eq!(plain(&buffer), "日本x\nabc\n");
        let mut gap = Buffer::empty(Rect::new(0, 0, 5, 1));
        gap.set_string(0, 0, "a b", Style::default().fg(Color::Red));
        gap.set_string(3, 0, "c", Style::default().add_modifier(Modifier::REVERSED));
        gap.set_string(4, 0, "d", Style::default());
        assert_eq!(coloured(&gap), "\x1b[31ma b\x1b[0m\x1b[7mc\x1b[0md\n");
        assert_eq!(coloured(&buffer), "日本x\n\x1b[1;31mab\x1b[0m\x1b[38;2;1;2;3;48;5;9mc\x1b[0m\n");
    }

    #[test]
    fn a_terminal_shows_what_was_drawn() {
        let state = recorded::watching(Screen::Train, "adamw");
        let area = Rect::new(0, 0, 100, 30);
        for colours in [Colours::Sixteen, Colours::True] {
            let theme = Theme { colours, ..Theme::default() }.named(ThemeName::Dark);
            let mut buffer = Buffer::empty(area);
            render(&state, &theme, area, &mut buffer);
            let text = coloured(&buffer).replace('\n', "\r\n");
            let cells = |count| std::num::NonZeroU16::new(count).unwrap();
            let mut parser = vt100::Parser::new(cells(31), cells(100), 0);
            parser.process(text.as_bytes());
            let screen = parser.screen();
            let rows: Vec<String> =
                screen.rows(0, 100).take(30).map(|row| row.trim_end().to_owned()).collect();
            assert_eq!(rows.join("\n") + "\n", plain(&buffer));
            let mut bold = 0;
            for y in 0..30 {
                for x in 0..100 {
                    let (cell, shown) = (&buffer[(x, y)], screen.cell(y, x).unwrap());
                    if cell.symbol() == " " {
                        continue;
                    }
                    assert_eq!(shown.bold(), cell.modifier.contains(Modifier::BOLD), "{x},{y}");
                    bold += usize::from(shown.bold());
                    if let Color::Rgb(r, g, b) = cell.fg {
                        assert_eq!(shown.fgcolor(), vt100::Color::Rgb(r, g, b), "{x},{y}");
                    }
                }
            }
            assert!(bold > 0);
        }
    }
}
