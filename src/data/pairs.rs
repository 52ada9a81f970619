//! The built-in labelled pairs of sentences, the same on every machine: the first tells what happened to somebody,
//! the second how they took it, and the label says whether the two fit.
//!
//! The first sentence's verb and adjective and the second one's verb and manner tell good from bad; everything else
//! is drawn at random. Neither sentence gives the label away: whoever reads only one of them is right in 63 of 100
//! rows, and whoever counts good words without comparing the two in 88. Good news that is taken well is told more
//! often than bad news that is taken badly, so that the words are learnt before the comparison is.

use std::collections::HashSet;

use rand_chacha::ChaCha8Rng;

use super::random;

/// Pairs in all; half of them fit.
pub const PAIRS: usize = 4000;

/// What the labels mean, by their class id.
pub const LABELS: [&str; 2] = ["does not fit", "fits"];

/// Two sentences.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Pair {
    pub first: String,
    pub second: String,
    /// Whether the second follows from the first.
    pub fits: bool,
}

const GIRLS: [&str; 26] = [
    "Anna", "Mira", "Lily", "Clara", "Nora", "Rosa", "Edith", "Hazel", "Ivy", "Kira", "Maud", "Nell",
    "Olive", "Ruth", "Sofia", "Tessa", "Vera", "Wanda", "Ada", "Bella", "Dora", "Elsa", "Greta", "Marta",
    "Poppy", "Tilda",
];
const BOYS: [&str; 26] = [
    "Tom", "Ben", "Oscar", "Emil", "Felix", "Hugo", "Jonas", "Karl", "Leo", "Max", "Ned", "Otto", "Paul",
    "Rufus", "Sam", "Theo", "Victor", "Arthur", "Bruno", "David", "Edgar", "Finn", "Gus", "Henry", "Ivan",
    "Jasper",
];
const THINGS: [&str; 20] = [
    "kite",
    "lantern",
    "flute",
    "drum",
    "boat",
    "puppet",
    "bell",
    "clock",
    "mirror",
    "basket",
    "sled",
    "compass",
    "umbrella",
    "teapot",
    "whistle",
    "vase",
    "watch",
    "lamp",
    "fiddle",
    "toy train",
];
const WHEN: [&str; 6] = ["Yesterday", "On Sunday", "Last night", "At noon", "In spring", "One day"];
const WHERE: [&str; 6] =
    ["at school", "in the barn", "by the sea", "near the mill", "on the hill", "in town"];

/// What can happen to a thing: bad, good.
const EVENTS: [[&str; 4]; 2] = [["lost", "broke", "dropped", "ruined"], ["won", "found", "mended", "saved"]];
/// What was special about it.
const TRAITS: [[&str; 3]; 2] = [["last", "only", "best"], ["golden", "lovely", "splendid"]];
const MOODS: [[&str; 4]; 2] =
    [["cried", "sighed", "wept", "frowned"], ["laughed", "smiled", "danced", "sang"]];
const MANNERS: [[&str; 3]; 2] = [["bitterly", "for hours", "sadly"], ["happily", "with joy", "merrily"]];
/// Only joy is told with an exclamation mark.
const MARKS: [char; 2] = ['.', '!'];

/// Of 100 pairs: good and taken well, bad and taken badly, good and taken badly; the rest is bad and taken well.
const SHARES: [usize; 3] = [38, 12, 25];

/// All pairs, no two of them the same.
pub fn all() -> Vec<Pair> {
    let mut rng = random::generator(0, "sentence pairs", 0);
    let mut seen = HashSet::new();
    let mut pairs = Vec::with_capacity(PAIRS);
    for number in 0..PAIRS {
        // Every hundred holds the exact shares, in an order that does not follow from their numbers.
        let place = (number % 100 * 37 + number / 100 * 13) % 100;
        let [well, badly, against] = SHARES;
        let (event, mood) = if place < well {
            (true, true)
        } else if place < well + badly {
            (false, false)
        } else {
            (place < well + badly + against, place >= well + badly + against)
        };
        loop {
            let pair = tell(&mut rng, event, mood);
            if seen.insert(pair.clone()) {
                pairs.push(pair);
                break;
            }
        }
    }
    pairs
}

