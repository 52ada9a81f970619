//! Panels of lines as SVG, written by hand: the pictures are small, readable and the same on every machine.

mod scale;

use std::fmt::Write as _;

use self::scale::Scale;
pub(super) use self::scale::Unit;
use super::{curves::Point, escape::markup};
use crate::run::{
    text,
    ticks::{multiples, round_step},
};

/// Width of the picture.
const WIDTH: f64 = 960.0;
/// Space left of the plots, for the labels of the ticks.
const LEFT: f64 = 92.0;
const RIGHT: f64 = 36.0;
/// Space above the first panel, for the title.
const HEADING: f64 = 64.0;
/// Title and one row of the legend of a panel, above its plot.
const ABOVE: f64 = 44.0;
/// Every further row of the legend.
const ROW: f64 = 16.0;
/// Ticks and name of the horizontal axis, below it.
const BELOW: f64 = 44.0;
/// Columns that a line is summed up in when it has more points.
const COLUMNS: usize = 420;
/// Colours that people who see fewer of them can tell apart, on paper and on black.
const COLOURS: [(&str, &str); 5] = [
    ("#0072b2", "#56b4e9"),
    ("#d55e00", "#ff9d5c"),
    ("#009e73", "#3fd0a4"),
    ("#b0508a", "#e29ac6"),
    ("#8a6d00", "#e6c34a"),
];

/// How a line is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stroke {
    /// With its mean on top when it has more points than the picture has room for.
    Plain,
    /// With a dot at every point, if they are few.
    Dots,
    /// A figure that was estimated.
    Dashed,
}

/// A line of a panel.
#[derive(Debug)]
pub(super) struct Line<'a> {
    pub(super) name: String,
    pub(super) points: &'a [Point],
    pub(super) stroke: Stroke,
}

/// A plot with its axes.
#[derive(Debug)]
pub(super) struct Panel<'a> {
    pub(super) title: &'static str,
    /// What the vertical axis counts.
    pub(super) unit_name: &'static str,
    pub(super) unit: Unit,
    /// Whether a wide range is drawn on a logarithmic axis.
    pub(super) may_be_logarithmic: bool,
    pub(super) height: f64,
    pub(super) lines: Vec<Line<'a>>,
}

/// The whole picture.
pub(super) fn picture(title: &str, subtitle: &str, panels: &[Panel<'_>]) -> String {
    let height = HEADING + panels.iter().map(|panel| above(panel) + panel.height + BELOW).sum::<f64>();
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" \
         height=\"{height}\" role=\"img\" font-family=\"system-ui,'DejaVu Sans',Helvetica,Arial,sans-serif\" \
         font-size=\"12\">\n<title>{title}</title>\n<desc>{subtitle}</desc>\n",
        title = markup(title),
        subtitle = markup(subtitle),
    );
    svg += &style();
    let _ = writeln!(svg, "<rect class=\"paper\" width=\"{WIDTH}\" height=\"{height}\" fill=\"#ffffff\"/>");
    let _ = writeln!(
        svg,
        "<text class=\"ink\" x=\"{LEFT}\" y=\"30\" font-size=\"18\" font-weight=\"600\" fill=\"#1a1a1a\">{}</text>\n\
         <text class=\"faint\" x=\"{LEFT}\" y=\"50\" fill=\"#5a5a5a\">{}</text>",
        markup(title),
        markup(subtitle)
    );
    let mut top = HEADING;
    let across = across(panels);
    for panel in panels {
        draw(&mut svg, panel, across, top + above(panel));
        top += above(panel) + panel.height + BELOW;
    }
    svg += "</svg>\n";
    svg
}

