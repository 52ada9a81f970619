//! Fields that step through what they can be, and the keys that change the optimizer and accumulation at once.

use super::{Form, PRESET, Row};
use crate::config::{
    OptimizerName,
    fields::{Field, Kind},
    presets,
};

/// A number that steps through powers of two.
const ACCUMULATE: &str = "train.accumulate";

impl Form {
    /// The values a field steps through, if it does.
    fn choices(field: &Field) -> Option<Vec<&'static str>> {
        match field.kind {
            _ if field.key == PRESET => Some(presets::all().map(|preset| preset.name).collect()),
            Kind::Choice(names) => Some(names.to_vec()),
            Kind::Bool => Some(vec!["false", "true"]),
            _ => None,
        }
    }

    /// Which of how many choices the focused field has, counted from 1.
    pub fn choice(&self) -> Option<(usize, usize)> {
        let field = self.field()?;
        let choices = Self::choices(field)?;
        let now = self.value(field.key);
        Some((choices.iter().position(|choice| *choice == now)? + 1, choices.len()))
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
}
