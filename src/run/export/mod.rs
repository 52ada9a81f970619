//! Runs as files for other programs and people. All are pure functions of the run directory. What is one file is
//! rendered to bytes; [`safetensors`] writes a folder.

pub mod commands;
pub mod csv;
pub mod json;
pub mod markdown;
pub mod safetensors;

use super::{RunDir, RunError};

/// What a run can be exported as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// The summary.
    Json,
    /// The summary as one page.
    Markdown,
    /// One row an update.
    Csv,
    /// What was set, and the commands that were given, as TOML that trains the run again.
    Commands,
}

/// The run in that format.
///
/// # Errors
/// The run has no record yet, or it cannot be read.
pub fn render(run: &RunDir, format: Format) -> Result<Vec<u8>, RunError> {
    match format {
        Format::Json => json::render(run),
        Format::Markdown => markdown::render(run),
        Format::Csv => csv::render(run),
        Format::Commands => commands::render(run),
    }
}
