//! Memory against loss, one sign a run, and the line of those that no other run beats in both.

use std::{collections::BTreeMap, sync::Arc};

use ratatui::{buffer::Buffer, layout::Rect};
use unicode_width::UnicodeWidthStr;

use crate::{
    app::{
        State,
        runs::{RunRow, pareto},
    },
    ui::{
        chart::{Chart, Line as Curve, Stroke},
        format,
        legend::letter,
        screens::curves::corner,
        theme::{Role, Theme},
        widgets::{frame, span, title},
    },
};

const MIB: f64 = 1024.0 * 1024.0;

/// Draws every run of the list that has both figures.
pub fn draw(state: &State, focused: bool, theme: &Theme, area: Rect, buffer: &mut Buffer) {
    let runs = &state.runs;
    let kind = most(&runs.rows);
    let points: Vec<(&RunRow, (f64, f64))> = runs
        .rows
        .iter()
        .filter_map(|row| Some((&**row, place(row).filter(|(of, _)| Some(*of) == kind)?.1)))
        .collect();
    let source = kind.map_or("nothing measured", |(_, source)| source);
    // The shorter words where the longer have no room: what measured the memory is always told.
    let room = usize::from(area.width).saturating_sub(source.width() + 5);
    let all = ["validation loss by peak memory, MiB", "loss by peak memory, MiB", "loss by MiB"];
    let words = format::first_fitting(&all, room);
    let mut heading = title(words, focused, theme);
    heading.push_span(span(format!("{source} "), Role::Dim, theme));
    let inside = frame(heading, focused, area, buffer, theme);
    let left = runs.rows.len() - points.len();
    let note = match left {
        0 => " line: Pareto front ".to_owned(),
        left if area.width < 70 => format!(" line: Pareto front; {left} left out "),
        left => format!(" line: Pareto front; {left} left out: other data, or not measured so "),
    };
    corner(area, &note, theme, buffer);
    let places: Vec<(f64, f64)> = points.iter().map(|(_, place)| *place).collect();
    let front = pareto(&places).into_iter().map(|at| places[at]).collect();
    let mut lines =
        vec![Curve { points: front, style: theme.style(Role::Border), stroke: Stroke::Solid, plain: '.' }];
    lines.extend(points.iter().map(|(row, place)| {
        let mark = runs.marked.iter().position(|id| *id == row.id);
        let sign = mark.map_or('●', letter);
        let style = theme.style(mark.map_or(Role::Text, Role::Run));
        Curve {
            points: vec![*place],
            style,
            stroke: Stroke::Points(sign),
            plain: if mark.is_some() { sign } else { 'o' },
        }
    }));
    // Room at both sides, or the outermost stand on the edge.
    let x = places.iter().map(|place| place.0);
    let (low, high) = (x.clone().fold(f64::INFINITY, f64::min), x.fold(f64::NEG_INFINITY, f64::max));
    let room = ((high - low) * 0.05).max(high.abs() * 0.01);
    let x_bounds = (low <= high).then(|| ((low - room).max(0.0), high + room));
    let empty = "no run of the list has both a measured peak and a validation loss";
    let chart =
        Chart { lines, log_y: state.log_y, x_bounds, x_has_fractions: true, empty, ..Chart::default() };
    chart.draw(inside, buffer, theme);
}

/// What a run's loss is measured on and what measured its memory, and where that puts it.
type Placed<'a> = ((Option<&'a str>, &'a str), (f64, f64));

fn place(row: &RunRow) -> Option<Placed<'_>> {
    let (bytes, source) = row.peak.as_ref()?;
    let loss = row.val_loss.filter(|loss| loss.is_finite())?;
    Some(((row.measured_on.as_deref(), source), (*bytes as f64 / MIB, loss)))
}

/// What most runs have in common: figures of different data and of different sources do not compare.
fn most(rows: &[Arc<RunRow>]) -> Option<(Option<&str>, &str)> {
    let mut counts: BTreeMap<_, usize> = BTreeMap::new();
    for (kind, _) in rows.iter().filter_map(|row| place(row)) {
        *counts.entry(kind).or_default() += 1;
    }
    counts.into_iter().max_by_key(|(_, count)| *count).map(|(kind, _)| kind)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::{Msg, action::Screen, recorded};

    #[test]
    fn runs_that_came_to_the_same_are_all_seen() {
        let mut state = recorded::watching(Screen::Runs, "adamw");
        let mut rows = recorded::run_rows();
        for row in &mut rows {
            (row.peak, row.val_loss) = (Some((14 << 20, "allocator".into())), Some(1.25));
        }
        let ids: Vec<String> = rows.iter().map(|row| row.id.clone()).collect();
        rows.push(RunRow { id: "unmarked".into(), name: "unmarked".into(), ..rows[0].clone() });
        state.update(Msg::Runs(rows));
        (state.runs.marked, state.runs.scatter) = (ids, true);
        let area = Rect::new(0, 0, 60, 16);
        for ascii in [false, true] {
            let mut buffer = Buffer::empty(area);
            draw(&state, false, &Theme { ascii, ..Theme::default() }, area, &mut buffer);
            let inside: String = (1..14_u16)
                .flat_map(|y| (1..59_u16).map(move |x| (x, y)))
                .map(|at| buffer[at].symbol())
                .collect();
            assert!(inside.contains("ABC"), "{inside}");
        }
    }

    #[test]
    fn runs_on_other_data_are_left_out_and_that_is_said() {
        let mut state = recorded::watching(Screen::Runs, "adamw");
        let mut rows = recorded::run_rows();
        for (row, data) in rows.iter_mut().zip(["ours", "theirs", "ours"]) {
            row.measured_on = Some(data.into());
        }
        let ids: Vec<String> = rows.iter().map(|row| row.id.clone()).collect();
        state.update(Msg::Runs(rows));
        (state.runs.marked, state.runs.scatter) = (ids, true);
        let area = Rect::new(0, 0, 72, 16);
        let mut buffer = Buffer::empty(area);
        draw(&state, false, &Theme::default(), area, &mut buffer);
        let drawn: String = area.positions().map(|at| buffer[at].symbol()).collect();
        // The one B is that of MiB.
        let of = |letter: char| drawn.matches(letter).count();
        assert_eq!(['A', 'B', 'C'].map(of), [1, 1, 1], "{drawn}");
        assert!(drawn.contains("1 left out: other data, or not measured so"), "{drawn}");
    }
}
