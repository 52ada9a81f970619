//! The run that the draft is held against.

use super::Form;
use crate::config::{Config, printed::Key};

/// A run and its settings as they are printed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Earlier {
    pub name: String,
    pub(super) printed: Vec<(Key, String)>,
}

impl Earlier {
    pub fn new(name: impl Into<String>, config: &Config) -> Self {
        Self { name: name.into(), printed: config.entries() }
    }
}

impl Form {
    /// Key, value in the draft and value in the last run of everything that differs.
    pub fn differences(&self) -> Vec<(Key, String, String)> {
        let Some(last) = &self.last else { return Vec::new() };
        let chosen = format!("optimizer.{}.", self.optimizer());
        let mut all = Config::differing(&self.printed, &last.printed);
        all.retain(|(key, ..)| key.matches('.').count() == 1 || key.starts_with(&chosen));
        all
    }
}
