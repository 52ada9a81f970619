//! The State screen: every state tensor in a table, and one parameter opened.

use ratatui::{buffer::Buffer, layout::Rect, text::Line};
use unicode_width::UnicodeWidthStr;

use crate::{
    app::{
        State,
        focus::Panel,
        tensors::{Column, Group, Line as Row, Tensors, first_visible},
    },
    protocol::TensorStats,
    ui::{
        format,
        screens::strips,
        theme::{Role, Theme},
        widgets::{frame, span, title, write, write_right},
    },
};

/// Columns in the order in which room is given to them.
const PRIORITY: [Column; 15] = [
    Column::Name,
    Column::State,
    Column::Rms,
    Column::Change,
    Column::Bytes,
    Column::Ratio,
    Column::Max,
    Column::Shape,
    Column::NonFinite,
    Column::Min,
    Column::Step,
    Column::Zeros,
    Column::Error,
    Column::Untouched,
    Column::Dtype,
];

const fn width(column: Column) -> usize {
    match column {
        Column::Name => 24,
        Column::State => 15,
        Column::Shape => 9,
        Column::Step => 6,
        Column::Bytes => 9,
        Column::Change => 8,
        Column::Rms | Column::Min | Column::Max => 9,
        Column::Zeros => 7,
        Column::NonFinite => 7,
        Column::Ratio => 12,
        Column::Error => 10,
        Column::Untouched => 10,
        Column::Dtype => 5,
    }
}

fn columns(room: usize, table: &Tensors) -> Vec<Column> {
    let there = table.columns();
    let mut chosen = vec![Column::Name];
    let mut used = width(Column::Name) + 1;
    // The column that orders the table is always seen.
    let wanted = [table.sort].into_iter().chain(PRIORITY);
    for column in wanted {
        if chosen.contains(&column) || !there.contains(&column) {
            continue;
        }
        if used + width(column) < room {
            used += width(column) + 1;
            chosen.push(column);
        }
    }
    there.into_iter().filter(|column| chosen.contains(column)).collect()
}

/// Line of the table at a row of the panel.
pub fn row_at(state: &State, area: Rect, line: usize) -> Option<usize> {
    let height = usize::from(area.height.saturating_sub(4));
    let line = line.checked_sub(2).filter(|line| *line < height)?;
    let count = state.tensors.lines().len();
    Some(first_visible(state.tensors.selected, count, height) + line).filter(|row| *row < count)
}

/// Draws the screen.
pub fn draw(state: &State, theme: &Theme, area: Rect, buffer: &mut Buffer) {
    let focused = state.panel() == Panel::Tensors;
    if state.tensors.opened.is_some() {
        return strips::draw(state, theme, area, buffer);
    }
    let table = &state.tensors;
    let mut heading = title("optimizer state", focused, theme);
    if let Some(report) = &table.report {
        let text = format!("{} after update {} ", report.optimizer, format::count(report.update));
        let source = format!("({}) ", table.source);
        let room = usize::from(area.width.saturating_sub(2));
        if heading.width() + text.width() > room {
            heading = title("state", focused, theme);
        }
        heading.push_span(span(text, Role::Strong, theme));
        if heading.width() + source.width() <= room {
            heading.push_span(span(source, Role::Dim, theme));
        }
    }
    let inside = frame(heading, focused, area, buffer, theme);
    let Some(report) = &table.report else {
        return nothing(state, theme, inside, buffer);
    };
    let lines = table.lines();
    let room = usize::from(inside.width);
    let columns = columns(room, table);
    let extra = room.saturating_sub(columns.iter().map(|column| width(*column) + 1).sum::<usize>()).min(40);
    head(state, &columns, extra, theme, inside, buffer);
    let height = usize::from(inside.height.saturating_sub(2));
    let selected = table.selected.min(lines.len().saturating_sub(1));
    let first = first_visible(selected, lines.len(), height);
    for (row, (at, line)) in lines.iter().enumerate().skip(first).take(height).enumerate() {
        let above = at.checked_sub(1).filter(|_| row > 0).map(|above| &lines[above]);
        let same =
            above.is_some_and(|above| above.group.is_none() && above.parameter.name == line.parameter.name);
        let place = (inside, row as u16 + 1);
        if let Some(group) = line.group {
            self::group(group, at == selected, theme, place, buffer);
        } else {
            tensor(line, same, at == selected, (&columns, extra), theme, place, buffer);
        }
    }
    if lines.is_empty() && !table.filter.text().is_empty() {
        let text = theme.keys.told("no tensor passes the filter: {key:back} clears it", state.context());
        for (row, line) in (1..=height).zip(format::wrap(&text, room)) {
            write(inside, row as u16, &Line::from(span(line, Role::Dim, theme)), buffer);
        }
    }
    let bottom = inside.height.saturating_sub(1);
    let hidden = table.columns().len() - columns.len();
    let more = if hidden > 0 && room >= 60 { format!("  {hidden} more columns: <>") } else { String::new() };
    write_right(inside, bottom, &Line::from(span(&*more, Role::Dim, theme)), buffer);
    if state.tensors.filtering || !table.filter.text().is_empty() {
        return filter(state, lines.len(), theme, inside, bottom, buffer);
    }
    let (elements, parameters) = (format::count(report.elements()), report.tensors.len());
    let bytes = format::count(report.bytes());
    let names: Vec<_> = report.shared.keys().map(String::as_str).collect();
    let shared =
        if names.is_empty() { String::new() } else { format!(", with {} once", names.join(" and ")) };
    let texts = [
        format!("{elements} state elements, {bytes} bytes, {parameters} parameters{shared}"),
        format!("{elements} state elements, {bytes} bytes{shared}"),
        format!("{elements} state elements, {bytes} bytes"),
        format!("{bytes} bytes, {parameters} parameters"),
    ];
    let text = format::first_fitting(&texts, room.saturating_sub(more.width()));
    write(inside, bottom, &Line::from(span(text, Role::Dim, theme)), buffer);
}

