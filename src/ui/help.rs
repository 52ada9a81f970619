//! The help: every key that holds and what it does, read off the key table; and only those lines that hold a text.

use ratatui::{buffer::Buffer, layout::Rect, text::Line};

use super::{
    format, keymap,
    keys::contexts,
    theme::{Role, Theme},
    widgets::{dialog, span, write, write_right},
};
use crate::app::{State, action::Action, link::Control};

/// Columns of the keys.
const KEYS: usize = 16;

/// What signs on the screens say.
const SIGNS: &[(&str, &str)] = &[
    ("~", "estimated; every other figure is counted or measured"),
    ("r R F", "in a chart: learning rate by hand, resumed, forked from here"),
    ("c p s", "in a chart: checkpoint, paused, told to stop"),
    ("! x", "in a chart: alert, update skipped (gradient not finite)"),
    ("✗", "at the bottom of a chart: a value that is no number"),
    ("*", "in the form: set by hand"),
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
    let signs = SIGNS.iter().map(|(sign, what)| ((*sign).to_owned(), *what)).collect();
    contexts().into_iter().map(keys).chain([("Signs", signs)]).collect()
}

/// The lines of the help that hold the text; all of them without one.
fn lines(theme: &Theme, search: &str) -> Vec<Line<'static>> {
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
            lines.push(Line::from(vec![
                span(format!("  {:<KEYS$}", format::cut(keys, KEYS)), Role::Key, theme),
                span(*what, Role::Text, theme),
            ]));
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

/// Lines that are seen at once.
fn height(area: Rect) -> usize {
    usize::from(area.height.saturating_sub(4))
}

/// The first line shown after such a movement; nothing for what is none.
pub fn moved(state: &State, theme: &Theme, area: Rect, scroll: usize, action: Action) -> Option<usize> {
    let page = height(area).saturating_sub(1).max(1);
    let most = lines(theme, state.search.text()).len().saturating_sub(height(area));
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
    let lines = lines(theme, search);
    let size = (76, area.height.saturating_sub(2));
    let cursor = if state.searching { "█" } else { "" };
    let heading = if state.searching || !search.is_empty() {
        format!("help /{}{cursor}", format::elide(search, 40))
    } else {
        heading(state, theme)
    };
    let inside = dialog(area, size, &heading, buffer, theme);
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
        let last = inside.height.saturating_sub(1);
        write_right(inside, last, &Line::from(span("↓ more", Role::Dim, theme)), buffer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::{action::Screen, input::TextLine, recorded};

    fn text(search: &str) -> Vec<String> {
        lines(&Theme::default(), search).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn scrolling_the_help_ends_where_it_ends() {
        assert_eq!(text("").len(), crate::app::update::HELP_LINES);
        let mut state = recorded::watching(Screen::Train, "adamw");
        let (theme, area) = (Theme::default(), Rect::new(0, 0, 80, 24));
        let end = moved(&state, &theme, area, 0, Action::End).unwrap();
        assert_eq!(end, crate::app::update::HELP_LINES - 20);
        assert_eq!(moved(&state, &theme, area, end, Action::Down), Some(end));
        state.search = TextLine::new("checkpoint");
        assert_eq!(moved(&state, &theme, area, end, Action::Up), Some(0), "what is left fits");
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
