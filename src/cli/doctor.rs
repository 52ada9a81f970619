//! `tui-train doctor`: what this machine has for training and for the screens, each finding with the one command that
//! mends it.

mod environment;
mod gpu;

use serde_json::{Value, json};

use super::{FAILED, output, progress::Waiting};
use crate::{protocol::SCHEMA, run::text, ui::format};

/// Columns of the text output.
const WIDTH: usize = 80;

/// No options but JSON.
///
/// The exit code is 0 when a run can be trained here, on the embedded device at least, and 1 when none can.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// As JSON
    #[arg(long)]
    json: bool,
}

/// How a check went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Ok,
    /// Something that a run can do without.
    Note,
    /// No run can be trained.
    Failed,
}

/// One check.
#[derive(Debug)]
struct Check {
    name: &'static str,
    result: Outcome,
    found: String,
    /// The command that mends it.
    command: Option<String>,
}

impl Check {
    fn ok(name: &'static str, found: impl Into<String>) -> Self {
        Self { name, result: Outcome::Ok, found: found.into(), command: None }
    }

    fn note(name: &'static str, found: impl Into<String>, command: Option<&str>) -> Self {
        Self { name, result: Outcome::Note, found: found.into(), command: command.map(str::to_owned) }
    }

    fn failed(name: &'static str, found: impl Into<String>, command: Option<&str>) -> Self {
        Self { result: Outcome::Failed, ..Self::note(name, found, command) }
    }

    const fn word(&self) -> &'static str {
        match self.result {
            Outcome::Ok => "ok",
            Outcome::Note => "note",
            Outcome::Failed => "failed",
        }
    }

    fn as_json(&self) -> Value {
        json!({"name": self.name, "result": self.word(), "found": self.found, "command": self.command})
    }
}

/// Makes every check, prints what was found, and returns whether a run can be trained as the exit code.
///
/// # Errors
/// Standard output cannot be written.
pub fn run(args: Args) -> anyhow::Result<i32> {
    let waiting = Waiting::on("looking at this machine");
    let mut checks = environment::all();
    checks.extend(gpu::all());
    drop(waiting);
    let can_train = checks.iter().all(|check| check.result != Outcome::Failed);
    if args.json {
        let list: Vec<Value> = checks.iter().map(Check::as_json).collect();
        output::json(&json!({"schema": SCHEMA, "can_train": can_train, "checks": list}))?
    } else {
        output::text(&page(&checks, can_train))?
    };
    Ok(if can_train { 0 } else { FAILED })
}

fn page(checks: &[Check], can_train: bool) -> String {
    let name = checks.iter().map(|check| check.name.len()).max().unwrap_or(0);
    let indent = "failed".len() + 2 + name + 2;
    let mut page = String::new();
    for check in checks {
        // What a variable or a library says may hold anything.
        let mut lines = format::wrap(&text::plain(&check.found), WIDTH - indent).into_iter();
        let first = lines.next().unwrap_or_default();
        page += &format!("{:<6}  {:<name$}  {first}\n", check.word(), check.name);
        for line in lines {
            page += &format!("{:indent$}{line}\n", "");
        }
        // In one piece, however long, so that it can be copied.
        if let Some(command) = &check.command {
            page += &format!("{:8}$ {}\n", "", text::plain(command));
        }
    }
    let end = if can_train { "A run can be trained here." } else { "No run can be trained here." };
    page + "\n" + end + "\n"
}
