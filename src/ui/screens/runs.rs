//! The Runs screen: the curves of the marked runs in one chart, and what came of them.

use ratatui::{buffer::Buffer, layout::Rect, text::Line};

use crate::{
    app::{SMOOTHING, State, focus::Panel, series::XAxis, slice::Slice},
    ui::{
        chart::{Chart, Line as Curve, Mark, Stroke},
        format,
        legend::{self, letter},
        screens::{
            curves::{corner, corner_first},
            run_list::or_dash,
            scatter,
        },
        theme::{Role, Theme},
        widgets::{frame, span, title, write},
    },
};

/// Characters of the runs' lines in ASCII.
const PLAIN: [char; 6] = ['*', '+', 'o', 'x', '#', '%'];

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
    let names: Vec<(usize, &str)> = shown.iter().enumerate().map(|(at, run)| (at, &*run.name)).collect();
    heading.extend(legend::runs(&names, room, theme));
    let inside = frame(heading, focused, area, buffer, theme);
    let scale = if state.log_y { "log" } else { "linear" };
    let smooth = if beta > 0.0 { format!("smoothed {beta}, ") } else { String::new() };
    let axis = match (state.runs.from_fork, state.x_axis.as_str()) {
        (false, axis) => format!("by {axis}"),
        (true, axis) => format!("{axis} from fork"),
    };
    let notes = [format!(" {smooth}{scale}, {axis} "), format!(" {scale}, {axis} ")];
    corner_first(area, &notes, theme, buffer);
    // More than the smallest and the largest value at each of the two dots of a cell cannot be told apart.
    let slice = Slice { axis: state.x_axis, columns: usize::from(inside.width) * 2, ..Slice::default() };
    let empty = if shown.is_empty() {
        "no run to show"
    } else if shown.iter().all(|run| state.curves_of(&run.id).is_some()) {
        "no update yet"
    } else {
        "reading the curves"
    };
    let (mut lines, mut marks) = (Vec::new(), Vec::new());
    for (at, run) in shown.iter().enumerate() {
        let Some((loss, val)) = state.curves_of(&run.id) else { continue };
        let fork = state.runs.from_fork.then(|| state.runs.fork_point(run)).flatten();
        let begin = fork.map_or(0.0, |place| place.on(state.x_axis));
        if fork.is_some() {
            marks = vec![Mark { x: 0.0, letter: 'F', style: theme.style(Role::Dim), line: true }];
        }
        let aligned = |points: Vec<(f64, f64)>| -> Vec<(f64, f64)> {
            points.into_iter().map(|(x, y)| (x - begin, y)).collect()
        };
        let points =
            aligned(if beta > 0.0 { loss.smoothed_in(&slice, beta) } else { loss.points_in(&slice) });
        let style = theme.style(Role::Run(at));
        let plain = PLAIN[at % PLAIN.len()];
        let curve = Curve { points, style, stroke: Stroke::Solid, plain };
        let end = curve.ended_by(letter(at));
        lines.push(curve);
        lines.push(Curve {
            points: aligned(val.points_in(&slice)),
            style,
            stroke: Stroke::Points('◆'),
            plain,
        });
        lines.extend(end);
    }
    Chart {
        lines,
        marks,
        log_y: state.log_y,
        x_is_time: state.x_axis == XAxis::Time,
        empty,
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
    for (at, run) in shown.iter().enumerate() {
        let from = run.forked_from.as_ref().map(|from| {
            let parent = runs.all.iter().find(|row| row.id == from.run);
            let name = parent.map_or(&from.run, |row| &row.name);
            format!("{} forked from {name} at update {}", letter(at), format::count(from.update))
        });
        let note = run.note.as_ref().map(|note| format!("{} note: {note}", letter(at)));
        for text in from.into_iter().chain(note) {
            lines.extend(text_lines(&text, Role::Text, width, theme));
        }
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
        let text = theme.keys.told(" {key:focus-next}, ↓ for more ", state.context());
        corner(area, &text, theme, buffer);
    }
}

fn text_lines(text: &str, role: Role, width: usize, theme: &Theme) -> Vec<Line<'static>> {
    format::wrap(text, width).into_iter().map(|line| Line::from(span(line, role, theme))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::{Msg, action::Screen, recorded, runs::Curves};

    #[test]
    fn a_run_without_an_update_is_not_read_for_ever() {
        let mut state = recorded::watching(Screen::Runs, "adamw");
        let mut rows = recorded::run_rows();
        (rows[0].update, rows[0].state) = (0, "queued".into());
        let id = rows[0].id.clone();
        state.update(Msg::Runs(rows));
        state.runs.marked = vec![id.clone()];
        let drawn = |state: &State| -> String {
            let area = Rect::new(0, 0, 60, 16);
            let mut buffer = Buffer::empty(area);
            curves(state, &Theme::default(), area, &mut buffer);
            area.positions().map(|at| buffer[at].symbol().to_owned()).collect()
        };
        assert!(drawn(&state).contains("reading the curves"));
        state.update(Msg::Curves { run: id, curves: Curves::default() });
        let text = drawn(&state);
        assert!(text.contains("no update yet") && !text.contains("reading"), "{text}");
    }
}
