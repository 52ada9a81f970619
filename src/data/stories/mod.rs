//! The built-in corpus: small English-like stories, the same text on every machine.
//!
//! Plots (`assets/stories/plots.txt`) are templates with choices and slots; slots are filled from word lists
//! (`assets/stories/words.txt`) and stay the same throughout a story, so that what is introduced comes back
//! later under the same name, with the same pronouns.

mod grammar;
mod teller;

use super::{DataError, random};
use grammar::Grammar;
use teller::Teller;

/// Stories in the corpus.
pub const STORIES: u64 = 1680;

const WORDS: &str = include_str!("../../../assets/stories/words.txt");
const PLOTS: &str = include_str!("../../../assets/stories/plots.txt");

/// Tells every story, one after another, in an order that never changes.
///
/// # Errors
/// A mistake in the compiled-in texts, with its line; the tests tell all stories, so none is left.
pub fn tell_all(mut listener: impl FnMut(&str)) -> Result<(), DataError> {
    let grammar = Grammar::parse(WORDS, PLOTS).map_err(DataError::Stories)?;
    let mut text = String::new();
    for number in 0..STORIES {
        text.clear();
        Teller::new(&grammar, random::generator(0, "stories", number)).tell(&mut text);
        listener(&text);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn all() -> Vec<String> {
        let mut stories = Vec::new();
        tell_all(|story| stories.push(story.to_owned())).unwrap();
        stories
    }

    #[test]
    fn the_text_never_changes() {
        let stories = all();
        assert_eq!(stories, all());
        // FNV-1a of the whole text: a run of an earlier version trained on the same one.
        let hash = stories.concat().bytes().fold(0xCBF2_9CE4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3)
        });
        assert_eq!(hash, 12_656_805_476_879_287_502);
    }

    #[test]
    fn there_is_enough_of_it_and_it_is_varied() {
        let stories = all();
        let bytes: usize = stories.iter().map(String::len).sum();
        assert!((1_500_000..2_100_000).contains(&bytes), "{bytes}");
        assert_eq!(stories.iter().collect::<BTreeSet<_>>().len(), stories.len());
        let text = stories.concat();
        let words: BTreeSet<&str> = text.split(|c: char| !c.is_alphabetic()).collect();
        assert!(words.len() > 1500, "{}", words.len());
        let openings: BTreeSet<&str> =
            stories.iter().filter_map(|story| story.split("\n\n").nth(1)?.split('.').next()).collect();
        assert!(openings.len() > stories.len() / 2, "{}", openings.len());
    }

    #[test]
    fn no_trace_of_the_grammar_is_left_in_the_text() {
        for story in all() {
            let odd = [
                "[", "]", "{", "}", "|", " ?", "  ", "..", " .", " ,", "?.", "?,", "!,", "??", "?!", "!.",
                ",.", ".,", " a a", "\0",
            ];
            for trace in odd {
                assert!(!story.contains(trace), "{trace:?} in {story}");
            }
            assert!(story.is_ascii(), "{story}");
            assert!(story.ends_with('\n') && !story.ends_with("\n\n"));
            assert_eq!(story.matches('"').count() % 2, 0, "{story}");
            for (end, _) in story.match_indices('"').skip(1).step_by(2) {
                assert!(
                    story[..end].ends_with(['.', ',', '?', '!', ':']),
                    "a quote before {:?}",
                    &story[end..]
                );
            }
        }
    }

    #[test]
    fn every_sentence_begins_with_a_capital_and_every_article_fits() {
        for story in all() {
            for line in story.lines().filter(|line| !line.is_empty()) {
                let first = line.trim_start_matches('"').chars().next().unwrap();
                assert!(first.is_uppercase(), "{line}");
            }
            for (end, _) in story.match_indices(". ") {
                let next = story[end + 2..].trim_start_matches('"').chars().next().unwrap();
                assert!(
                    next.is_uppercase(),
                    "{}",
                    &story[end.saturating_sub(40)..(end + 20).min(story.len())]
                );
            }
            let words: Vec<&str> = story.split([' ', '\n', '"', '(']).collect();
            for pair in words.windows(2).filter(|pair| matches!(pair[0], "a" | "A" | "an" | "An")) {
                let vowel = pair[1].starts_with(['a', 'e', 'i', 'o', 'u']);
                assert_eq!(vowel, pair[0].len() == 2, "{} {} in {story}", pair[0], pair[1]);
            }
        }
    }
}
