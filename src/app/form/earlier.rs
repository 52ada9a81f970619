//! The run that the draft is held against.

use super::Form;
use crate::config::{Config, printed::Key};

/// A run and its settings as they are printed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Earlier {
    /// Its id; empty of a run that is being started.
    pub(super) run: String,
    pub name: String,
    pub(super) printed: Vec<(Key, String)>,
}

impl Earlier {
    pub fn new(run: impl Into<String>, name: impl Into<String>, config: &Config) -> Self {
        Self { run: run.into(), name: name.into(), printed: config.entries() }
    }
}

impl Form {
    /// Whether the draft is held against that run, of which it is no fork.
    pub fn follows(&self, run: &str) -> bool {
        self.fork.is_none() && self.last.as_ref().is_some_and(|last| last.run == run)
    }

    /// Key, value in the draft and value in the last run of everything that differs.
    pub fn differences(&self) -> Vec<(Key, String, String)> {
        let Some(last) = &self.last else { return Vec::new() };
        let chosen = format!("optimizer.{}.", self.optimizer());
        let mut all = Config::differing(&self.printed, &last.printed);
        all.retain(|(key, ..)| key.matches('.').count() == 1 || key.starts_with(&chosen));
        all
    }
}
