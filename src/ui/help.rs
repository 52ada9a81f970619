//! The help: every key that holds and what it does, read off the key table; and only those lines that hold a text.

use ratatui::{buffer::Buffer, layout::Rect, text::Line};

use super::{
    format, keymap,
    keys::contexts,
    layout::is_tiny,
    screens::curves::corner,
    theme::{Role, Theme},
    widgets::{dialog, placed, span, write},
};
use crate::app::{
    State,
    action::{ACTIONS, Action},
    focus::Context,
    link::Control,
    palette,
};

/// Columns of the keys, and of the keys where a line is short.
const KEYS: usize = 16;
const FEW: usize = 10;
/// Columns of the box.
const WIDTH: u16 = 76;

/// What signs on the screens say.
const SIGNS: &[(&str, &str)] = &[
    ("~", "estimated; every other figure is counted or measured"),
    ("r R F", "in a chart: learning rate by hand, resumed, forked from here"),
    ("c p s", "in a chart: checkpoint, paused, told to stop"),
    ("! x", "in a chart: alert, update skipped (gradient not finite)"),
    ("✗", "at the bottom of a chart: a value that is no number"),
    ("*", "in the form: set by hand"),
];

/// What the mouse does.
const MOUSE: &[(&str, &str)] = &[
    ("click", "focuses, selects; what is selected is opened or edited"),
    ("click", "presses a tab, a key at the bottom, a column's head"),
    ("wheel", "scrolls what it is over; zooms a chart, at the pointer"),
    ("wheel, sideways", "over a chart: to earlier or later updates"),
    ("drag", "in a chart: moves the cursor"),
    ("--no-mouse", "at the start: the mouse is the terminal's own"),
];

/// A heading and its lines: keys or signs, and what they are.
type Section = (&'static str, Vec<(String, &'static str)>);

fn sections(theme: &Theme) -> Vec<Section> {
    let keys = |context| -> Section {
        let rows = theme.keys.rows().iter().filter(move |row| row.context == context);
        let line = |row: &super::keys::Row| {
            let about = row.action.about();
            let keys: Vec<String> = row.keys.iter().map(ToString::to_string).collect();
            let keys = if keys.is_empty() { format!(":{}", about.name) } else { keys.join(", ") };
            (keys, about.help)
        };
        (keymap::heading(context), rows.map(line).collect())
    };
    let fixed = |lines: &[(&str, &'static str)]| -> Vec<(String, &'static str)> {
        lines.iter().map(|(sign, what)| ((*sign).to_owned(), *what)).collect()
    };
    let commands = (keymap::heading(Context::Palette), commands(theme));
    let tail = [commands, ("Mouse", fixed(MOUSE)), ("Signs", fixed(SIGNS))];
    contexts().into_iter().map(keys).chain(tail).collect()
}

/// What only the palette does: the actions that have no key, and the commands that words follow.
fn commands(theme: &Theme) -> Vec<(String, &'static str)> {
    let told = |name: &str, argument: &str| format!(":{name} {argument}").trim_end().to_owned();
    let has_line = |action: Action| theme.keys.rows().iter().any(|row| row.action.is(action));
    let keyless = ACTIONS.iter().filter(|about| !has_line(about.action));
    let actions = keyless.map(|about| (told(about.name, about.argument), about.help));
    actions
        .chain(palette::more().map(|command| (told(command.name, command.argument), command.help)))
        .collect()
}

/// The lines of the help that hold the text; all of them without one.
fn lines(theme: &Theme, search: &str, width: usize) -> Vec<Line<'static>> {
    // Where a line is very short the keys stand above what they do.
    let columns = match width {
        0..30 => 0,
        30..50 => FEW,
        _ => KEYS,
    };
    let wanted = search.trim().to_lowercase();
    let mut lines: Vec<Line<'static>> = Vec::new();
    for (heading, entries) in sections(theme) {
        let whole = heading.to_lowercase().contains(&wanted);
        let fits = |(keys, what): &&(String, &'static str)| {
            whole || what.to_lowercase().contains(&wanted) || keys.to_lowercase().contains(&wanted)
        };
        let found: Vec<_> = entries.iter().filter(fits).collect();
        if found.is_empty() {
            continue;
        }
        if !lines.is_empty() {
            lines.push(Line::default());
        }
        lines.push(Line::from(span(heading, Role::Title, theme)));
        for (keys, what) in found {
            let told = format::wrap(what, width.saturating_sub(columns + 2));
            if columns == 0 {
                lines.push(Line::from(span(keys.clone(), Role::Key, theme)));
                lines.extend(
                    told.into_iter().map(|part| Line::from(span(format!("  {part}"), Role::Text, theme))),
                );
                continue;
            }
            let keys = format::wrap(keys, columns);
            for row in 0..told.len().max(keys.len()) {
                let part = |texts: &[String]| texts.get(row).cloned().unwrap_or_default();
                lines.push(Line::from(vec![
                    span(format!("  {:<columns$}", part(&keys)), Role::Key, theme),
                    span(part(&told), Role::Text, theme),
                ]));
            }
        }
    }
    lines
}

/// Says first what the keys below will not do.
fn heading(state: &State, theme: &Theme) -> String {
    if state.replay.is_some() {
        theme
            .keys
            .told("help: a replay; {key:pause} pauses it, commands to the run are refused", state.context())
    } else if state.options.readonly || matches!(state.link.control, Control::ReadOnly(_)) {
        "help: read-only; commands to the run are refused".to_owned()
    } else {
        "help".to_owned()
    }
}

