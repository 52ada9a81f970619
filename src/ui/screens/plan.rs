//! The plan beside the form: what the draft would cost with every optimizer, whether that fits, what it would do, and what
//! it changes.

use ratatui::{buffer::Buffer, layout::Rect, text::Line};

use crate::{
    app::{
        State,
        focus::Panel,
        form::Form,
        room::{Fit, Room},
    },
    config::{Counted, OptimizerName, printed::Key, schedule},
    protocol::Ledger,
    ui::{
        chart::{Chart, Line as Curve, Stroke},
        format,
        screens::memory,
        theme::{Role, Theme},
        widgets::{frame, paragraph, span, stacked, title, write},
    },
};

/// Columns of an optimizer's name with its mark, of a figure, and of the words whether it fits.
const NAME: usize = 12;
const FIGURE: usize = 10;
const WORDS: usize = 16;
/// Columns of the name of a fact.
const FACT: usize = 16;

/// What the draft would cost and do.
pub fn draw(state: &State, theme: &Theme, area: Rect, buffer: &mut Buffer) {
    let form = &state.form;
    let focused = state.panel() == Panel::Plan;
    let mut heading = title("plan", focused, theme);
    heading.push_span(span("bytes exact, ~ estimated ", Role::Dim, theme));
    let inside = frame(heading, focused, area, buffer, theme);
    let room = state.room().map(|(_, room)| room);
    let width = usize::from(inside.width);
    let facts = facts(state, width);
    let changed = if form.last.is_some() { state.changes() } else { Vec::new() };
    let mut row = table(form, room, theme, inside, buffer);
    // The bars say again what the figures say: without room for all, they go.
    let notes: usize = form.resolved.notes.iter().map(|note| format::wrap(note, width).len()).sum();
    let below = 1 + facts.len() + notes + 2 + changed.len();
    if usize::from(row) + form.ledgers.len() + 2 + below <= usize::from(inside.height) {
        row = bars(form, theme, inside, row + 1, buffer);
    }
    row += 1;
    for (name, value, role) in facts {
        let spans = vec![span(format!("{name:<FACT$}"), Role::Dim, theme), span(value, role, theme)];
        write(inside, row, &Line::from(spans), buffer);
        row += 1;
    }
    for note in &form.resolved.notes {
        row = paragraph(inside, row, note, Role::Warning, buffer, theme);
    }
    row = changes(form, changed, theme, inside, row + 1, buffer);
    if inside.height > row + 8 {
        preview(
            form,
            theme,
            Rect { y: inside.y + row + 1, height: inside.height - row - 1, ..inside },
            buffer,
        );
    }
}

/// The sign and the colour of whether it fits.
const fn sign_of(fit: Fit) -> (&'static str, Role) {
    match fit {
        Fit::Fits => ("✓", Role::Good),
        Fit::Tight => ("!", Role::Warning),
        Fit::DoesNot => ("✗", Role::Bad),
    }
}

/// One line an optimizer; as many categories as there is room for.
fn table(form: &Form, device: Option<Room>, theme: &Theme, area: Rect, buffer: &mut Buffer) -> u16 {
    type Figure = fn(&Ledger) -> u64;
    let all: [(&str, Figure); 6] = [
        ("state", |l| l.state_bytes),
        ("total ~", |l| l.total_bytes_estimated),
        ("params", |l| l.parameter_bytes),
        ("grads", |l| l.gradient_bytes),
        ("accum", |l| l.accumulation_bytes),
        ("activ ~", |l| l.activation_bytes_estimated),
    ];
    // Whether it fits in words, as long as three figures have room beside them; else as a sign.
    let left = usize::from(area.width).saturating_sub(NAME);
    let words = left.saturating_sub(WORDS) / FIGURE >= 3;
    let taken = if device.is_none() {
        0
    } else if words {
        WORDS
    } else {
        2
    };
    let columns = (left.saturating_sub(taken) / FIGURE).clamp(1, all.len());
    // Shown in the order in which they add up, chosen by what matters most.
    let order = [2, 3, 4, 0, 5, 1];
    let shown: Vec<_> = order.into_iter().filter(|at| *at < columns).map(|at| all[at]).collect();
    let head: String = shown.iter().map(|(name, _)| format!("{name:>FIGURE$}")).collect();
    write(area, 0, &Line::from(span(format!("{:NAME$}{head}", ""), Role::Dim, theme)), buffer);
    let mut row = 1;
    for (name, ledger) in &form.ledgers {
        let chosen = *name == form.optimizer();
        let role = if chosen { Role::Strong } else { Role::Text };
        let mark = if chosen { "▶" } else { " " };
        let mut spans = vec![
            span(mark, Role::Focused, theme),
            span(format!("{:<width$}", name.as_str(), width = NAME - 1), role, theme),
        ];
        for (name, figure) in &shown {
            // What the passes of a task's own model keep, no shape tells.
            let text = match (figure(ledger), *name) {
                (0, "activ ~") => "?".to_owned(),
                (bytes, _) => format::bytes(bytes),
            };
            spans.push(span(format!("{text:>FIGURE$}"), role, theme));
        }
        if let Some(device) = device {
            let fit = device.fit(ledger.total_bytes_estimated);
            let (sign, role) = sign_of(fit);
            let text = if words { format!(" {sign} {}", fit.as_str()) } else { format!(" {sign}") };
            spans.push(span(text, role, theme));
        }
        write(area, row, &Line::from(spans), buffer);
        row += 1;
    }
    row
}

