//! The Runs screen: all runs, the curves of the marked ones in one chart, and what came of them.

use ratatui::{buffer::Buffer, layout::Rect, text::Line};

use crate::{
    app::{
        SMOOTHING, State,
        focus::Panel,
        runs::{Order, RunRow},
        series::XAxis,
        tensors::first_visible,
    },
    ui::{
        chart::{Chart, Line as Curve, Stroke},
        format,
        screens::scatter,
        theme::{Role, Theme},
        widgets::{frame, span, title, write, write_right},
    },
};

/// Characters of the runs' lines in ASCII, and the letters that name them.
const PLAIN: [char; 6] = ['*', '+', 'o', 'x', '#', '%'];

/// Line of the list at a row of the panel.
pub fn row_at(state: &State, area: Rect, line: usize) -> Option<usize> {
    let height = usize::from(area.height.saturating_sub(3));
    let line = line.checked_sub(2).filter(|line| *line < height)?;
    let count = state.runs.rows.len();
    Some(first_visible(state.runs.selected, count, height) + line).filter(|row| *row < count)
}

struct Column {
    name: &'static str,
    width: usize,
    left: bool,
    text: fn(&RunRow) -> String,
}

fn or_dash<T>(value: Option<T>, text: impl Fn(T) -> String) -> String {
    value.map_or_else(|| "-".to_owned(), text)
}

/// Columns after mark and name, in the order in which room is given to them.
const COLUMNS: [Column; 9] = [
    Column { name: "state", width: 8, left: true, text: |run| run.state.clone() },
    Column {
        name: "optimizer",
        width: 9,
        left: true,
        text: |run| or_dash(run.optimizer.clone(), |name| name),
    },
    Column { name: "val loss", width: 8, left: false, text: |run| or_dash(run.val_loss, format::loss) },
    Column {
        name: "updates",
        width: 13,
        left: false,
        text: |run| {
            let total = or_dash(run.total, format::count);
            format!("{}/{total}", format::count(run.update))
        },
    },
    Column { name: "state mem", width: 9, left: false, text: |run| or_dash(run.state_bytes, format::bytes) },
    Column {
        name: "batch",
        width: 7,
        left: false,
        text: |run| or_dash(run.batch, |(micro_batch, accumulate)| format!("{micro_batch}x{accumulate}")),
    },
    Column { name: "train loss", width: 10, left: false, text: |run| or_dash(run.train_loss, format::loss) },
    Column {
        name: "tok/s",
        width: 7,
        left: false,
        text: |run| or_dash(run.tokens_per_second, format::short),
    },
    Column {
        name: "peak",
        width: 9,
        left: false,
        text: |run| or_dash(run.peak.as_ref(), |(bytes, _)| format::bytes(*bytes)),
    },
];

