//! The keys as they hold: the program's table with a person's own keys on top.

use std::{ops::Deref, str::FromStr, sync::LazyLock};

use crossterm::event::KeyCode;

use super::keymap::{BINDINGS, heading, reaches};
use crate::{
    app::{
        action::{ACTIONS, Action},
        focus::Context,
    },
    run::checkpoint_view::nearest,
};

/// One key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key {
    pub code: KeyCode,
    pub control: bool,
}

/// Keys that are written as a word, each with the ways to write it; the first is shown.
const WORDS: &[(KeyCode, &[&str])] = &[
    (KeyCode::Char(' '), &["Space"]),
    (KeyCode::Enter, &["Enter", "Return"]),
    (KeyCode::Esc, &["Esc", "Escape"]),
    (KeyCode::Tab, &["Tab"]),
    (KeyCode::BackTab, &["Shift+Tab", "BackTab"]),
    (KeyCode::Backspace, &["Backspace"]),
    (KeyCode::Delete, &["Del", "Delete"]),
    (KeyCode::Insert, &["Insert", "Ins"]),
    (KeyCode::Home, &["Home"]),
    (KeyCode::End, &["End"]),
    (KeyCode::PageUp, &["PgUp", "PageUp"]),
    (KeyCode::PageDown, &["PgDn", "PageDown"]),
    (KeyCode::Up, &["Up"]),
    (KeyCode::Down, &["Down"]),
    (KeyCode::Left, &["Left"]),
    (KeyCode::Right, &["Right"]),
];

impl std::fmt::Display for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.control {
            f.write_str("Ctrl+")?;
        }
        if let Some((_, names)) = WORDS.iter().find(|(code, _)| *code == self.code) {
            return f.write_str(names[0]);
        }
        match self.code {
            KeyCode::Char(c) if self.control => write!(f, "{}", c.to_ascii_uppercase()),
            KeyCode::Char(c) => write!(f, "{c}"),
            KeyCode::F(n) => write!(f, "F{n}"),
            other => write!(f, "{other:?}"),
        }
    }
}

impl FromStr for Key {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let plain = |code| Ok(Self { code, control: false });
        let mut letters = text.chars();
        if let (Some(letter), None) = (letters.next(), letters.next()) {
            if letter.is_control() {
                return Err("a control sign is no key: write for example `Ctrl+X`".to_owned());
            }
            return plain(KeyCode::Char(letter));
        }
        let lower = text.to_ascii_lowercase();
        let named =
            |(_, names): &&(KeyCode, &[&str])| names.iter().any(|name| name.eq_ignore_ascii_case(&lower));
        if let Some((code, _)) = WORDS.iter().find(named) {
            return plain(*code);
        }
        let number = lower.strip_prefix('f').and_then(|number| number.parse().ok());
        if let Some(number @ 1..=12) = number {
            return plain(KeyCode::F(number));
        }
        if let Some(letter) = lower.strip_prefix("ctrl+") {
            return match letter.as_bytes() {
                [b'i'] => Err("`Ctrl+I` is Tab on a terminal: write `Tab`".to_owned()),
                [b'm'] => Err("`Ctrl+M` is Enter on a terminal: write `Enter`".to_owned()),
                [c @ b'a'..=b'z'] => Ok(Self { code: KeyCode::Char(char::from(*c)), control: true }),
                _ => Err(format!("`{text}`: a terminal knows Ctrl with a letter only, such as `Ctrl+X`")),
            };
        }
        for (prefix, remedy) in [
            ("shift+", "write the sign that Shift makes, such as `A` for Shift and a"),
            ("alt+", "Alt is Esc before a key on many terminals, and belongs to none here"),
        ] {
            if lower.starts_with(prefix) {
                return Err(format!("no key `{text}`: {remedy}"));
            }
        }
        let words = WORDS.iter().flat_map(|(_, names)| names.iter().copied());
        let near = nearest(text, words).map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
        Err(format!("no key `{text}`{near}"))
    }
}

/// One line of the table as it holds.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    pub context: Context,
    /// None: the action is in the palette alone.
    pub keys: Vec<Key>,
    pub action: Action,
    /// The word in the hints at the bottom; empty: not shown there.
    pub hint: &'static str,
}

/// What a person wants a key to do.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// Where it is to hold; without, wherever the action has a key.
    pub place: Option<Context>,
    pub action: Action,
    pub keys: Vec<Key>,
    /// Where it was written, counted from 1.
    pub line: usize,
}

/// The table of keys as it holds.
#[derive(Debug, Clone, PartialEq)]
pub struct Keymap {
    rows: Vec<Row>,
}

static TABLE: LazyLock<Keymap> = LazyLock::new(Keymap::default);

impl Default for Keymap {
    /// The program's own keys.
    fn default() -> Self {
        let row = |binding: &super::keymap::Binding| Row {
            context: binding.context,
            keys: binding.keys.to_vec(),
            action: binding.action,
            hint: binding.hint,
        };
        Self { rows: BINDINGS.iter().map(row).collect() }
    }
}

impl Keymap {
    /// Every line, in the order of the help.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// What a key does in one context, those that hold everywhere left out.
    pub fn find(&self, context: Context, key: Key) -> Option<Action> {
        self.rows.iter().find(|row| row.context == context && row.keys.contains(&key)).map(|row| row.action)
    }

