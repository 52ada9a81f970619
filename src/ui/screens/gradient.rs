//! One update of a matrix: the second moment as the factors give it, the squared gradient of the same update, and how far
//! the one is from the other.

use ratatui::{
    buffer::Buffer,
    layout::{Constraint, Layout, Rect},
    text::Line,
};

use crate::{
    app::State,
    protocol::{Heat, StateDetail, UpdateLook},
    ui::{
        format,
        screens::heat,
        theme::{Role, Theme},
        widgets::{paragraph, span, write},
    },
};

/// Columns from which on maps stand side by side.
const ABREAST: u16 = 110;
/// Rows that a map needs to show more than its title and its scale.
const LEAST: u16 = 4;
/// Rows from which on one of them may be empty.
const ROOMY: u16 = 8;

/// Draws the maps, or says why there are none.
pub fn draw(state: &State, detail: &StateDetail, theme: &Theme, area: Rect, buffer: &mut Buffer) {
    let Some(look) = &detail.look else {
        let text = if state.is_live() && state.run.paused {
            "nothing yet: the next update is looked into; press {key:step} to make one"
        } else if state.is_live() {
            "nothing yet: the next update is looked into"
        } else {
            "a checkpoint keeps no gradient: only a run that trains can be looked into"
        };
        let text = theme.keys.told(text, state.context());
        paragraph(area, 0, &text, Role::Dim, buffer, theme);
        return;
    };
    write(area, 0, &head(look, usize::from(area.width), theme), buffer);
    let maps: Vec<([&str; 2], &Heat)> = [
        (["second moment, row x column / mean(row)", "2nd moment"], &look.second_moment),
        (["squared gradient", "gradient^2"], &look.squared_gradient),
        (["error, as a share of the squared gradient", "error"], &look.error),
    ]
    .into_iter()
    .filter_map(|(title, heat)| Some((title, heat.as_ref()?)))
    .collect();
    if maps.is_empty() {
        paragraph(area, 2, "a vector has no rows and columns to draw", Role::Dim, buffer, theme);
        return;
    }
    // Where every line counts the maps begin at once.
    let above = if area.height < ROOMY { 1 } else { 2 };
    let mut below =
        Rect { y: area.y + above.min(area.height), height: area.height.saturating_sub(above), ..area };
    if look.second_moment.is_none() && below.height > LEAST {
        let text =
            "this optimizer factors no second moment of this parameter: there is nothing to hold against it";
        let rows = paragraph(below, 0, text, Role::Dim, buffer, theme).min(below.height);
        below = Rect { y: below.y + rows, height: below.height - rows, ..below };
    }
    let parts = vec![Constraint::Fill(1); maps.len()];
    let stacked = below.height / (maps.len() as u16).max(1);
    let abreast = below.width >= ABREAST || stacked < LEAST;
    let layout = if abreast { Layout::horizontal(parts).spacing(2) } else { Layout::vertical(parts) };
    for ((titles, heat), place) in maps.into_iter().zip(layout.split(below).iter()) {
        heat::draw(format::first_fitting(&titles, usize::from(place.width)), heat, theme, *place, buffer);
    }
}

fn head(look: &UpdateLook, width: usize, theme: &Theme) -> Line<'static> {
    let words = |[of, error, share]: [&'static str; 3]| {
        let mut spans =
            vec![span("update ", Role::Dim, theme), span(format::count(look.step), Role::Strong, theme)];
        spans.push(span(of, Role::Dim, theme));
        if let Some(found) = look.factorization_error {
            spans.push(span(error, Role::Dim, theme));
            spans.push(span(format::figure(found), Role::Strong, theme));
            spans.push(span(share, Role::Dim, theme));
        }
        Line::from(spans)
    };
    let all = words([" of this parameter", "  factorisation error ", " of the squared gradient"]);
    if all.width() <= width { all } else { words(["", "  factorisation error ", ""]) }
}
