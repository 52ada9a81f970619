//! The draft of the next run: a form read off the table of fields.

mod auto;
mod choices;
mod defaults;
mod earlier;
mod fork;

use std::collections::BTreeMap;

use crate::{
    config::{
        ConfigError, DeviceName, Layers, OptimizerName, Resolved,
        fields::{self, FIELDS, Field},
        grid,
        printed::Key,
    },
    ledger,
    protocol::Ledger,
};

use super::{Settings, draft, input::TextLine};
pub use defaults::DefaultOf;
use defaults::Defaults;
pub use earlier::Earlier;
pub use fork::Origin;

/// The sections in the order of the form: what one changes most comes first.
const SECTIONS: &[&str] =
    &["preset", "task", "optimizer", "train", "schedule", "clip", "data", "model", "checkpoint", "log"];

/// The key at the top of the form.
const PRESET: &str = "model.preset";

/// One line of the form.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Row {
    Section(&'static str),
    Field(&'static Field),
}

/// A message beside a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldError {
    pub key: &'static str,
    pub text: String,
}

/// The draft.
#[derive(Debug, Clone)]
pub struct Form {
    base: Layers,
    /// What was set here: full key and text.
    set: BTreeMap<&'static str, String>,
    focused: &'static str,
    /// The field being typed into.
    pub editing: Option<TextLine>,
    /// The draft as it was before it was typed into.
    untyped: Option<Resolved>,
    pub error: Option<FieldError>,
    /// The draft as it was last valid.
    pub resolved: Resolved,
    /// The ledger of every optimizer for `resolved`.
    pub ledgers: Vec<(OptimizerName, Ledger)>,
    /// Every setting of `resolved` as it is printed.
    printed: Vec<(Key, String)>,
    /// What the fields are with its preset alone.
    defaults: Defaults,
    /// What `auto` comes to here, once that is known.
    auto: Option<DeviceName>,
    /// The run before.
    pub last: Option<Earlier>,
    /// Name of the next run, when one was given.
    pub name: Option<String>,
    /// The checkpoint of another run that it starts from.
    pub fork: Option<Origin>,
    /// The draft that the fork took the place of.
    before: Option<Box<fork::Before>>,
}

impl Form {
    /// A draft on top of what files, environment and flags set.
    ///
    /// # Errors
    /// When the base itself cannot be resolved.
    pub fn new(base: Layers) -> Result<Self, ConfigError> {
        let resolved = base.resolve()?;
        Ok(Self {
            base,
            set: BTreeMap::new(),
            focused: PRESET,
            editing: None,
            untyped: None,
            error: None,
            ledgers: ledger::all(&resolved.config),
            defaults: Defaults::of(resolved.config.model.name()),
            auto: None,
            printed: resolved.config.entries(),
            resolved,
            last: None,
            name: None,
            fork: None,
            before: None,
        })
    }

    /// The lines of the form: the chosen optimizer's settings, none of the others'.
    pub fn rows(&self) -> Vec<Row> {
        let chosen = format!("optimizer.{}.", self.optimizer());
        let mut rows = Vec::with_capacity(FIELDS.len() + SECTIONS.len());
        for &section in SECTIONS {
            if section == "preset" {
                rows.extend(fields::find(PRESET).map(Row::Field));
                continue;
            }
            let fields = fields::all().filter(|field| {
                field.key != PRESET
                    && field.key.split('.').next() == Some(section)
                    && fields::applies(field.key, self.resolved.config.model.arch)
                    && (field.key.matches('.').count() == 1 || field.key.starts_with(&chosen))
            });
            let mut fields = fields.peekable();
            if fields.peek().is_some() {
                rows.push(Row::Section(section));
            }
            rows.extend(fields.map(Row::Field));
        }
        rows
    }

    /// Index of the focused line in [`Form::rows`].
    pub fn cursor(&self) -> usize {
        let focused = |row: &Row| matches!(row, Row::Field(field) if field.key == self.focused);
        self.rows().iter().position(focused).unwrap_or(0)
    }

