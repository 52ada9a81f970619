//! The learning-rate schedule as a whole: what was used so far, what is to come, where the run is, and what the
//! accumulation setting does to its length.

use ratatui::{buffer::Buffer, layout::Rect, text::Line};

use super::curves::{corner, small_title};
use crate::{
    app::{State, focus::Panel, run::MarkerKind, slice::Slice},
    config::{Arch, schedule},
    protocol::Header,
    ui::{
        chart::{Chart, Line as Curve, Mark, Stroke},
        format,
        theme::{Role, Theme},
        widgets::{frame, span, write},
    },
};

/// Most points of the curve that is to come.
const POINTS: u64 = 400;
/// Lines that a chart needs above the table of lengths.
const CHART_ROWS: u16 = 10;

/// Draws the panel.
pub fn draw(state: &State, theme: &Theme, area: Rect, buffer: &mut Buffer) {
    let focused = state.panel() == Panel::Schedule;
    let mut heading = small_title(state, Panel::Schedule, area, theme);
    let view = state.view();
    let Some(header) = &view.header else {
        let inside = frame(heading, focused, area, buffer, theme);
        return Chart { empty: "no schedule yet", ..Chart::default() }.draw(inside, buffer, theme);
    };
    for (text, role) in [("━ used ", Role::Rate), ("╌ to come ", Role::Future), ("● here ", Role::Strong)]
    {
        // Where the title names the other charts there is no room for a legend.
        if heading.width() + text.chars().count() + 3 <= usize::from(area.width) && heading.spans.len() < 4 {
            heading.push_span(span(text, role, theme));
        }
    }
    let inside = frame(heading, focused, area, buffer, theme);
    let place = plot(state, inside);
    if let Some(chart) = chart(state, theme, place) {
        chart.draw(place, buffer, theme);
    }
    let lengths = lengths(header);
    if place.height < inside.height {
        table(
            header,
            &lengths,
            theme,
            Rect { y: place.bottom(), height: inside.bottom() - place.bottom(), ..inside },
            buffer,
        );
    } else {
        corner(area, &note(header, &lengths, usize::from(area.width.saturating_sub(4))), theme, buffer);
    }
}

/// Where the curve is drawn: what the table of lengths leaves.
pub fn plot(state: &State, inside: Rect) -> Rect {
    let rows = state.view().header.as_ref().map_or(0, |header| match lengths(header).len() {
        0 => 0,
        lengths => lengths as u16 + 2,
    });
    let room = inside.height >= CHART_ROWS + rows && inside.width >= 50;
    Rect { height: if room { inside.height - rows } else { inside.height }, ..inside }
}

