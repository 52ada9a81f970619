//! A line chart in braille dots, or in characters where only ASCII is wanted.
//!
//! It draws onto the buffer itself: a number that is not finite never reaches a coordinate, it is a gap.

use ratatui::{buffer::Buffer, layout::Rect, style::Style};

use super::{
    axis::{self, Scale},
    format,
    theme::{Role, Theme},
};

/// How a line is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stroke {
    Solid,
    /// Every other dot.
    Dotted,
    /// Only its points, each by a sign.
    Points(char),
}

/// One line.
#[derive(Debug, Clone)]
pub struct Line {
    /// In order of x; a y that is not finite is a gap.
    pub points: Vec<(f64, f64)>,
    pub style: Style,
    pub stroke: Stroke,
    /// The character it is drawn with in ASCII.
    pub plain: char,
}

impl Line {
    /// A letter where it ends, which tells lines apart without colours; nothing where none of it can be seen.
    pub fn ended_by(&self, sign: char) -> Option<Self> {
        let end = self.points.iter().rev().find(|point| point.1.is_finite()).copied()?;
        Some(Self { points: vec![end], style: self.style, stroke: Stroke::Points(sign), plain: sign })
    }
}

/// A vertical line with a letter on top.
#[derive(Debug, Clone, Copy)]
pub struct Mark {
    pub x: f64,
    pub letter: char,
    pub style: Style,
    /// Without, only the letter is shown.
    pub line: bool,
}

/// A chart; later lines lie over earlier ones.
#[derive(Debug, Clone, Default)]
pub struct Chart {
    pub lines: Vec<Line>,
    pub marks: Vec<Mark>,
    pub log_y: bool,
    pub log_x: bool,
    /// Bounds of x; without, those of the points.
    pub x_bounds: Option<(f64, f64)>,
    /// Whether zero belongs to the y axis.
    pub from_zero: bool,
    /// Seconds, so that the x axis reads as a clock.
    pub x_is_time: bool,
    /// x may lie between whole numbers, as bytes in MiB do and updates do not.
    pub x_has_fractions: bool,
    /// What is said when there is nothing to draw.
    pub empty: &'static str,
    /// Marks at the bottom where a solid line has a gap.
    pub gaps: Option<Style>,
    /// Where the cursor is, and how it is drawn.
    pub cursor: Option<(f64, Style)>,
}

/// Where a chart's parts are.
struct Geometry {
    plot: Rect,
    x_scale: Scale,
    y_scale: Scale,
    y_ticks: Vec<(f64, String)>,
}

/// Dots of one cell: two columns of four.
const DOTS: [[u32; 2]; 4] = [[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]];

struct Grid {
    width: usize,
    height: usize,
    /// A cell is one dot.
    plain: bool,
    cells: Vec<(u32, Style, char)>,
}

impl Grid {
    fn dot(&mut self, x: i32, y: i32, style: Style, plain: char) {
        let (Ok(x), Ok(y)) = (usize::try_from(x), usize::try_from(y)) else { return };
        let (column, row) = if self.plain { (x, y) } else { (x / 2, y / 4) };
        if column < self.width && row < self.height {
            let cell = &mut self.cells[row * self.width + column];
            cell.0 |= DOTS[y % 4][x % 2];
            (cell.1, cell.2) = (style, plain);
        }
    }

    /// Bresenham's line; `dotted` leaves out every other two dots.
    fn line(&mut self, from: (i32, i32), to: (i32, i32), line: &Line) {
        let (mut x, mut y) = from;
        let (dx, dy) = ((to.0 - x).abs(), -(to.1 - y).abs());
        let (sx, sy) = ((to.0 - x).signum(), (to.1 - y).signum());
        let mut error = dx + dy;
        loop {
            if line.stroke != Stroke::Dotted || x % 4 < 2 {
                self.dot(x, y, line.style, line.plain);
            }
            if (x, y) == to {
                return;
            }
            let twice = 2 * error;
            if twice >= dy {
                error += dy;
                x += sx;
            }
            if twice <= dx {
                error += dx;
                y += sy;
            }
        }
    }
}

