//! The Setup screen: the draft as a form.

use ratatui::{
    buffer::Buffer,
    layout::Rect,
    text::{Line, Span},
};

use crate::{
    app::{
        State,
        focus::Panel,
        form::{DefaultOf, Row},
        tensors::first_visible,
    },
    config::{fields::Field, presets},
    ui::{
        format,
        screens::curves::corner_first,
        theme::{Role, Theme},
        widgets::{frame, span, title, write},
    },
};

/// Fewest lines at the bottom of the form that explain the focused field, so that they seldom move.
const HELP: u16 = 4;
/// Columns of a field's name.
const NAME: usize = 23;
/// Columns of the frame besides its title, where only one panel has room and says which it is.
const PLACE: usize = 13;

/// The part of the form that lists fields.
fn list(state: &State, area: Rect) -> Rect {
    let inside = Rect {
        x: area.x + 1,
        y: area.y + 1,
        width: area.width.saturating_sub(2),
        height: area.height.saturating_sub(2),
    };
    // The field that needs more gets it, up to half of the form.
    let most = (inside.height / 2).max(2);
    let lines = explained(state, usize::from(inside.width), usize::from(most.saturating_sub(1))).len() as u16;
    Rect { height: inside.height.saturating_sub((lines + 1).clamp(HELP.min(most), most)), ..inside }
}

/// The line of the form at a row of the panel.
pub fn row_at(state: &State, area: Rect, line: usize) -> Option<usize> {
    let list = list(state, area);
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
    if let Some(origin) = &form.fork {
        let at = format!(" at update {} ", format::count(origin.update));
        let room = usize::from(area.width).saturating_sub(heading.width() + at.len() + 10);
        let text = format!("fork of {}{at}", format::elide(&origin.name, room.clamp(8, 24)));
        heading.push_span(span(text, Role::Focused, theme));
    }
    if let Ok((_, name)) = form.start() {
        let room = usize::from(area.width).saturating_sub(heading.width() + PLACE);
        heading.push_span(span(format!("{} ", format::elide(&name, room.max(8))), Role::Dim, theme));
    }
    let inside = frame(heading, focused, area, buffer, theme);
    let list = list(state, area);
    let rows = form.rows();
    let values = form.values();
    let cursor = form.cursor();
    let height = usize::from(list.height);
    let first = first_visible(cursor, rows.len(), height);
    for (line, (at, row)) in rows.iter().enumerate().skip(first).take(height).enumerate() {
        match row {
            Row::Section(name) => section(name, list, line as u16, buffer, theme),
            Row::Field(field) => {
                let value = values.get(field.key).map_or("", String::as_str);
                self::field(state, (field, value), at == cursor, list, line as u16, buffer, theme);
            }
        }
    }
    let train = &form.resolved.config.train;
    let mut note =
        format!(" batch {} x {} = {} ", train.micro_batch, train.accumulate, train.effective_batch());
    if let Some(fit) = state.fit() {
        note.push_str(&format!("{} ", fit.as_str()));
    }
    let place = if rows.len() > height { format!(" {}/{} ", cursor + 1, rows.len()) } else { String::new() };
    corner_first(area, &[format!("{note}{place}"), note], theme, buffer);
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
    (field, value): (&Field, &str),
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
            let value = format::setting(value);
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
            let unit = field.unit_of(form.resolved.config.model.arch);
            spans.push(span(value, role, theme));
            if error.is_some() {
                spans.push(span(format::cut(" ✗ see below", left + 1), Role::Bad, theme));
            } else if unit.chars().count() <= left && !absent {
                spans.push(span(format!(" {unit}"), Role::Dim, theme));
            }
        }
    }
    write(area, line, &Line::from(spans), buffer);
}

/// Help, range and default of the focused field, or what is wrong with it.
fn explain(state: &State, area: Rect, buffer: &mut Buffer, theme: &Theme) {
    let rule = "─".repeat(usize::from(area.width));
    write(area, 0, &Line::from(span(rule, Role::Border, theme)), buffer);
    let room = usize::from(area.height.saturating_sub(1));
    for (row, (text, role)) in (1..).zip(explained(state, usize::from(area.width), room)) {
        write(area, row, &Line::from(span(text, role, theme)), buffer);
    }
}

/// The same line by line, at most so many; where not all has room, both help and range have some.
fn explained(state: &State, width: usize, most: usize) -> Vec<(String, Role)> {
    let Some(field) = state.form.field() else { return Vec::new() };
    let lines = |text: &str, role| -> Vec<(String, Role)> {
        format::wrap(text, width).into_iter().map(|line| (line, role)).collect()
    };
    let cut = |mut lines: Vec<(String, Role)>, most: usize| {
        if lines.len() > most {
            lines.truncate(most);
            if let Some((last, _)) = lines.last_mut() {
                *last = format::cut(&format!("{last} …"), width);
            }
        }
        lines
    };
    if let Some(error) = &state.form.error {
        let text = if error.key == field.key {
            error.text.clone()
        } else {
            format!("{}: {}", error.key, error.text)
        };
        return cut(lines(&format!("✗ {text}"), Role::Bad), most);
    }
    let preset = presets::find(&state.form.value(field.key)).filter(|_| field.key == "model.preset");
    let mut help = lines(preset.map_or(field.help, |preset| preset.about()), Role::Text);
    let default = match state.form.default_of(field) {
        DefaultOf::None => String::new(),
        DefaultOf::Common(default) => format!("; default {default}"),
        DefaultOf::Preset(Some(default)) => {
            format!("; default {} of this preset", format::setting(default))
        }
        DefaultOf::Preset(None) => "; none by default of this preset".to_owned(),
    };
    let expected = if field.key == "model.preset" {
        let names: Vec<_> = presets::all().map(|preset| preset.name).collect();
        format!("one of {}", names.join(", "))
    } else {
        field.kind.expected()
    };
    let mut range = lines(&format!("{expected}{default}"), Role::Dim);
    if let Some((at, count)) = state.form.choice().filter(|_| help.len() + range.len() > most) {
        range = lines(&format!("{at} of {count}, ←→ for the others{default}"), Role::Dim);
    }
    help = cut(help, most.saturating_sub(range.len()).max(1));
    range = cut(range, most.saturating_sub(help.len()));
    help.extend(range);
    help
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::{action::Screen, recorded};

    #[test]
    fn the_default_that_is_told_is_that_of_the_preset() {
        let mut state = recorded::watching(Screen::Setup, "adamw");
        let told = |state: &State| -> String {
            explained(state, 200, 9).into_iter().map(|(text, _)| text + "\n").collect()
        };
        state.form.assign("train.micro_batch", "3").unwrap();
        assert!(told(&state).contains("; default 8\n"), "{}", told(&state));
        state.form.reset();
        state.form.assign("model.preset", "distilbert-nano").unwrap();
        state.form.assign("train.micro_batch", "3").unwrap();
        assert!(told(&state).contains("; default 16 of this preset\n"), "{}", told(&state));
        state.form.assign("train.accumulate", "2").unwrap();
        assert!(told(&state).contains("; default 1\n"), "{}", told(&state));
    }
}
