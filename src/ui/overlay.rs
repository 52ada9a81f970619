//! What lies over the screen: help, palette, questions.

use ratatui::{buffer::Buffer, layout::Rect, text::Line};

use crate::{
    app::{
        State,
        focus::{Context, Overlay},
        link::Control,
        palette::Palette,
        tensors::first_visible,
    },
    ui::{
        format,
        keymap::{self, BINDINGS},
        screens,
        theme::{Role, Theme},
        widgets::{dialog, paragraph, span, write, write_right},
    },
};

/// Draws the overlay, if there is one.
pub fn draw(state: &State, theme: &Theme, area: Rect, buffer: &mut Buffer) {
    match &state.overlay {
        Overlay::None => {}
        Overlay::Help { scroll } => help(*scroll, help_heading(state), theme, area, buffer),
        Overlay::Palette(palette) => self::palette(palette, theme, area, buffer),
        Overlay::Fork(choice) => screens::fork::draw(choice, theme, area, buffer),
        Overlay::Check(check) => screens::check::draw(check, theme, area, buffer),
        Overlay::Samples { back, scroll } => {
            screens::samples::draw(state.view(), *back, *scroll, theme, area, buffer);
        }
        Overlay::Quit => {
            let (detach, stop) = match state.live_here().len() {
                0 | 1 => ("detach: leave, the run goes on", "stop: save a checkpoint, then leave"),
                _ => ("detach: leave, the runs go on", "stop them: save checkpoints, then leave"),
            };
            let choices = [("d", detach), ("s", stop), ("Esc", "cancel")];
            question("leave", &still_training(state), &choices, theme, area, buffer);
        }
        Overlay::Delete { name, .. } => {
            let choices = [("d", "move it to the trash folder"), ("Esc", "cancel")];
            let text = format!(
                "{name}, with its record and its checkpoints, goes from `runs` to `trash` beside it. Nothing is erased: \
                 empty that folder by hand."
            );
            question("delete a run", &text, &choices, theme, area, buffer);
        }
        Overlay::StartBeside => {
            let choices = [
                ("Enter", "start the draft beside it"),
                ("Q", "queue it: it starts when its turn comes"),
                ("Esc", "cancel"),
            ];
            let slower = match state.live_here().len() {
                0 | 1 => "Two runs share the processor: both get slower.",
                _ => "They share the processor: every one of them gets slower.",
            };
            let text = format!("{} {slower}", still_training(state));
            question("start another run", &text, &choices, theme, area, buffer);
        }
        Overlay::Unqueue { name, .. } => {
            let choices = [("Enter", "take it out: it will not start"), ("Esc", "cancel")];
            let text = format!("{name} waits for its turn.");
            question("leave the queue", &text, &choices, theme, area, buffer);
        }
    }
}

/// Which runs of this session are live.
fn still_training(state: &State) -> String {
    match &state.live_here()[..] {
        [] => {
            let name = state.watching.as_ref().map_or("the run", |run| &run.name);
            format!("{name} is still training.")
        }
        [only] if state.may_drive() => format!("{only} is still training."),
        [only] => format!("{only}, which is not on the screen, is still training."),
        [first @ .., last] => format!("{} and {last} are still training.", first.join(", ")),
    }
}

fn question(
    heading: &str,
    text: &str,
    choices: &[(&str, &str)],
    theme: &Theme,
    area: Rect,
    buffer: &mut Buffer,
) {
    let width = 54.min(area.width);
    let lines = format::wrap(text, usize::from(width.saturating_sub(4))).len() + choices.len() + 3;
    let inside = dialog(area, (width, lines as u16), heading, buffer, theme);
    let below = paragraph(inside, 0, text, Role::Text, buffer, theme) + 1;
    for (row, (key, what)) in (below..).zip(choices) {
        let spans =
            vec![span(format!("{key:>6}"), Role::Key, theme), span(format!("  {what}"), Role::Text, theme)];
        write(inside, row, &Line::from(spans), buffer);
    }
}