impl Chart {
    /// Draws the chart with its axes into `area`.
    pub fn draw(&self, area: Rect, buffer: &mut Buffer, theme: &Theme) {
        let Some(scales) = self.scales() else {
            let text = format::cut(self.empty, usize::from(area.width));
            let x = area.x + (area.width.saturating_sub(text.chars().count() as u16)) / 2;
            if area.height > 0 {
                buffer.set_string(x, area.y + area.height / 2, text, theme.style(Role::Dim));
            }
            return;
        };
        let Some(Geometry { plot, x_scale, y_scale, y_ticks }) = Self::geometry(scales, area) else { return };
        let dim = theme.style(Role::Dim);
        let border = theme.style(Role::Border);
        for y in plot.top()..plot.bottom() {
            buffer.set_string(plot.x - 1, y, "│", border);
        }
        let mut last = None;
        for (value, label) in &y_ticks {
            let row = plot.y + ((1.0 - y_scale.place(*value)) * f64::from(plot.height - 1)).round() as u16;
            if row >= plot.bottom() || last == Some(row) {
                continue;
            }
            last = Some(row);
            buffer.set_string(plot.x - 1 - label.chars().count() as u16, row, label, dim);
            buffer.set_string(plot.x - 1, row, "┤", border);
        }
        self.x_axis(&x_scale, plot, buffer, theme);
        self.plot(&x_scale, &y_scale, plot, buffer, theme);
    }

    /// Nothing where there is no room.
    fn geometry((x_scale, y_scale): (Scale, Scale), area: Rect) -> Option<Geometry> {
        let rows = usize::from(area.height.saturating_sub(1));
        let y_ticks = y_scale.ticks((rows / 3).clamp(2, 7));
        let gutter = y_ticks.iter().map(|(_, label)| label.chars().count()).max().unwrap_or(0) as u16 + 1;
        if area.width < gutter + 6 || area.height < 3 {
            return None;
        }
        let plot =
            Rect { x: area.x + gutter, y: area.y, width: area.width - gutter, height: area.height - 1 };
        Some(Geometry { plot, x_scale, y_scale, y_ticks })
    }

    /// The x under a cell of the plot, when the chart is drawn into `area`.
    pub fn x_at(&self, area: Rect, column: u16, row: u16) -> Option<f64> {
        let Geometry { plot, x_scale, .. } = Self::geometry(self.scales()?, area)?;
        let inside = plot.contains(ratatui::layout::Position { x: column, y: row });
        let share = f64::from(column.saturating_sub(plot.x)) / f64::from(plot.width.max(2) - 1);
        inside.then(|| x_scale.value(share))
    }

    fn scales(&self) -> Option<(Scale, Scale)> {
        let usable = |p: &&(f64, f64)| {
            p.0.is_finite() && p.1.is_finite() && (!self.log_y || p.1 > 0.0) && (!self.log_x || p.0 > 0.0)
        };
        let mut points = self.lines.iter().flat_map(|line| &line.points).filter(usable);
        let first = points.next()?;
        let mut bounds = (first.0, first.0, first.1, first.1);
        for (x, y) in points {
            bounds = (bounds.0.min(*x), bounds.1.max(*x), bounds.2.min(*y), bounds.3.max(*y));
        }
        let (x_low, x_high) = self.x_bounds.unwrap_or((bounds.0, bounds.1));
        let y_low = if self.from_zero && !self.log_y { bounds.2.min(0.0) } else { bounds.2 };
        Some((Scale::new(x_low, x_high, self.log_x), Scale::new(y_low, bounds.3, self.log_y)))
    }

    fn x_axis(&self, scale: &Scale, plot: Rect, buffer: &mut Buffer, theme: &Theme) {
        let most = (usize::from(plot.width) / 10).clamp(3, 10);
        let ticks = match (self.x_is_time, self.x_has_fractions) {
            (true, _) if !scale.is_log() => axis::time_ticks(scale, most),
            (false, false) => scale.whole_ticks(most),
            _ => scale.ticks(most),
        };
        let mut free_from = plot.x;
        for (value, label) in ticks {
            let label = if self.x_is_time {
                let sign = if value < 0.0 { "-" } else { "" };
                format!("{sign}{}", format::duration(value.abs()))
            } else if value.abs() >= 1e4 {
                format::short(value)
            } else {
                label
            };
            let length = label.chars().count() as u16;
            let at = plot.x + (scale.place(value) * f64::from(plot.width - 1)).round() as u16;
            let start = at.saturating_sub(length / 2).max(plot.x).min(plot.right().saturating_sub(length));
            if start >= free_from && at < plot.right() {
                buffer.set_string(start, plot.bottom(), label, theme.style(Role::Dim));
                free_from = start + length + 2;
            }
        }
    }

