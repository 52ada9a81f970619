//! The charts of the Train screen over the updates: loss, gradient norm, speed. They show the same part of the run and
//! share a cursor.

use ratatui::{
    buffer::Buffer,
    layout::Rect,
    text::{Line, Span},
};
use unicode_width::UnicodeWidthStr;

use super::schedule;
use crate::{
    app::{
        SMOOTHING, State,
        focus::Panel,
        run::{Marker, MarkerKind},
        series::XAxis,
        slice::Slice,
    },
    ui::{
        chart::{Chart, Line as Curve, Mark, Stroke},
        format, layout, legend,
        theme::{Role, Theme},
        widgets::{frame, span, title, write_right},
    },
};

/// Characters of overlaid runs in ASCII.
const PLAIN: [char; 4] = ['+', 'x', '#', '%'];

/// Draws one of the charts with its frame.
pub fn draw(state: &State, panel: Panel, theme: &Theme, area: Rect, buffer: &mut Buffer) {
    let focused = state.panel() == panel;
    let heading = match panel {
        Panel::Loss => legend(state, focused, area, theme),
        _ => small_title(state, panel, area, theme),
    };
    let inside = frame(heading, focused, area, buffer, theme);
    if panel == Panel::Loss {
        corner(area, &note(state), theme, buffer);
    }
    if let Some(chart) = chart(state, panel, theme, inside) {
        chart.draw(inside, buffer, theme);
    }
}

/// The update under a cell, if it lies in the plot of a chart; `area` with the frame.
pub fn update_at(state: &State, panel: Panel, area: Rect, column: u16, row: u16) -> Option<u64> {
    let inside = Rect {
        x: area.x + 1,
        y: area.y + 1,
        width: area.width.saturating_sub(2),
        height: area.height.saturating_sub(2),
    };
    let theme = Theme::default();
    if panel == Panel::Schedule {
        let x = schedule::chart(state, &theme, inside)?.x_at(schedule::plot(state, inside), column, row)?;
        return state.view().loss.update_at(x, XAxis::Update);
    }
    let x = chart(state, panel, &theme, inside)?.x_at(inside, column, row)?;
    state.view().loss.update_at(x, state.x_axis)
}

/// The chart of a panel that is drawn into that place; nothing for other panels.
fn chart(state: &State, panel: Panel, theme: &Theme, inside: Rect) -> Option<Chart> {
    // More than the smallest and the largest value at each of the two dots of a cell cannot be told apart.
    let slice = state.slice(usize::from(inside.width) * 2);
    match panel {
        Panel::Loss => Some(loss(state, theme, &slice)),
        Panel::Gradient => Some(gradient(state, theme, &slice)),
        Panel::Speed => Some(speed(state, theme, &slice)),
        _ => None,
    }
}

/// What every chart over the updates has.
fn common(state: &State, theme: &Theme, slice: &Slice) -> Chart {
    let cursor = state.cursor().and_then(|update| state.view().loss.x_of(update, slice.axis));
    Chart {
        log_y: state.log_y,
        log_x: slice.log,
        x_bounds: slice.bounds.or_else(|| whole(state, slice.axis)),
        x_is_time: slice.axis == XAxis::Time,
        empty: if state.watching.is_some() { "no update yet" } else { "no run is open" },
        gaps: Some(theme.style(Role::Bad)),
        cursor: cursor.map(|x| (x, theme.style(Role::Focused))),
        ..Chart::default()
    }
}

/// The ends of the run; nothing where others lie over it and may be longer.
fn whole(state: &State, axis: XAxis) -> Option<(f64, f64)> {
    let loss = &state.view().loss;
    let (first, last) = state.view().made().filter(|_| state.overlaid().next().is_none())?;
    let ends = (loss.x_of(first, axis)?, loss.x_of(last, axis)?);
    (ends.0.is_finite() && ends.1.is_finite()).then_some(ends)
}

