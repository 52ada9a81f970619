//! The Setup screen: the draft as a form, and beside it what it would cost with every optimizer.

use ratatui::{
    buffer::Buffer,
    layout::Rect,
    text::{Line, Span},
};

use crate::{
    app::{
        State,
        focus::Panel,
        form::{Form, Row},
        tensors::first_visible,
    },
    config::{OptimizerName, fields::Field, presets, schedule},
    protocol::Ledger,
    ui::{
        chart::{Chart, Line as Curve, Stroke},
        format,
        screens::memory,
        theme::{Role, Theme},
        widgets::{frame, paragraph, span, stacked, title, write, write_right},
    },
};

/// Lines at the bottom of the form that explain the focused field.
const HELP: u16 = 4;
/// Lines of the plan besides one of figures and one of a bar for each optimizer: without room for all, the bars go.
const BELOW: usize = 14;
/// Columns of a field's name.
const NAME: usize = 23;

/// The part of the form that lists fields.
fn list(area: Rect) -> Rect {
    let inside = Rect {
        x: area.x + 1,
        y: area.y + 1,
        width: area.width.saturating_sub(2),
        height: area.height.saturating_sub(2),
    };
    Rect { height: inside.height.saturating_sub(HELP), ..inside }
}

/// The line of the form at a row of the panel.
pub fn row_at(state: &State, area: Rect, line: usize) -> Option<usize> {
    let list = list(area);
    let height = usize::from(list.height);
    let line = line.checked_sub(1).filter(|line| *line < height)?;
    let rows = state.form.rows().len();
    Some(first_visible(state.form.cursor(), rows, height) + line).filter(|row| *row < rows)
}

/// The form.
pub fn form(state: &State, theme: &Theme, area: Rect, buffer: &mut Buffer) {
    let form = &state.form;
    let focused = state.panel() == Panel::Form;
    let mut heading = title("next run", focused, theme);
    if let Ok((_, name)) = form.start() {
        heading.push_span(span(format!("{name} "), Role::Dim, theme));
    }
    let inside = frame(heading, focused, area, buffer, theme);
    let list = list(area);
    let rows = form.rows();
    let cursor = form.cursor();
    let height = usize::from(list.height);
    let first = first_visible(cursor, rows.len(), height);
    for (line, (at, row)) in rows.iter().enumerate().skip(first).take(height).enumerate() {
        match row {
            Row::Section(name) => section(name, list, line as u16, buffer, theme),
            Row::Field(field) => self::field(state, field, at == cursor, list, line as u16, buffer, theme),
        }
    }
    if rows.len() > height {
        let place = format!(" {}/{} ", cursor + 1, rows.len());
        let corner = Rect { y: area.bottom() - 1, height: 1, width: area.width.saturating_sub(2), ..area };
        write_right(corner, 0, &Line::from(span(place, Role::Dim, theme)), buffer);
    }
    let help = Rect { y: list.bottom(), height: inside.bottom().saturating_sub(list.bottom()), ..inside };
    explain(state, help, buffer, theme);
}

fn section(name: &str, area: Rect, line: u16, buffer: &mut Buffer, theme: &Theme) {
    let rule = usize::from(area.width).saturating_sub(name.chars().count() + 2);
    let spans =
        vec![span(format!("{name} "), Role::Title, theme), span("─".repeat(rule), Role::Border, theme)];
    write(area, line, &Line::from(spans), buffer);
}

fn short(field: &Field) -> &str {
    field.key.rsplit('.').next().unwrap_or(field.key)
}

