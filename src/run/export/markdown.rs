//! The summary as one page.

mod data;
mod memory;

use std::fmt::Write as _;

use crate::{
    config::{Arch, Task},
    protocol::{Alert, CommandRecord, MatmulPeak, Summary},
    run::{
        RunDir, RunError, Standing,
        table::Table,
        text::{
            bytes, count, dash, duration, flops, joules, loss, loss_or_dash, number, percent, plain, rate,
        },
    },
};

use data::data;
pub use data::data_lines;
pub(super) use data::learned_from;
pub use memory::memory;

/// Lines of a list before the rest is only counted: one page is one page.
const MOST: usize = 12;

/// The page of a run.
///
/// # Errors
/// The run has no record yet, or it cannot be read.
pub fn render(run: &RunDir) -> Result<Vec<u8>, RunError> {
    let standing = Standing::read(run)?;
    let mut page = heading(&standing.summary, &standing_line(&standing));
    if let Some(problem) = &standing.problem {
        let _ = writeln!(page, "\n> {}", plain(problem));
    }
    if !standing.log.is_empty() {
        let _ = writeln!(page, "\n```\n{}\n```", standing.log.join("\n"));
    }
    page += &body(&standing.summary);
    Ok(page.into_bytes())
}

/// The page of a run that has ended: `summary.md`.
pub fn summary(summary: &Summary) -> String {
    heading(summary, summary.reason.as_str()) + &body(summary)
}

pub(super) fn standing_line(standing: &Standing) -> String {
    if standing.has_ended() {
        standing.summary.reason.as_str().to_owned()
    } else {
        format!("{}, these are the figures so far", standing.state)
    }
}

fn heading(summary: &Summary, how: &str) -> String {
    let forked = summary.forked_from.as_ref().map_or_else(String::new, |from| {
        format!(", forked from `{}` at update {}", plain(&from.run), count(from.update))
    });
    let note = summary.note.as_ref().map_or_else(String::new, |note| format!("\nNote: {}\n", plain(note)));
    format!(
        "# {}\n\nRun `{}`, started {}{forked}: {how}.\n{note}",
        plain(&summary.name),
        plain(&summary.run),
        plain(&summary.started)
    )
}

fn body(summary: &Summary) -> String {
    let mut page = String::new();
    for (title, table) in
        [("Result", result(summary)), ("Memory", memory(summary)), ("Configuration", configuration(summary))]
    {
        let _ = write!(page, "\n## {title}\n\n{}", table.markdown());
    }
    let _ = write!(page, "\n## Machine\n\n{}", machine(summary).markdown());
    page += &data(summary);
    if let Some(sample) = &summary.sample {
        let _ = write!(page, "\n## Text\n\n{}", super::texts::markdown(sample));
    }
    page += &happened(summary);
    let _ = write!(page, "\nShow this run again: `{}`\n", plain(&summary.show_command));
    if let Some(command) = &summary.resume_command {
        let _ = write!(page, "\nGo on with it: `{}`\n", plain(command));
    }
    page
}

/// What came out, also used by `show`.
pub fn result(summary: &Summary) -> Table {
    let mut table = Table::new(&["", ">final", ">best"]);
    let (train, val) = (summary.final_train_loss, summary.final_val_loss);
    table.row(["train loss".into(), loss_or_dash(train), loss_or_dash(summary.best_train_loss)]);
    table.row(["validation loss".into(), loss_or_dash(val), loss_or_dash(summary.best_val_loss)]);
    for (name, value) in evaluation(summary) {
        table.row([name.to_owned(), loss(value)]);
    }
    let skipped = match summary.skipped_updates {
        0 => String::new(),
        some => format!(" ({} skipped, not finite)", count(some)),
    };
    table.row(["updates".to_owned(), count(summary.updates) + &skipped]);
    let counted = summary.config.model.arch.counted();
    let (counted, one) = (counted.as_str(), counted.one());
    table.row([counted.to_owned(), count(summary.tokens)]);
    table.row([format!("{counted}/s"), summary.tokens_per_second.map_or_else(dash, rate)]);
    if let Some(speed) = summary.flops_per_second {
        table.row(["model's speed".to_owned(), flops(speed)]);
    }
    if let Some(share) = summary.mfu {
        table.row(["of matmul peak".to_owned(), percent(share)]);
    }
    if let Some(energy) = summary.gpu_energy_joules {
        table.row(["GPU energy".to_owned(), joules(energy)]);
    }
    if let Some(each) = summary.gpu_joules_per_token {
        table.row([format!("GPU energy {one}"), format!("{} J", number(each))]);
    }
    table.row(["wall time".to_owned(), duration(summary.wall_seconds)]);
    table
}

/// What the device's products come to and how that was measured, or how it can be; also used by `show`.
pub fn peak(summary: &Summary) -> String {
    summary.matmul_peak.as_ref().map_or_else(
        || format!("not measured; `tui-train bench --device {}` does", plain(&summary.device)),
        measured,
    )
}

/// How fast a device multiplies, and how that was measured.
pub fn measured(peak: &MatmulPeak) -> String {
    let day = peak.measured.split('T').next().unwrap_or_default();
    format!(
        "{} ({} matrices of {} x {}, measured {})",
        flops(peak.flops_per_second),
        peak.precision,
        peak.size,
        peak.size,
        plain(day)
    )
}