/// Loss of every update, smoothed, and on the held-out text; the marked runs over it.
fn loss(state: &State, theme: &Theme, slice: &Slice) -> Chart {
    let view = state.view();
    let beta = SMOOTHING[state.smoothing.min(SMOOTHING.len() - 1)];
    let raw_role = if beta > 0.0 { Role::Raw } else { Role::Smooth };
    let mut lines = vec![Curve {
        points: view.loss.points_in(slice),
        style: theme.style(raw_role),
        stroke: Stroke::Solid,
        plain: '.',
    }];
    for (at, _, loss, val) in state.overlaid() {
        let points = if beta > 0.0 { loss.smoothed_in(slice, beta) } else { loss.points_in(slice) };
        let (style, plain) = (theme.style(Role::Run(at)), PLAIN[at % PLAIN.len()]);
        let curve = Curve { points, style, stroke: Stroke::Solid, plain };
        let end = curve.ended_by(legend::letter(at));
        lines.push(curve);
        let points = val.points_in(slice);
        lines.push(Curve { points, style, stroke: Stroke::Points('◇'), plain });
        lines.extend(end);
    }
    if beta > 0.0 {
        lines.push(Curve {
            points: view.loss.smoothed_in(slice, beta),
            style: theme.style(Role::Smooth),
            stroke: Stroke::Solid,
            plain: '*',
        });
    }
    lines.push(Curve {
        points: view.val.points_in(slice),
        style: theme.style(Role::Validation),
        stroke: Stroke::Points('◆'),
        plain: 'o',
    });
    Chart { lines, marks: marks(state, theme, |_| true), ..common(state, theme, slice) }
}

/// Global gradient norm before clipping, with the limit it is clipped to.
fn gradient(state: &State, theme: &Theme, slice: &Slice) -> Chart {
    let view = state.view();
    let points = view.grad_norm.points_in(slice);
    let limit = view.header.as_ref().map(|header| header.config.clip.max_norm).filter(|max| *max > 0.0);
    let mut lines = Vec::new();
    let high = view.grad_norm.range().map_or(0.0, |(_, high)| high);
    if let (Some(limit), Some(first), Some(last)) = (limit, points.first(), points.last())
        && limit <= high * 2.0
    {
        lines.push(Curve {
            points: vec![(first.0, limit), (last.0, limit)],
            style: theme.style(Role::Warning),
            stroke: Stroke::Dotted,
            plain: '-',
        });
    }
    lines.push(Curve { points, style: theme.style(Role::Gradients), stroke: Stroke::Solid, plain: '*' });
    let marks = marks(state, theme, |kind| kind == MarkerKind::Skipped);
    Chart { lines, marks, from_zero: true, ..common(state, theme, slice) }
}

/// Tokens a second.
fn speed(state: &State, theme: &Theme, slice: &Slice) -> Chart {
    let lines = vec![Curve {
        points: state.view().speed.points_in(slice),
        style: theme.style(Role::Good),
        stroke: Stroke::Solid,
        plain: '*',
    }];
    Chart { lines, from_zero: true, log_y: false, ..common(state, theme, slice) }
}

/// Vertical lines where something happened.
fn marks(state: &State, theme: &Theme, wanted: impl Fn(MarkerKind) -> bool) -> Vec<Mark> {
    let mark = |marker: &Marker| {
        let (role, line) = match marker.kind {
            MarkerKind::Rate => (Role::Rate, true),
            MarkerKind::Resumed | MarkerKind::Forked => (Role::Good, true),
            MarkerKind::Alert | MarkerKind::Skipped => (Role::Bad, false),
            MarkerKind::Stopped => (Role::Warning, false),
            MarkerKind::Paused | MarkerKind::Checkpoint => (Role::Dim, false),
        };
        let (x, letter) = (marker.place.on(state.x_axis), marker.kind.letter());
        Mark { x, letter, style: theme.style(role), line }
    };
    state.view().markers.iter().filter(|marker| wanted(marker.kind)).map(mark).collect()
}

