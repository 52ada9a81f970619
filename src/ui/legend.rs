//! The runs of a chart by letter and name, in as much room as there is: every run is there, shortened where it must be.

use std::collections::HashSet;

use ratatui::text::Span;
use unicode_width::UnicodeWidthStr;

use super::{
    format,
    theme::{Role, Theme},
    widgets::span,
};

/// Longest name, in columns.
const NAME: usize = 20;
/// Columns in which most names are told from others.
const ENOUGH: usize = 12;
/// Columns that a name needs to say anything.
const SHORTEST: usize = 4;

/// The letter of the run at that place.
pub fn letter(at: usize) -> char {
    u32::try_from(at).ok().and_then(|at| char::from_u32('A' as u32 + at)).unwrap_or('?')
}

/// Columns that so many runs need to be told apart at all.
pub const fn least(runs: usize) -> usize {
    2 * runs
}

/// Columns in which so many runs have names that say something.
pub fn wanted(runs: &[(usize, &str)]) -> usize {
    runs.iter().map(|(_, name)| 3 + name.width().min(ENOUGH)).sum()
}

/// Letter and name of each run; names that have no room are shortened alike, and left out when nothing of them would
/// remain. `runs` are places and names.
pub fn runs(runs: &[(usize, &str)], room: usize, theme: &Theme) -> Vec<Span<'static>> {
    let width = (0..=NAME).rev().find(|width| {
        let taken: usize = runs.iter().map(|(at, name)| text(*at, name, *width).width()).sum();
        taken <= room
    });
    let width = width.map_or(0, |width| if width < SHORTEST { 0 } else { width });
    let told: Vec<String> = runs.iter().map(|(_, name)| format::elide(name, width)).collect();
    let distinct = |names: &[String]| names.iter().collect::<HashSet<_>>().len();
    let whole: Vec<&str> = runs.iter().map(|(_, name)| *name).collect();
    let own = own_words(&whole);
    let short: Vec<String> = own.iter().map(|name| format::elide(name, width)).collect();
    let told = if distinct(&short) > distinct(&told) { short } else { told };
    let mut left = room;
    let mut spans = Vec::with_capacity(runs.len());
    for ((at, _), name) in runs.iter().zip(&told) {
        let text = text(*at, name, width);
        match left.checked_sub(text.width()) {
            Some(rest) => left = rest,
            None => break,
        }
        spans.push(span(text, Role::Run(*at), theme));
    }
    spans
}

/// The names without the words that all of them begin or end with; of each some word is left.
fn own_words(names: &[&str]) -> Vec<String> {
    let words: Vec<Vec<&str>> = names.iter().map(|name| name.split(' ').collect()).collect();
    let spare = words.iter().map(|words| words.len() - 1).min().unwrap_or(0);
    let shared = |word: &dyn Fn(&[&str]) -> String| {
        words.iter().all(|words_of_one| word(words_of_one) == word(&words[0]))
    };
    let front = (0..spare).take_while(|&at| shared(&|words| words[at].to_owned())).count();
    let back = (front..spare)
        .take_while(|&at| shared(&|words| words[words.len() - 1 - (at - front)].to_owned()))
        .count();
    words.iter().map(|words| words[front..words.len() - back].join(" ")).collect()
}

fn text(at: usize, name: &str, width: usize) -> String {
    match width {
        0 => format!("{} ", letter(at)),
        _ => format!("{} {} ", letter(at), format::elide(name, width)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(names: &[&str], room: usize) -> String {
        let all: Vec<(usize, &str)> = names.iter().copied().enumerate().collect();
        runs(&all, room, &Theme::default()).iter().map(|span| span.content.as_ref()).collect()
    }

    #[test]
    fn every_run_is_named_and_names_give_way_before_letters_do() {
        let names = ["demo", "nano-adafactor", "a-wide-model-with-a-long-name"];
        let whole = told(&names, 60);
        assert!(
            whole.starts_with("A demo B nano-adafactor C a-wide") && whole.ends_with("-long-name "),
            "{whole}"
        );
        let short = told(&names, 31);
        assert!(
            short.starts_with("A demo B na") && short.contains("actor C ") && short.ends_with("name "),
            "{short}"
        );
        assert_eq!(told(&names, 12), "A B C ");
        assert_eq!(told(&names, 4), "A B ", "what has no room at all is left out");
        assert_eq!(told(&[], 10), "");
        let alike = ["gr adamw seed=2", "gr adafactor seed=2"];
        assert_eq!(told(&alike, 60), "A gr adamw seed=2 B gr adafactor seed=2 ");
        assert_eq!(told(&alike, 26), "A adamw B adafactor ", "what all have in common gives way first");
        for room in 0..60 {
            assert!(told(&names, room).width() <= room);
        }
    }
}
