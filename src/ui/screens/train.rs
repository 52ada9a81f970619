//! The Train screen: progress, and the curves of loss, rate, gradient norm and speed.

use ratatui::{
    buffer::Buffer,
    layout::Rect,
    text::{Line, Span},
};

use crate::{
    app::{
        SMOOTHING, State,
        focus::Panel,
        run::{MarkerKind, RunView, Status},
        series::XAxis,
    },
    config::schedule,
    ui::{
        chart::{Chart, Line as Curve, Mark, Stroke},
        format, layout,
        theme::{Role, Theme},
        widgets::{frame, gauge, span, title, write, write_right},
    },
};

/// Points of the schedule's curve.
const SCHEDULE_POINTS: u64 = 400;

/// Two lines: how far the run is, and its newest figures.
pub fn status(state: &State, theme: &Theme, area: Rect, buffer: &mut Buffer) {
    let view = state.view();
    if state.watching.is_none() {
        let text = " no run is open: press 3 to set one up, 4 to look at an earlier one";
        write(area, 0, &Line::from(span(text, Role::Dim, theme)), buffer);
        return;
    }
    progress(state, view, theme, area, buffer);
    figures(state, view, theme, area, buffer);
}

fn progress(state: &State, view: &RunView, theme: &Theme, area: Rect, buffer: &mut Buffer) {
    let (done, total) = (view.done(), view.total().unwrap_or(0));
    let live = state.status().is_some_and(Status::is_live);
    let mut text = format!(
        " update {} / {}  {}  {}",
        format::count(done),
        format::count(total),
        format::percent(done as f64, total as f64),
        format::duration(view.time),
    );
    if live {
        let eta = view.eta().map_or_else(|| "-".to_owned(), format::duration);
        text.push_str(&format!("  ETA ~{eta} "));
    }
    let width = usize::from(area.width).saturating_sub(text.chars().count() + 2);
    let role = if live { Role::Smooth } else { Role::Dim };
    let mut spans = vec![Span::raw(" ")];
    spans.extend(gauge(done as f64 / total.max(1) as f64, width, theme, role));
    spans.push(span(text, Role::Strong, theme));
    write(area, 0, &Line::from(spans), buffer);
}

fn figures(state: &State, view: &RunView, theme: &Theme, area: Rect, buffer: &mut Buffer) {
    let mut figures: Vec<(&str, String, Role)> = Vec::new();
    if let Some(update) = &view.update {
        let bad = |value: f64, role| if value.is_finite() { role } else { Role::Bad };
        figures.push(("loss", format::loss(update.loss), bad(update.loss, Role::Strong)));
        if let Some(validation) = &view.validation {
            figures.push(("val", format::loss(validation.loss), Role::Validation));
            figures.extend(validation.accuracy.map(|share| ("acc", format::share(share), Role::Validation)));
            figures.extend(validation.f1.map(|f1| ("F1", format!("{f1:.3}"), Role::Validation)));
        }
        let rate = format::rate(update.learning_rate);
        let rate = if view.rate_override.is_some() { format!("{rate} by hand") } else { rate };
        figures.push(("lr", rate, Role::Rate));
        figures.push(("|grad|", format::number(update.grad_norm), bad(update.grad_norm, Role::Strong)));
        figures.push(("tok/s", format::short(update.tokens_per_second), Role::Strong));
    }
    if let Some((done, of)) = window(state, view) {
        figures.push(("window", format!("{done}/{of}"), Role::Strong));
    }
    if view.skipped > 0 {
        figures.push(("skipped", format::count(view.skipped), Role::Warning));
    }
    if let Some(best) = view.best_val {
        figures.push(("best val", format::loss(best), Role::Strong));
    }
    if let Some(f1) = view.validation.as_ref().and_then(|validation| validation.f1_macro) {
        figures.push(("macro F1", format!("{f1:.3}"), Role::Validation));
    }
    if let Some(update) = &view.update {
        figures.push(("tokens", format::short(update.tokens as f64), Role::Strong));
    }
    let mut spans = Vec::new();
    let mut used = 1;
    for (label, value, role) in figures {
        let width = label.chars().count() + value.chars().count() + 3;
        if used + width > usize::from(area.width) {
            break;
        }
        used += width;
        spans.push(span(format!(" {label} "), Role::Dim, theme));
        spans.push(span(format!("{value} "), role, theme));
    }
    if spans.is_empty() {
        spans.push(span(" the worker is starting: reading the data, building the model", Role::Dim, theme));
    }
    write(area, 1, &Line::from(spans), buffer);
}