fn tell(rng: &mut ChaCha8Rng, event: bool, mood: bool) -> Pair {
    let (event_at, mood_at) = (usize::from(event), usize::from(mood));
    let girl = random::below(rng, 2) == 0;
    let (name, she, capital) =
        if girl { (one(rng, &GIRLS), "she", "She") } else { (one(rng, &BOYS), "he", "He") };
    let (verb, adjective, thing) =
        (one(rng, &EVENTS[event_at]), one(rng, &TRAITS[event_at]), one(rng, &THINGS));
    let told = format!("{name} {verb} the {adjective} {thing}");
    let first = match random::below(rng, 3) {
        0 => format!("{told}."),
        1 => format!("{told} {}.", one(rng, &WHERE)),
        _ => format!("{}, {told}.", one(rng, &WHEN)),
    };
    let (verb, manner, mark) = (one(rng, &MOODS[mood_at]), one(rng, &MANNERS[mood_at]), MARKS[mood_at]);
    let second = match random::below(rng, 3) {
        0 => format!("{capital} {verb} {manner}{mark}"),
        1 => format!("Then {she} {verb} {manner}{mark}"),
        _ => format!("At home {she} {verb} {manner}{mark}"),
    };
    Pair { first, second, fits: event == mood }
}

fn one(rng: &mut ChaCha8Rng, words: &[&'static str]) -> &'static str {
    words[random::below(rng, words.len() as u64) as usize]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn the_pairs_never_change() {
        let pairs = all();
        assert_eq!(pairs, all());
        let text: String =
            pairs.iter().map(|pair| format!("{}\t{}\t{}\n", pair.first, pair.second, pair.fits)).collect();
        // A run of an earlier version trained on the same ones.
        assert_eq!(random::hash(&text), HASH);
    }
    const HASH: u64 = 2_672_133_600_599_351_789;

    #[test]
    fn there_are_enough_half_of_them_fit_and_no_two_are_the_same() {
        let pairs = all();
        assert_eq!(pairs.len(), PAIRS);
        assert_eq!(pairs.iter().filter(|pair| pair.fits).count(), PAIRS / 2);
        let sentences: HashSet<(&str, &str)> =
            pairs.iter().map(|pair| (&*pair.first, &*pair.second)).collect();
        assert_eq!(sentences.len(), PAIRS);
        let firsts: HashSet<&str> = pairs.iter().map(|pair| &*pair.first).collect();
        assert!(firsts.len() > PAIRS * 8 / 10, "{}", firsts.len());
    }

    #[test]
    fn a_small_byte_model_sees_all_of_a_pair() {
        let longest = all().iter().map(|pair| pair.first.len() + pair.second.len()).max().unwrap();
        assert!(longest < 100, "{longest}");
    }

    #[test]
    fn they_are_sentences() {
        for Pair { first, second, .. } in all() {
            assert!(first.ends_with('.') && second.ends_with(['.', '!']), "{first} {second}");
            for sentence in [&first, &second] {
                assert!(
                    sentence.is_ascii() && sentence.starts_with(|c: char| c.is_uppercase()),
                    "{sentence}"
                );
                assert!(!sentence.contains("  ") && sentence.split(' ').count() >= 3, "{sentence}");
            }
            let girl = GIRLS.iter().any(|name| first.contains(name));
            let she = second.to_lowercase().split(' ').any(|word| word == "she");
            assert_eq!(girl, she, "{first} {second}");
        }
    }

    #[test]
    fn the_label_is_what_the_words_say() {
        let good = |text: &str, words: &[[&str; 4]; 2]| {
            let holds = |words: &[&str]| words.iter().any(|word| text.contains(word));
            let (bad, good) = (holds(&words[0]), holds(&words[1]));
            assert_ne!(bad, good, "{text}");
            good
        };
        for pair in all() {
            assert_eq!(good(&pair.first, &EVENTS) == good(&pair.second, &MOODS), pair.fits, "{pair:?}");
        }
    }

    /// How often the best guess is right for somebody who knows only this about a pair.
    fn guess<'a>(pairs: &'a [Pair], known: impl Fn(&'a Pair) -> &'a str) -> f64 {
        let mut counts: BTreeMap<&str, [usize; 2]> = BTreeMap::new();
        for pair in pairs {
            counts.entry(known(pair)).or_default()[usize::from(pair.fits)] += 1;
        }
        counts.values().map(|[no, yes]| no.max(yes)).sum::<usize>() as f64 / pairs.len() as f64
    }

    #[test]
    fn no_part_alone_gives_the_label_away() {
        let pairs = all();
        assert!(guess(&pairs, |pair| &pair.first[..3]) < 0.6);
        assert!(guess(&pairs, |pair| &pair.second) < 0.7, "{}", guess(&pairs, |pair| &pair.second));
        let event = |pair: &Pair| EVENTS[1].iter().any(|word| pair.first.contains(word));
        let one_sentence = guess(&pairs, |pair| if event(pair) { "good" } else { "bad" });
        assert!((0.6..0.66).contains(&one_sentence), "{one_sentence}");
    }
}
