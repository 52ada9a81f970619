//! The draft of the next run: a form read off the table of fields.

use std::collections::BTreeMap;

use crate::{
    config::{
        Config, ConfigError, Layers, OptimizerName, Resolved,
        fields::{self, FIELDS, Field, Kind},
        grid,
        layers::Key,
        presets,
    },
    ledger,
    protocol::Ledger,
};

use super::input::TextLine;

/// The sections in the order of the form: what one changes most comes first.
const SECTIONS: &[&str] =
    &["preset", "task", "optimizer", "train", "schedule", "clip", "data", "model", "checkpoint", "log"];

/// The key at the top of the form.
const PRESET: &str = "model.preset";
/// Keys that cycle when they are edited, besides choices and switches.
const ACCUMULATE: &str = "train.accumulate";

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
    pub error: Option<FieldError>,
    /// The draft as it was last valid.
    pub resolved: Resolved,
    /// The ledger of every optimizer for `resolved`.
    pub ledgers: Vec<(OptimizerName, Ledger)>,
    /// Name and configuration of the run before.
    pub last: Option<(String, Config)>,
    /// Name of the next run, when one was given.
    pub name: Option<String>,
}

impl Form {
    /// A draft on top of what files, environment and flags set.
    ///
    /// # Errors
    /// When the base itself cannot be resolved.
    pub fn new(base: Layers) -> Result<Self, ConfigError> {
        let resolved = base.resolve()?;
        let ledgers = ledger::all(&resolved.config);
        Ok(Self {
            base,
            set: BTreeMap::new(),
            focused: PRESET,
            editing: None,
            error: None,
            resolved,
            ledgers,
            last: None,
            name: None,
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
        let entries = self.resolved.config.entries();
        entries.into_iter().find(|(name, _)| name == key).map(|(_, value)| value).unwrap_or_default()
    }

    /// Whether a field was set by hand, here or before.
    pub fn by_hand(&self, key: &str) -> bool {
        self.set.contains_key(key) || self.resolved.explicit.contains_key(key)
    }

    /// The chosen optimizer.
    pub fn optimizer(&self) -> OptimizerName {
        self.resolved.config.optimizer.name
    }

    /// The values a field steps through, if it does.
    fn choices(field: &Field) -> Option<Vec<&'static str>> {
        match field.kind {
            _ if field.key == PRESET => Some(presets::all().map(|preset| preset.name).collect()),
            Kind::Choice(names) => Some(names.to_vec()),
            Kind::Bool => Some(vec!["false", "true"]),
            _ => None,
        }
    }

    /// Whether the focused field steps through choices instead of being typed.
    pub fn cycles(&self) -> bool {
        self.field().is_some_and(|field| Self::choices(field).is_some())
    }

    /// Takes the next or the previous choice of the focused field; false when it has none.
    pub fn cycle(&mut self, forward: bool) -> bool {
        let Some(field) = self.field() else { return false };
        if field.key == ACCUMULATE {
            self.accumulate(forward);
            return true;
        }
        let Some(choices) = Self::choices(field) else { return false };
        let now = self.value(field.key);
        let at = choices.iter().position(|choice| *choice == now).unwrap_or(0);
        let next = if forward { at + 1 } else { at + choices.len() - 1 } % choices.len();
        let text = choices[next].to_owned();
        self.put(field.key, text);
        true
    }

    /// The next optimizer; the settings of the others stay as they are.
    pub fn next_optimizer(&mut self) {
        let all = OptimizerName::ALL;
        let at = all.iter().position(|name| *name == self.optimizer()).unwrap_or(0);
        self.put("optimizer.name", all[(at + 1) % all.len()].as_str().to_owned());
        if !self.rows().iter().any(|row| matches!(row, Row::Field(field) if field.key == self.focused)) {
            self.focused = "optimizer.name";
        }
    }

    /// The next power of two up or down.
    pub fn accumulate(&mut self, up: bool) {
        let now = self.resolved.config.train.accumulate.max(1);
        let next =
            if up { (now + 1).next_power_of_two().min(4096) } else { (now.next_power_of_two() / 2).max(1) };
        self.put(ACCUMULATE, next.to_string());
    }

    /// Starts typing into the focused field, or takes its next choice.
    pub fn edit(&mut self) {
        if self.cycles() {
            self.cycle(true);
        } else {
            self.editing = Some(TextLine::new(plain(&self.value(self.focused))));
        }
    }

    /// Takes what was typed; a text that the field cannot hold stays open with the reason beside it.
    pub fn submit(&mut self) -> bool {
        let Some(line) = &self.editing else { return true };
        let text = line.text().trim().to_owned();
        let key = self.focused;
        if text.is_empty() {
            self.editing = None;
            self.reset();
            return true;
        }
        if let Err(error) = self.base.clone().with_assignment(&format!("{key}={text}")) {
            self.error = Some(FieldError { key, text: short(&error, key) });
            return false;
        }
        self.editing = None;
        self.put(key, text);
        true
    }

    /// Drops what is being typed.
    pub fn cancel(&mut self) {
        self.editing = None;
        self.check(self.focused);
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
        let texts = self.set.iter().map(|(key, value)| format!("{key}={value}"));
        match self.base.clone().with_assignments(texts).and_then(|layers| layers.resolve()) {
            Ok(resolved) => {
                self.ledgers = ledger::all(&resolved.config);
                self.resolved = resolved;
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
        let texts = self.set.iter().map(|(key, value)| format!("{key}={value}"));
        let layers = self.base.clone().with_assignments(texts).map_err(|error| error.to_string())?;
        let members =
            grid::resolve(&layers, axes, self.name.as_deref()).map_err(|error| error.to_string())?;
        Ok(members.into_iter().map(|member| (member.resolved, member.name)).collect())
    }

    /// Key, value in the draft and value in the last run of everything that differs.
    pub fn differences(&self) -> Vec<(Key, String, String)> {
        let chosen = format!("optimizer.{}.", self.optimizer());
        self.last.as_ref().map_or_else(Vec::new, |(_, last)| {
            let all = self.resolved.config.differences(last);
            let matters = |key: &str| key.matches('.').count() == 1 || key.starts_with(&chosen);
            all.into_iter().filter(|(key, ..)| matters(key)).collect()
        })
    }
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
mod tests {
    use super::*;
    use crate::app::input::Input;

    fn form() -> Form {
        Form::new(Layers::new()).unwrap()
    }

    fn edit(form: &mut Form, key: &'static str, text: &str) -> bool {
        form.focused = key;
        form.edit();
        form.editing = Some(TextLine::new(text));
        form.submit()
    }

    #[test]
    fn the_form_holds_every_field_of_the_chosen_optimizer_and_no_other() {
        for (optimizer, preset) in
            OptimizerName::ALL.into_iter().flat_map(|name| [(name, "llama-nano"), (name, "distilbert-nano")])
        {
            let mut form = form();
            form.assign("model.preset", preset).unwrap();
            form.assign("optimizer.name", optimizer.as_str()).unwrap();
            let keys = form.keys();
            let own = format!("optimizer.{optimizer}.");
            for field in FIELDS {
                let others = field.key.matches('.').count() > 1 && !field.key.starts_with(&own);
                let wanted = !others && fields::applies(field.key, form.resolved.config.model.arch);
                assert_eq!(keys.contains(&field.key), wanted, "{} with {preset} and {optimizer}", field.key);
            }
        }
    }

    #[test]
    fn another_preset_brings_the_keys_of_its_architecture() {
        let mut form = form();
        assert!(form.keys().contains(&"model.rope_theta") && !form.keys().contains(&"model.num_labels"));
        form.focused = PRESET;
        while form.value(PRESET) != "distilbert-nano" {
            assert!(form.cycle(true));
        }
        assert!(form.error.is_none() && form.start().is_ok());
        assert!(!form.keys().contains(&"model.rope_theta") && form.keys().contains(&"model.num_labels"));
        assert_eq!(form.value("data.source"), "sentence-pairs");
        // A key of the other architecture that was set by hand keeps the draft from starting, and can be reset.
        form.assign("model.preset", "llama-nano").unwrap();
        form.assign("model.rope_theta", "5000").unwrap();
        assert!(form.assign("model.preset", "distilbert-nano").unwrap_err().contains("model.rope_theta"));
        form.focused = "model.rope_theta";
        assert!(form.keys().contains(&form.focused), "it can still be reached");
        form.reset();
        assert!(form.start().is_ok());
    }

    #[test]
    fn single_keys_change_optimizer_and_accumulation() {
        let mut form = form();
        for expected in OptimizerName::ALL.into_iter().skip(1).chain([OptimizerName::AdamW]) {
            form.next_optimizer();
            assert_eq!(form.optimizer(), expected);
        }
        for expected in [2, 4, 8] {
            form.accumulate(true);
            assert_eq!(form.resolved.config.train.accumulate, expected);
        }
        form.accumulate(false);
        assert_eq!(form.resolved.config.train.effective_batch(), 8 * 4);
        assert!(edit(&mut form, "train.accumulate", "6"));
        form.accumulate(false);
        assert_eq!(form.resolved.config.train.accumulate, 4);
        (0..20).for_each(|_| form.accumulate(true));
        assert_eq!(form.resolved.config.train.accumulate, 4096);
        (0..20).for_each(|_| form.accumulate(false));
        assert_eq!(form.resolved.config.train.accumulate, 1);
    }

    #[test]
    fn a_wrong_value_stays_open_with_the_reason_beside_it() {
        let mut form = form();
        assert!(!edit(&mut form, "train.micro_batch", "0"));
        assert!(form.editing.is_some());
        assert_eq!(form.error.as_ref().unwrap().text, "expected a whole number from 1 to 65536");
        form.editing.as_mut().unwrap().input(Input::Clear);
        form.editing.as_mut().unwrap().input(Input::Char('4'));
        assert!(form.submit());
        assert_eq!((form.resolved.config.train.micro_batch, form.error.clone()), (4, None));
    }

    #[test]
    fn a_conflict_is_shown_and_keeps_the_draft_from_starting_until_it_is_solved() {
        let mut form = form();
        assert!(edit(&mut form, "model.num_attention_heads", "6"));
        assert!(form.start().unwrap_err().contains("num_attention_heads"));
        assert!(edit(&mut form, "model.hidden_size", "96"));
        assert!(form.start().is_ok(), "{:?}", form.error);
    }

    #[test]
    fn an_empty_field_goes_back_to_its_default() {
        let mut form = form();
        edit(&mut form, "train.seed", "7");
        assert!(form.by_hand("train.seed"));
        edit(&mut form, "train.seed", "");
        assert_eq!((form.value("train.seed"), form.by_hand("train.seed")), ("1".into(), false));
    }

    #[test]
    fn it_says_what_differs_from_the_last_run() {
        let mut form = form();
        form.last = Some(("before".into(), form.resolved.config.clone()));
        assert!(form.differences().is_empty());
        form.accumulate(true);
        assert_eq!(form.differences(), vec![("train.accumulate".into(), "2".into(), "1".into())]);
    }

    #[test]
    fn settings_can_be_typed_by_their_short_key() {
        let mut form = form();
        form.assign("optimizer.lr", "5e-4").unwrap();
        assert_eq!(form.resolved.config.optimizer.adamw.lr, 5e-4);
        assert!(form.assign("train.acumulate", "2").unwrap_err().contains("train.accumulate"));
    }
}
