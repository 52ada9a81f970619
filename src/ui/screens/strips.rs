//! One parameter opened: what was measured of its last update, its state tensors as heat strips with values, their
//! distribution, and for a factored second moment what the two vectors multiply to.

use ratatui::{
    buffer::Buffer,
    layout::Rect,
    text::{Line, Span},
};
use unicode_width::UnicodeWidthStr;

use crate::{
    app::{
        State,
        run::Status,
        tensors::{Opened, View},
    },
    protocol::{StateDetail, Strip, TensorState, state::figures},
    ui::{
        format,
        screens::{beside, gradient, heat, history, spread},
        theme::{Role, Theme},
        widgets::{frame, heat_cell, heat_steps, paragraph, span, title, write},
    },
};

/// Below this a second moment was never touched by a gradient: it holds the first term of `eps` alone.
const UNTOUCHED: f64 = 1.000_001e-30;

/// Lines that a side of it needs to show anything.
const LEAST: u16 = 5;

/// Draws the opened parameter.
pub fn draw(state: &State, theme: &Theme, area: Rect, buffer: &mut Buffer) {
    let Some(opened) = &state.tensors.opened else { return };
    let room = usize::from(area.width.saturating_sub(5));
    let mut heading = title(&format::elide_name(&opened.tensor, room), true, theme);
    let keys = theme.keys.told("{key:back} closes, ←→ move ", state.context());
    if heading.width() + keys.width() <= room + 3 {
        heading.push_span(span(keys, Role::Dim, theme));
    }
    let inside = frame(heading, true, area, buffer, theme);
    let Some(detail) = &opened.detail else {
        sides(opened.view, theme, area, buffer);
        let row = unread(state, opened, theme, inside, buffer).min(inside.height);
        if opened.view == View::History {
            // The record tells it, whatever becomes of the state.
            let rest = Rect { y: inside.y + row, height: inside.height - row, ..inside };
            history::draw(state, opened, theme, rest, buffer);
        }
        return;
    };
    // What the record tells is of the update that it was told at.
    let looked = state.view().state.as_ref().map(|report| report.update);
    let mut row = facts(detail, looked, theme, inside, buffer);
    sides(opened.view, theme, area, buffer);
    let rest =
        Rect { y: inside.y + row.min(inside.height), height: inside.height.saturating_sub(row), ..inside };
    match opened.view {
        View::Strips => {}
        View::Spread => return spread::draw(detail, theme, rest, buffer),
        View::Gradient => return gradient::draw(state, detail, theme, rest, buffer),
        View::History => return history::draw(state, opened, theme, rest, buffer),
        View::Beside => return beside::draw(state, opened, detail, theme, rest, buffer),
    }
    if detail.strips.is_empty() {
        let text = "this optimizer keeps no state for this parameter";
        write(inside, row, &Line::from(span(text, Role::Dim, theme)), buffer);
        return;
    }
    let mut strips: Vec<&Strip> = detail.strips.iter().collect();
    // The scales of 8-bit codes matter less than what the codes stand for.
    strips.sort_by_key(|strip| strip.name.starts_with("absmax"));
    let told = detail.tensor.figures.contains_key(figures::ROWS_NEVER_TOUCHED);
    // While it trains, what was seen last is any number of updates away.
    let before = opened.before.as_deref().filter(|_| state.run.paused);
    for strip in strips {
        if row >= inside.height {
            return;
        }
        let earlier = before.and_then(|before| same_strip(before, strip).map(|strip| (before.update, strip)));
        row = self::strip(strip, (opened.cursor, told, earlier), theme, inside, row, buffer) + 1;
    }
    if let Some(heat) = &detail.reconstructed
        && inside.height > row + 3
    {
        let place = Rect { y: inside.y + row, height: inside.height - row, ..inside };
        heat::draw(heat::RECONSTRUCTED, heat, theme, place, buffer);
    }
}

