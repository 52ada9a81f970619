//! The Runs screen: the list of all runs.

use ratatui::{buffer::Buffer, layout::Rect, text::Line};

use crate::{
    app::{
        State,
        focus::Panel,
        runs::{Order, RunRow},
        tensors::first_visible,
    },
    ui::{
        format,
        legend::letter,
        theme::{Role, Theme},
        widgets::{frame, span, title, write},
    },
};

/// Columns of an id beside a note, and the least columns of a note.
const ID: usize = 36;
const NOTE: usize = 16;

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

/// How the width of the list is given away.
struct Columns {
    name: usize,
    shown: Vec<&'static Column>,
    /// Columns left for the id, and of those for the note.
    id: usize,
    note: usize,
}

impl Columns {
    /// Of a list of that many columns inside its frame.
    fn of(room: usize, noted: bool) -> Self {
        let name = (room / 4).clamp(14, 32);
        let mut used = name + 3;
        let mut shown = Vec::new();
        for column in &COLUMNS {
            if used + column.width < room {
                used += column.width + 1;
                shown.push(column);
            }
        }
        let id = room.saturating_sub(used);
        let note = if noted && id >= ID + NOTE { id - ID } else { 0 };
        Self { name, shown, id: id - note, note }
    }
}

/// What the list is ordered by when that place of the panel is clicked: the head of a column.
pub fn head_at(state: &State, panel: Panel, area: Rect, column: u16, row: u16) -> Option<Order> {
    if panel != Panel::List || row != area.y + 1 || state.runs.rows.is_empty() {
        return None;
    }
    let at = usize::from(column.checked_sub(area.x + 1)?);
    let room = usize::from(area.width.saturating_sub(2));
    if at >= room {
        return None;
    }
    let columns = Columns::of(room, noted(state));
    let mut end = columns.name + 3;
    if at < end {
        return Some(Order::Name);
    }
    for column in columns.shown {
        end += column.width + 1;
        if at < end {
            return Order::ALL.into_iter().find(|order| order.as_str() == column.name);
        }
    }
    (columns.id > 12 && at < end + columns.id).then_some(Order::Newest)
}

/// Whether a run of the list has a note.
fn noted(state: &State) -> bool {
    state.runs.rows.iter().any(|run| run.note.is_some())
}

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
    let Columns { name: name_width, shown: columns, id: id_room, note: note_room } =
        Columns::of(usize::from(inside.width), noted(state));
    let headed = |name: &str, text: String| {
        let sorted = runs.order.as_str() == name;
        span(text, if sorted { Role::Focused } else { Role::Dim }, theme)
    };
    let mut head = vec![headed("name", format!("  {:<name_width$} ", "name"))];
    head.extend(columns.iter().map(|column| headed(column.name, pad(column, column.name))));
    if id_room > 12 {
        head.push(headed("newest", format!("{:<id_room$}", "id")));
    }
    if note_room > 0 {
        head.push(span("note", Role::Dim, theme));
    }
    write(inside, 0, &Line::from(head), buffer);
    let height = usize::from(inside.height.saturating_sub(1));
    let first = first_visible(runs.selected, runs.rows.len(), height);
    for (line, (at, run)) in runs.rows.iter().enumerate().skip(first).take(height).enumerate() {
        let mark = runs.marked.iter().position(|id| *id == run.id);
        let (sign, role) = mark.map_or((' ', Role::Dim), |at| (letter(at), Role::Run(at)));
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
                let id = format::cut(&run.id, id_room.saturating_sub(usize::from(note_room > 0)));
                spans.push(span(format!("{id:<id_room$}"), Role::Dim, theme));
            }
            if let Some(note) = run.note.as_ref().filter(|_| note_room > 0) {
                spans.push(span(format::cut(note, note_room), Role::Text, theme));
            }
        }
        write(inside, line as u16 + 1, &Line::from(spans), buffer);
        if at == runs.selected && (line as u16 + 1) < inside.height {
            let place = Rect { y: inside.y + line as u16 + 1, height: 1, ..inside };
            buffer.set_style(place, theme.style(Role::Selected));
        }
    }
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

/// The text of a value, or a dash where there is none.
pub(super) fn or_dash<T>(value: Option<T>, text: impl Fn(T) -> String) -> String {
    value.map_or_else(|| "-".to_owned(), text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        app::{Msg, action::Screen, recorded},
        ui::{Hit, hit},
    };

    #[test]
    fn a_click_on_the_head_of_a_column_sorts_by_it() {
        let area = Rect::new(0, 0, 120, 40);
        let mut state = recorded::watching(Screen::Runs, "adamw");
        let mut buffer = Buffer::empty(area);
        crate::ui::render(&state, &Theme::default(), area, &mut buffer);
        let row = |y: u16| -> String { (0..120).map(|x| buffer[(x, y)].symbol()).collect() };
        let y = (0..40).find(|y| row(*y).contains("val loss") && row(*y).contains("updates")).unwrap();
        for (head, order) in [
            ("name", Order::Name),
            ("state", Order::State),
            ("val loss", Order::ValLoss),
            ("batch", Order::Batch),
        ] {
            let at = row(y).find(head).unwrap();
            let x = row(y)[..at].chars().count() as u16;
            assert_eq!(hit(&state, area, x, y), Some(Hit::Head(order)), "{head}");
        }
        let Some(Hit::Head(order)) = hit(&state, area, 3, y) else { panic!("no head") };
        state.update(Msg::SortBy(order));
        assert_eq!((state.runs.order, state.runs.rows[0].name.as_str()), (Order::Name, "demo"));
        assert!(matches!(hit(&state, area, 3, y + 1), Some(Hit::Panel { row: Some(0), .. })));
    }
}