/// The list of runs.
pub fn list(state: &State, theme: &Theme, area: Rect, buffer: &mut Buffer) {
    let runs = &state.runs;
    let focused = state.panel() == Panel::List;
    let mut heading = title("runs", focused, theme);
    heading.push_span(span(format!("{}, {} marked ", runs.rows.len(), runs.marked.len()), Role::Dim, theme));
    if runs.order != Order::Newest || runs.reverse {
        let arrow = if runs.reverse { "▲" } else { "▼" };
        heading.push_span(span(format!("by {} {arrow} ", runs.order.as_str()), Role::Focused, theme));
    }
    if runs.filtering || !runs.filter.text().is_empty() {
        heading.push_span(span(format!("/{}", runs.filter.text()), Role::Strong, theme));
        let cursor = if runs.filtering { "█ " } else { " " };
        heading.push_span(span(cursor, Role::Focused, theme));
    }
    let inside = frame(heading, focused, area, buffer, theme);
    if runs.rows.is_empty() {
        let text = if !runs.all.is_empty() {
            "no run passes the filter: {key:back} clears it"
        } else if runs.loaded {
            "no run yet: press {key:setup} and {key:open} to start the demo"
        } else {
            "reading the list of runs"
        };
        let text = theme.keys.told(text, state.context());
        write(inside, 0, &Line::from(span(text, Role::Dim, theme)), buffer);
        return;
    }
    let room = usize::from(inside.width);
    let name_width = (room / 4).clamp(14, 32);
    let mut used = name_width + 3;
    let mut columns: Vec<&Column> = Vec::new();
    for column in &COLUMNS {
        if used + column.width < room {
            used += column.width + 1;
            columns.push(column);
        }
    }
    let id_room = room.saturating_sub(used);
    let headed = |name: &str, text: String| {
        let sorted = runs.order.as_str() == name;
        span(text, if sorted { Role::Focused } else { Role::Dim }, theme)
    };
    let mut head = vec![headed("name", format!("  {:<name_width$} ", "name"))];
    head.extend(columns.iter().map(|column| headed(column.name, pad(column, column.name))));
    if id_room > 12 {
        head.push(headed("newest", "id".to_owned()));
    }
    write(inside, 0, &Line::from(head), buffer);
    let height = usize::from(inside.height.saturating_sub(1));
    let first = first_visible(runs.selected, runs.rows.len(), height);
    for (line, (at, run)) in runs.rows.iter().enumerate().skip(first).take(height).enumerate() {
        let mark = runs.marked.iter().position(|id| *id == run.id);
        let (sign, role) = mark.map_or((" ".to_owned(), Role::Dim), |at| (letter(at), Role::Run(at)));
        let mut spans = vec![
            span(format!("{sign} "), role, theme),
            span(format::fill(&run.name, name_width) + " ", Role::Strong, theme),
        ];
        if let Some(problem) = &run.problem {
            spans.push(span(format!("✗ {problem}"), Role::Bad, theme));
        } else {
            for column in &columns {
                let role = if column.name == "state" { state_role(&run.state) } else { Role::Text };
                spans.push(span(pad(column, &(column.text)(run)), role, theme));
            }
            if id_room > 12 {
                spans.push(span(format::cut(&run.id, id_room), Role::Dim, theme));
            }
        }
        write(inside, line as u16 + 1, &Line::from(spans), buffer);
        if at == runs.selected && (line as u16 + 1) < inside.height {
            let place = Rect { y: inside.y + line as u16 + 1, height: 1, ..inside };
            buffer.set_style(place, theme.style(Role::Selected));
        }
    }
}

pub(super) fn letter(at: usize) -> String {
    char::from_u32('A' as u32 + at as u32).unwrap_or('?').to_string()
}

fn pad(column: &Column, text: &str) -> String {
    let (text, width) = (format::cut(text, column.width), column.width);
    if column.left { format!("{text:<width$} ") } else { format!("{text:>width$} ") }
}

fn state_role(state: &str) -> Role {
    match state {
        "live" | "done" => Role::Good,
        "paused" | "queued" | "stopped" => Role::Warning,
        _ => Role::Bad,
    }
}

/// The curves of the marked runs.
pub fn curves(state: &State, theme: &Theme, area: Rect, buffer: &mut Buffer) {
    let focused = state.panel() == Panel::Curves;
    if state.runs.scatter {
        return scatter::draw(state, focused, theme, area, buffer);
    }
    let beta = SMOOTHING[state.smoothing.min(SMOOTHING.len() - 1)];
    let mut heading = title("loss", focused, theme);
    let shown = state.runs.shown();
    let room = usize::from(area.width).saturating_sub(heading.width() + 3);
    let mut used = 0;
    for (at, run) in shown.iter().enumerate() {
        let text = format!("{} {} ", letter(at), format::elide(&run.name, 20));
        used += text.chars().count();
        if used > room {
            break;
        }
        heading.push_span(span(text, Role::Run(at), theme));
    }
    let inside = frame(heading, focused, area, buffer, theme);
    let scale = if state.log_y { "log" } else { "linear" };
    let smooth = if beta > 0.0 { format!("smoothed {beta}, ") } else { String::new() };
    let note = format!(" {smooth}{scale}, by {} ", state.x_axis.as_str());
    let corner =
        Rect { y: area.bottom().saturating_sub(1), height: 1, width: area.width.saturating_sub(2), ..area };
    write_right(corner, 0, &Line::from(span(note, Role::Dim, theme)), buffer);
    let mut lines = Vec::new();
    for (at, run) in shown.iter().enumerate() {
        let Some(curves) = state.runs.curves.get(&run.id) else { continue };
        let points = if beta > 0.0 {
            curves.loss.smoothed(state.x_axis, beta)
        } else {
            curves.loss.points(state.x_axis)
        };
        let style = theme.style(Role::Run(at));
        let plain = PLAIN[at % PLAIN.len()];
        // The letter at the end of each line tells them apart without colours.
        let end = points.iter().rev().find(|point| point.1.is_finite()).copied();
        let sign = letter(at).chars().next().unwrap_or('?');
        lines.push(Curve { points, style, stroke: Stroke::Solid, plain });
        lines.push(Curve {
            points: curves.val.points(state.x_axis),
            style,
            stroke: Stroke::Points('◆'),
            plain,
        });
        lines.push(Curve {
            points: end.into_iter().collect(),
            style,
            stroke: Stroke::Points(sign),
            plain: sign,
        });
    }
    Chart {
        lines,
        log_y: state.log_y,
        x_is_time: state.x_axis == XAxis::Time,
        empty: if shown.is_empty() { "no run to show" } else { "reading the curves" },
        ..Chart::default()
    }
    .draw(inside, buffer, theme);
}

