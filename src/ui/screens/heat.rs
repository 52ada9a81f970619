//! A matrix as a heat map on a logarithmic scale, with its axes and a legend.

use ratatui::{
    buffer::Buffer,
    layout::Rect,
    style::Style,
    text::{Line, Span},
};

use crate::{
    protocol::Heat,
    ui::{
        format,
        theme::{Colours, Role, Theme},
        widgets::{DECADES, heat_cell, heat_steps, span, write},
    },
};

/// Widest cell, in columns.
const WIDEST: usize = 4;

/// What Adafactor's reconstructed second moment is called.
pub const RECONSTRUCTED: &str = "second moment as the factors give it: row x column / mean(row)";

/// Draws title, legend and map. A cell without a number takes the lowest shade.
pub fn draw(title: &str, heat: &Heat, theme: &Theme, area: Rect, buffer: &mut Buffer) {
    write(area, 0, &Line::from(span(title, Role::Title, theme)), buffer);
    let halves = theme.colours == Colours::True && !theme.ascii;
    // The scale goes before the map does.
    let above = if area.height < 4 { 1 } else { 2 };
    let lines = usize::from(area.height.saturating_sub(above));
    let map = fit(heat, if halves { 2 * lines } else { lines }, usize::from(area.width));
    if map.values.is_empty() {
        return;
    }
    if above > 1 {
        write(area, 1, &legend(heat, &map, usize::from(area.width), theme), buffer);
    }
    let steps = heat_steps(&map.values);
    let cell = (usize::from(area.width) / map.columns).clamp(1, WIDEST);
    let shades = shades(halves, theme);
    let rows: Vec<&[u8]> = steps.chunks(map.columns).collect();
    for (line, pair) in (above..).zip(rows.chunks(if halves { 2 } else { 1 })) {
        for column in 0..map.columns {
            let (sign, style) = &shades[usize::from(pair[0][column])];
            let mut style = *style;
            if let Some(colour) = pair.get(1).and_then(|row| shades[usize::from(row[column])].1.fg) {
                style = style.bg(colour);
            }
            // One after the other into the buffer: as spans of a line they take ten times as long.
            for x in column * cell..(column + 1) * cell {
                if let Some(cell) = buffer.cell_mut((area.x + x as u16, area.y + line)) {
                    cell.set_symbol(sign).set_style(style);
                }
            }
        }
    }
}

/// Sign and style of every step; `halves` are the upper halves of cells.
fn shades(halves: bool, theme: &Theme) -> [(String, Style); 9] {
    std::array::from_fn(|step| {
        let (sign, style) = heat_cell(step as u8, theme);
        if halves { ("▀".to_owned(), theme.style(Role::Heat(step as u8))) } else { (sign, style) }
    })
}

/// The matrix as it fits on the screen.
#[derive(Debug, PartialEq)]
struct Map {
    columns: usize,
    /// Rows and columns of the matrix in one cell.
    group: (usize, usize),
    values: Vec<f64>,
}

/// Means over blocks of cells, so that there are at most so many rows and columns.
fn fit(heat: &Heat, rows: usize, columns: usize) -> Map {
    let whole = heat.rows * heat.columns == heat.values.len();
    if rows == 0 || columns == 0 || heat.values.is_empty() || !whole {
        return Map { columns: 0, group: (1, 1), values: Vec::new() };
    }
    let (down, across) = (heat.rows.div_ceil(rows), heat.columns.div_ceil(columns));
    let (rows, columns) = (heat.rows.div_ceil(down), heat.columns.div_ceil(across));
    let (mut sums, mut counts) = (vec![0.0; rows * columns], vec![0_u32; rows * columns]);
    for (row, values) in heat.values.chunks(heat.columns).enumerate() {
        for (place, cell) in (row / down * columns..).zip(values.chunks(across)) {
            for value in cell.iter().filter(|value| !value.is_nan()) {
                sums[place] += value;
                counts[place] += 1;
            }
        }
    }
    // Cells may be means already.
    let before = |length: usize, cells: usize| length.div_ceil(cells).max(1);
    let [height, width] = heat.shape;
    Map {
        columns,
        group: (down * before(height, heat.rows), across * before(width, heat.columns)),
        values: sums.iter().zip(&counts).map(|(sum, count)| sum / f64::from(*count)).collect(),
    }
}