fn nothing(state: &State, theme: &Theme, area: Rect, buffer: &mut Buffer) {
    let waiting;
    let text = if state.watching.is_none() {
        "no run is open: start one on screen {key:setup}, or choose one on screen {key:runs}"
    } else if let Some(waits) = &state.link.waits {
        waiting = waits.sentence();
        &waiting
    } else if !state.tensors.source.is_empty() {
        &state.tensors.source
    } else if state.is_live() {
        "waiting for the first statistics of the optimizer's state"
    } else {
        "reading the last checkpoint"
    };
    let text = theme.keys.told(text, state.context());
    for (row, line) in format::wrap(&text, usize::from(area.width)).into_iter().enumerate() {
        write(area, row as u16, &Line::from(span(line, Role::Dim, theme)), buffer);
    }
}

fn filter(state: &State, found: usize, theme: &Theme, area: Rect, row: u16, buffer: &mut Buffer) {
    let table = &state.tensors;
    let mut spans = vec![span(format!("/{}", table.filter.text()), Role::Strong, theme)];
    if table.filtering {
        spans.push(span("█", Role::Focused, theme));
    }
    match table.filter_error() {
        Some(error) => spans.push(span(format!("  {error}"), Role::Bad, theme)),
        None => spans.push(span(format!("  {found} lines"), Role::Dim, theme)),
    }
    write(area, row, &Line::from(spans), buffer);
}

fn head(state: &State, columns: &[Column], extra: usize, theme: &Theme, area: Rect, buffer: &mut Buffer) {
    let mut spans = Vec::new();
    for column in columns {
        let sorted = *column == state.tensors.sort;
        let arrow = match (sorted, state.tensors.reverse) {
            (true, true) => "▼",
            (true, false) => "▲",
            (false, _) => "",
        };
        let name = match column {
            Column::Error if eight_bit(&state.tensors) => "8-bit err",
            Column::Error => "factor err",
            other => other.as_str(),
        };
        let text = format!("{name}{arrow}");
        let role = if sorted { Role::Focused } else { Role::Dim };
        spans.push(span(pad(*column, &text, extra), role, theme));
    }
    write(area, 0, &Line::from(spans), buffer);
}

/// Whether the error is that of 8-bit codes, not that of a factored second moment.
fn eight_bit(table: &Tensors) -> bool {
    table.report.as_ref().is_some_and(|report| !report.shared.is_empty())
}

/// Words to the left, numbers to the right, and a space after each.
fn pad(column: Column, text: &str, extra: usize) -> String {
    let width = width(column);
    match column {
        Column::Name => {
            let width = width + extra;
            format!("{:<width$} ", format::elide_name(text, width))
        }
        Column::State | Column::Dtype => format!("{:<width$} ", format::cut(text, width)),
        _ => format!("{:>width$} ", format::cut(text, width)),
    }
}

fn tensor(
    line: &Row<'_>,
    same: bool,
    selected: bool,
    (columns, extra): (&[Column], usize),
    theme: &Theme,
    (area, row): (Rect, u16),
    buffer: &mut Buffer,
) {
    let stats = line.state.and_then(|(_, state)| state.stats.as_ref());
    let bad = stats.is_some_and(|stats| stats.nonfinite > 0);
    let role = if bad { Role::Bad } else { Role::Text };
    let mut spans = Vec::new();
    for column in columns {
        let text = cell(*column, line, stats);
        // A parameter's name stands once over its state tensors.
        let own = |column: &Column| match column {
            Column::Name | Column::Step | Column::Ratio | Column::Untouched => true,
            // Each of the two moments of codes has an error, the two factors have one together.
            Column::Error => line.state.is_some_and(|(name, _)| name.starts_with("exp_avg_sq_")),
            _ => false,
        };
        let repeated = same && own(column);
        let text = if repeated && !selected { String::new() } else { text };
        let role = if *column == Column::Name { Role::Strong } else { role };
        let role = if *column == Column::State { Role::Optimizer } else { role };
        spans.push(span(pad(*column, &text, extra), if bad { Role::Bad } else { role }, theme));
    }
    write(area, row, &Line::from(spans), buffer);
    if selected && row < area.height {
        let place = Rect { y: area.y + row, height: 1, ..area };
        buffer.set_style(place, theme.style(Role::Selected));
    }
}

