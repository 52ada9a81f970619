//! How the values of an opened parameter are spread: a histogram on bins of powers of two for each state tensor and for
//! its last update, and how 8-bit codes are used.

use ratatui::{
    buffer::Buffer,
    layout::Rect,
    text::{Line, Span},
};

use crate::{
    protocol::{CodeUse, Histogram, StateDetail},
    ui::{
        format,
        theme::{Role, Theme},
        widgets::{paragraph, span, write},
    },
};

/// Fewest and most lines of one histogram, with its heading and its axis.
const LINES: (usize, usize) = (4, 9);
/// Widest bar, in columns.
const WIDEST: usize = 4;

/// Draws the histograms, those of the state first.
pub fn draw(detail: &StateDetail, theme: &Theme, area: Rect, buffer: &mut Buffer) {
    let mut row = 0;
    for codes in &detail.codes {
        row = paragraph(area, row, &told(codes), Role::Text, buffer, theme);
    }
    let of_update = detail.look.iter().flat_map(|look| [&look.gradient, &look.update]);
    // Scales have been told above.
    let of_state = detail.histograms.iter().filter(|histogram| !histogram.name.starts_with("absmax"));
    let all: Vec<&Histogram> = of_state.chain(of_update).collect();
    if all.is_empty() {
        let text = "this optimizer keeps no state for this parameter";
        write(area, row, &Line::from(span(text, Role::Dim, theme)), buffer);
        return;
    }
    let room = usize::from(area.height.saturating_sub(row));
    let lines = (room / all.len()).clamp(LINES.0, LINES.1);
    let shown = (room / lines).min(all.len());
    for histogram in &all[..shown] {
        let place = Rect { y: area.y + row, height: (lines as u16).min(area.height - row), ..area };
        one(histogram, theme, place, buffer);
        row += lines as u16;
    }
    if shown < all.len() {
        let hidden: Vec<&str> = all[shown..].iter().map(|histogram| histogram.name.as_str()).collect();
        let text = format!("a larger window shows {}, too", hidden.join(", "));
        write(area, row, &Line::from(span(text, Role::Dim, theme)), buffer);
    }
}

/// How the codes are used, in one sentence.
fn told(codes: &CodeUse) -> String {
    let share = |count: u64| format::share(count as f64 / codes.elements.max(1) as f64);
    let empty = match codes.empty_blocks {
        0 => String::new(),
        empty => format!(", {} of them empty", format::count(empty)),
    };
    format!(
        "{}: {} blocks of {}{empty}, scales {} to {}; {} of the codes at the ends (each block has one at least), {} stand \
         for zero, {} of 256 in use",
        codes.name,
        format::count(codes.blocks),
        format::count(codes.blocksize),
        format::number(codes.smallest_scale),
        format::number(codes.largest_scale),
        share(codes.at_ends),
        share(codes.at_zero),
        codes.used,
    )
}

fn one(histogram: &Histogram, theme: &Theme, area: Rect, buffer: &mut Buffer) {
    write(area, 0, &head(histogram, theme), buffer);
    let width = usize::from(area.width);
    let rows = usize::from(area.height.saturating_sub(2));
    if histogram.counts.is_empty() || width == 0 || rows == 0 {
        return;
    }
    // More bins than columns are joined.
    let group = histogram.counts.len().div_ceil(width).max(1);
    let bins: Vec<u64> = histogram.counts.chunks(group).map(|bins| bins.iter().sum()).collect();
    let cell = (width / bins.len()).clamp(1, WIDEST);
    let most = bins.iter().copied().max().unwrap_or(1).max(1);
    for line in 0..rows {
        let below = rows - 1 - line;
        let bars: String =
            bins.iter().map(|count| bar(*count, most, rows, below, theme).repeat(cell)).collect();
        write(area, 1 + line as u16, &Line::from(span(bars, Role::Optimizer, theme)), buffer);
    }
    let labels = axis(histogram, group, cell, width);
    write(area, 1 + rows as u16, &Line::from(span(labels, Role::Dim, theme)), buffer);
}

