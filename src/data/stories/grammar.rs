//! Reads the word lists and plots into a form that is told quickly.
//!
//! ```text
//! [a|b]                 one of them, chosen anew each time; may be nested
//! {hero} {he} {friend}  a character or a pronoun: see [`Word`]
//! {place.at}            field `at` of the story's entry of the list `place`; {place2.at}: of a second entry
//! {a place.at}          the same behind the article it needs
//! {Place.at} {place.At} the same with a capital letter
//! ```

/// Entries of one list that a story can hold at once: `{place.at}`, `{place2.at}`, `{place3.at}`.
pub(super) const ENTRIES: usize = 3;

/// Words that follow from who the two characters are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Word {
    Hero,
    He,
    Him,
    His,
    Himself,
    Kind,
    Friend,
    FriendHe,
    FriendHim,
    FriendHis,
    FriendKind,
}

const WORDS: &[(&str, Word)] = &[
    ("hero", Word::Hero),
    ("he", Word::He),
    ("him", Word::Him),
    ("his", Word::His),
    ("himself", Word::Himself),
    ("kind", Word::Kind),
    ("friend", Word::Friend),
    ("fhe", Word::FriendHe),
    ("fhim", Word::FriendHim),
    ("fhis", Word::FriendHis),
    ("kind2", Word::FriendKind),
];

/// A text with choices and slots.
pub(super) type Template = Vec<Node>;

#[derive(Debug, Clone)]
pub(super) enum Node {
    Text(String),
    Choice(Vec<Template>),
    Slot { what: What, article: Option<Article>, capital: bool },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Article {
    Lower,
    Upper,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum What {
    Word(Word),
    /// List, which of the story's entries of it, field.
    Field(usize, usize, usize),
}

#[derive(Debug)]
pub(super) struct List {
    pub(super) name: String,
    fields: Vec<String>,
    /// One template for each field.
    pub(super) entries: Vec<Vec<Template>>,
}

/// One line of a plot.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) always: Template,
    /// Told in every other story.
    pub(super) sometimes: Template,
}

#[derive(Debug)]
pub(super) struct Plot {
    pub(super) title: Template,
    pub(super) paragraphs: Vec<Vec<Line>>,
}

#[derive(Debug)]
pub(super) struct Grammar {
    pub(super) lists: Vec<List>,
    pub(super) plots: Vec<Plot>,
}

impl Grammar {
    /// Reads both texts.
    ///
    /// # Errors
    /// The first line that cannot be understood, and why.
    pub(super) fn parse(words: &str, plots: &str) -> Result<Self, String> {
        // Entries may name any list, so that the heads come first.
        let mut lists: Vec<List> =
            words.lines().filter_map(|line| line.strip_prefix('[')?.strip_suffix(']')).map(head).collect();
        let mut current = None;
        for (number, line) in words.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with("//") {
                continue;
            }
            if line.starts_with('[') && line.ends_with(']') && line.contains(": ") {
                current = Some(current.map_or(0, |list: usize| list + 1));
                continue;
            }
            let at = |problem: String| format!("word list, line {}: {problem}", number + 1);
            let list = current.ok_or_else(|| at("an entry before the first list".to_owned()))?;
            let entry: Result<Vec<Template>, String> =
                line.split("; ").map(|field| template(field, &lists)).collect();
            let entry = entry.map_err(at)?;
            if entry.len() != lists[list].fields.len() {
                return Err(at(format!("{} fields instead of {}", entry.len(), lists[list].fields.len())));
            }
            lists[list].entries.push(entry);
        }
        if let Some(list) = lists.iter().find(|list| list.entries.len() < ENTRIES) {
            return Err(format!("word list `{}` has fewer than {ENTRIES} entries", list.name));
        }
        let plots = read_plots(plots, &lists)?;
        Ok(Self { lists, plots })
    }

    /// The number of a list.
    pub(super) fn list(&self, name: &str) -> Option<usize> {
        self.lists.iter().position(|list| list.name == name)
    }
}

fn head(line: &str) -> List {
    let (name, fields) = line.split_once(": ").unwrap_or((line, "text"));
    List {
        name: name.to_owned(),
        fields: fields.split("; ").map(str::to_owned).collect(),
        entries: Vec::new(),
    }
}

fn read_plots(text: &str, lists: &[List]) -> Result<Vec<Plot>, String> {
    let mut plots: Vec<Plot> = Vec::new();
    let mut new_paragraph = true;
    for (number, line) in text.lines().enumerate() {
        let at = |problem: String| format!("plots, line {}: {problem}", number + 1);
        let line = line.trim();
        if line.is_empty() {
            new_paragraph = true;
        } else if line.starts_with("//") {
            continue;
        } else if line.starts_with("# ") {
            plots.push(Plot { title: Vec::new(), paragraphs: Vec::new() });
            new_paragraph = true;
        } else {
            let plot = plots.last_mut().ok_or_else(|| at("a line before the first plot".to_owned()))?;
            if let Some(title) = line.strip_prefix("= ") {
                plot.title = template(title, lists).map_err(at)?;
                continue;
            }
            let (always, sometimes) = match line.strip_prefix("? ") {
                Some(sometimes) => ("", sometimes),
                None => line.split_once(" ? ").unwrap_or((line, "")),
            };
            let always = template(always, lists).map_err(at)?;
            let sometimes = template(sometimes, lists).map_err(at)?;
            if std::mem::take(&mut new_paragraph) {
                plot.paragraphs.push(Vec::new());
            }
            if let Some(paragraph) = plot.paragraphs.last_mut() {
                paragraph.push(Line { always, sometimes });
            }
        }
    }
    Ok(plots)
}