/// Accuracy and F1 of a classification at its last validation, under their names in `summary.json`; nothing of a language
/// model.
pub fn evaluation(summary: &Summary) -> Vec<(&'static str, f64)> {
    [
        ("eval_accuracy", summary.eval_accuracy),
        ("eval_f1", summary.eval_f1),
        ("eval_f1_macro", summary.eval_f1_macro),
    ]
    .into_iter()
    .filter_map(|(name, value)| Some((name, value?)))
    .collect()
}

/// The settings that are not the defaults, also used by `show`.
pub fn configuration(summary: &Summary) -> Table {
    let (train, optimizer) = (&summary.config.train, &summary.config.optimizer);
    let mut table = Table::new(&["setting", "value"]);
    table.row(["model".to_owned(), {
        let preset = summary.config.model.preset.clone().unwrap_or_else(dash);
        // A loop of its own may tell none of them.
        match (summary.ledger.parameters, summary.ledger.parameter_tensors) {
            (_, 0) => format!("{preset}: n/a, no parameters were told"),
            (parameters, tensors) => {
                format!("{preset}: {} parameters in {} tensors", count(parameters), count(tensors))
            }
        }
    }]);
    let loops = summary.config.model.arch == Arch::Loop;
    if !loops {
        table.row(["optimizer".to_owned(), format!("{}, lr {:?}", optimizer.name, optimizer.lr())]);
    }
    table.row([
        "optimizer state".to_owned(),
        match summary.measured.state_elements {
            // Which it keeps to itself unless it tells them.
            0 if loops => dash(),
            elements => format!("{} elements, {}", count(elements), bytes(summary.measured.state_bytes)),
        },
    ]);
    let tokens = count(train.seq_len as u64);
    let of = match summary.config.model.arch.task() {
        Task::LanguageModel => format!("sequences of {tokens} tokens"),
        Task::Classification => format!("rows of at most {tokens} tokens"),
        Task::Own => "examples".to_owned(),
    };
    if !loops {
        let (micro_batch, accumulate) = (train.micro_batch, train.accumulate);
        let batch = count(train.effective_batch() as u64);
        table.row(["effective batch".to_owned(), format!("{micro_batch} x {accumulate} = {batch} {of}")]);
        table.row(["seed".to_owned(), summary.seed.to_string()]);
    }
    for (key, value) in &summary.differences_from_default {
        table.row([key, value]);
    }
    table
}

/// What it ran on, also used by the page for a browser.
pub(super) fn machine(summary: &Summary) -> Table {
    let mut table = Table::new(&["", ""]);
    table.row(["device".to_owned(), format!("{}, {} threads", summary.device, summary.threads)]);
    for (name, value) in &summary.hardware {
        match (name.strip_suffix("_bytes"), value.parse()) {
            (Some(name), Ok(size)) => table.row([name.to_owned(), bytes(size)]),
            _ => table.row([name, value]),
        }
    }
    if summary.flops_per_second.is_some() {
        table.row(["matmul peak".to_owned(), peak(summary)]);
    }
    let git = summary.git.as_ref().map(|git| format!(", revision {git}")).unwrap_or_default();
    table.row(["tui-train".to_owned(), summary.version.clone() + &git]);
    table
}

fn happened(summary: &Summary) -> String {
    let commands: Vec<String> = summary.interventions.iter().map(intervention).collect();
    let warnings: Vec<String> = summary.warnings.iter().map(warning).collect();
    let notes: Vec<String> = summary.notes.iter().map(|note| plain(note)).collect();
    let notes = if notes.is_empty() { String::new() } else { section("Said at the start", &notes) };
    notes + &section("Interventions", &commands) + &section("Warnings", &warnings)
}

/// A command in a line.
pub(super) fn intervention(command: &CommandRecord) -> String {
    let why = command.why.as_ref().map(|why| format!(": {}", plain(why))).unwrap_or_default();
    format!("update {}: {}, {}{why}", count(command.update), commanded(command), command.outcome)
}

/// What was commanded, with its value, or with what takes the value's place; also used by `show`.
pub fn commanded(command: &CommandRecord) -> String {
    let value = match (&*command.name, command.value) {
        (_, Some(value)) => format!(" {}", number(value)),
        ("learning_rate", None) => " back to the schedule".to_owned(),
        _ => String::new(),
    };
    command.name.clone() + &value
}

/// An alert in a line.
pub(super) fn warning(alert: &Alert) -> String {
    format!("update {}: {}", count(alert.update), plain(&alert.message))
}

fn section(title: &str, lines: &[String]) -> String {
    if lines.is_empty() {
        return format!("\n## {title}\n\nNone.\n");
    }
    let mut page = format!("\n## {title}\n\n");
    for line in lines.iter().take(MOST) {
        let _ = writeln!(page, "- {line}");
    }
    if lines.len() > MOST {
        let _ = writeln!(page, "- and {} more in events.jsonl", count((lines.len() - MOST) as u64));
    }
    page
}

#[cfg(test)]
mod tests;