/// Says why nothing is here of the opened parameter, and returns the row below.
fn unread(state: &State, opened: &Opened, theme: &Theme, area: Rect, buffer: &mut Buffer) -> u16 {
    let (text, role) = match &opened.problem {
        Some(problem) => (problem.as_str(), Role::Warning),
        None if state.replay.is_some() && state.status().is_some_and(Status::is_live) => {
            ("the record that is played holds no values of it, only its history: press {key:view}", Role::Dim)
        }
        None => ("reading its state", Role::Dim),
    };
    let problem = theme.keys.told(text, state.context());
    paragraph(area, 0, &problem, role, buffer, theme)
}

/// The sides there are, on the lower edge of the frame.
fn sides(shown: View, theme: &Theme, area: Rect, buffer: &mut Buffer) {
    let edge = Rect {
        x: area.x + 2,
        y: area.bottom().saturating_sub(1),
        width: area.width.saturating_sub(4),
        height: 1,
    };
    let mut spans = vec![span(" v ", Role::Key, theme)];
    for view in View::ALL {
        let role = if view == shown { Role::Focused } else { Role::Dim };
        let text =
            if view == shown { format!("[{}] ", view.as_str()) } else { format!("{} ", view.as_str()) };
        spans.push(span(text, role, theme));
    }
    write(edge, 0, &Line::from(spans), buffer);
}

/// The strip of an earlier state that shows the same.
fn same_strip<'a>(detail: &'a StateDetail, strip: &Strip) -> Option<&'a Strip> {
    detail.strips.iter().find(|other| {
        other.name == strip.name && other.axis == strip.axis && other.values.len() == strip.values.len()
    })
}

fn facts(detail: &StateDetail, looked: Option<u64>, theme: &Theme, area: Rect, buffer: &mut Buffer) -> u16 {
    let tensor = &detail.tensor;
    let whole = [
        ("shape", format::shape(&tensor.shape)),
        ("step", format::count(tensor.step)),
        ("after update", format::count(detail.update)),
        ("state", format!("{} bytes", format::count(tensor.bytes()))),
    ];
    let width = usize::from(area.width);
    let mut lines: Vec<Vec<Span<'_>>> = vec![Vec::new()];
    for (name, value) in whole.into_iter().chain(measured(tensor, looked)) {
        let length = name.chars().count() + value.chars().count() + 3;
        let used: usize = lines.last().map_or(0, |line| line.iter().map(Span::width).sum());
        if used > 0 && used + length > width + 2 {
            lines.push(Vec::new());
        }
        if let Some(line) = lines.last_mut() {
            line.push(span(format!("{name} "), Role::Dim, theme));
            line.push(span(format!("{value}  "), Role::Strong, theme));
        }
    }
    // Little room is for the tensors: what does not fit is on a larger screen.
    lines.truncate(usize::from(area.height.saturating_sub(LEAST)).max(1));
    let rows = lines.len() as u16;
    for (row, line) in (0..).zip(lines) {
        write(area, row, &Line::from(line), buffer);
    }
    if area.height > 24 || (rows == 1 && area.height > LEAST + 2) { rows + 1 } else { rows }
}

/// What was measured at the last update that was looked into, and which that was.
fn measured(tensor: &TensorState, looked: Option<u64>) -> Vec<(&'static str, String)> {
    let figure = |name: &str| tensor.figures.get(name).copied();
    let mut found = Vec::new();
    if let Some(ratio) = tensor.update_ratio {
        found.push(("update/param", format::number(ratio)));
    }
    if let Some(error) = figure(figures::FACTORIZATION_ERROR) {
        let text = format!("{} of the update's squared gradient", format::figure(error));
        found.push(("factorisation error", text));
    }
    let moments = [("m", figures::QUANTIZATION_ERROR_1), ("v", figures::QUANTIZATION_ERROR_2)];
    let errors: Vec<String> = moments
        .into_iter()
        .filter_map(|(moment, name)| Some(format!("{moment} {}", format::share(figure(name)?))))
        .collect();
    if !errors.is_empty() {
        found.push(("8-bit error", errors.join(", ")));
    }
    if let (Some(_), Some(update)) = (tensor.update_ratio, tensor.measured_at.or(looked)) {
        found.push(("measured at", format::count(update)));
    }
    if let Some(untouched) = figure(figures::ROWS_NEVER_TOUCHED) {
        let rows: usize = tensor.shape.iter().rev().skip(1).product();
        let text = format!("{} of {}", format::short(untouched), format::count(rows as u64));
        found.push(("rows never touched", text));
    }
    found
}