/// Micro-batches done of the update being made; nothing without accumulation or once the run has ended.
fn window(state: &State, view: &RunView) -> Option<(u64, u64)> {
    state.status().filter(|status| status.is_live())?;
    let of = view.header.as_ref().map(|header| header.config.train.accumulate as u64).filter(|&of| of > 1)?;
    Some(view.window.map_or((0, of), |window| (window.micro_batches, window.of)))
}

/// Vertical lines where something happened.
fn marks(view: &RunView, axis: XAxis, theme: &Theme) -> Vec<Mark> {
    let mark = |marker: &crate::app::run::Marker| {
        let (role, line) = match marker.kind {
            MarkerKind::Rate => (Role::Rate, true),
            MarkerKind::Resumed => (Role::Good, true),
            MarkerKind::Alert | MarkerKind::Skipped => (Role::Bad, false),
            MarkerKind::Paused | MarkerKind::Checkpoint => (Role::Dim, false),
        };
        Mark { x: marker.place.on(axis), letter: marker.kind.letter(), style: theme.style(role), line }
    };
    view.markers.iter().map(mark).collect()
}

/// Loss of every update, smoothed, and on the held-out text.
pub fn loss(state: &State, theme: &Theme, area: Rect, buffer: &mut Buffer) {
    let view = state.view();
    let focused = state.panel() == Panel::Loss;
    let mut heading = title("loss", focused, theme);
    let beta = SMOOTHING[state.smoothing.min(SMOOTHING.len() - 1)];
    heading.push_span(span("· raw ", Role::Raw, theme));
    if beta > 0.0 {
        heading.push_span(span(format!("━ smoothed {beta} "), Role::Smooth, theme));
    }
    if !view.val.is_empty() {
        heading.push_span(span("◆ validation ", Role::Validation, theme));
    }
    let inside = frame(heading, focused, area, buffer, theme);
    let scale = if state.log_y { "log" } else { "linear" };
    let note = format!(" {scale}, by {} ", state.x_axis.as_str());
    let corner =
        Rect { y: area.bottom().saturating_sub(1), height: 1, width: area.width.saturating_sub(2), ..area };
    write_right(corner, 0, &Line::from(span(note, Role::Dim, theme)), buffer);
    let raw_role = if beta > 0.0 { Role::Raw } else { Role::Smooth };
    let mut lines = vec![Curve {
        points: view.loss.points(state.x_axis),
        style: theme.style(raw_role),
        stroke: Stroke::Solid,
        plain: '.',
    }];
    if beta > 0.0 {
        lines.push(Curve {
            points: view.loss.smoothed(state.x_axis, beta),
            style: theme.style(Role::Smooth),
            stroke: Stroke::Solid,
            plain: '*',
        });
    }
    lines.push(Curve {
        points: view.val.points(state.x_axis),
        style: theme.style(Role::Validation),
        stroke: Stroke::Points('◆'),
        plain: 'o',
    });
    Chart {
        lines,
        marks: marks(view, state.x_axis, theme),
        log_y: state.log_y,
        x_is_time: state.x_axis == XAxis::Time,
        empty: if state.watching.is_some() { "no update yet" } else { "no run is open" },
        ..Chart::default()
    }
    .draw(inside, buffer, theme);
}

