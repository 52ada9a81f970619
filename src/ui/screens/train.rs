//! The Train screen's two lines on top: how far the run is, and its newest figures or those under the cursor.

use ratatui::{
    buffer::Buffer,
    layout::Rect,
    text::{Line, Span},
};
use unicode_width::UnicodeWidthStr;

use crate::{
    app::{
        SMOOTHING, State,
        run::{RunView, Status},
        slice::Reading,
    },
    run::text,
    ui::{
        format,
        theme::{Role, Theme},
        widgets::{gauge, span, write},
    },
};

/// Most cells that the micro-batches of one update take.
const CELLS: u64 = 16;

/// Two lines: how far the run is, and its newest figures.
pub fn status(state: &State, theme: &Theme, area: Rect, buffer: &mut Buffer) {
    let view = state.view();
    if state.watching.is_none() {
        let texts = [
            " no run is open: press {key:setup} to set one up, {key:runs} to look at an earlier one",
            " no run: {key:setup} sets one up, {key:runs} lists all",
        ]
        .map(|text| theme.keys.told(text, state.context()));
        let text = format::first_fitting(&texts, usize::from(area.width)).to_owned();
        write(area, 0, &Line::from(span(text, Role::Dim, theme)), buffer);
        return;
    }
    progress(state, view, theme, area, buffer);
    match state.cursor() {
        Some(update) => under_cursor(state, view, update, theme, area, buffer),
        None => figures(state, view, theme, area, buffer),
    }
}

fn progress(state: &State, view: &RunView, theme: &Theme, area: Rect, buffer: &mut Buffer) {
    if let Some(preparing) = &view.preparing {
        write(area, 0, &Line::from(span(format!(" {preparing}"), Role::Strong, theme)), buffer);
        return;
    }
    let (done, total) = (view.done(), view.total().unwrap_or(0));
    let live = state.status().is_some_and(Status::is_live);
    let mut text = format!(
        " update {} / {}  {}  {}",
        format::count(done),
        format::count(total),
        format::percent(done as f64, total as f64),
        format::duration(view.time),
    );
    if matches!(state.status(), Some(Status::Queued | Status::TakenOut)) {
        " not started".clone_into(&mut text);
    }
    if live && view.paused {
        text.push_str("  paused ");
    } else if live {
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
        figures.push((view.counted().each_second(), format::short(update.tokens_per_second), Role::Strong));
    }
    let window = window(state, view);
    if let Some((done, of)) = window {
        figures.push(("window", format!("{done}/{of}"), Role::Strong));
    }
    if view.skipped > 0 {
        figures.push(("skipped", format::count(view.skipped), Role::Warning));
    }
    if let Some(best) = view.best_val {
        figures.push(("best val", format::loss(best), Role::Strong));
    }
    if let Some(update) = &view.update {
        let speed = update.flops_per_second.map(|speed| ("model", text::flops(speed), Role::Strong));
        let share = update.mfu.map(|share| ("MFU", text::percent(share), Role::Strong));
        figures.extend(speed.into_iter().chain(share));
    }
    if let Some(f1) = view.validation.as_ref().and_then(|validation| validation.f1_macro) {
        figures.push(("macro F1", format!("{f1:.3}"), Role::Validation));
    }
    if let Some(update) = &view.update {
        figures.push((view.counted().as_str(), format::short(update.tokens as f64), Role::Strong));
    }
    if figures.is_empty() {
        let over = |what: &str| (format!(" {what}"), Role::Bad);
        let (text, role) = match (&state.link.waits, state.status()) {
            (Some(waits), _) => {
                (theme.keys.told(&format!(" {}", waits.sentence()), state.context()), Role::Dim)
            }
            (None, Some(Status::Ended(reason))) if reason.exit_code() == 0 => {
                (" the run ended before its first update".to_owned(), Role::Dim)
            }
            (None, Some(Status::Ended(_))) => {
                let message = view.ended.as_ref().and_then(|ended| ended.message.as_deref());
                over(message.unwrap_or("the run failed before its first update"))
            }
            (None, Some(Status::Crashed)) => over("the worker died before its first update"),
            _ => (" the worker is starting: reading the data, building the model".to_owned(), Role::Dim),
        };
        let text = format::cut(&text, usize::from(area.width));
        return write(area, 1, &Line::from(span(text, role, theme)), buffer);
    }
    // The window is drawn as it fills where that takes nothing else's place.
    let cells = window.map_or(0, |(_, of)| of.min(CELLS) as usize + 1);
    let width = usize::from(area.width);
    let need = |until: usize| -> usize { figures[..until].iter().map(taken).sum() };
    let at_window = figures.iter().position(|figure| figure.0 == "window").map_or(0, |at| at + 1);
    let filling = window.filter(|_| 1 + need(at_window) + cells <= width);
    let mut spans = Vec::new();
    let mut used = 1 + if filling.is_some() { cells } else { 0 };
    for figure in figures {
        used += taken(&figure);
        if used > width {
            break;
        }
        let (label, value, role) = figure;
        spans.push(span(format!(" {label} "), Role::Dim, theme));
        if let Some((done, of)) = filling.filter(|_| label == "window") {
            spans.extend(gauge(done as f64 / of as f64, cells - 1, theme, Role::Accumulation));
            spans.push(Span::raw(" "));
        }
        spans.push(span(format!("{value} "), role, theme));
    }
    write(area, 1, &Line::from(spans), buffer);
}