fn template(text: &str, lists: &[List]) -> Result<Template, String> {
    let mut rest = text;
    let template = sequence(&mut rest, lists)?;
    if rest.is_empty() { Ok(template) } else { Err(format!("`{rest}` has no beginning")) }
}

/// Reads until the end or until a `|` or `]` that belongs to the caller.
fn sequence(rest: &mut &str, lists: &[List]) -> Result<Template, String> {
    let mut nodes = Vec::new();
    while let Some(first) = rest.chars().next() {
        match first {
            '|' | ']' => break,
            '[' => nodes.push(choice(rest, lists)?),
            '{' => {
                let (inside, after) =
                    rest[1..].split_once('}').ok_or_else(|| format!("`{rest}` does not end"))?;
                nodes.push(slot(inside, lists)?);
                *rest = after;
            }
            _ => {
                let end = rest.find(['[', ']', '|', '{']).unwrap_or(rest.len());
                nodes.push(Node::Text(rest[..end].to_owned()));
                *rest = &rest[end..];
            }
        }
    }
    Ok(nodes)
}

fn choice(rest: &mut &str, lists: &[List]) -> Result<Node, String> {
    let mut options = Vec::new();
    loop {
        // Behind the `[` or the `|`.
        *rest = &rest[1..];
        options.push(sequence(rest, lists)?);
        match rest.chars().next() {
            Some('|') => {}
            Some(_) => {
                *rest = &rest[1..];
                return Ok(Node::Choice(options));
            }
            None => return Err("a choice without its `]`".to_owned()),
        }
    }
}

fn slot(inside: &str, lists: &[List]) -> Result<Node, String> {
    let (article, name) = match inside.split_once(' ') {
        Some(("a", name)) => (Some(Article::Lower), name),
        Some(("A", name)) => (Some(Article::Upper), name),
        _ => (None, inside),
    };
    let capital = name.contains(char::is_uppercase);
    let name = name.to_lowercase();
    let unknown = || format!("unknown slot {{{inside}}}");
    let what = match name.split_once('.') {
        None => WORDS.iter().find(|(word, _)| *word == name).map(|(_, word)| What::Word(*word)),
        Some((list, field)) => {
            let digit = list.chars().next_back().and_then(|digit| digit.to_digit(10));
            let which = digit.map_or(0, |digit| digit.saturating_sub(1) as usize);
            let list = lists.iter().position(|one| one.name == list.trim_end_matches(char::is_numeric));
            let list = list.filter(|_| which < ENTRIES).ok_or_else(unknown)?;
            let field = lists[list].fields.iter().position(|one| *one == field);
            field.map(|field| What::Field(list, which, field))
        }
    };
    Ok(Node::Slot { what: what.ok_or_else(unknown)?, article, capital })
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORDS: &str = "[tree: name; leaf]\noak; [small|large]\nelm; {hero}\nash; x\n";

    #[test]
    fn mistakes_name_the_line() {
        let problem = |words: &str, plots: &str| Grammar::parse(words, plots).unwrap_err();
        assert_eq!(problem(WORDS, "# a\n\n{tre.name}"), "plots, line 3: unknown slot {tre.name}");
        assert_eq!(problem(WORDS, "# a\n{tree4.name}"), "plots, line 2: unknown slot {tree4.name}");
        assert_eq!(problem(WORDS, "# a\n[x|y"), "plots, line 2: a choice without its `]`");
        assert_eq!(problem(WORDS, "# a\nx]"), "plots, line 2: `]` has no beginning");
        assert_eq!(problem("[tree: name; leaf]\noak\n", ""), "word list, line 2: 1 fields instead of 2");
        assert!(problem("[tree: name]\noak\n", "").contains("`tree` has fewer than 3"));
    }

    #[test]
    fn paragraphs_and_optional_parts_are_told_apart() {
        let grammar = Grammar::parse(WORDS, "# a\n= Title\nOne. ? Two.\n? Three.\n\nFour.").unwrap();
        let plot = &grammar.plots[0];
        assert_eq!(plot.paragraphs.iter().map(Vec::len).collect::<Vec<_>>(), [2, 1]);
        let line = &plot.paragraphs[0][1];
        assert!(line.always.is_empty() && !line.sometimes.is_empty());
    }
}