/// The whole schedule: what was used so far, what is to come, and where the run is.
pub fn schedule(state: &State, theme: &Theme, area: Rect, buffer: &mut Buffer) {
    let view = state.view();
    let focused = state.panel() == Panel::Schedule;
    let mut heading = small_title(state, Panel::Schedule, area, theme);
    let inside;
    let Some(header) = &view.header else {
        inside = frame(heading, focused, area, buffer, theme);
        return Chart { empty: "no schedule yet", ..Chart::default() }.draw(inside, buffer, theme);
    };
    let (total, done) = (header.total_updates.max(1), view.done());
    if usize::from(area.width) > heading.width() + 22 {
        heading.push_span(span("━ used ", Role::Rate, theme));
        heading.push_span(span("╌ to come ", Role::Future, theme));
    }
    inside = frame(heading, focused, area, buffer, theme);
    let step = (total / SCHEDULE_POINTS).max(1);
    // A rate set by hand stays until it is given back to the schedule.
    let rate = |update| view.rate_override.unwrap_or_else(|| schedule::of(&header.config, total, update));
    let at = |update: u64| (update as f64, rate(update));
    let mut future: Vec<(f64, f64)> =
        (done.max(1)..=total).step_by(step as usize).chain([total]).map(at).collect();
    if done >= total {
        future.clear();
    }
    let lines = vec![
        Curve { points: future, style: theme.style(Role::Future), stroke: Stroke::Dotted, plain: '.' },
        Curve {
            points: view.rate.points(XAxis::Update),
            style: theme.style(Role::Rate),
            stroke: Stroke::Solid,
            plain: '*',
        },
        Curve {
            points: view.update.iter().map(|u| (u.update as f64, u.learning_rate)).collect(),
            style: theme.style(Role::Strong),
            stroke: Stroke::Points('●'),
            plain: '@',
        },
    ];
    let rates = view.markers.iter().filter(|marker| marker.kind == MarkerKind::Rate);
    let marks = rates.map(|marker| Mark {
        x: marker.place.update as f64,
        letter: marker.kind.letter(),
        style: theme.style(Role::Rate),
        line: true,
    });
    Chart {
        lines,
        marks: marks.collect(),
        x_bounds: Some((1.0, total as f64)),
        from_zero: true,
        empty: "no schedule yet",
        ..Chart::default()
    }
    .draw(inside, buffer, theme);
}

/// Global gradient norm before clipping, with the limit it is clipped to.
pub fn gradient(state: &State, theme: &Theme, area: Rect, buffer: &mut Buffer) {
    let view = state.view();
    let inside = frame(
        small_title(state, Panel::Gradient, area, theme),
        state.panel() == Panel::Gradient,
        area,
        buffer,
        theme,
    );
    let points = view.grad_norm.points(state.x_axis);
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
    Chart {
        lines,
        marks: marks(view, state.x_axis, theme).into_iter().filter(|mark| mark.letter == 'x').collect(),
        log_y: state.log_y,
        from_zero: true,
        x_is_time: state.x_axis == XAxis::Time,
        empty: "no update yet",
        ..Chart::default()
    }
    .draw(inside, buffer, theme);
}

/// Tokens a second.
pub fn speed(state: &State, theme: &Theme, area: Rect, buffer: &mut Buffer) {
    let view = state.view();
    let inside = frame(
        small_title(state, Panel::Speed, area, theme),
        state.panel() == Panel::Speed,
        area,
        buffer,
        theme,
    );
    Chart {
        lines: vec![Curve {
            points: view.speed.points(state.x_axis),
            style: theme.style(Role::Good),
            stroke: Stroke::Solid,
            plain: '*',
        }],
        from_zero: true,
        x_is_time: state.x_axis == XAxis::Time,
        empty: "no update yet",
        ..Chart::default()
    }
    .draw(inside, buffer, theme);
}

/// The title of one of the three small charts; where only one has room it names the others.
fn small_title(state: &State, panel: Panel, area: Rect, theme: &Theme) -> Line<'static> {
    let name = |panel: Panel| match panel {
        Panel::Gradient => "gradient norm",
        Panel::Speed => "tokens/s",
        _ => "learning rate",
    };
    let mut heading = title(name(panel), state.panel() == panel, theme);
    let alone = !state.focus.zoomed && area.width < 68 && area.width > 40;
    if alone {
        let others = [Panel::Schedule, Panel::Gradient, Panel::Speed].into_iter().filter(|p| *p != panel);
        let others: Vec<_> = others.map(name).collect();
        let text = format!("Tab: {} ", others.join(", "));
        let room = usize::from(area.width).saturating_sub(heading.width() + 3);
        if text.chars().count() <= room && !layout::compact(Rect { width: 80, height: 24, ..area }) {
            heading.push_span(span(text, Role::Dim, theme));
        }
    }
    heading
}