/// Columns and rows of the box.
pub const fn size(area: Rect) -> (u16, u16) {
    (WIDTH, area.height.saturating_sub(2))
}

/// Columns of a line.
fn columns(area: Rect) -> usize {
    usize::from(if is_tiny(area) { area.width } else { WIDTH.min(area.width).saturating_sub(4) })
}

/// Lines that are seen at once.
fn height(area: Rect) -> usize {
    usize::from(area.height.saturating_sub(if is_tiny(area) { 1 } else { 4 }))
}

/// The lines without a box, where there is no room for one.
pub fn tiny(state: &State, scroll: usize, theme: &Theme, area: Rect) -> Vec<(String, Role)> {
    let heading = if state.searching || !state.search.text().is_empty() {
        format!("help /{}{}", state.search.text(), if state.searching { "█" } else { "" })
    } else {
        theme.keys.told("help, {key:back} closes", state.context())
    };
    let lines = lines(theme, state.search.text(), columns(area));
    let first = scroll.min(lines.len().saturating_sub(height(area)));
    let shown = lines.iter().skip(first).map(|line| (line.to_string().trim_end().to_owned(), Role::Text));
    [(heading, Role::Title)].into_iter().chain(shown).collect()
}

/// The first line shown after such a movement; nothing for what is none.
pub fn moved(state: &State, theme: &Theme, area: Rect, scroll: usize, action: Action) -> Option<usize> {
    let page = height(area).saturating_sub(1).max(1);
    let most = lines(theme, state.search.text(), columns(area)).len().saturating_sub(height(area));
    let scroll = scroll.min(most);
    Some(match action {
        Action::Up => scroll.saturating_sub(1),
        Action::Down => (scroll + 1).min(most),
        Action::PageUp => scroll.saturating_sub(page),
        Action::PageDown => (scroll + page).min(most),
        Action::Home => 0,
        Action::End => most,
        _ => return None,
    })
}

/// Draws the overlay.
pub fn draw(state: &State, scroll: usize, theme: &Theme, area: Rect, buffer: &mut Buffer) {
    let search = state.search.text();
    let lines = lines(theme, search, columns(area));
    let cursor = if state.searching { "█" } else { "" };
    let heading = if state.searching || !search.is_empty() {
        format!("help /{}{cursor}", format::elide(search, 40))
    } else {
        heading(state, theme)
    };
    let inside = dialog(area, size(area), &heading, buffer, theme);
    if lines.is_empty() {
        let text = format!("no line of the help holds `{}`", format::elide(search, 30));
        write(inside, 0, &Line::from(span(text, Role::Dim, theme)), buffer);
        return;
    }
    let height = usize::from(inside.height);
    let most = lines.len().saturating_sub(height);
    let first = scroll.min(most);
    for (row, line) in lines.iter().skip(first).take(height).enumerate() {
        write(inside, row as u16, line, buffer);
    }
    if first < most {
        corner(placed(area, size(area)), " ↓ more ", theme, buffer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::{action::Screen, input::TextLine, recorded};

    fn text(search: &str) -> Vec<String> {
        lines(&Theme::default(), search, 72).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn scrolling_the_help_ends_where_it_ends() {
        assert_eq!(text("").len(), crate::app::moving::HELP_LINES);
        let mut state = recorded::watching(Screen::Train, "adamw");
        let (theme, area) = (Theme::default(), Rect::new(0, 0, 80, 24));
        let end = moved(&state, &theme, area, 0, Action::End).unwrap();
        assert_eq!(end, crate::app::moving::HELP_LINES - 20);
        assert_eq!(moved(&state, &theme, area, end, Action::Down), Some(end));
        state.search = TextLine::new("checkpoint");
        assert_eq!(moved(&state, &theme, area, end, Action::Up), Some(0), "what is left fits");
    }

    #[test]
    fn commands_that_have_no_key_and_the_mouse_are_found() {
        let grid = text("grid");
        assert!(grid.iter().any(|line| line == "Commands"), "{grid:?}");
        assert!(grid.iter().any(|line| line.contains(":grid KEY=A,B") && line.contains("queue the draft")));
        assert!(text("rate").iter().any(|line| line.contains(":lr RATE")));
        for word in ["wheel", "mouse", "drag"] {
            assert!(text(word).iter().any(|line| line == "Mouse"), "{word}");
        }
        // Nothing that the palette knows is left out.
        let all = text("");
        for choice in palette::choices() {
            let help = choice.help;
            assert!(all.iter().any(|line| line.contains(help)), "{}", choice.name);
        }
    }

    #[test]
    fn a_search_leaves_the_lines_that_hold_it_under_their_headings() {
        let found = text("ACCUMULATION");
        assert!(found.iter().any(|line| line == "Setup"), "{found:?}");
        assert!(found.iter().any(|line| line.contains("twice the accumulation")), "{found:?}");
        assert!(!found.iter().any(|line| line.contains("write a checkpoint")), "{found:?}");
        assert!(text("Ctrl+Z").iter().any(|line| line.contains("not the run")));
        assert!(text("no such thing").is_empty());
        let runs = text("runs");
        assert!(
            runs.iter().any(|line| line.contains("mark the run")),
            "a heading stands for all of its lines"
        );
    }
}
