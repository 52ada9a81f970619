//! Tells one story.

use rand_chacha::ChaCha8Rng;

use super::{
    super::random,
    grammar::{Article, ENTRIES, Grammar, Node, What, Word},
};

/// Who somebody is, for the whole story.
#[derive(Debug)]
struct Character<'a> {
    name: String,
    kind: String,
    pronouns: &'a [&'static str; 4],
}

const SHE: [&str; 4] = ["she", "her", "her", "herself"];
const HE: [&str; 4] = ["he", "him", "his", "himself"];

/// An entry of a list that the story has settled on, and the fields it has used, with their choices made.
#[derive(Debug, Clone)]
struct Settled {
    entry: usize,
    fields: Vec<Option<String>>,
}

/// Fills the slots of one story. What is drawn once stays for the whole story.
#[derive(Debug)]
pub(super) struct Teller<'a> {
    grammar: &'a Grammar,
    rng: ChaCha8Rng,
    hero: Character<'a>,
    friend: Character<'a>,
    settled: Vec<[Option<Settled>; ENTRIES]>,
}

impl<'a> Teller<'a> {
    pub(super) fn new(grammar: &'a Grammar, mut rng: ChaCha8Rng) -> Self {
        let mut settled = vec![[const { None }; ENTRIES]; grammar.lists.len()];
        let mut entry = |rng: &mut ChaCha8Rng, list: &str, which: usize| {
            let Some(list) = grammar.list(list) else { return String::new() };
            let entry = draw(rng, grammar.lists[list].entries.len(), &settled[list]);
            settled[list][which] = Some(Settled { entry, fields: vec![None] });
            match grammar.lists[list].entries[entry].first().map(Vec::as_slice) {
                Some([Node::Text(text)]) => text.clone(),
                _ => String::new(),
            }
        };
        let mut character = |which: usize| {
            let girl = random::below(&mut rng, 2) == 0;
            let (list, pronouns) = if girl { ("girl", &SHE) } else { ("boy", &HE) };
            let name = entry(&mut rng, list, which);
            let kind = match random::below(&mut rng, 2) {
                0 => list.to_owned(),
                _ => entry(&mut rng, "animal", which),
            };
            Character { name, kind, pronouns }
        };
        let (hero, friend) = (character(0), character(1));
        Self { grammar, rng, hero, friend, settled }
    }

    /// Writes a title, an empty line, and the paragraphs, each on a line of its own.
    pub(super) fn tell(&mut self, out: &mut String) {
        let grammar = self.grammar;
        let Some(plot) = grammar.plots.get(self.below(grammar.plots.len())) else { return };
        self.write(&plot.title, out);
        out.push_str("\n\n");
        for paragraph in &plot.paragraphs {
            for line in paragraph {
                self.sentence(&line.always, out);
                // Drawn in any case, so that a line more does not change the rest of the story.
                if self.below(2) == 0 {
                    self.sentence(&line.sometimes, out);
                }
            }
            out.push('\n');
        }
        // The same where two speak within a line of the plot.
        *out = out.replace("\" \"", "\"\n\"");
    }

    fn below(&mut self, bound: usize) -> usize {
        random::below(&mut self.rng, bound as u64) as usize
    }

    fn sentence(&mut self, template: &'a [Node], out: &mut String) {
        if template.is_empty() {
            return;
        }
        let start = out.len();
        self.write(template, out);
        if !out[..start].ends_with('\n') {
            // Whoever speaks next begins a line.
            out.insert(start, if out[start..].starts_with('"') { '\n' } else { ' ' });
        }
    }

    fn write(&mut self, template: &'a [Node], out: &mut String) {
        for node in template {
            match node {
                Node::Text(text) => out.push_str(text),
                Node::Choice(options) => {
                    let choice = self.below(options.len());
                    self.write(&options[choice], out);
                }
                Node::Slot { what, article, capital } => {
                    let start = out.len();
                    match *what {
                        What::Word(word) => out.push_str(self.word(word)),
                        What::Field(list, which, field) => self.field(list, which, field, out),
                    }
                    finish(out, start, *article, *capital);
                }
            }
        }
    }

    fn word(&self, word: Word) -> &str {
        let (hero, friend) = (&self.hero, &self.friend);
        match word {
            Word::Hero => &hero.name,
            Word::He => hero.pronouns[0],
            Word::Him => hero.pronouns[1],
            Word::His => hero.pronouns[2],
            Word::Himself => hero.pronouns[3],
            Word::Kind => &hero.kind,
            Word::Friend => &friend.name,
            Word::FriendHe => friend.pronouns[0],
            Word::FriendHim => friend.pronouns[1],
            Word::FriendHis => friend.pronouns[2],
            Word::FriendKind => &friend.kind,
        }
    }

    fn field(&mut self, list: usize, which: usize, field: usize, out: &mut String) {
        let entries = &self.grammar.lists[list].entries;
        let entry = match &self.settled[list][which] {
            Some(settled) => {
                if let Some(Some(text)) = settled.fields.get(field) {
                    out.push_str(text);
                    return;
                }
                settled.entry
            }
            None => {
                let entry = draw(&mut self.rng, entries.len(), &self.settled[list]);
                let fields = vec![None; entries[entry].len()];
                self.settled[list][which] = Some(Settled { entry, fields });
                entry
            }
        };
        let start = out.len();
        self.write(&entries[entry][field], out);
        let text = out[start..].to_owned();
        if let Some(slot) = self.settled[list][which].as_mut().and_then(|one| one.fields.get_mut(field)) {
            *slot = Some(text);
        }
    }
}

/// An entry that no other slot of the story has settled on. Every list has at least [`ENTRIES`] of them.
fn draw(rng: &mut ChaCha8Rng, entries: usize, settled: &[Option<Settled>]) -> usize {
    loop {
        let entry = random::below(rng, entries as u64) as usize;
        if !settled.iter().flatten().any(|one| one.entry == entry) {
            return entry;
        }
    }
}

/// Puts the article before what was written from `start` on, and the capital letter where it belongs.
fn finish(out: &mut String, start: usize, article: Option<Article>, capital: bool) {
    if capital && let Some(first) = out.get_mut(start..start + 1) {
        first.make_ascii_uppercase();
    }
    if let Some(article) = article {
        let vowel = out[start..].starts_with(['a', 'e', 'i', 'o', 'u']);
        let word = match (article, vowel) {
            (Article::Lower, false) => "a ",
            (Article::Lower, true) => "an ",
            (Article::Upper, false) => "A ",
            (Article::Upper, true) => "An ",
        };
        out.insert_str(start, word);
    }
}
