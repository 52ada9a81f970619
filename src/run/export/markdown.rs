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
mod tests {
    use super::*;
    use crate::{
        protocol::{DataReport, Event, Host, Level},
        run::{EventWriter, sample},
    };

    fn page_of(run: &RunDir) -> String {
        String::from_utf8(render(run).unwrap()).unwrap()
    }

    #[test]
    fn the_page_has_the_figures_and_fits() {
        let (_folder, run) = sample::run_with("a | b", &["train.accumulate=4", "optimizer.name=adafactor"]);
        let mut writer = EventWriter::create(&run, &sample::header(&run)).unwrap();
        for update in 1..=30 {
            writer.append(&sample::update(update, 3.0)).unwrap();
            let alert = Alert {
                update,
                time: 0.0,
                level: Level::Warning,
                message: format!("x\n# y{}", "z".repeat(update as usize)),
            };
            writer.append(&Event::Alert(alert)).unwrap();
        }
        writer.append(&sample::validation(30, 2.5)).unwrap();
        assert!(page_of(&run).contains("crashed, these are the figures so far"));
        writer.append(&sample::run_ended(&run)).unwrap();
        let page = page_of(&run);
        for part in ["# a | b\n", "| validation loss | 2.5000 | 2.5000 |", "train.accumulate", "finished."] {
            assert!(page.contains(part), "{part}: {page}");
        }
        assert!(page.contains("- and 18 more") && !page.contains("\n# y"), "{page}");
        assert!(page.lines().count() < 80, "{}", page.lines().count());
        let table: Vec<_> = page.lines().filter(|line| line.starts_with("| optimizer state")).collect();
        assert!(table[0].contains(" 0 |"), "exact and measured agree: {table:?}");
    }

    #[test]
    fn what_was_set_by_hand_is_told_with_its_value_and_where_it_ended() {
        let (_folder, run) = sample::run("driven");
        let mut writer = EventWriter::create(&run, &sample::header(&run)).unwrap();
        writer.append(&sample::update(1, 3.0)).unwrap();
        for command in [
            sample::command("learning_rate", 41, Some(1e-4)),
            sample::command("learning_rate", 60, None),
            sample::command("pause", 61, None),
        ] {
            writer.append(&command).unwrap();
        }
        writer.append(&sample::run_ended(&run)).unwrap();
        let page = page_of(&run);
        for line in [
            "- update 41: learning_rate 1.000e-4, applied",
            "- update 60: learning_rate back to the schedule, applied",
            "- update 61: pause, applied",
        ] {
            assert!(page.lines().any(|told| told == line), "{line}: {page}");
        }
    }

    #[test]
    fn a_run_stands_under_its_new_name_with_its_note_and_what_was_said_at_the_start() {
        let (_folder, run) = sample::run("first");
        let header = crate::protocol::Header {
            notes: vec!["optimizer state from adamw to adafactor: (29)".into()],
            ..sample::header(&run)
        };
        let mut writer = EventWriter::create(&run, &header).unwrap();
        writer.append(&sample::run_ended(&run)).unwrap();
        assert!(page_of(&run).starts_with("# first\n"));
        crate::run::label::rename(&run, "better").unwrap();
        crate::run::label::annotate(&run, "on the old\u{1b}[2J data").unwrap();
        let page = page_of(&run);
        assert!(page.starts_with("# better\n") && page.contains("\nNote: on the old [2J data\n"), "{page}");
        assert!(page.contains("## Said at the start\n\n- optimizer state from adamw to adafactor"), "{page}");
        assert_eq!(Standing::read(&run).unwrap().json().unwrap()["note"], "on the old\u{1b}[2J data");
    }

    #[test]
    fn memory_of_a_run_on_a_gpu_is_that_of_libtorchs_allocator() {
        const MIB: u64 = 1024 * 1024;
        let (_folder, run) = sample::run_with("gpu", &[]);
        let mut writer = EventWriter::create(&run, &sample::header(&run)).unwrap();
        for peak in [64 * MIB, 48 * MIB] {
            let host = Host {
                allocator_peak: Some(5 * MIB),
                gpu_allocated_peak: Some(peak),
                gpu_reserved_peak: Some(96 * MIB),
                ..Host::default()
            };
            writer.append(&Event::Host(host)).unwrap();
        }
        let page = page_of(&run);
        for parts in [["| peak of training", "64.0 MiB"], ["| peak, GPU pool", "96.0 MiB"]] {
            let row = page.lines().find(|line| line.starts_with(parts[0])).unwrap();
            assert!(row.contains(parts[1]) && row.contains("libtorch's allocator"), "{row}");
        }
    }

    #[test]
    fn a_classification_is_told_with_accuracy_and_f1_and_a_language_model_without() {
        let (_folder, run) = sample::run_with("pairs", &["model.preset=distilbert-nano"]);
        let mut header = sample::header(&run);
        header.data = DataReport {
            source: "sentence-pairs".into(),
            documents: 4000,
            train_sequences: 3600,
            validation_sequences: 400,
            labels: vec!["does not fit".into(), "fits".into()],
            ..DataReport::default()
        };
        let mut writer = EventWriter::create(&run, &header).unwrap();
        writer.append(&sample::update(9, 0.5)).unwrap();
        let Event::Validation(mut scored) = sample::validation(9, 0.4) else { unreachable!() };
        (scored.accuracy, scored.f1, scored.f1_macro) = (Some(0.875), Some(0.85714), Some(0.87302));
        writer.append(&Event::Validation(scored)).unwrap();
        writer.append(&sample::run_ended(&run)).unwrap();
        let page = page_of(&run).split_whitespace().collect::<Vec<_>>().join(" ");
        for part in [
            "| eval_accuracy | 0.8750 |",
            "| eval_f1 | 0.8571 |",
            "| eval_f1_macro | 0.8730 |",
            "rows of at most 128",
            "sentence-pairs: 4,000 rows, 0 B; 3,600 to train on (0 tokens), 400 held out (0 tokens); labels: does not \
             fit, fits.",
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }
        assert!(!page.contains("documents") && !page.contains("sequences"), "{page}");
        let ended = Standing::read(&run).unwrap();
        let json = ended.json().unwrap();
        let figures = ["eval_accuracy", "eval_f1", "eval_f1_macro"].map(|name| json[name].as_f64().unwrap());
        assert_eq!(figures, [0.875, 0.85714, 0.87302]);

        let (_folder, run) = sample::run("stories");
        let mut writer = EventWriter::create(&run, &sample::header(&run)).unwrap();
        writer.append(&sample::validation(1, 0.4)).unwrap();
        let page = page_of(&run);
        assert!(!page.contains("eval_") && !page.contains("at most"), "{page}");
        assert!(page.contains("stories: 3 documents") && page.contains("sequences of 64 tokens"), "{page}");
    }
}