    /// The focused field.
    pub fn field(&self) -> Option<&'static Field> {
        fields::find(self.focused)
    }

    /// Keys of the fields in [`Form::rows`].
    fn keys(&self) -> Vec<&'static str> {
        let fields = self.rows().into_iter().filter_map(|row| match row {
            Row::Field(field) => Some(field.key),
            Row::Section(_) => None,
        });
        fields.collect()
    }

    /// Moves the focus by so many fields.
    pub fn step(&mut self, by: isize) {
        let keys = self.keys();
        let at = keys.iter().position(|key| *key == self.focused).unwrap_or(0);
        let last = keys.len().saturating_sub(1);
        if let Some(key) = keys.get(at.saturating_add_signed(by).min(last)) {
            self.focused = key;
        }
    }

    /// Focuses the line at that index of [`Form::rows`], if it is a field.
    pub fn focus_row(&mut self, index: usize) {
        if let Some(Row::Field(field)) = self.rows().get(index) {
            self.focused = field.key;
        }
    }

    /// The text of a field as it stands in the draft; empty when it is absent.
    pub fn value(&self, key: &str) -> String {
        if let Some(text) = self.set.get(key) {
            return text.clone();
        }
        self.printed.iter().find(|(name, _)| name == key).map(|(_, value)| value.clone()).unwrap_or_default()
    }

    /// The text of every field, for who asks for many of them; those that are absent have none.
    pub fn values(&self) -> BTreeMap<Key, String> {
        let mut values: BTreeMap<_, _> = self.printed.iter().cloned().collect();
        values.extend(self.set.iter().map(|(key, text)| ((*key).into(), text.clone())));
        values
    }

    /// Whether a field was set by hand, here or before.
    pub fn by_hand(&self, key: &str) -> bool {
        self.set.contains_key(key) || self.resolved.explicit.contains_key(key)
    }

    /// The chosen optimizer.
    pub fn optimizer(&self) -> OptimizerName {
        self.resolved.config.optimizer.name
    }

    /// Its memory.
    pub fn ledger(&self) -> Option<&Ledger> {
        self.ledgers.iter().find(|(name, _)| *name == self.optimizer()).map(|(_, ledger)| ledger)
    }

    /// Starts typing into the focused field, or takes its next choice.
    pub fn edit(&mut self) {
        if self.cycles() {
            self.cycle(true);
        } else {
            self.editing = Some(TextLine::new(plain(&self.value(self.focused))));
            self.untyped = Some(self.resolved.clone());
        }
    }

    /// Lets the plan follow what is being typed, as long as that can be used.
    pub fn preview(&mut self) {
        let Some(line) = &self.editing else { return };
        self.error = None;
        let typed = line.text().trim();
        let mut texts = self.set.clone();
        if typed.is_empty() {
            texts.remove(self.focused);
        } else {
            texts.insert(self.focused, typed.to_owned());
        }
        if let Ok(resolved) = self.resolve(&texts) {
            self.adopt(resolved);
        }
    }

    /// What a draft with these texts comes to.
    fn resolve(&self, texts: &BTreeMap<&'static str, String>) -> Result<Resolved, ConfigError> {
        self.base.clone().with_assignments(lines(texts))?.resolve()
    }

    /// Takes a draft that can be resolved, with what follows from it.
    fn adopt(&mut self, resolved: Resolved) {
        self.ledgers = ledger::all_where(&resolved.config, self.auto);
        self.printed = resolved.config.entries();
        self.defaults.follow(resolved.config.model.name());
        self.resolved = resolved;
    }

    /// The draft is again what it was before it was typed into.
    fn take_back(&mut self) {
        if let Some(resolved) = self.untyped.take() {
            self.adopt(resolved);
        }
    }

    /// Takes what was typed; a text that the field cannot hold stays open with the reason beside it.
    pub fn submit(&mut self) -> bool {
        let Some(line) = &self.editing else { return true };
        let text = line.text().trim().to_owned();
        let key = self.focused;
        if text.is_empty() {
            self.editing = None;
            self.take_back();
            self.reset();
            return true;
        }
        if let Err(error) = self.base.clone().with_assignment(&format!("{key}={text}")) {
            self.error = Some(FieldError { key, text: short(&error, key) });
            return false;
        }
        self.editing = None;
        self.take_back();
        self.put(key, text);
        true
    }

    /// Drops what is being typed.
    pub fn cancel(&mut self) {
        self.editing = None;
        self.take_back();
        self.check(self.focused);
    }

    /// The draft of an earlier run in place of this one.
    ///
    /// # Errors
    /// It cannot be used any more, and why; the draft stays as it is.
    pub fn replace(&mut self, settings: &Settings) -> Result<(), String> {
        let base = Layers::new().with_toml(&draft::lines(settings), "that run").map_err(|e| e.to_string())?;
        let mut other = Self::new(base).map_err(|error| error.to_string())?;
        (other.last, other.focused) = (self.last.take(), self.focused);
        if let Some(device) = self.auto {
            other.auto_is(device);
        }
        if !other.keys().contains(&other.focused) {
            other.focused = PRESET;
        }
        *self = other;
        Ok(())
    }

    /// The focused field as it was before it was set here.
    pub fn reset(&mut self) {
        self.set.remove(self.focused);
        self.check(self.focused);
    }

    /// Sets a field by its full or short key.
    ///
    /// # Errors
    /// One sentence when there is no such key or it cannot hold the value.
    pub fn assign(&mut self, key: &str, value: &str) -> Result<(), String> {
        let long = format!("optimizer.{}.{}", self.optimizer(), key.trim_start_matches("optimizer."));
        let field = fields::find(key)
            .or_else(|| key.starts_with("optimizer.").then(|| fields::find(&long)).flatten());
        let Some(field) = field else {
            let near = fields::nearest(key).map(|near| format!("; did you mean `{near}`?"));
            return Err(format!("no setting `{key}`{}", near.unwrap_or_default()));
        };
        self.base
            .clone()
            .with_assignment(&format!("{}={value}", field.key))
            .map_err(|error| error.to_string())?;
        self.focused = field.key;
        self.put(field.key, value.to_owned());
        self.error.as_ref().map_or(Ok(()), |error| Err(error.text.clone()))
    }

    fn put(&mut self, key: &'static str, text: String) {
        self.set.insert(key, text);
        self.check(key);
    }

    /// Resolves the draft; a conflict is shown beside the field that was changed last.
    fn check(&mut self, key: &'static str) {
        match self.resolve(&self.set) {
            Ok(resolved) => {
                self.adopt(resolved);
                self.error = None;
            }
            Err(error) => self.error = Some(FieldError { key, text: short(&error, key) }),
        }
    }

    /// The configuration to start and the name of the run, or why it cannot start.
    pub fn start(&self) -> Result<(Resolved, String), String> {
        if let Some(error) = &self.error {
            return Err(error.text.clone());
        }
        let name = self.name.clone().unwrap_or_else(|| self.resolved.config.run_name());
        Ok((self.resolved.clone(), name))
    }

    /// The draft with every combination of a grid, or why one of them cannot start.
    pub fn grid(&self, axes: &[String]) -> Result<Vec<(Resolved, String)>, String> {
        self.start()?;
        if let Some(origin) = &self.fork {
            return Err(format!(
                "this is the draft of one fork of {}: {{key:queue}} queues it, {{key:back}} drops it",
                origin.name
            ));
        }
        let layers =
            self.base.clone().with_assignments(self.assignments()).map_err(|error| error.to_string())?;
        let members =
            grid::resolve(&layers, axes, self.name.as_deref()).map_err(|error| error.to_string())?;
        Ok(members.into_iter().map(|member| (member.resolved, member.name)).collect())
    }
}

/// Each as it would be given to `--set`.
fn lines(texts: &BTreeMap<&'static str, String>) -> Vec<String> {
    texts.iter().map(|(key, value)| format!("{key}={value}")).collect()
}

/// A long row of zeros is hard to edit: the same number with an exponent.
fn plain(text: &str) -> String {
    match text.parse::<f64>() {
        Ok(value) if text.contains('.') && value != 0.0 && value.abs() < 1e-3 => format!("{value:e}"),
        _ => text.to_owned(),
    }
}

/// The error without the words that its place beside the field already says.
fn short(error: &ConfigError, key: &str) -> String {
    match error {
        ConfigError::Value { key: named, expected, .. } if named == key => format!("expected {expected}"),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests;