/// The title of the loss with a sign for each of its lines.
fn legend(state: &State, focused: bool, area: Rect, theme: &Theme) -> Line<'static> {
    let mut heading = title("loss", focused, theme);
    let beta = SMOOTHING[state.smoothing.min(SMOOTHING.len() - 1)];
    let mut signs = vec![("·", "raw", "raw".to_owned(), Role::Raw)];
    if beta > 0.0 {
        signs.push(("━", "smooth", format!("smoothed {beta}"), Role::Smooth));
    }
    if !state.view().val.is_empty() {
        signs.push(("◆", "val", "validation".to_owned(), Role::Validation));
    }
    let names: Vec<(usize, &str)> = state.overlaid().map(|(at, name, ..)| (at, name)).collect();
    let room = usize::from(area.width).saturating_sub(heading.width() + 2);
    let (least, wanted) = (legend::least(names.len()), legend::wanted(&names));
    let takes = |long: bool| -> usize {
        signs.iter().map(|(_, short, full, _)| 3 + if long { full.width() } else { short.len() }).sum()
    };
    let (long, short) = (takes(true) + wanted <= room, takes(false) + least <= room);
    for (sign, word, full, role) in &signs {
        let text = match (long, short) {
            (true, _) => format!("{sign} {full} "),
            (false, true) => format!("{sign} {word} "),
            (false, false) => format!("{sign} "),
        };
        if heading.width() + text.width() + 2 <= usize::from(area.width) {
            heading.push_span(span(text, *role, theme));
        }
    }
    let room = usize::from(area.width).saturating_sub(heading.width() + 2);
    heading.extend(legend::runs(&names, room, theme));
    heading
}

/// What the axes are, and what part of the run is shown.
fn note(state: &State) -> String {
    let scale = |log| if log { "log" } else { "linear" };
    let axes = match (state.log_y, state.plot.log_x) {
        (y, false) => scale(y).to_owned(),
        (true, true) => "log, log x".to_owned(),
        (false, true) => "linear, log x".to_owned(),
    };
    let shown = state.view().made().and_then(|made| state.plot.shown(made));
    let part = shown.map_or_else(String::new, |(first, last)| {
        let follows = if state.plot.follows() { ", following" } else { "" };
        format!(" {}-{}{follows}", format::count(first), format::count(last))
    });
    let by =
        if state.x_axis == XAxis::Tokens { state.view().counted().as_str() } else { state.x_axis.as_str() };
    format!(" {axes}, by {by}{part} ")
}

/// A note in the lower right corner of a frame.
pub fn corner(area: Rect, note: &str, theme: &Theme, buffer: &mut Buffer) {
    // Neither of the frame's corners belongs to it.
    let place = Rect {
        x: area.x + 1,
        y: area.bottom().saturating_sub(1),
        height: 1,
        width: area.width.saturating_sub(3),
    };
    if area.height > 1 && area.width > 3 {
        let text = Span::styled(format::cut(note, usize::from(place.width)), theme.style(Role::Dim));
        write_right(place, 0, &Line::from(text), buffer);
    }
}

/// The first of these notes that has room in the lower right corner; the last one cut when none has.
pub fn corner_first(area: Rect, notes: &[String], theme: &Theme, buffer: &mut Buffer) {
    let room = usize::from(area.width.saturating_sub(3));
    corner(area, format::first_fitting(notes, room), theme, buffer);
}

/// The title of one of the three small charts; where only one has room it names the others.
pub fn small_title(state: &State, panel: Panel, area: Rect, theme: &Theme) -> Line<'static> {
    let name = |panel: Panel| match panel {
        Panel::Gradient => "gradient norm".to_owned(),
        Panel::Speed => format!("{}/s", state.view().counted().as_str()),
        _ => "learning rate".to_owned(),
    };
    let mut heading = title(&name(panel), state.panel() == panel, theme);
    let alone = !state.focus.zoomed && area.width < 68 && area.width > 40;
    if alone {
        let others = [Panel::Schedule, Panel::Gradient, Panel::Speed].into_iter().filter(|p| *p != panel);
        let others: Vec<_> = others.map(name).collect();
        let key = theme.keys.told("{key:focus-next}", state.context());
        let text = format!("{key}: {} ", others.join(", "));
        let room = usize::from(area.width).saturating_sub(heading.width() + 3);
        if text.chars().count() <= room && !layout::compact(Rect { width: 80, height: 24, ..area }) {
            heading.push_span(span(text, Role::Dim, theme));
        }
    }
    heading
}
