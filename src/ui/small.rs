//! What the screens say without room for panels: one figure a line.

use ratatui::layout::Rect;

use super::{
    format, help,
    layout::{MIN_HEIGHT, MIN_WIDTH},
    screens::samples,
    theme::{Role, Theme},
};
use crate::app::{
    State, action::Screen, check::Check, focus::Overlay, form::Row, palette::Palette, room::Fit,
};

/// Lines and what they are.
type Lines = Vec<(String, Role)>;

/// What the screen, or what is being typed or told over it, says in a few lines; nothing of the Train screen with a run.
pub(super) fn lines(state: &State, theme: &Theme, area: Rect) -> Option<Lines> {
    let width = usize::from(area.width);
    let told = |text: &str| theme.keys.told(text, state.context());
    match &state.overlay {
        Overlay::Palette(palette) => return Some(command(palette, width)),
        Overlay::Check(check) => return Some(checked(check, told("{key:back} close"), width)),
        Overlay::Fork(choice) => {
            let update = format!("▶update {}", format::count(choice.chosen().unwrap_or(0)));
            return Some(vec![
                ("fork from".to_owned(), Role::Title),
                (update, Role::Strong),
                (told("{key:fork} draft it"), Role::Dim),
                (told("{key:back} cancel"), Role::Dim),
            ]);
        }
        Overlay::Help { scroll } => return Some(help::tiny(state, *scroll, theme, area)),
        Overlay::Samples { back, scroll } => {
            return Some(samples::tiny(state.view(), *back, *scroll, theme, area));
        }
        _ => {}
    }
    let mut lines = match state.screen {
        Screen::Train if state.watching.is_some() => return None,
        Screen::Train => {
            vec![("no run is open".to_owned(), Role::Text), (told("{key:setup} sets one up"), Role::Dim)]
        }
        Screen::State => tensors(state, width),
        Screen::Setup => setup(state, width),
        Screen::Runs => runs(state, width),
    };
    if let Some(notice) = &state.notice {
        let role = if notice.error { Role::Bad } else { Role::Good };
        let at = 1.min(lines.len());
        let told = format::wrap(&told(&notice.text), width);
        lines.splice(at..at, told.into_iter().map(|line| (line, role)));
    }
    lines.push(too_small());
    Some(lines)
}

fn too_small() -> (String, Role) {
    (format!("too small: {MIN_WIDTH}x{MIN_HEIGHT}"), Role::Dim)
}

fn command(palette: &Palette, width: usize) -> Lines {
    let text = palette.line.text();
    // The end of a long line is where the cursor most often is.
    let from = text.chars().count().saturating_sub(width.saturating_sub(2));
    let shown: String = text.chars().skip(from).collect();
    let mut lines = vec![(format!(":{shown}█"), Role::Strong)];
    match &palette.error {
        Some(error) => lines.extend(format::wrap(error, width).into_iter().map(|line| (line, Role::Bad))),
        None => {
            let matches = palette.matches();
            let selected = palette.selected.min(matches.len().saturating_sub(1));
            lines.extend(matches.iter().skip(selected).map(|choice| (choice.name.to_owned(), Role::Text)));
        }
    }
    lines
}

fn checked(check: &Check, close: String, width: usize) -> Lines {
    let mut lines = vec![("accumulation check".to_owned(), Role::Title)];
    match &check.answer {
        None => lines.push(("running".to_owned(), Role::Dim)),
        Some(Ok(found)) => {
            let (word, role) = match found.holds {
                _ if !found.compares() => ("nothing to compare", Role::Warning),
                true => ("holds", Role::Good),
                false => ("does not hold", Role::Bad),
            };
            lines.push((word.to_owned(), role));
            lines.push((format!("by {}", format::number(found.largest_difference)), Role::Text));
        }
        Some(Err(why)) => lines.extend(format::wrap(why, width).into_iter().map(|line| (line, Role::Bad))),
    }
    lines.push((close, Role::Dim));
    lines
}

fn tensors(state: &State, width: usize) -> Lines {
    let table = &state.tensors;
    let Some(report) = &table.report else {
        return vec![("no optimizer state".to_owned(), Role::Dim)];
    };
    let mut lines = vec![(format!("{} @ {}", report.optimizer, format::count(report.update)), Role::Title)];
    let all = table.lines();
    if table.filtering {
        lines.push((format!("/{}█ {} lines", table.filter.text(), all.len()), Role::Strong));
    } else {
        lines.push((format!("{} of state", format::bytes(report.bytes())), Role::Strong));
    }
    let Some(line) = all.get(table.selected.min(all.len().saturating_sub(1))) else { return lines };
    lines.push((format::elide_name(format::tensor_name(&line.parameter.name), width), Role::Text));
    if let Some((name, state)) = line.state {
        let rms = state.stats.map_or_else(|| "-".to_owned(), |stats| format::number(stats.rms));
        lines.push((format::elide(&format!("{name} {rms}"), width), Role::Optimizer));
    }
    lines
}

fn setup(state: &State, width: usize) -> Lines {
    let form = &state.form;
    let train = &form.resolved.config.train;
    let batch = format!("{} x {} = {}", train.micro_batch, train.accumulate, train.effective_batch());
    let fit = state.fit().map_or("", Fit::as_str);
    let mut lines = Vec::new();
    if let Ok((_, name)) = form.start() {
        lines.push((format::elide(&name, width), Role::Title));
    }
    if let Some(Row::Field(field)) = form.rows().get(form.cursor()) {
        let name = match field.key {
            "optimizer.name" => "optimizer",
            key => key.rsplit('.').next().unwrap_or(key),
        };
        let value = match &form.editing {
            Some(line) => format!("{}█", line.text()),
            None => format::setting(&form.value(field.key)),
        };
        let room = width.saturating_sub(value.chars().count() + 2).max(3);
        lines.push((format!("▶{} {value}", format::cut(name, room)), Role::Strong));
    }
    match &form.error {
        Some(error) => lines.push((format!("✗ {}", error.text), Role::Bad)),
        None => lines.push((format!("{batch} {fit}"), Role::Text)),
    }
    if let Some(ledger) = form.ledger() {
        let (state, total) = (format::bytes(ledger.state_bytes), format::bytes(ledger.total_bytes_estimated));
        let texts = [format!("state {state} of ~{total}"), format!("~{total}")];
        lines.push((format::first_fitting(&texts, width).to_owned(), Role::Optimizer));
    }
    lines
}

fn runs(state: &State, width: usize) -> Lines {
    let runs = &state.runs;
    let mut lines = vec![(format!("{} runs, {} marked", runs.rows.len(), runs.marked.len()), Role::Title)];
    if runs.filtering {
        lines.push((format!("/{}█", runs.filter.text()), Role::Strong));
    }
    let Some(run) = runs.rows.get(runs.selected) else { return lines };
    lines.push((format!("▶{}", format::elide(&run.name, width.saturating_sub(1))), Role::Strong));
    lines.push((format!("{} {}", run.state, format::count(run.update)), Role::Text));
    if let Some(loss) = run.val_loss {
        lines.push((format!("val {}", format::loss(loss)), Role::Validation));
    }
    lines
}
