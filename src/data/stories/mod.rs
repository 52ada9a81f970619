//! The built-in corpus: small stories, the same on every machine.

use rand_chacha::ChaCha8Rng;

use super::random;

/// Stories in the corpus.
pub const STORIES: usize = 3000;

const NAMES: &[(&str, &str)] =
    &[("Anna", "she"), ("Tom", "he"), ("Mira", "she"), ("Ben", "he"), ("Lily", "she"), ("Oscar", "he")];
const PLACES: &[&str] = &["the garden", "the old mill", "the beach", "the forest", "the market"];
const THINGS: &[&str] = &["a red kite", "a brass key", "a small boat", "a wooden flute", "a blue lantern"];

fn pick<'a, T>(rng: &mut ChaCha8Rng, from: &'a [T]) -> &'a T {
    &from[random::below(rng, from.len() as u64) as usize]
}

/// One story.
pub fn story(number: u64) -> String {
    let mut rng = random::generator(0, "stories", number);
    let (name, pronoun) = pick(&mut rng, NAMES);
    let (friend, _) = pick(&mut rng, NAMES);
    let (place, thing) = (pick(&mut rng, PLACES), pick(&mut rng, THINGS));
    let the_thing = thing.replacen("a ", "the ", 1);
    format!(
        "One morning {name} went to {place}. There {pronoun} found {thing}. \"Whose is this?\" {pronoun} asked. \
         Nobody answered, so {pronoun} carried {the_thing} home and showed it to {friend}. \"It is mine,\" said {friend}. \
         \"I lost it at {place}.\" {name} gave {the_thing} back, and from that day they were friends.\n"
    )
}