    /// The key that does it there; else one that does it everywhere, or else anywhere.
    pub fn first(&self, action: Action, context: Context) -> Option<Key> {
        let rows = || self.rows.iter().filter(move |row| row.action.is(action) && !row.keys.is_empty());
        let there = |wanted: Context| rows().find(move |row| row.context == wanted);
        there(context)
            .or_else(|| there(Context::Global))
            .or_else(|| rows().next())
            .and_then(|row| row.keys.first().copied())
    }

    /// The text with each `{key:NAME}` replaced by the key of the action of that name, or by the palette's line where it
    /// has none.
    pub fn told(&self, text: &str, context: Context) -> String {
        const OPENS: &str = "{key:";
        let (mut told, mut rest) = (String::with_capacity(text.len()), text);
        while let Some((before, after)) = rest.split_once(OPENS) {
            told.push_str(before);
            let found = after.split_once('}').and_then(|(name, after)| {
                let about = ACTIONS.iter().find(|about| about.name == name)?;
                Some((about, after))
            });
            rest = match found {
                Some((about, after)) => {
                    match self.first(about.action, context) {
                        Some(key) => told.push_str(&key.to_string()),
                        None => told.push_str(&format!(":{}", about.name)),
                    }
                    after
                }
                None => {
                    told.push_str(OPENS);
                    after
                }
            };
        }
        told + rest
    }

    /// The table with those changes; those for one place win over those for all.
    ///
    /// # Errors
    /// The line and the sentence of the first change that cannot be.
    pub fn with(mut self, changes: &[Change]) -> Result<Self, (usize, String)> {
        // Where the keys of each row were written.
        let mut lines: Vec<Option<usize>> = vec![None; self.rows.len()];
        let (everywhere, placed): (Vec<&Change>, Vec<&Change>) =
            changes.iter().partition(|change| change.place.is_none());
        for change in everywhere.into_iter().chain(placed) {
            let name = change.action.about().name;
            if change.keys.is_empty() && matches!(change.action, Action::Interrupt | Action::Back) {
                return Err((change.line, format!("`{name}` needs a key: without it there is no way out")));
            }
            let mut found = false;
            for (row, line) in self.rows.iter_mut().zip(&mut lines) {
                let here = change.place.is_none_or(|place| place == row.context);
                if here && row.action.is(change.action) {
                    row.keys.clone_from(&change.keys);
                    (*line, found) = (Some(change.line), true);
                }
            }
            if !found {
                let context = change.place.unwrap_or(Context::Global);
                let keys = change.keys.clone();
                self.rows.push(Row { context, keys, action: change.action, hint: "" });
                lines.push(Some(change.line));
            }
        }
        match self.clash(&lines) {
            Some(clash) => Err(clash),
            None => Ok(self),
        }
    }

    /// Two actions that one key would do in one place. That a screen's own key stands before one that holds everywhere
    /// is the table's right, not that of a change, which would take a key away without a word.
    fn clash(&self, lines: &[Option<usize>]) -> Option<(usize, String)> {
        for (at, row) in self.rows.iter().enumerate() {
            for (other_at, other) in self.rows.iter().enumerate().filter(|(other_at, _)| *other_at != at) {
                let line = lines[at].max(lines[other_at]);
                let shadows = row.context != Context::Global
                    && other.context == Context::Global
                    && row.action != other.action
                    && reaches(row.context, other.action);
                let same = other.context == row.context && other_at > at;
                let Some(line) = line.filter(|_| same || shadows) else { continue };
                let twice =
                    |key: &&Key| other.keys.contains(key) && (same || !TABLE.does_both(row, other, **key));
                if let Some(key) = row.keys.iter().find(twice) {
                    let (a, b) = (row.action.about().name, other.action.about().name);
                    let place = heading(row.context);
                    let text = format!(
                        "`{a}` and `{b}` would both be `{key}` under \"{place}\": give one of them another key"
                    );
                    return Some((line, text));
                }
            }
        }
        None
    }

    /// Whether the key stands in both lines of this table.
    fn does_both(&self, a: &Row, b: &Row, key: Key) -> bool {
        let here = |row: &Row| {
            self.rows
                .iter()
                .any(|own| own.context == row.context && own.action == row.action && own.keys.contains(&key))
        };
        here(a) && here(b)
    }
}

/// The keys in use: a [`Keymap`] that lasts as long as the program.
#[derive(Debug, Clone, Copy)]
pub struct Keys(&'static Keymap);

impl Keys {
    /// Puts that table to use.
    pub fn of(keymap: Keymap) -> Self {
        if keymap == *TABLE { Self::default() } else { Self(Box::leak(Box::new(keymap))) }
    }
}

impl Default for Keys {
    fn default() -> Self {
        Self(&TABLE)
    }
}

impl Deref for Keys {
    type Target = Keymap;

    fn deref(&self) -> &Keymap {
        self.0
    }
}

impl PartialEq for Keys {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.0, other.0)
    }
}

impl Eq for Keys {}

/// The contexts that have keys of their own, in the order of the help.
pub fn contexts() -> Vec<Context> {
    let mut contexts = vec![Context::Global];
    for binding in BINDINGS {
        if !contexts.contains(&binding.context) {
            contexts.push(binding.context);
        }
    }
    contexts
}

/// The name of a context in a file of settings.
pub fn place(context: Context) -> String {
    heading(context).to_lowercase().replace(' ', "-")
}

#[cfg(test)]
mod tests;