/// Readers that know no style sheets take the attributes, which are those of paper.
fn style() -> String {
    let mut style = "<style>@media (prefers-color-scheme: dark){.paper{fill:#14161b}.ink{fill:#e6e6e6}\
                     .faint{fill:#a0a4ad}.grid{stroke:#2c3038}.frame{stroke:#5a606b}"
        .to_owned();
    for (at, (_, dark)) in COLOURS.iter().enumerate() {
        let _ = write!(style, ".s{at}{{stroke:{dark}}}.f{at}{{fill:{dark}}}");
    }
    style + "}</style>\n"
}

/// The name of a line, with what it lacks.
fn label(line: &Line<'_>) -> String {
    match line.points.iter().filter(|point| !point.1.is_finite()).count() {
        0 => line.name.clone(),
        missing => format!("{} ({} not finite)", line.name, text::count(missing as u64)),
    }
}

/// Row and left end of every entry of the legend.
fn legend(panel: &Panel<'_>) -> Vec<(usize, f64)> {
    let (mut row, mut left) = (0, LEFT);
    let mut places = Vec::new();
    for line in &panel.lines {
        let width = 44.0 + 6.4 * label(line).chars().count() as f64;
        if left > LEFT && left + width > WIDTH {
            (row, left) = (row + 1, LEFT);
        }
        places.push((row, left));
        left += width;
    }
    places
}

fn above(panel: &Panel<'_>) -> f64 {
    ABOVE + ROW * legend(panel).last().map_or(0, |place| place.0) as f64
}