/// The shades with the values they stand for, and what a cell is.
fn legend(heat: &Heat, map: &Map, width: usize, theme: &Theme) -> Line<'static> {
    let usable = || map.values.iter().copied().filter(|value| value.is_finite() && *value > 0.0);
    let (low, high) = (usable().fold(f64::INFINITY, f64::min), usable().fold(0.0, f64::max));
    let mut spans = Vec::new();
    if low <= high {
        let least_shade = high * 10f64.powf(-DECADES);
        let clipped = low < least_shade;
        let least = format::number(if clipped { least_shade } else { low });
        let sign = if clipped { "<" } else { "" };
        spans.push(span(format!("{sign}{least} "), Role::Text, theme));
        spans.extend((0..=8).map(|step| {
            let (sign, style) = heat_cell(step, theme);
            Span::styled(sign, style)
        }));
        spans.push(span(format!(" {}", format::number(high)), Role::Text, theme));
        spans.push(span(" log", Role::Dim, theme));
    } else {
        spans.push(span("no value above 0", Role::Warning, theme));
    }
    let of = |count: usize, what: &str, group: usize| match group {
        1 => format!("{} {what}", format::count(count as u64)),
        group => format!("{} {what}, {group} a cell", format::count(count as u64)),
    };
    let [rows, columns] = heat.shape;
    let text = format!("  ↓ {}  → {}", of(rows, "rows", map.group.0), of(columns, "columns", map.group.1));
    spans.push(span(text, Role::Dim, theme));
    if Line::from(spans.clone()).width() <= width {
        return Line::from(spans);
    }
    // The ends of the scale say most.
    spans.pop();
    if Line::from(spans.clone()).width() > width && low <= high {
        let text = format!("{low:.0e}-{high:.0e}");
        return Line::from(span(text, Role::Text, theme));
    }
    Line::from(spans)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heat(rows: usize, columns: usize) -> Heat {
        let values = (0..rows * columns).map(|at| at as f64).collect();
        Heat { name: "m".into(), shape: [2 * rows, columns], rows, columns, values }
    }

    #[test]
    fn a_map_is_averaged_into_the_cells_there_are() {
        let map = fit(&heat(4, 6), 2, 3);
        assert_eq!((map.columns, map.group), (3, (4, 2)));
        assert_eq!(map.values, [3.5, 5.5, 7.5, 15.5, 17.5, 19.5]);
        assert_eq!(fit(&heat(2, 2), 9, 9).values, [0.0, 1.0, 2.0, 3.0]);
        assert!(fit(&heat(2, 2), 0, 9).values.is_empty());
        let mut holes = heat(2, 2);
        (holes.values[0], holes.values[2]) = (f64::NAN, f64::NAN);
        let map = fit(&holes, 2, 1);
        assert_eq!(map.values, [1.0, 3.0], "what is no number does not hide its neighbour");
        let torn = Heat { rows: 3, ..heat(2, 2) };
        assert!(fit(&torn, 9, 9).values.is_empty(), "what does not fit its own shape is not drawn");
    }

    #[test]
    fn with_many_colours_a_line_shows_two_rows() {
        let area = Rect::new(0, 0, 80, 10);
        let drawn = |theme: &Theme| {
            let mut buffer = Buffer::empty(area);
            draw(RECONSTRUCTED, &heat(16, 8), theme, area, &mut buffer);
            buffer
        };
        let many = drawn(&Theme { colours: Colours::True, ..Theme::default() });
        let cell = &many[(0, 2)];
        assert_eq!((cell.symbol(), many[(31, 9)].symbol()), ("▀", "▀"));
        assert_ne!(cell.fg, cell.bg);
        // Eight lines of one row each would be every other row: they are averaged.
        let few = drawn(&Theme::default());
        assert_eq!((few[(31, 9)].symbol(), few[(32, 9)].symbol()), ("█", " "));
        let plain = drawn(&Theme { colours: Colours::None, ascii: true, ..Theme::default() });
        assert_eq!(plain[(31, 9)].symbol(), "@");
    }
}