/// Memory beside loss, what differs, and the verdict.
pub fn compare(state: &State, theme: &Theme, area: Rect, buffer: &mut Buffer) {
    let runs = &state.runs;
    let focused = state.panel() == Panel::Compare;
    let inside = frame(title("memory against loss", focused, theme), focused, area, buffer, theme);
    let width = usize::from(inside.width);
    let mut lines: Vec<Line<'static>> = Vec::new();
    let speed = width >= 42;
    let mut head = format!("  {:>9} {:>9} {:>9}", "state", "peak", "val loss");
    if speed {
        head.push_str(&format!(" {:>8}", "tok/s"));
    }
    lines.push(Line::from(span(format::cut(&head, width), Role::Dim, theme)));
    let shown = runs.shown();
    for (at, run) in shown.iter().enumerate() {
        let mut text = format!(
            "{:>9} {:>9} {:>9}",
            or_dash(run.state_bytes, format::bytes),
            or_dash(run.peak.as_ref(), |(bytes, _)| format::bytes(*bytes)),
            or_dash(run.val_loss, format::loss),
        );
        if speed {
            text.push_str(&format!(" {:>8}", or_dash(run.tokens_per_second, format::short)));
        }
        lines.push(Line::from(vec![
            span(format!("{} ", letter(at)), Role::Run(at), theme),
            span(text, Role::Text, theme),
        ]));
    }
    let sources: std::collections::BTreeSet<&str> =
        shown.iter().filter_map(|run| run.peak.as_ref().map(|(_, source)| source.as_str())).collect();
    if !sources.is_empty() {
        let text = format!("peak: {}", sources.into_iter().collect::<Vec<_>>().join(", "));
        lines.extend(text_lines(&text, Role::Dim, width, theme));
    }
    lines.push(Line::default());
    if let Some(comparison) = &runs.comparison {
        lines.extend(text_lines(&comparison.verdict, Role::Strong, width, theme));
        lines.push(Line::default());
        if comparison.differences.is_empty() {
            lines.extend(text_lines("the configurations are the same", Role::Dim, width, theme));
        } else {
            lines.push(Line::from(span("what differs", Role::Title, theme)));
        }
        for (key, values) in &comparison.differences {
            lines.extend(text_lines(key, Role::Text, width, theme));
            for (at, value) in values.iter().enumerate() {
                lines.push(Line::from(vec![
                    span(format!("  {} ", letter(at)), Role::Run(at), theme),
                    span(format::elide(value, width.saturating_sub(4)), Role::Text, theme),
                ]));
            }
        }
    } else if let Some(problem) = &runs.problem {
        lines.extend(text_lines(problem, Role::Bad, width, theme));
    } else if runs.marked.len() < 2 {
        let text = theme.keys.told("mark two runs with {key:mark} to compare them", state.context());
        lines.extend(text_lines(&text, Role::Dim, width, theme));
    } else {
        lines.extend(text_lines("comparing", Role::Dim, width, theme));
    }
    let height = usize::from(inside.height);
    let first = runs.scroll.min(lines.len().saturating_sub(height));
    for (row, line) in lines.iter().skip(first).take(height).enumerate() {
        write(inside, row as u16, line, buffer);
    }
    if lines.len() > height + first {
        let corner = Rect {
            y: area.bottom().saturating_sub(1),
            height: 1,
            width: area.width.saturating_sub(2),
            ..area
        };
        let text = theme.keys.told(" {key:focus-next}, ↓ for more ", state.context());
        write_right(corner, 0, &Line::from(span(text, Role::Dim, theme)), buffer);
    }
}

fn text_lines(text: &str, role: Role, width: usize, theme: &Theme) -> Vec<Line<'static>> {
    format::wrap(text, width).into_iter().map(|line| Line::from(span(line, role, theme))).collect()
}