/// Values of a strip as they fit into `cells` cells: averaged in equal groups of absolute values.
fn fit(values: &[f64], cells: usize) -> Vec<f64> {
    if values.len() <= cells || cells == 0 {
        return values.to_vec();
    }
    let group = values.len().div_ceil(cells);
    values
        .chunks(group)
        .map(|chunk| chunk.iter().map(|v| v.abs()).sum::<f64>() / chunk.len() as f64)
        .collect()
}

/// Elements, rows or columns that one value of a strip stands for: 1, or more where the axis is longer than the strip.
fn group(strip: &Strip) -> usize {
    (strip.length as usize).div_ceil(strip.values.len().max(1)).max(1)
}

/// What a strip holds, in one line of at most `width` columns. Where a value is the mean of a group, groups are counted
/// and named: how many of their members are alike is not known. `told` says that the figures above count the untouched
/// rows already, one by one.
fn head(strip: &Strip, told: bool, width: usize, theme: &Theme) -> Line<'static> {
    let finite = || strip.values.iter().copied().filter(|value| value.is_finite());
    let (low, high) = (finite().fold(f64::INFINITY, f64::min), finite().fold(f64::NEG_INFINITY, f64::max));
    let factor = match &*strip.name {
        "exp_avg_sq_row" => !told,
        other => other == "exp_avg_sq_col",
    };
    let untouched = finite().filter(|_| factor).filter(|value| *value > 0.0 && *value <= UNTOUCHED).count();
    let group = group(strip);
    let axis = strip.axis.split(';').next().unwrap_or_default();
    let (length, grouped) = match group {
        1 => (format!("{} values by {axis}", format::count(strip.length)), ""),
        _ => (
            format!(
                "{} values by {axis}, {} groups of {group}",
                format::count(strip.length),
                format::count(strip.values.len() as u64)
            ),
            "groups ",
        ),
    };
    let mut parts =
        vec![vec![span(format!("{} ", strip.name), Role::Optimizer, theme), span(length, Role::Dim, theme)]];
    let noun = if untouched == 1 { grouped.replace('s', "") } else { grouped.to_owned() };
    let warning = (untouched > 0)
        .then(|| vec![span(format!("  {untouched} {noun}never touched"), Role::Warning, theme)]);
    let range = (low <= high).then(|| {
        vec![
            span(format!("  {grouped}min "), Role::Dim, theme),
            span(format::number(low), Role::Text, theme),
            span("  max ", Role::Dim, theme),
            span(format::number(high), Role::Text, theme),
        ]
    });
    // Where not all has room, that something was never touched says more than the range.
    let length = |parts: &[Vec<Span<'_>>]| parts.iter().flatten().map(Span::width).sum::<usize>();
    let all: Vec<_> = parts.iter().cloned().chain(range.clone()).chain(warning.clone()).collect();
    if length(&all) <= width {
        parts = all;
    } else {
        for part in warning.into_iter().chain(range) {
            if length(&parts) + part.iter().map(Span::width).sum::<usize>() <= width {
                parts.push(part);
            }
        }
    }
    Line::from(parts.concat())
}

/// What the value at that place of a strip is: `[5] 1.00e-4`, of a group with the first and last of its members.
fn value_at(strip: &Strip, at: usize) -> Option<String> {
    let value = format::number(*strip.values.get(at)?);
    let group = group(strip);
    let first = at * group;
    let last = ((at + 1) * group).min(strip.length as usize).saturating_sub(1);
    Some(if first < last { format!("[{first}-{last}] mean {value}") } else { format!("[{first}] {value}") })
}

