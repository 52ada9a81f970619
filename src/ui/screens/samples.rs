//! The texts that the model wrote after a validation, over the screen: the beginning of the held-out text, and how the
//! model goes on with it.

use ratatui::{buffer::Buffer, layout::Rect, text::Line};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::{
    app::run::RunView,
    config::Task,
    protocol::TextSample,
    run::text,
    ui::{
        format,
        screens::curves::corner,
        theme::{Role, Theme},
        widgets::{dialog, paragraph, placed, span, write},
    },
};

/// Columns of the box at most.
const WIDTH: u16 = 96;

/// The box of the overlay.
pub fn place(view: &RunView, back: usize, area: Rect) -> Rect {
    let room = usize::from(WIDTH.min(area.width).saturating_sub(4));
    let height = match view.samples.iter().rev().nth(back) {
        Some(sample) => height(lines(sample, room, &Theme::default()).len(), area),
        None => format::wrap(nothing(view), room).len() as u16 + 2,
    };
    placed(area, (WIDTH, height))
}

/// Rows of a box with that many lines.
fn height(lines: usize, area: Rect) -> u16 {
    (lines as u16).saturating_add(2).min(area.height.saturating_sub(2))
}

/// Draws the overlay: the text that is so many before the newest.
pub fn draw(view: &RunView, back: usize, scroll: usize, theme: &Theme, area: Rect, buffer: &mut Buffer) {
    let room = usize::from(WIDTH.min(area.width).saturating_sub(4));
    let Some(sample) = view.samples.iter().rev().nth(back) else {
        let text = nothing(view);
        let height = format::wrap(text, room).len() as u16 + 2;
        let inside = dialog(area, (WIDTH, height), "texts the model wrote", buffer, theme);
        paragraph(inside, 0, text, Role::Dim, buffer, theme);
        return;
    };
    let lines = lines(sample, room, theme);
    let nth = view.samples.len().saturating_sub(back);
    let heading =
        format!("text {nth} of {}, after update {}", view.samples.len(), format::count(sample.update));
    let inside = dialog(area, (WIDTH, height(lines.len(), area)), &heading, buffer, theme);
    let shown = usize::from(inside.height);
    let first = scroll.min(lines.len().saturating_sub(shown));
    for (row, line) in lines.iter().skip(first).take(shown).enumerate() {
        write(inside, row as u16, line, buffer);
    }
    if first + shown < lines.len() {
        corner(place(view, back, area), " ↓ more ", theme, buffer);
    }
}

/// The lines without a box, where there is no room for one.
pub fn tiny(view: &RunView, back: usize, scroll: usize, theme: &Theme, area: Rect) -> Vec<(String, Role)> {
    let room = usize::from(area.width);
    let Some(sample) = view.samples.iter().rev().nth(back) else {
        return format::wrap(nothing(view), room).into_iter().map(|line| (line, Role::Dim)).collect();
    };
    let place = view.samples.len().saturating_sub(back);
    let heading = format!("text {place} of {}", view.samples.len());
    let lines = lines(sample, room, theme);
    let first = scroll.min(lines.len().saturating_sub(usize::from(area.height.saturating_sub(1))));
    let shown = lines.iter().skip(first).map(|line| (line.to_string(), Role::Text));
    [(heading, Role::Title)].into_iter().chain(shown).collect()
}

/// Why there is no text.
fn nothing(view: &RunView) -> &'static str {
    let Some(header) = &view.header else { return "nothing yet: the worker is starting" };
    let config = &header.config;
    if config.model.arch.task() != Task::LanguageModel {
        "a model that classifies writes no text"
    } else if config.log.sample_tokens == 0 {
        "log.sample_tokens = 0: this run writes none"
    } else if config.data.validation_fraction == 0.0 {
        "data.validation_fraction = 0: there is no held-out text to begin with"
    } else {
        "nothing yet: the model writes a text after each validation"
    }
}

fn lines(sample: &TextSample, room: usize, theme: &Theme) -> Vec<Line<'static>> {
    let mut lines = vec![Line::from(span("the held-out text begins", Role::Title, theme))];
    let mut add = |text: &str, role| {
        lines.extend(broken(text, room).into_iter().map(|line| Line::from(span(line, role, theme))));
    };
    add(&sample.prompt, Role::Text);
    for continuation in &sample.texts {
        let (manner, count) = (continuation.manner(), format::count(continuation.tokens));
        let tokens = format!("the model goes on, {manner}, {count} tokens");
        add("", Role::Text);
        add(&tokens, Role::Title);
        add(&continuation.text, Role::Strong);
    }
    add("", Role::Text);
    add(&format!("written in {}", text::duration(sample.seconds)), Role::Dim);
    lines
}

/// Lines of that many columns at most: broken where the text breaks them and where they are full, with every space kept,
/// for a model's spaces are its own.
fn broken(text: &str, room: usize) -> Vec<String> {
    let room = room.max(2);
    let mut lines = Vec::new();
    for line in text.replace('\t', " ").split('\n') {
        let (mut rest, mut width) = (String::new(), 0);
        for sign in line.chars() {
            let columns = sign.width().unwrap_or(0);
            if width + columns > room {
                // Rather between two words, when the last one is not too long for that.
                let at =
                    rest.rfind(' ').filter(|at| rest.len() - at < room / 2).map_or(rest.len(), |at| at + 1);
                let next = rest.split_off(at);
                lines.push(std::mem::replace(&mut rest, next));
                width = rest.width();
            }
            rest.push(sign);
            width += columns;
        }
        lines.push(rest);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_keep_their_spaces_and_fit() {
        assert_eq!(broken("ab  cd\n\n e", 20), ["ab  cd", "", " e"]);
        assert_eq!(broken("the sun rises again", 12), ["the sun ", "rises again"]);
        assert_eq!(broken("abcdefgh", 3), ["abc", "def", "gh"]);
        assert_eq!(broken("", 5), [""]);
        for line in broken("日本語の文 and é words of any kind \u{fffd}\u{fffd}", 5) {
            assert!(line.width() <= 5, "{line}");
        }
    }
}