/// One bar an optimizer, and what is in it.
fn bars(form: &Form, theme: &Theme, area: Rect, mut row: u16, buffer: &mut Buffer) -> u16 {
    let most = form.ledgers.iter().map(|(_, ledger)| ledger.total_bytes_estimated).max().unwrap_or(1);
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

/// What the draft would do and take: name, value and colour of each figure.
fn facts(state: &State, width: usize) -> Vec<(&'static str, String, Role)> {
    let form = &state.form;
    let train = &form.resolved.config.train;
    let Some(ledger) = form.ledger() else { return Vec::new() };
    let effective = train.effective_batch();
    let tokens = (effective * train.seq_len) as u64;
    let total = ledger.total_bytes_estimated;
    let (each_update, in_all) = match form.resolved.config.model.arch.counted() {
        Counted::Examples => ("examples/update", "examples in all"),
        Counted::Tokens => ("tokens/update", "tokens in all"),
    };
    let mut facts = vec![
        (
            "effective batch",
            format!("{} x {} = {effective}", train.micro_batch, train.accumulate),
            Role::Strong,
        ),
        (each_update, format::count(tokens), Role::Text),
    ];
    match (train.max_updates, train.epochs) {
        (Some(updates), _) => {
            facts.push(("updates", format::count(updates), Role::Text));
            facts.push((in_all, format::short(updates as f64 * tokens as f64), Role::Text));
        }
        (None, Some(epochs)) => facts.push(("epochs", format::count(epochs), Role::Text)),
        (None, None) => {}
    }
    facts.push(("parameters", format::count(ledger.parameters), Role::Text));
    facts.push(("state elements", format::count(ledger.state_elements), Role::Text));
    let least = form.ledgers.iter().min_by_key(|(_, ledger)| ledger.total_bytes_estimated);
    if let Some((name, ledger)) = least {
        let text = format!("{} ~{}", name.as_str(), format::bytes(ledger.total_bytes_estimated));
        facts.push(("least memory", text, Role::Good));
    }
    if let Some((device, room)) = state.room() {
        let fit = room.fit(total);
        let (total, free) = (format::bytes(total), format::bytes(room.free));
        let texts = [
            format!("~{total} in {free} free ({device})"),
            format!("~{total} in {free} free"),
            format!("~{total}/{free}"),
        ];
        let text = format::first_fitting(&texts, width.saturating_sub(FACT)).to_owned();
        facts.push((fit.as_str(), text, sign_of(fit).1));
    }
    facts
}

/// What differs from the last run.
fn changes(
    form: &Form,
    changes: Vec<(Key, String, String)>,
    theme: &Theme,
    area: Rect,
    mut row: u16,
    buffer: &mut Buffer,
) -> u16 {
    let Some(last) = &form.last else { return row };
    let room = usize::from(area.width);
    let last = format::elide(&last.name, room.saturating_sub(21));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::{action::Screen, form::Earlier, recorded};

    fn drawn(state: &State, height: u16) -> String {
        let area = Rect::new(0, 0, 50, height);
        let mut buffer = Buffer::empty(area);
        draw(state, &Theme::default(), area, &mut buffer);
        let row = |y| (0..area.width).map(|x| buffer[(x, y)].symbol().to_owned()).collect::<String>();
        (0..area.height).map(|y| row(y) + "\n").collect()
    }

    #[test]
    fn what_changed_is_listed_before_there_are_bars() {
        let mut state = recorded::watching(Screen::Setup, "adamw");
        state.form.last = Some(Earlier::new("", "before", &state.form.resolved.config));
        // 100x30 leaves a panel of 28 lines.
        let bars = |text: &str| text.contains("■params");
        assert!(bars(&drawn(&state, 28)), "{}", drawn(&state, 28));
        state.form.assign("train.seed", "7").unwrap();
        state.form.assign("train.accumulate", "4").unwrap();
        let text = drawn(&state, 28);
        for line in ["2 changes from before", "train.accumulate", "1 → 4", "train.seed", "1 → 7"] {
            assert!(text.contains(line), "{line}: {text}");
        }
        assert!(!bars(&text), "{text}");
        assert!(bars(&drawn(&state, 30)), "with room for both there are both");
        state.form.assign("model.preset", "distilbert-nano").unwrap();
        let (many, text) = (state.changes().len(), drawn(&state, 28));
        let listed = text.matches(" → ").count();
        assert!(many > 12 && listed >= 6, "{many} changes, {listed} listed: {text}");
        assert!(text.contains(&format!("and {} more", many - listed)), "{text}");
    }
}