/// The curve, by updates whatever the other charts count; always whole.
pub fn chart(state: &State, theme: &Theme, place: Rect) -> Option<Chart> {
    let view = state.view();
    let header = view.header.as_ref()?;
    let (total, done) = (header.total_updates.max(1), view.done());
    let step = (total / POINTS).max(1);
    // A rate set by hand stays until it is given back to the schedule.
    let rate = |update| view.rate_override.unwrap_or_else(|| schedule::of(&header.config, total, update));
    let at = |update: u64| (update as f64, rate(update));
    let mut future: Vec<(f64, f64)> =
        (done.max(1)..=total).step_by(step as usize).chain([total]).map(at).collect();
    if done >= total {
        future.clear();
    }
    // A loop of its own has a schedule that nobody knows.
    future.retain(|(_, rate)| rate.is_finite());
    let whole = (1.0, total as f64);
    let columns = usize::from(place.width) * 4;
    let slice = Slice { bounds: Some(whole), columns, log: state.plot.log_x, ..Slice::default() };
    let lines = vec![
        Curve { points: future, style: theme.style(Role::Future), stroke: Stroke::Dotted, plain: '.' },
        Curve {
            points: view.rate.points_in(&slice),
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
    Some(Chart {
        lines,
        marks: marks.collect(),
        x_bounds: Some(whole),
        log_x: state.plot.log_x,
        from_zero: true,
        empty: "no schedule yet",
        cursor: state.cursor().map(|update| (update as f64, theme.style(Role::Focused))),
        ..Chart::default()
    })
}

/// A schedule for the same tokens with another accumulation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Length {
    accumulate: u64,
    /// Updates that pass at least as many sequences.
    updates: u64,
}

/// The updates that pass the same sequences with half, the present and twice the accumulation, and with none.
fn lengths(header: &Header) -> Vec<Length> {
    if header.config.model.arch == Arch::Loop {
        // It accumulates as it likes.
        return Vec::new();
    }
    let now = (header.config.train.accumulate as u64).max(1);
    let mut settings = vec![1, now / 2, now, now.saturating_mul(2)];
    settings.retain(|accumulate| *accumulate > 0);
    settings.sort_unstable();
    settings.dedup();
    let micro_batches = header.total_updates.saturating_mul(now);
    let length = |accumulate| Length { accumulate, updates: micro_batches.div_ceil(accumulate) };
    settings.into_iter().map(length).collect()
}

/// One line: the present length, and what another accumulation makes of it.
fn note(header: &Header, lengths: &[Length], room: usize) -> String {
    let counted = header.config.model.arch.counted().as_str();
    let now = header.config.train.accumulate as u64;
    let other =
        |length: &Length| format!("accumulate {}: {}", length.accumulate, format::count(length.updates));
    let others: Vec<String> = lengths.iter().filter(|length| length.accumulate != now).map(other).collect();
    if others.is_empty() {
        return String::new();
    }
    let twice = lengths.last().map(other).unwrap_or_default();
    let texts = [
        format!(" {} updates for the same {counted} ", others.join(", ")),
        format!(" {twice} updates, same {counted} "),
        format!(" {twice}, same {counted} "),
        format!(" {twice} "),
    ];
    texts.into_iter().find(|text| text.chars().count() <= room).unwrap_or_default()
}

/// Every length with the tokens of an update and the share of the warm-up.
fn table(header: &Header, lengths: &[Length], theme: &Theme, area: Rect, buffer: &mut Buffer) {
    if lengths.is_empty() {
        return;
    }
    let train = &header.config.train;
    let counted = header.config.model.arch.counted().as_str();
    let each = format!("{counted} each");
    let head = format!("{:>12} {:>12} {each:>14} {:>10}", "accumulate", "updates", "warm-up");
    write(area, 1, &Line::from(span(head, Role::Dim, theme)), buffer);
    for (row, length) in lengths.iter().enumerate() {
        let tokens = length.accumulate * (train.micro_batch * train.seq_len) as u64;
        let warmup = format::percent(header.config.schedule.warmup_updates as f64, length.updates as f64);
        let now = length.accumulate == train.accumulate as u64;
        let text = format!(
            "{:>12} {:>12} {:>14} {:>10}{}",
            length.accumulate,
            format::count(length.updates),
            format::count(tokens),
            warmup,
            if now { "  this run".to_owned() } else { format!("  for the same {counted}") }
        );
        let role = if now { Role::Strong } else { Role::Text };
        let text = format::cut(&text, usize::from(area.width));
        write(area, row as u16 + 2, &Line::from(span(text, role, theme)), buffer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::recorded;

    #[test]
    fn accumulation_changes_the_length_for_the_same_tokens() {
        let state = recorded::watching(crate::app::action::Screen::Train, "adamw");
        let header = state.run.header.as_ref().unwrap();
        let all: Vec<_> = lengths(header).iter().map(|length| (length.accumulate, length.updates)).collect();
        assert_eq!(all, [(1, 1200), (2, 600), (4, 300)]);
        assert!(note(header, &lengths(header), 80).contains("accumulate 1: 1,200, accumulate 4: 300"));
        assert_eq!(note(header, &lengths(header), 10), "");
        let mut odd = (**header).clone();
        (odd.config.train.accumulate, odd.total_updates) = (3, 7);
        let all: Vec<_> = lengths(&odd).iter().map(|length| (length.accumulate, length.updates)).collect();
        assert_eq!(all, [(1, 21), (3, 7), (6, 4)], "the last one is short");
        odd.config.model.arch = Arch::Loop;
        assert_eq!(note(&odd, &lengths(&odd), 80), "", "a loop of its own has no other length");
    }
}