fn field(
    state: &State,
    field: &Field,
    selected: bool,
    area: Rect,
    line: u16,
    buffer: &mut Buffer,
    theme: &Theme,
) {
    let form = &state.form;
    let error = state.field_error(field.key);
    let name = if field.key == "optimizer.name" { "optimizer" } else { short(field) };
    let mark = match (selected, form.by_hand(field.key)) {
        (true, _) => "▶",
        (false, true) => "*",
        (false, false) => " ",
    };
    let mark_role = if selected { Role::Focused } else { Role::Warning };
    let name_role = if selected { Role::Strong } else { Role::Text };
    let mut spans = vec![
        span(mark, mark_role, theme),
        span(format!("{:<NAME$}", format::cut(name, NAME - 1)), name_role, theme),
    ];
    let room = usize::from(area.width).saturating_sub(NAME + 1);
    match &form.editing {
        Some(editing) if selected => {
            let style = theme.style(Role::Selected);
            let text: Vec<char> = editing.text().chars().collect();
            // The cursor stays in sight of a long text.
            let from = (editing.cursor() + 2).saturating_sub(room);
            let shown: String = text.iter().skip(from).take(room.saturating_sub(1)).collect();
            let before: String = shown.chars().take(editing.cursor() - from).collect();
            let under = shown.chars().nth(editing.cursor() - from).unwrap_or(' ').to_string();
            let after: String = shown.chars().skip(editing.cursor() - from + 1).collect();
            spans.push(span(before, Role::Strong, theme));
            spans.push(Span::styled(under, style));
            spans.push(span(after, Role::Strong, theme));
            if error.is_some() {
                spans.push(span(" ✗ see below", Role::Bad, theme));
            }
        }
        _ => {
            let value = format::setting(&form.value(field.key));
            let absent = value.is_empty();
            let value = if absent { "-".to_owned() } else { value };
            let choices = selected && form.cycles();
            let value = if choices { format!("‹ {value} ›") } else { value };
            let role = if error.is_some() {
                Role::Bad
            } else if selected || form.by_hand(field.key) {
                Role::Strong
            } else {
                Role::Text
            };
            let value = format::elide(&value, room);
            let left = room.saturating_sub(value.chars().count() + 1);
            spans.push(span(value, role, theme));
            if error.is_some() {
                spans.push(span(format::cut(" ✗ see below", left + 1), Role::Bad, theme));
            } else if field.unit.chars().count() <= left && !absent {
                spans.push(span(format!(" {}", field.unit), Role::Dim, theme));
            }
        }
    }
    write(area, line, &Line::from(spans), buffer);
}

/// Help, range and default of the focused field, or what is wrong with it.
fn explain(state: &State, area: Rect, buffer: &mut Buffer, theme: &Theme) {
    let rule = "─".repeat(usize::from(area.width));
    write(area, 0, &Line::from(span(rule, Role::Border, theme)), buffer);
    let Some(field) = state.form.field() else { return };
    if let Some(error) = &state.form.error {
        let text = if error.key == field.key {
            error.text.clone()
        } else {
            format!("{}: {}", error.key, error.text)
        };
        paragraph(area, 1, &format!("✗ {text}"), Role::Bad, buffer, theme);
        return;
    }
    let mut help = field.help.to_owned();
    if field.key == "model.preset" {
        let preset = presets::find(&state.form.value(field.key));
        help = preset.map_or(help, |preset| preset.about().to_owned());
    }
    let row = paragraph(area, 1, &help, Role::Text, buffer, theme);
    let mut range = if field.key == "model.preset" {
        let names: Vec<_> = presets::all().map(|preset| preset.name).collect();
        format!("one of {}", names.join(", "))
    } else {
        field.kind.expected()
    };
    if !field.default.is_empty() {
        range.push_str(&format!("; default {}", field.default.trim_matches('"')));
    }
    paragraph(area, row, &range, Role::Dim, buffer, theme);
}

/// What the draft would cost and do.
pub fn plan(state: &State, theme: &Theme, area: Rect, buffer: &mut Buffer) {
    let form = &state.form;
    let focused = state.panel() == Panel::Plan;
    let mut heading = title("plan", focused, theme);
    heading.push_span(span("bytes exact, ~ estimated ", Role::Dim, theme));
    let inside = frame(heading, focused, area, buffer, theme);
    let mut row = table(form, theme, inside, buffer);
    row = facts(state, theme, inside, row + 1, buffer);
    for note in &form.resolved.notes {
        row = paragraph(inside, row, note, Role::Warning, buffer, theme);
    }
    row = changes(form, theme, inside, row + 1, buffer);
    if inside.height > row + 8 {
        preview(
            form,
            theme,
            Rect { y: inside.y + row + 1, height: inside.height - row - 1, ..inside },
            buffer,
        );
    }
}