    fn plot(&self, x_scale: &Scale, y_scale: &Scale, plot: Rect, buffer: &mut Buffer, theme: &Theme) {
        let (across, down) = if theme.ascii { (1, 1) } else { (2, 4) };
        let (width, height) = (usize::from(plot.width), usize::from(plot.height));
        let empty = (0, Style::default(), ' ');
        let mut grid = Grid { width, height, plain: theme.ascii, cells: vec![empty; width * height] };
        let (right, bottom) = ((width * across - 1) as f64, (height * down - 1) as f64);
        let place = |point: &(f64, f64)| -> Option<(i32, i32)> {
            let fits = point.0.is_finite() && point.1.is_finite() && (!self.log_y || point.1 > 0.0);
            let x = x_scale.place(point.0);
            let inside = fits && (-1e-9..=1.0 + 1e-9).contains(&x);
            inside.then(|| {
                let y = 1.0 - y_scale.place(point.1).clamp(0.0, 1.0);
                ((x.clamp(0.0, 1.0) * right + 0.5) as i32, (y * bottom + 0.5) as i32)
            })
        };
        let mut signs = Vec::new();
        let mut gaps = Vec::new();
        for line in &self.lines {
            let mut before: Option<(i32, i32)> = None;
            let mut sign_at: Option<(i32, i32)> = None;
            for point in &line.points {
                let here = place(point);
                if point.1.is_nan() && line.stroke == Stroke::Solid && self.gaps.is_some() {
                    gaps.push(point.0);
                }
                if let Some(here) = here {
                    match line.stroke {
                        Stroke::Points(sign) => {
                            // Thousands of points of a long run share a few cells.
                            let cell = (here.0 / across as i32, here.1 / down as i32);
                            if sign_at.replace(cell) != Some(cell) {
                                signs.push((here, sign, line));
                            }
                        }
                        _ => grid.line(before.unwrap_or(here), here, line),
                    }
                }
                before = here;
            }
        }
        self.marked(x_scale, plot, buffer);
        if let Some((x, style)) = self.cursor
            && let Some(x) = column(x_scale, plot, x)
        {
            for y in plot.top()..plot.bottom() {
                set(buffer, (x, y), '│', style);
            }
        }
        for (at, (dots, style, plain)) in grid.cells.iter().enumerate() {
            if *dots != 0 {
                let place = (plot.x + (at % width) as u16, plot.y + (at / width) as u16);
                let braille = || char::from_u32(0x2800 + dots).unwrap_or(' ');
                set(buffer, place, if theme.ascii { *plain } else { braille() }, *style);
            }
        }
        for x in gaps {
            if let (Some(x), Some(style)) = (column(x_scale, plot, x), self.gaps) {
                set(buffer, (x, plot.bottom() - 1), '✗', style);
            }
        }
        let cell_of =
            |(x, y): (i32, i32)| (plot.x + (x as usize / across) as u16, plot.y + (y as usize / down) as u16);
        // A letter stands for a whole line: it lies over what is a point, and none lies over another.
        let (letters, points): (Vec<_>, Vec<_>) =
            signs.into_iter().partition(|(_, sign, _)| sign.is_ascii_alphabetic());
        for (at, sign, line) in points {
            let sign = if theme.ascii { line.plain } else { sign };
            set(buffer, cell_of(at), sign, line.style);
        }
        let mut taken: Vec<(u16, u16)> = Vec::with_capacity(letters.len());
        for (at, sign, line) in letters {
            let (x, y) = cell_of(at);
            let right = (x..plot.right()).find(|x| !taken.contains(&(*x, y)));
            let beside = right.or_else(|| (plot.left()..x).rev().find(|x| !taken.contains(&(*x, y))));
            let place = (beside.unwrap_or(x), y);
            taken.push(place);
            set(buffer, place, sign, line.style);
        }
    }

    fn marked(&self, x_scale: &Scale, plot: Rect, buffer: &mut Buffer) {
        for mark in &self.marks {
            let Some(x) = column(x_scale, plot, mark.x) else { continue };
            if mark.line {
                for y in plot.top() + 1..plot.bottom() {
                    set(buffer, (x, y), '┊', mark.style);
                }
            }
            set(buffer, (x, plot.top()), mark.letter, mark.style);
        }
    }
}

/// The column of the plot an x lies in.
fn column(scale: &Scale, plot: Rect, x: f64) -> Option<u16> {
    let share = scale.place(x);
    let inside = x.is_finite() && (0.0..=1.0).contains(&share);
    inside.then(|| plot.x + (share * f64::from(plot.width - 1)).round() as u16)
}

fn set(buffer: &mut Buffer, place: (u16, u16), sign: char, style: Style) {
    if let Some(cell) = buffer.cell_mut(place) {
        cell.set_char(sign).set_style(style);
    }
}

#[cfg(test)]
mod tests;
