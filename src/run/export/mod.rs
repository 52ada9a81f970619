//! Runs as files for other programs and people. All are pure functions of the run directory. What is one file is
//! written piece by piece, so that a record of any length takes little memory; [`safetensors`] and [`tensorboard`] write
//! folders.

mod chart;
pub mod commands;
pub mod csv;
mod curves;
pub mod escape;
pub mod html;
pub mod json;
pub mod jsonl;
pub mod kept;
pub mod markdown;
pub mod rows;
pub mod safetensors;
pub mod svg;
pub mod tensorboard;
pub mod texts;

use std::io::{self, Write};

use thiserror::Error;

use self::kept::Progress;
use super::{RunDir, RunError};

/// What a run can be exported as, in one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// The summary.
    Json,
    /// The summary as one page.
    Markdown,
    /// One row an update.
    Csv,
    /// The same, one JSON object a line.
    Jsonl,
    /// The curves as a picture.
    Svg,
    /// Summary and curves as one page for a browser.
    Html,
    /// What was set, and the commands that were given, as TOML that trains the run again.
    Commands,
}

/// Every export by the name that is typed for it, and what it is. The last two are folders: [`Format`] has no place for
/// them.
pub const NAMES: &[(&str, &str)] = &[
    ("json", "the summary"),
    ("md", "the summary as a page of Markdown"),
    ("csv", "one row an update"),
    ("jsonl", "the same, one JSON object a line"),
    ("svg", "the curves as a picture"),
    ("html", "summary and curves as a page for a browser"),
    ("commands", "settings and commands for run --commands"),
    ("tensorboard", "a folder for tensorboard --logdir"),
    ("safetensors", "a folder with weights and optimizer's state"),
];

impl Format {
    /// The format of that name, if it is one file.
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "json" => Self::Json,
            "md" => Self::Markdown,
            "csv" => Self::Csv,
            "jsonl" => Self::Jsonl,
            "svg" => Self::Svg,
            "html" => Self::Html,
            "commands" => Self::Commands,
            _ => return None,
        })
    }
}

/// An export that could not be made.
#[derive(Debug, Error)]
pub enum ExportError {
    /// The run has no record yet, or it cannot be read.
    #[error(transparent)]
    Run(#[from] RunError),
    /// Where it was to go cannot be written.
    #[error(transparent)]
    Write(#[from] io::Error),
}

/// Writes the run in that format to `out`, and tells `progress` how far it is.
///
/// # Errors
/// The run has no record yet or it cannot be read, or `out` cannot be written.
pub fn write(
    run: &RunDir,
    format: Format,
    out: &mut dyn Write,
    progress: Progress<'_>,
) -> Result<(), ExportError> {
    let bytes = match format {
        Format::Csv => return csv::write(run, out, progress),
        Format::Jsonl => return jsonl::write(run, out, progress),
        Format::Json => json::render(run)?,
        Format::Markdown => markdown::render(run)?,
        Format::Svg => svg::render(run, progress)?.into_bytes(),
        Format::Html => html::render(run, progress)?.into_bytes(),
        Format::Commands => commands::render(run)?,
    };
    Ok(out.write_all(&bytes)?)
}