/// The lines of the help, read off the key table.
fn help_lines(theme: &Theme) -> Vec<Line<'static>> {
    let contexts = [
        Context::Global,
        Context::Train,
        Context::State,
        Context::Setup,
        Context::Runs,
        Context::Quit,
        Context::StartBeside,
        Context::Unqueue,
        Context::Delete,
        Context::Fork,
    ];
    let mut lines: Vec<Line<'static>> = Vec::new();
    for context in contexts {
        if !lines.is_empty() {
            lines.push(Line::default());
        }
        lines.push(Line::from(span(keymap::heading(context), Role::Title, theme)));
        for binding in BINDINGS.iter().filter(|binding| binding.context == context) {
            let keys: Vec<String> = binding.keys.iter().map(ToString::to_string).collect();
            lines.push(Line::from(vec![
                span(format!("  {:<16}", keys.join(", ")), Role::Key, theme),
                span(binding.action.about().help, Role::Text, theme),
            ]));
        }
    }
    lines.push(Line::default());
    lines.push(Line::from(span("Signs", Role::Title, theme)));
    for (sign, what) in [
        ("~", "estimated; every other figure is counted or measured"),
        ("r R F", "in a chart: learning rate by hand, resumed, forked from here"),
        ("c p s", "in a chart: checkpoint, paused, told to stop"),
        ("! x", "in a chart: alert, update skipped (gradient not finite)"),
        ("✗", "at the bottom of a chart: a value that is no number"),
        ("*", "in the form: set by hand"),
    ] {
        lines.push(Line::from(vec![
            span(format!("  {sign:<16}"), Role::Key, theme),
            span(what, Role::Text, theme),
        ]));
    }
    lines
}

/// Says first what the keys below will not do.
fn help_heading(state: &State) -> &'static str {
    if state.replay.is_some() {
        "help: a replay; Space pauses it, commands to the run are refused"
    } else if state.options.readonly || matches!(state.link.control, Control::ReadOnly(_)) {
        "help: read-only; commands to the run are refused"
    } else {
        "help"
    }
}

fn help(scroll: usize, heading: &str, theme: &Theme, area: Rect, buffer: &mut Buffer) {
    let lines = help_lines(theme);
    let size = (76, area.height.saturating_sub(2));
    let inside = dialog(area, size, heading, buffer, theme);
    let height = usize::from(inside.height);
    let most = lines.len().saturating_sub(height);
    let first = scroll.min(most);
    for (row, line) in lines.iter().skip(first).take(height).enumerate() {
        write(inside, row as u16, line, buffer);
    }
    if first < most {
        let last = inside.height.saturating_sub(1);
        write_right(inside, last, &Line::from(span("↓ more", Role::Dim, theme)), buffer);
    }
}

fn palette(palette: &Palette, theme: &Theme, area: Rect, buffer: &mut Buffer) {
    let listed = palette.matches().len().max(3) as u16;
    let height = (listed + 4).min(area.height.saturating_sub(4)).min(20);
    let inside = dialog(area, (72, height), "command", buffer, theme);
    let text = palette.line.text();
    let (before, rest) =
        text.split_at(text.char_indices().nth(palette.line.cursor()).map_or(text.len(), |(at, _)| at));
    let line = Line::from(vec![
        span(":", Role::Key, theme),
        span(before.to_owned(), Role::Strong, theme),
        span("█", Role::Focused, theme),
        span(rest.to_owned(), Role::Strong, theme),
    ]);
    write(inside, 0, &line, buffer);
    if let Some(error) = &palette.error {
        paragraph(inside, 1, error, Role::Bad, buffer, theme);
        return;
    }
    let matches = palette.matches();
    if matches.is_empty() {
        write(inside, 2, &Line::from(span("no such command", Role::Dim, theme)), buffer);
        return;
    }
    let height = usize::from(inside.height.saturating_sub(2));
    let selected = palette.selected.min(matches.len() - 1);
    let first = first_visible(selected, matches.len(), height);
    for (row, (at, choice)) in matches.iter().enumerate().skip(first).take(height).enumerate() {
        let name = format!("{} {}", choice.name, choice.argument);
        let spans = vec![span(format!("{name:<22}"), Role::Key, theme), span(choice.help, Role::Text, theme)];
        write(inside, row as u16 + 2, &Line::from(spans), buffer);
        if at == selected {
            let place = Rect { y: inside.y + row as u16 + 2, height: 1, ..inside };
            buffer.set_style(place, theme.style(Role::Selected));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scrolling_the_help_ends_where_it_ends() {
        assert_eq!(help_lines(&Theme::default()).len(), crate::app::update::HELP_LINES);
    }
}