/// The line over a layer's tensors.
fn group(group: Group<'_>, selected: bool, theme: &Theme, (area, row): (Rect, u16), buffer: &mut Buffer) {
    let sign = if group.folded { "▶" } else { "▼" };
    let mut spans = vec![
        span(format!("{sign} {}", format::cut(group.layer, 40)), Role::Title, theme),
        span(
            format!(
                "  {} parameter{}, {} state elements, {}",
                format::count(group.parameters as u64),
                if group.parameters == 1 { "" } else { "s" },
                format::count(group.elements),
                format::bytes(group.bytes)
            ),
            Role::Dim,
            theme,
        ),
    ];
    if group.nonfinite > 0 {
        let text = format!("  {} not finite", format::count(group.nonfinite));
        spans.push(span(text, Role::Bad, theme));
    }
    write(area, row, &Line::from(spans), buffer);
    if selected && row < area.height {
        let place = Rect { y: area.y + row, height: 1, ..area };
        buffer.set_style(place, theme.style(Role::Selected));
    }
}

fn cell(column: Column, line: &Row<'_>, stats: Option<&TensorStats>) -> String {
    let number =
        |pick: fn(&TensorStats) -> f64| stats.map_or_else(|| "-".to_owned(), |s| format::number(pick(s)));
    let whole = |pick: fn(&TensorStats) -> u64| {
        stats.map_or_else(|| "-".to_owned(), |s| format::short(pick(s) as f64))
    };
    let state = line.state;
    match column {
        Column::Name => format::tensor_name(&line.parameter.name).to_owned(),
        Column::State => state.map_or("none", |(name, _)| name).to_owned(),
        Column::Shape => state.map_or_else(|| "-".to_owned(), |(_, state)| format::shape(&state.shape)),
        Column::Step => format::short(line.parameter.step as f64),
        Column::Bytes => state.map_or_else(|| "0 B".to_owned(), |(_, state)| format::bytes(state.bytes)),
        Column::Rms => number(|stats| stats.rms),
        Column::Change => line.change().map_or_else(|| "-".to_owned(), change),
        Column::Min => number(|stats| stats.min),
        Column::Max => number(|stats| stats.max),
        Column::Zeros => whole(|stats| stats.zeros),
        Column::NonFinite => whole(|stats| stats.nonfinite),
        Column::Ratio => line.parameter.update_ratio.map_or_else(|| "-".to_owned(), format::number),
        Column::Error => match (line.error(), state) {
            (Some(error), Some((name, _))) if name.starts_with("state") => format::share(error),
            (error, _) => error.map_or_else(|| "-".to_owned(), format::figure),
        },
        Column::Untouched => line.untouched().map_or_else(|| "-".to_owned(), format::short),
        Column::Dtype => state.map_or("-", |(_, state)| &state.dtype).to_owned(),
    }
}

/// A relative change in percent, with its sign.
fn change(share: f64) -> String {
    let percent = 100.0 * share;
    match percent.abs() {
        size if size < 0.005 => "0%".to_owned(),
        size if size < 10.0 => format!("{percent:+.2}%"),
        size if size < 1e4 => format!("{percent:+.0}%"),
        _ => format::number(percent) + "%",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::{
        Msg,
        action::{Action, Screen},
        input::TextLine,
        recorded,
    };

    #[test]
    fn a_filter_that_nothing_passes_says_how_it_is_cleared() {
        let mut state = recorded::watching(Screen::State, "adamw");
        let drawn = |state: &State| -> String {
            let area = Rect::new(0, 0, 80, 20);
            let mut buffer = Buffer::empty(area);
            draw(state, &Theme::default(), area, &mut buffer);
            area.positions().map(|at| buffer[at].symbol().to_owned()).collect()
        };
        let said = "no tensor passes the filter: Esc clears it";
        assert!(!drawn(&state).contains(said));
        state.tensors.filter = TextLine::new("nothing-is-called-that");
        assert!(drawn(&state).contains(said), "{}", drawn(&state));
        state.update(Msg::Action(Action::Back));
        assert!(!drawn(&state).contains(said) && drawn(&state).contains("q_proj"));
        // And while it is typed.
        state.update(Msg::Action(Action::Filter));
        state.tensors.filter = TextLine::new("nothing-is-called-that");
        assert!(drawn(&state).contains(said), "{}", drawn(&state));
        state.update(Msg::Cancel);
        assert!(drawn(&state).contains("q_proj"), "{}", drawn(&state));
    }
}
