//! The line at the bottom: a notice, or the keys of what is on the screen. A click on a key presses it.

use ratatui::{
    buffer::Buffer,
    layout::Rect,
    text::Line,
    widgets::{Clear, Widget},
};
use unicode_width::UnicodeWidthStr;

use super::{
    format,
    keymap::{self, Hint},
    theme::{Role, Theme},
    widgets::{span, write},
};
use crate::app::{
    State,
    focus::{Context, Panel},
};

/// Most lines of a notice.
const MOST: u16 = 5;

/// The keys that have room, each with its place.
pub fn hints(state: &State, theme: &Theme, area: Rect) -> Vec<(Rect, Hint)> {
    let mut placed = Vec::new();
    if state.notice.is_some() {
        return placed;
    }
    let mut used: u16 = 1;
    let live = state.is_live();
    let context = state.context();
    // A loop of its own writes none.
    let loops = crate::config::Arch::Loop;
    let own_loop = state.run.header.as_ref().is_some_and(|header| header.config.model.arch == loops);
    let opened = context == Context::State && state.tensors.opened.is_some();
    let all = if opened { keymap::opened_hints(&theme.keys) } else { keymap::hints(&theme.keys, context) };
    let takes = |hint: &Hint| (hint.key.width() + hint.word.width() + 3) as u16;
    // The way out and the help have room whatever else has none.
    let kept = |hint: &Hint| matches!(hint.word, "quit" | "help");
    let mut reserved: u16 = all.iter().filter(|hint| kept(hint)).map(takes).sum();
    for mut hint in all {
        if !live && matches!(hint.word, "pause" | "checkpoint" | "stop") {
            continue;
        }
        if own_loop && hint.word == "checkpoint" {
            continue;
        }
        if state.watching.is_none() && hint.word == "freeze" {
            continue;
        }
        if hint.word == "edit" && state.panel() == Panel::Plan {
            hint.word = "zoom";
        }
        if hint.word == "pause" && state.run.paused {
            hint.word = "resume";
        }
        let length = takes(&hint);
        if kept(&hint) {
            reserved -= length;
        }
        if used.saturating_add(length + reserved) > area.width {
            continue;
        }
        placed.push((Rect { x: area.x + used - 1, width: length, ..area }, hint));
        used += length;
    }
    placed
}

/// Draws the line.
pub fn draw(state: &State, theme: &Theme, area: Rect, buffer: &mut Buffer) {
    if let Some(notice) = &state.notice {
        let role = if notice.error { Role::Bad } else { Role::Good };
        let sign = if notice.error { "✗" } else { "›" };
        let told = theme.keys.told(&notice.text, state.context());
        // What is told is told whole: the lines above give way for as long as it stands.
        let lines = format::wrap(&told, usize::from(area.width).saturating_sub(4));
        let rows = (lines.len() as u16).clamp(1, MOST.min(area.y + 1));
        let place = Rect { y: area.y + 1 - rows, height: rows, ..area };
        Clear.render(place, buffer);
        for (row, line) in (0..rows).zip(&lines) {
            let sign = if row == 0 { sign } else { " " };
            let more = if row + 1 == rows && lines.len() > usize::from(rows) { "…" } else { "" };
            write(place, row, &Line::from(span(format!(" {sign} {line}{more}"), role, theme)), buffer);
        }
        return;
    }
    for (place, hint) in hints(state, theme, area) {
        let spans = vec![
            span(format!(" {}", hint.key), Role::Key, theme),
            span(format!(" {} ", hint.word), Role::Dim, theme),
        ];
        write(place, 0, &Line::from(spans), buffer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::{action::Screen, recorded};

    fn words(state: &State, width: u16) -> Vec<&'static str> {
        let area = Rect::new(0, 9, width, 1);
        hints(state, &Theme::default(), area).into_iter().map(|(_, hint)| hint.word).collect()
    }

    #[test]
    fn the_help_and_the_way_out_are_told_on_every_screen_that_has_panels() {
        for screen in Screen::ALL {
            let state = recorded::watching(screen, "adamw");
            for width in [40, 60, 80, 200] {
                let words = words(&state, width);
                assert!(words.contains(&"help") && words.contains(&"quit"), "{screen:?} {width}: {words:?}");
                assert!(words.len() > 2, "{screen:?} {width}: {words:?}");
            }
        }
    }

    #[test]
    fn a_checkpoint_is_offered_where_one_can_be_written() {
        let mut state = recorded::watching(Screen::Train, "adamw");
        assert!(state.is_live() && words(&state, 200).contains(&"checkpoint"));
        state.run.header.as_mut().unwrap().config.model.arch = crate::config::Arch::Loop;
        let words = words(&state, 200);
        assert!(words.contains(&"stop") && !words.contains(&"checkpoint"), "{words:?}");
    }

    #[test]
    fn an_opened_parameter_has_keys_of_its_own() {
        let mut state = recorded::watching(Screen::State, "adafactor");
        assert!(words(&state, 120).contains(&"sort"));
        state.update(crate::app::Msg::Action(crate::app::action::Action::Open));
        let words = words(&state, 60);
        assert!(words.contains(&"side") && words.contains(&"close") && !words.contains(&"sort"), "{words:?}");
    }

    #[test]
    fn the_grid_is_offered_with_the_draft_and_the_plan_is_enlarged_by_the_key_that_edits() {
        let mut state = recorded::watching(Screen::Setup, "adamw");
        let area = Rect::new(0, 9, 80, 1);
        let grid = |state: &State| {
            let hints = hints(state, &Theme::default(), area);
            hints.into_iter().find(|(_, hint)| hint.key == ":grid").and_then(|(_, hint)| hint.msg)
        };
        state.update(grid(&state).unwrap());
        let crate::app::focus::Overlay::Palette(palette) = &state.overlay else { panic!("no palette") };
        assert_eq!(palette.matches()[0].name, "grid");
        state.overlay = crate::app::focus::Overlay::None;
        assert!(words(&state, 80).contains(&"edit"));
        state.update(crate::app::Msg::Action(crate::app::action::Action::FocusNext));
        let words = words(&state, 80);
        assert!(words.contains(&"zoom") && !words.contains(&"edit"), "{words:?}");
    }

    #[test]
    fn a_notice_is_told_to_its_end() {
        let mut state = recorded::watching(Screen::Train, "adamw");
        let text =
            "the run is no longer live: nothing is commanded, and this sentence has an end that is worth it";
        state.say(text, true);
        let area = Rect::new(0, 0, 40, 10);
        let mut buffer = Buffer::empty(area);
        draw(&state, &Theme::default(), Rect { y: 9, height: 1, ..area }, &mut buffer);
        let row = |y: u16| -> String { (0..40).map(|x| buffer[(x, y)].symbol().to_owned()).collect() };
        let told: Vec<String> = (0..10).map(|y| row(y).replace('✗', "")).collect();
        let told = told.join(" ").split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(told, text);
    }
}