/// What a band means, where there is one.
fn note(panel: &Panel<'_>) -> &'static str {
    let is_band = panel.lines.iter().any(|line| line.points.len() > 2 * COLUMNS);
    if is_band { "line: mean; band: smallest to largest, of the updates that share a column" } else { "" }
}

/// The updates of all panels, so that those of one stand under those of another.
fn across(panels: &[Panel<'_>]) -> Across {
    let updates =
        || panels.iter().flat_map(|panel| &panel.lines).flat_map(|line| line.points).map(|point| point.0);
    let (first, last) = (updates().min().unwrap_or(0) as f64, updates().max().unwrap_or(0) as f64);
    Across { first, last: last.max(first + 1.0) }
}

/// One panel whose plot begins at `top`.
fn draw(svg: &mut String, panel: &Panel<'_>, across: Across, top: f64) {
    let (right, bottom) = (WIDTH - RIGHT, top + panel.height);
    let scale = Scale::of(panel);
    let logarithmic = scale.is_some_and(|scale| scale.logarithmic);
    let _ = writeln!(
        svg,
        "<g>\n<text class=\"ink\" x=\"{LEFT}\" y=\"{y:.1}\" font-size=\"14\" font-weight=\"600\" fill=\"#1a1a1a\">{}</text>\
         <text class=\"faint\" x=\"{end}\" y=\"{y:.1}\" text-anchor=\"end\" fill=\"#5a5a5a\">{}</text>",
        markup(panel.title),
        note(panel),
        y = top + 20.0 - above(panel),
        end = WIDTH - RIGHT
    );
    let recorded = panel.lines.iter().any(|line| !line.points.is_empty());
    let Some(scale) = scale.filter(|_| recorded) else {
        let _ = writeln!(
            svg,
            "<text class=\"faint\" x=\"{LEFT}\" y=\"{y:.1}\" fill=\"#5a5a5a\">nothing was recorded</text>\n</g>",
            y = top + 16.0
        );
        return;
    };
    let y_of = |value: f64| bottom - scale.place(value) * panel.height;
    for (value, label) in scale.ticks(panel.unit) {
        let y = y_of(value);
        let _ = writeln!(
            svg,
            "<path class=\"grid\" d=\"M{LEFT} {y:.1}H{right}\" stroke=\"#e3e3e3\"/>\
             <text class=\"faint\" x=\"{x}\" y=\"{base:.1}\" text-anchor=\"end\" fill=\"#5a5a5a\">{label}</text>",
            x = LEFT - 8.0,
            base = y + 4.0
        );
    }
    let step = round_step((across.last - across.first) / 8.0).max(1.0);
    for value in multiples(across.first, across.last, step) {
        let x = across.place(value);
        let _ = writeln!(
            svg,
            "<path class=\"grid\" d=\"M{x:.1} {top:.1}V{bottom:.1}\" stroke=\"#e3e3e3\"/>\
             <text class=\"faint\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"middle\" fill=\"#5a5a5a\">{}</text>",
            text::count(value.max(0.0) as u64),
            y = bottom + 16.0
        );
    }
    let _ = writeln!(
        svg,
        "<path class=\"frame\" d=\"M{LEFT} {top:.1}V{bottom:.1}H{right}\" fill=\"none\" stroke=\"#9a9a9a\"/>\n\
         <text class=\"faint\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"middle\" fill=\"#5a5a5a\">update</text>\n\
         <text class=\"faint\" transform=\"translate(16 {middle:.1}) rotate(-90)\" text-anchor=\"middle\" \
         fill=\"#5a5a5a\">{}{}</text>",
        markup(panel.unit_name),
        if logarithmic { ", logarithmic" } else { "" },
        x = (LEFT + right) / 2.0,
        y = bottom + 34.0,
        middle = (top + bottom) / 2.0,
    );
    for ((at, line), (row, left)) in panel.lines.iter().enumerate().zip(legend(panel)) {
        let (colour, index) = (COLOURS[at % COLOURS.len()].0, at % COLOURS.len());
        stroke(svg, line, index, colour, &across, &y_of);
        let dashes = if line.stroke == Stroke::Dashed { " stroke-dasharray=\"6 4\"" } else { "" };
        let _ = writeln!(
            svg,
            "<path class=\"s{index}\" d=\"M{left:.1} {y:.1}h18\" stroke=\"{colour}\" stroke-width=\"2\"{dashes}/>\
             <text class=\"ink\" x=\"{x:.1}\" y=\"{base:.1}\" fill=\"#1a1a1a\">{}</text>",
            markup(&label(line)),
            y = top + 34.0 - above(panel) + ROW * row as f64,
            x = left + 23.0,
            base = top + 38.0 - above(panel) + ROW * row as f64
        );
    }
    *svg += "</g>\n";
}

/// The horizontal axis.
#[derive(Clone, Copy)]
struct Across {
    first: f64,
    last: f64,
}

impl Across {
    fn place(&self, update: f64) -> f64 {
        LEFT + (update - self.first) / (self.last - self.first) * (WIDTH - RIGHT - LEFT)
    }
}

/// What the points of one column of the picture come to; nothing that is not finite is counted.
#[derive(Debug, Clone, Copy)]
struct Column {
    update: f64,
    low: f64,
    high: f64,
    sum: f64,
    count: u64,
}

/// Draws a line.
fn stroke(
    svg: &mut String,
    line: &Line<'_>,
    index: usize,
    colour: &str,
    across: &Across,
    y_of: &impl Fn(f64) -> f64,
) {
    let mut path = |pieces: &[Vec<(f64, f64)>], width: f64, opacity: f64| {
        let mut d = String::new();
        for piece in pieces {
            for (at, &(update, value)) in piece.iter().enumerate() {
                let sign = if at == 0 { 'M' } else { 'L' };
                let _ = write!(d, "{sign}{:.1} {:.1}", across.place(update), y_of(value));
            }
            // A point alone is seen, too.
            if piece.len() == 1 {
                d += "h0.01";
            }
        }
        let dashes = if line.stroke == Stroke::Dashed { " stroke-dasharray=\"6 4\"" } else { "" };
        let _ = writeln!(
            svg,
            "<path class=\"s{index}\" d=\"{d}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"{width}\" \
             stroke-opacity=\"{opacity}\" stroke-linejoin=\"round\" stroke-linecap=\"round\"{dashes}/>"
        );
    };
    if line.points.len() <= 2 * COLUMNS {
        path(&pieces(line.points.iter().map(|&(update, value)| (update as f64, value))), 1.6, 1.0);
    } else {
        let columns = columns(line.points, across);
        let spread =
            columns.iter().flat_map(|column| [(column.update, column.low), (column.update, column.high)]);
        path(&pieces(spread), 1.0, 0.35);
        path(
            &pieces(columns.iter().map(|column| (column.update, column.sum / column.count as f64))),
            1.8,
            1.0,
        );
    }
    if line.stroke == Stroke::Dots && line.points.len() <= 120 {
        for &(update, value) in line.points.iter().filter(|point| point.1.is_finite()) {
            let _ = writeln!(
                svg,
                "<circle class=\"f{index}\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"2.6\" fill=\"{colour}\"/>",
                across.place(update as f64),
                y_of(value)
            );
        }
    }
}

/// The line in pieces between figures that are not finite.
fn pieces(points: impl Iterator<Item = (f64, f64)>) -> Vec<Vec<(f64, f64)>> {
    let mut pieces = vec![Vec::new()];
    for point in points {
        if !point.1.is_finite() {
            pieces.push(Vec::new());
        } else if let Some(piece) = pieces.last_mut() {
            piece.push(point);
        }
    }
    pieces.retain(|piece| !piece.is_empty());
    pieces
}

fn columns(points: &[Point], across: &Across) -> Vec<Column> {
    let mut columns: Vec<Option<Column>> = vec![None; COLUMNS];
    for &(update, value) in points.iter().filter(|point| point.1.is_finite()) {
        let share = (update as f64 - across.first) / (across.last - across.first);
        let at = ((share * COLUMNS as f64) as usize).min(COLUMNS - 1);
        let middle = across.first + (at as f64 + 0.5) / COLUMNS as f64 * (across.last - across.first);
        let column =
            columns[at].get_or_insert(Column { update: middle, low: value, high: value, sum: 0.0, count: 0 });
        column.low = column.low.min(value);
        column.high = column.high.max(value);
        column.sum += value;
        column.count += 1;
    }
    columns.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_breaks_where_a_figure_is_missing_and_columns_lose_no_extreme() {
        let broken = [(1.0, 2.0), (2.0, f64::NAN), (3.0, 1.0), (4.0, 0.5)];
        assert_eq!(pieces(broken.into_iter()).iter().map(Vec::len).collect::<Vec<_>>(), [1, 2]);
        let points: Vec<Point> = (0..10_000).map(|at| (at, if at == 7777 { 99.0 } else { 1.0 })).collect();
        let across = Across { first: 0.0, last: 9999.0 };
        let columns = columns(&points, &across);
        assert_eq!(columns.len(), COLUMNS);
        assert_eq!(columns.iter().map(|column| column.count).sum::<u64>(), 10_000);
        assert_eq!(columns.iter().filter(|column| column.high == 99.0).count(), 1);
    }

    #[test]
    fn an_update_stands_at_the_same_place_in_every_panel() {
        let (early, late): ([Point; 2], [Point; 2]) = ([(0, 1.0), (40, 2.0)], [(1, 1.0), (30, 2.0)]);
        let panel = |points| Panel {
            title: "loss",
            unit_name: "nats",
            unit: Unit::Number,
            may_be_logarithmic: false,
            height: 100.0,
            lines: vec![Line { name: "run".into(), points, stroke: Stroke::Plain }],
        };
        let svg = picture("a", "b", &[panel(&early), panel(&late)]);
        let ticks = svg.matches(">20</text>").count();
        assert_eq!(ticks, 2, "{svg}");
        let places: std::collections::BTreeSet<&str> = svg
            .lines()
            .filter(|line| line.contains(">20</text>"))
            .filter_map(|line| line.split("x=\"").nth(1)?.split('"').next())
            .collect();
        assert_eq!(places.len(), 1, "{places:?}");
    }
}