/// One line an optimizer; as many categories as there is room for.
fn table(form: &Form, theme: &Theme, area: Rect, buffer: &mut Buffer) -> u16 {
    type Figure = fn(&Ledger) -> u64;
    let all: [(&str, Figure); 6] = [
        ("state", |l| l.state_bytes),
        ("total ~", |l| l.total_bytes_estimated),
        ("params", |l| l.parameter_bytes),
        ("grads", |l| l.gradient_bytes),
        ("accum", |l| l.accumulation_bytes),
        ("activ ~", |l| l.activation_bytes_estimated),
    ];
    let name_width = 12;
    let columns = (usize::from(area.width).saturating_sub(name_width) / 10).clamp(1, all.len());
    // Shown in the order in which they add up, chosen by what matters most.
    let order = [2, 3, 4, 0, 5, 1];
    let shown: Vec<_> = order.into_iter().filter(|at| *at < columns).map(|at| all[at]).collect();
    let head: String = shown.iter().map(|(name, _)| format!("{name:>10}")).collect();
    write(area, 0, &Line::from(span(format!("{:name_width$}{head}", ""), Role::Dim, theme)), buffer);
    let mut row = 1;
    let most = form.ledgers.iter().map(|(_, ledger)| ledger.total_bytes_estimated).max().unwrap_or(1);
    for (name, ledger) in &form.ledgers {
        let chosen = *name == form.optimizer();
        let role = if chosen { Role::Strong } else { Role::Text };
        let mark = if chosen { "▶" } else { " " };
        let mut spans = vec![
            span(mark, Role::Focused, theme),
            span(format!("{:<width$}", name.as_str(), width = name_width - 1), role, theme),
        ];
        for (name, figure) in &shown {
            // What the passes of a task's own model keep, no shape tells.
            let text = match (figure(ledger), *name) {
                (0, "activ ~") => "?".to_owned(),
                (bytes, _) => format::bytes(bytes),
            };
            spans.push(span(format!("{text:>10}"), role, theme));
        }
        write(area, row, &Line::from(spans), buffer);
        row += 1;
    }
    if usize::from(area.height) < 2 * form.ledgers.len() + BELOW {
        return row;
    }
    row += 1;
    for (name, ledger) in &form.ledgers {
        bar(*name, ledger, most, theme, area, row, buffer);
        row += 1;
    }
    legend(theme, area, row, buffer)
}

fn bar(
    name: OptimizerName,
    ledger: &Ledger,
    most: u64,
    theme: &Theme,
    area: Rect,
    row: u16,
    buffer: &mut Buffer,
) {
    let parts: Vec<_> = memory::categories(ledger).iter().map(|part| (part.1, part.2, part.3)).collect();
    let width = usize::from(area.width).saturating_sub(12);
    let mut spans = vec![span(format!(" {:<11}", name.as_str()), Role::Dim, theme)];
    spans.extend(stacked(&parts, most, width, theme));
    write(area, row, &Line::from(spans), buffer);
}

fn legend(theme: &Theme, area: Rect, row: u16, buffer: &mut Buffer) -> u16 {
    let letters = theme.ascii || theme.colours == crate::ui::theme::Colours::None;
    let mut spans = Vec::new();
    for (name, _, role, letter) in memory::categories(&Ledger::default()) {
        let sign = if letters { letter } else { '■' };
        let gap = if spans.is_empty() { "" } else { " " };
        spans.push(span(format!("{gap}{sign}"), role, theme));
        let name = match name {
            "parameters" => "params",
            "gradients" => "grads",
            "accumulation" => "accum",
            "optimizer state" => "state",
            _ => "activ",
        };
        spans.push(span(name, Role::Dim, theme));
    }
    write(area, row, &Line::from(spans), buffer);
    row + 1
}