fn strip(
    strip: &Strip,
    (cursor, told, earlier): (usize, bool, Option<(u64, &Strip)>),
    theme: &Theme,
    area: Rect,
    row: u16,
    buffer: &mut Buffer,
) -> u16 {
    let width = usize::from(area.width);
    let mut heading = head(strip, told, width, theme);
    let after = earlier.map(|(update, earlier)| changed(update, earlier, strip));
    if let Some(text) = after.filter(|text| heading.width() + text.chars().count() <= width) {
        heading.push_span(span(text, Role::Warning, theme));
    }
    write(area, row, &heading, buffer);
    let shown = fit(&strip.values, width);
    let group = strip.values.len().div_ceil(shown.len().max(1)).max(1);
    let steps = heat_steps(&shown);
    let selected = (cursor / group).min(shown.len().saturating_sub(1));
    // A short vector gets wide cells.
    let cell = (width / shown.len().max(1)).clamp(1, 4);
    for line in 0..2 {
        let cells = steps.iter().map(|step| {
            let (sign, style) = heat_cell(*step, theme);
            Span::styled(sign.repeat(cell), style)
        });
        write(area, row + 1 + line, &Line::from(cells.collect::<Vec<_>>()), buffer);
    }
    let at = cursor.min(strip.values.len().saturating_sub(1));
    let Some(value) = value_at(strip, at) else {
        return row + 3;
    };
    let was = earlier.and_then(|(_, earlier)| earlier.values.get(at)).copied();
    let was = was.map_or_else(String::new, |was| format!(", before {}", format::number(was)));
    let text = format!("▲ {value}{was}");
    let start = (selected * cell).min(width.saturating_sub(text.chars().count()));
    let label = if start < selected * cell { text.replacen('▲', "↑", 1) } else { text };
    write(
        area,
        row + 3,
        &Line::from(span(format!("{}{label}", " ".repeat(start)), Role::Strong, theme)),
        buffer,
    );
    if area.height > row + 6 && area.height > 24 {
        histogram(strip, theme, area, row + 4, buffer);
        return row + 5;
    }
    row + 4
}

/// The largest step that a value took since that update, as a share of what it was.
fn changed(update: u64, earlier: &Strip, now: &Strip) -> String {
    let steps = earlier.values.iter().zip(&now.values);
    let shares = steps.filter(|(was, _)| **was != 0.0).map(|(was, is)| ((is - was) / was).abs());
    let largest = shares.filter(|share| share.is_finite()).fold(0.0, f64::max);
    format!("  since update {}: by at most {}", format::count(update), format::share(largest))
}

/// The decade of a positive value: -30 of 1e-30, also where f32 has it a few roundings below.
fn decade(value: f64) -> i32 {
    (value.log10() + 1e-6).floor() as i32
}

/// How many values lie in each decade; of a long axis, how many groups have their mean there.
fn histogram(strip: &Strip, theme: &Theme, area: Rect, row: u16, buffer: &mut Buffer) {
    let mut decades = std::collections::BTreeMap::<i32, usize>::new();
    let mut zeros = 0;
    for value in strip.values.iter().map(|value| value.abs()) {
        if value.is_finite() && value > 0.0 {
            *decades.entry(decade(value)).or_default() += 1;
        } else {
            zeros += 1;
        }
    }
    let what = if group(strip) > 1 { "groups by decade " } else { "by decade " };
    let mut spans = vec![span(what, Role::Dim, theme)];
    let most = decades.values().copied().max().unwrap_or(1);
    for (decade, count) in &decades {
        let (sign, style) = heat_cell((8 * count / most) as u8, theme);
        spans.push(span(format!(" 1e{decade} "), Role::Dim, theme));
        spans.push(Span::styled(sign, style));
        spans.push(span(format!("{count}"), Role::Text, theme));
    }
    if zeros > 0 {
        spans.push(span(format!("  zero or not finite {zeros}"), Role::Warning, theme));
    }
    write(area, row, &Line::from(spans), buffer);
}

#[cfg(test)]
mod tests;