fn head(histogram: &Histogram, theme: &Theme) -> Line<'static> {
    let total = histogram.total();
    let mut spans: Vec<Span<'static>> = vec![span(format!("{} ", histogram.name), Role::Optimizer, theme)];
    let looked = match histogram.every {
        1 => format!("{} values by size", format::count(total)),
        every => format!("~ of every {every}th value, {} in all", format::count(total)),
    };
    spans.push(span(looked, Role::Dim, theme));
    let counted: u64 = histogram.counts.iter().sum();
    if histogram.negative > 0 {
        let text =
            format!("  {} below zero", format::share(histogram.negative as f64 / counted.max(1) as f64));
        spans.push(span(text, Role::Text, theme));
    }
    if histogram.zeros > 0 {
        spans.push(span(format!("  {} zero", format::count(histogram.zeros)), Role::Warning, theme));
    }
    if histogram.nonfinite > 0 {
        spans.push(span(format!("  {} not finite", format::count(histogram.nonfinite)), Role::Bad, theme));
    }
    Line::from(spans)
}

/// The part of a bar in the line that has so many lines below it. What is counted at all is seen.
fn bar(count: u64, most: u64, rows: usize, below: usize, theme: &Theme) -> &'static str {
    const EIGHTHS: [&str; 9] = [" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"];
    let whole = (8 * rows) as f64;
    let eighths = (count as f64 / most as f64 * whole).round() as usize;
    let eighths = if count > 0 { eighths.max(1) } else { 0 };
    let here = eighths.saturating_sub(8 * below).min(8);
    match here {
        1..=3 if theme.ascii => ".",
        4..=7 if theme.ascii => ":",
        here => EIGHTHS[here],
    }
}

/// Powers of ten under the bins that hold them.
fn axis(histogram: &Histogram, group: usize, cell: usize, width: usize) -> String {
    let mut line = String::new();
    let end = histogram.first + histogram.counts.len() as i32;
    let decade = |exponent: i32| (f64::from(exponent) * 2_f64.log10()).ceil() as i32;
    for power in decade(histogram.first)..=decade(end) {
        let bin = (f64::from(power) * 10_f64.log2()).floor() as i32 - histogram.first;
        let Ok(bin) = usize::try_from(bin) else { continue };
        let (at, label) = (bin / group * cell, format!("1e{power}"));
        let used = line.chars().count();
        if bin < histogram.counts.len() && (used == 0 || at > used) && at + label.len() <= width {
            line.push_str(&" ".repeat(at - used));
            line.push_str(&label);
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_and_decades_stand_where_the_values_are() {
        let histogram = Histogram::of("exp_avg", 1, [1e-3, 1.1e-3, -1.2e-3, 1.0, 0.0]);
        assert_eq!((histogram.first, histogram.counts.len()), (-10, 11));
        let area = Rect::new(0, 0, 60, 4);
        let mut buffer = Buffer::empty(area);
        one(&histogram, &Theme::default(), area, &mut buffer);
        let line = |y| -> String { (0..60).map(|x| buffer[(x, y)].symbol().to_owned()).collect::<String>() };
        assert!(line(0).contains("5 values") && line(0).contains("1 zero"), "{}", line(0));
        assert!(line(1).starts_with("████") && line(1).trim_end().chars().count() == 4, "{}", line(1));
        assert_eq!(line(2).trim_end(), format!("████{}▅▅▅▅", " ".repeat(36)));
        assert_eq!(
            line(3).trim_end(),
            format!("1e-3{}1e-2{}1e-1{}1e0", " ".repeat(8), " ".repeat(8), " ".repeat(12))
        );
    }

    #[test]
    fn the_smallest_count_is_seen() {
        let theme = Theme::default();
        assert_eq!(bar(1, 1_000_000, 4, 0, &theme), "▁");
        assert_eq!((bar(0, 5, 4, 0, &theme), bar(5, 5, 4, 3, &theme)), (" ", "█"));
    }

    #[test]
    fn what_codes_lose_is_told() {
        let counts = [4; 256];
        let map: Vec<f64> = (0..256).map(|code| (f64::from(code) - 127.0) / 128.0).collect();
        let text = told(&CodeUse::of("state1", &counts, &map, &[0.0, 1e-3, 2e-3, 1e-4], 256));
        assert!(text.contains("4 blocks of 256, 1 of them empty, scales 1.00e-4 to 2.00e-3"), "{text}");
        assert!(text.contains("0.78% of the codes at the ends"), "{text}");
    }
}
