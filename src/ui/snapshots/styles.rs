//! The colours of a screen as text: which cells look alike, and how in a dark and in a light theme.
//!
//! A letter stands for one look, told once for both themes; a row is a sequence of letters, each with the number of its
//! cells. A blank cell belongs to what stands before it, as it looks the same.

use std::fmt::Write;

use ratatui::{
    buffer::{Buffer, Cell},
    layout::Rect,
    style::{Color, Modifier},
};

use super::{Theme, render};
use crate::{
    app::{State, look::ThemeName},
    ui::theme::Colours,
};

/// The two themes.
const THEMES: [ThemeName; 2] = [ThemeName::Dark, ThemeName::Light];

/// How a cell looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Look(Color, Color, Modifier);

impl Look {
    pub(super) const fn of(cell: &Cell) -> Self {
        Self(cell.fg, cell.bg, cell.modifier)
    }

    /// Whether a blank cell in it is seen.
    fn is_seen(self) -> bool {
        self.1 != Color::Reset || self.2.intersects(Modifier::REVERSED | Modifier::UNDERLINED)
    }

    pub(super) fn told(self) -> String {
        let Self(fg, bg, modifier) = self;
        let colour = |colour| match colour {
            Color::Rgb(r, g, b) => format!("#{r:02x}{g:02x}{b:02x}"),
            Color::Reset => "-".to_owned(),
            other => other.to_string(),
        };
        let mut text = colour(fg);
        if bg != Color::Reset {
            let _ = write!(text, " on {}", colour(bg));
        }
        for (flag, word) in
            [(Modifier::BOLD, "bold"), (Modifier::DIM, "dim"), (Modifier::REVERSED, "reversed")]
        {
            if modifier.contains(flag) {
                let _ = write!(text, " {word}");
            }
        }
        text
    }
}

/// Letters for looks, in the order in which they are met.
#[derive(Debug, Default)]
pub(super) struct Legend<K>(pub(super) Vec<K>);

impl<K: PartialEq> Legend<K> {
    fn letter(&mut self, look: K) -> char {
        let at = self.0.iter().position(|known| *known == look).unwrap_or_else(|| {
            self.0.push(look);
            self.0.len() - 1
        });
        Self::name(at)
    }

    pub(super) fn name(at: usize) -> char {
        let letters = (b'a'..=b'z').chain(b'A'..=b'Z').map(char::from);
        letters.chain('α'..='ω').nth(at).unwrap_or('?')
    }
}

fn buffers(state: &State, (width, height): (u16, u16)) -> [Buffer; 2] {
    THEMES.map(|name| {
        let theme = Theme { colours: Colours::True, ..Theme::default() }.named(name);
        let mut buffer = Buffer::empty(Rect::new(0, 0, width, height));
        render(state, &theme, buffer.area, &mut buffer);
        buffer
    })
}

/// The rows of one buffer in letters; rows that are alike are told once. `look` is that of the cell at an index.
pub(super) fn rows<K: PartialEq + Copy>(
    buffer: &Buffer,
    legend: &mut Legend<K>,
    look: impl Fn(usize) -> K,
    is_seen: impl Fn(K) -> bool,
) -> String {
    let width = usize::from(buffer.area.width);
    let mut all: Vec<(usize, usize, String)> = Vec::new();
    for (at, row) in buffer.content.chunks(width).enumerate() {
        let mut runs: Vec<(K, usize)> = Vec::new();
        for (column, cell) in row.iter().enumerate() {
            let here = look(at * width + column);
            let blank = cell.symbol() == " " && !is_seen(here);
            match runs.last_mut() {
                Some((last, count)) if *last == here || (blank && !is_seen(*last)) => *count += 1,
                _ => runs.push((here, 1)),
            }
        }
        let text: String =
            runs.into_iter().map(|(look, count)| format!("{}{count}", legend.letter(look))).collect();
        match all.last_mut() {
            Some((_, last, same)) if *same == text => *last = at,
            _ => all.push((at, at, text)),
        }
    }
    let mut told = String::new();
    for (first, last, text) in all {
        let place = if first == last { first.to_string() } else { format!("{first}-{last}") };
        let _ = writeln!(told, "{place:>6} {text}");
    }
    told
}

/// The map of a screen at those sizes, with its legend.
pub(super) fn map(state: &State, sizes: &[(u16, u16)]) -> String {
    let mut legend = Legend::<[Look; 2]>(Vec::new());
    let mut told = String::new();
    for &size in sizes {
        let [dark, light] = buffers(state, size);
        let signs = |buffer: &Buffer| -> String { buffer.content.iter().map(Cell::symbol).collect() };
        assert_eq!(signs(&dark), signs(&light), "a theme changes colours, never signs");
        let look = |at: usize| [Look::of(&dark.content[at]), Look::of(&light.content[at])];
        let _ = writeln!(told, "== {}x{}", size.0, size.1);
        told.push_str(&rows(&dark, &mut legend, look, |looks| looks.iter().any(|look| look.is_seen())));
    }
    let mut text = String::new();
    for (at, [dark, light]) in legend.0.iter().enumerate() {
        let _ = writeln!(text, "{} {:<28} | {}", Legend::<Look>::name(at), dark.told(), light.told());
    }
    text + &told
}

/// The map of a screen in one theme.
pub(super) fn themed(state: &State, theme: &Theme, (width, height): (u16, u16)) -> String {
    let mut buffer = Buffer::empty(Rect::new(0, 0, width, height));
    render(state, theme, buffer.area, &mut buffer);
    let mut legend = Legend::<Look>(Vec::new());
    let told = rows(&buffer, &mut legend, |at| Look::of(&buffer.content[at]), Look::is_seen);
    let mut text = String::new();
    for (at, look) in legend.0.iter().enumerate() {
        let _ = writeln!(text, "{} {}", Legend::<Look>::name(at), look.told());
    }
    text + &told
}

#[test]
fn cells_that_look_alike_share_a_letter_and_blanks_cost_nothing() {
    let mut buffer = Buffer::empty(Rect::new(0, 0, 9, 3));
    let red = ratatui::style::Style::new().fg(Color::Rgb(255, 0, 0));
    buffer.set_string(0, 0, "ab", red);
    buffer.set_string(6, 0, "c", red);
    buffer.set_string(7, 0, "de", red.add_modifier(Modifier::REVERSED));
    let mut legend = Legend::<Look>(Vec::new());
    let told = rows(&buffer, &mut legend, |at| Look::of(&buffer.content[at]), Look::is_seen);
    assert_eq!(told, "     0 a7b2\n   1-2 c9\n");
    assert_eq!(
        legend.0.iter().map(|look| look.told()).collect::<Vec<_>>(),
        ["#ff0000", "#ff0000 reversed", "-"]
    );
}
