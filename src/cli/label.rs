//! `tui-train rename RUN NAME` and `tui-train note RUN [TEXT]`: what a person calls a run and writes down about it.

use super::output;
use crate::run::{
    Home, RunDir,
    label::{self, Label, note_text, run_name},
    text::plain,
};

/// Which run, and its new name.
#[derive(Debug, clap::Args)]
pub struct Rename {
    /// Id, unique prefix, name, path, or `latest`
    #[arg(value_name = "RUN")]
    run: String,
    /// What it is called from now on; its folder keeps its name
    #[arg(value_name = "NAME", value_parser = run_name)]
    name: String,
}

/// Which run, and what to write down.
#[derive(Debug, clap::Args)]
pub struct Note {
    /// Id, unique prefix, name, path, or `latest`
    #[arg(value_name = "RUN")]
    run: String,
    /// The note; an empty one takes it away; without, the note that is there is printed
    #[arg(value_name = "TEXT", value_parser = note_text)]
    text: Option<String>,
}

/// Gives the run another name.
///
/// # Errors
/// The run cannot be found, or its folder cannot be written.
pub fn rename(args: Rename) -> anyhow::Result<i32> {
    let run = RunDir::resolve(&Home::from_env()?, &args.run)?;
    let before = run.name();
    label::rename(&run, &args.name)?;
    output::message(&format!(
        "run {}: {} is now called {}",
        run.id(),
        plain(&before),
        plain(args.name.trim())
    ));
    Ok(0)
}

/// Writes the note, or prints the one that is there.
///
/// # Errors
/// The run cannot be found, or its folder cannot be read or written.
pub fn note(args: Note) -> anyhow::Result<i32> {
    let run = RunDir::resolve(&Home::from_env()?, &args.run)?;
    let Some(text) = args.text else {
        match Label::read(&run)?.note {
            Some(note) => output::line(&plain(&note))?,
            None => {
                output::message(&format!("there is no note on run {}", run.id()));
                true
            }
        };
        return Ok(0);
    };
    label::annotate(&run, &text)?;
    let what = if text.is_empty() { "the note is gone" } else { "noted" };
    output::message(&format!("run {}: {what}", run.id()));
    Ok(0)
}
