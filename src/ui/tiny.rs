//! A screen without room for panels: what matters most of the run, one figure a line.

use ratatui::{
    buffer::Buffer,
    layout::Rect,
    text::{Line, Span},
};

use super::{
    format,
    layout::{MIN_HEIGHT, MIN_WIDTH},
    overlay, small, status_mark,
    theme::{Role, Theme},
    widgets::{span, write},
};
use crate::app::{
    State,
    run::{Status, Waiting},
};

/// Draws as many lines as there is room for.
pub fn draw(state: &State, theme: &Theme, area: Rect, buffer: &mut Buffer) {
    if let Some(asked) = overlay::asked(state) {
        write(area, 0, &Line::from(span(format!("{}?", asked.heading), Role::Strong, theme)), buffer);
        for (row, answer) in (1..).zip(asked.answers) {
            let key = theme.keys.first(answer.action, state.context());
            let key = key.map(|key| format!("{key} ")).unwrap_or_default();
            write(
                area,
                row,
                &Line::from(span(format!("{key}{}", answer.short), Role::Strong, theme)),
                buffer,
            );
        }
        return;
    }
    let width = usize::from(area.width);
    if let Some(lines) = small::lines(state, theme, area) {
        return print(lines, theme, area, buffer);
    }
    let Some((status, run)) = state.status().zip(state.watching.as_ref()) else { return };
    let view = state.view();
    let (sign, role) = status_mark(status);
    let done = match &state.link.waits {
        Some(Waiting::InLine(waits)) => format!("{} of {}", waits.place, waits.of),
        Some(Waiting::TakenOut) => String::new(),
        None => format!("{}/{}", format::count(view.done()), format::count(view.total().unwrap_or(0))),
    };
    let word = status.as_str().replace('_', " ");
    let mut lines =
        vec![(format!("{sign} {word} {done}"), role), (format::elide(&run.name, width), Role::Text)];
    if let Some(update) = &view.update {
        lines.insert(1, (format!("loss {}", format::loss(update.loss)), Role::Strong));
        let val = view.validation.as_ref().map(|validation| format!("val {}", format::loss(validation.loss)));
        let trains = status.is_live() && status != Status::Paused;
        let left = view.eta().filter(|_| trains).map(format::duration);
        lines.insert(
            2,
            match (val, left) {
                (Some(val), Some(left)) if val.len() + left.len() + 6 <= width => {
                    (format!("{val} ETA ~{left}"), Role::Validation)
                }
                (Some(val), _) => (val, Role::Validation),
                (None, Some(left)) => (format!("ETA ~{left}"), Role::Text),
                (None, None) => (format!("lr {}", format::rate(update.learning_rate)), Role::Rate),
            },
        );
    }
    if let Some(notice) = &state.notice {
        let role = if notice.error { Role::Bad } else { Role::Good };
        let told = format::wrap(&theme.keys.told(&notice.text, state.context()), width);
        lines.splice(1..1, told.into_iter().map(|line| (line, role)));
    }
    lines.push((format!("panels need {MIN_WIDTH}x{MIN_HEIGHT}"), Role::Dim));
    print(lines, theme, area, buffer);
}

fn print(lines: Vec<(String, Role)>, theme: &Theme, area: Rect, buffer: &mut Buffer) {
    for (row, (text, role)) in lines.into_iter().enumerate() {
        let text = Span::styled(format::cut(&text, usize::from(area.width)), theme.style(role));
        write(area, row as u16, &Line::from(text), buffer);
    }
}
