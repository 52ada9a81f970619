//! Mistakes in a configuration, each told in one sentence: what, where, what to do.

use thiserror::Error;

/// A configuration that cannot be used. The exit code is 2.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ConfigError {
    #[error("unknown key `{key}` ({origin}){}", hint(.nearest))]
    UnknownKey { key: String, origin: String, nearest: Option<String> },
    #[error("unknown preset `{name}` ({origin}); the presets are: {known}")]
    UnknownPreset { name: String, origin: String, known: String },
    #[error("`{key}` = {value} ({origin}): expected {expected}")]
    Value { key: String, value: String, origin: String, expected: String },
    #[error("{text} is not key=value; write for example --set train.accumulate=4")]
    NotAnAssignment { text: String },
    #[error("in the grid at {combination}: {problem}")]
    InGrid { combination: String, problem: String },
    #[error("{path}: {problem}")]
    File { path: String, problem: String },
    #[error("{0}")]
    Conflict(String),
}

fn hint(nearest: &Option<String>) -> String {
    nearest.as_ref().map_or_else(
        || "; `tui-train config print` lists every key".to_owned(),
        |near| format!("; did you mean `{near}`?"),
    )
}