fn facts(state: &State, theme: &Theme, area: Rect, mut row: u16, buffer: &mut Buffer) -> u16 {
    let form = &state.form;
    let train = &form.resolved.config.train;
    let Some((_, ledger)) = form.ledgers.iter().find(|(name, _)| *name == form.optimizer()) else {
        return row;
    };
    let effective = train.effective_batch();
    let tokens = (effective * train.seq_len) as u64;
    let total = ledger.total_bytes_estimated;
    let mut facts = vec![
        (
            "effective batch",
            format!("{} x {} = {effective}", train.micro_batch, train.accumulate),
            Role::Strong,
        ),
        ("tokens/update", format::count(tokens), Role::Text),
    ];
    match (train.max_updates, train.epochs) {
        (Some(updates), _) => {
            facts.push(("updates", format::count(updates), Role::Text));
            facts.push(("tokens in all", format::short(updates as f64 * tokens as f64), Role::Text));
        }
        (None, Some(epochs)) => facts.push(("epochs", format::count(epochs), Role::Text)),
        (None, None) => {}
    }
    facts.push(("parameters", format::count(ledger.parameters), Role::Text));
    facts.push(("state elements", format::count(ledger.state_elements), Role::Text));
    if let Some(memory) = state.options.host_memory {
        let fits = total < memory / 10 * 9;
        let (word, role) = if fits { ("fits", Role::Good) } else { ("too large", Role::Bad) };
        facts.push((word, format!("~{}/{}", format::bytes(total), format::bytes(memory)), role));
    }
    for (name, value, role) in facts {
        let spans = vec![span(format!("{name:<16}"), Role::Dim, theme), span(value, role, theme)];
        write(area, row, &Line::from(spans), buffer);
        row += 1;
    }
    row
}

/// What differs from the last run.
fn changes(form: &Form, theme: &Theme, area: Rect, mut row: u16, buffer: &mut Buffer) -> u16 {
    let Some((last, _)) = &form.last else { return row };
    let changes = form.differences();
    let room = usize::from(area.width);
    let last = format::elide(last, room.saturating_sub(21));
    let text = match changes.len() {
        0 => format!("same settings as {last}"),
        1 => format!("1 change from {last}"),
        many => format!("{many} changes from {last}"),
    };
    write(area, row, &Line::from(span(text, Role::Title, theme)), buffer);
    row += 1;
    // The last line there is says how many have no room.
    let lines = usize::from(area.height.saturating_sub(row)).max(1);
    let shown = if changes.len() > lines { lines - 1 } else { changes.len() };
    let hidden = changes.len() - shown;
    for (key, ours, theirs) in changes.into_iter().take(shown) {
        let key = &*key;
        let name = key.strip_prefix("optimizer.").map_or(key, |rest| if rest == "name" { key } else { rest });
        let value = format!("{} → {}", format::setting(&theirs), format::setting(&ours));
        let value = format::cut(&value, room.saturating_sub(9));
        let name_room = room.saturating_sub(value.chars().count() + 1).max(8);
        let spans = vec![
            span(format!("{} ", format::elide(name, name_room)), Role::Text, theme),
            span(value, Role::Warning, theme),
        ];
        write(area, row, &Line::from(spans), buffer);
        row += 1;
    }
    if hidden > 0 {
        write(area, row, &Line::from(span(format!("and {hidden} more"), Role::Dim, theme)), buffer);
        row += 1;
    }
    row
}

/// The learning rate of the draft.
fn preview(form: &Form, theme: &Theme, area: Rect, buffer: &mut Buffer) {
    let config = &form.resolved.config;
    let Some(total) = config.train.max_updates else { return };
    write(area, 0, &Line::from(span("learning rate", Role::Title, theme)), buffer);
    let area = Rect { y: area.y + 1, height: (area.height - 1).min(12), ..area };
    let step = (total / 400).max(1) as usize;
    let points = (1..=total).step_by(step).map(|at| (at as f64, schedule::of(config, total, at)));
    Chart {
        lines: vec![Curve {
            points: points.collect(),
            style: theme.style(Role::Rate),
            stroke: Stroke::Solid,
            plain: '*',
        }],
        from_zero: true,
        ..Chart::default()
    }
    .draw(area, buffer, theme);
}