fn taken((label, value, _): &(&str, String, Role)) -> usize {
    label.chars().count() + value.chars().count() + 3
}

/// What the charts hold of the update under the cursor.
fn under_cursor(state: &State, view: &RunView, update: u64, theme: &Theme, area: Rect, buffer: &mut Buffer) {
    let Some(read) = view.loss.reading(update) else { return };
    let mean = |reading: Option<Reading>| reading.map(|reading| reading.mean);
    let role = |value: f64, role| if value.is_finite() { role } else { Role::Bad };
    let many = read.count > 1;
    let at = if many {
        format!("{}-{} mean", format::count(read.first), format::count(read.place.update))
    } else {
        format::count(read.place.update)
    };
    let mut figures =
        vec![("at", at, Role::Focused), ("loss", format::loss(read.mean), role(read.mean, Role::Strong))];
    if many && read.finite > 0 {
        figures.push(("in", format!("{} to {}", format::loss(read.min), format::loss(read.max)), Role::Text));
    }
    let beta = SMOOTHING[state.smoothing.min(SMOOTHING.len() - 1)];
    if let Some(smooth) = view.loss.smoothed_at(update, beta).filter(|_| beta > 0.0) {
        figures.push(("smoothed", format::loss(smooth), Role::Smooth));
    }
    if let Some(val) = view.val.reading(update) {
        let label = if val.place.update == read.place.update {
            String::new()
        } else {
            format!(" of {}", format::count(val.place.update))
        };
        figures.push(("val", format!("{}{label}", format::loss(val.mean)), Role::Validation));
    }
    figures.extend(mean(view.rate.reading(update)).map(|rate| ("lr", format::rate(rate), Role::Rate)));
    let norm = mean(view.grad_norm.reading(update));
    figures.extend(norm.map(|norm| ("|grad|", format::number(norm), role(norm, Role::Strong))));
    let happened = view.happened(read.first..=read.place.update).join("; ");
    figures.extend((!happened.is_empty()).then_some(("-", happened, Role::Warning)));
    let speed = mean(view.speed.reading(update));
    figures.extend(speed.map(|speed| (view.counted().each_second(), format::short(speed), Role::Strong)));
    figures.push(("time", format::duration(read.place.time), Role::Text));
    figures.push((view.counted().as_str(), format::short(read.place.tokens as f64), Role::Text));
    if read.finite < read.count {
        figures.insert(2, ("not finite", format::count(read.count - read.finite), Role::Bad));
    }
    let mut spans = Vec::new();
    let mut left = usize::from(area.width).saturating_sub(1);
    for (label, value, role) in figures {
        // What happened is cut to what is left, unless that says nothing.
        let value = if label == "-" && left >= 20 { format::cut(&value, left - 4) } else { value };
        let width = label.chars().count() + value.width() + 3;
        if width > left || value.is_empty() {
            continue;
        }
        left -= width;
        spans.push(span(format!(" {label} "), Role::Dim, theme));
        spans.push(span(format!("{value} "), role, theme));
    }
    write(area, 1, &Line::from(spans), buffer);
}

/// Micro-batches done of the update being made; nothing without accumulation or once the run has ended.
fn window(state: &State, view: &RunView) -> Option<(u64, u64)> {
    state.status().filter(|status| status.is_live())?;
    let of = view.header.as_ref().map(|header| header.config.train.accumulate as u64).filter(|&of| of > 1)?;
    Some(view.window.map_or((0, of), |window| (window.micro_batches, window.of)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::{Msg, action::Screen, focus::Panel, recorded};

    fn seen(state: &State) -> [String; 2] {
        let area = Rect::new(0, 0, 200, 2);
        let mut buffer = Buffer::empty(area);
        status(state, &Theme::default(), area, &mut buffer);
        [0, 1].map(|y| (0..200).map(|x| buffer[(x, y)].symbol()).collect())
    }

    #[test]
    fn a_paused_run_says_so_where_it_told_how_long_it_takes() {
        let mut state = recorded::watching(Screen::Train, "adamw");
        assert!(seen(&state)[0].contains("ETA ~"), "{:?}", seen(&state));
        state.update(Msg::Events(vec![recorded::command("pause", 300, None)]));
        let [first, _] = seen(&state);
        assert!(first.contains("paused") && !first.contains("ETA"), "{first}");
        state.update(Msg::Events(vec![recorded::command("resume", 300, None)]));
        assert!(seen(&state)[0].contains("ETA ~"));
    }

    #[test]
    fn under_the_cursor_all_that_happened_is_told_the_rate_by_hand_first() {
        let mut state = recorded::watching(Screen::Train, "adamw");
        let happened =
            vec![recorded::command("step", 300, None), recorded::command("learning_rate", 300, Some(1e-4))];
        state.update(Msg::Events(happened));
        state.update(Msg::Point { panel: Panel::Loss, update: 300 });
        let [_, second] = seen(&state);
        assert!(second.contains("learning rate 1e-4: applied; step: applied"), "{second}");
    }
}
