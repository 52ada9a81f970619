//! `tui-train show RUN`: one run in full.

use std::fmt::Write as _;

use super::{output, progress::Waiting};
use crate::{
    protocol::SCHEMA,
    run::{
        Home, Queue, Record, RunDir, Standing, checkpoint,
        export::{markdown, texts},
        list::Lister,
        text::{self, plain},
    },
};

/// Which run, and how to print it.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Id, unique prefix, name, path, or `latest`
    #[arg(value_name = "RUN")]
    run: String,
    /// As JSON, the shape of summary.json
    #[arg(long)]
    json: bool,
}

/// Prints the summary of a run that has ended, or the figures so far.
///
/// # Errors
/// The run cannot be found or read.
pub fn run(args: Args) -> anyhow::Result<i32> {
    let run = RunDir::resolve(&Home::from_env()?, &args.run)?;
    let waiting = Waiting::on("reading the record");
    let record = Record::read(&run)?;
    drop(waiting);
    if record.header.is_none() {
        return without_record(&run, args.json);
    }
    let standing = Standing::of(&run, record)?;
    if args.json {
        return output::json(&standing.json()?);
    }
    output::text(&page(&run, &standing)?)
}

/// A run that no worker has begun to record: queued, starting, or dead at birth.
fn without_record(run: &RunDir, json: bool) -> anyhow::Result<i32> {
    let entry = Lister::default().entry(run);
    if json {
        let mut value = serde_json::to_value(&entry)?;
        if let Some(map) = value.as_object_mut() {
            map.shift_insert(0, "schema".into(), SCHEMA.into());
        }
        return output::json(&value);
    }
    let mut text = format!("{}  {}\n", plain(&entry.run), entry.state);
    if let Some(note) = &entry.note {
        let _ = writeln!(text, "note: {}", plain(note));
    }
    if let Some(waits) = Queue::beside(run).and_then(|line| line.waits(run).ok()?) {
        let _ = writeln!(text, "{}", waits.sentence());
    }
    if let Some(problem) = &entry.problem {
        let _ = writeln!(text, "{}", plain(problem));
    }
    output::text(&text)
}

fn page(run: &RunDir, standing: &Standing) -> anyhow::Result<String> {
    let summary = &standing.summary;
    let how = if standing.has_ended() {
        format!("{} ({})", standing.state, summary.reason.as_str())
    } else {
        standing.state.to_string()
    };
    let mut page = format!("{}  {how}\n", plain(&summary.run));
    let _ = writeln!(
        page,
        "{}, started {}, on {} ({} threads)",
        plain(&summary.name),
        plain(&summary.started),
        plain(&summary.device),
        summary.threads
    );
    if let Some(note) = &summary.note {
        let _ = writeln!(page, "note: {}", plain(note));
    }
    if let Some(problem) = &standing.problem {
        let _ = writeln!(page, "\n{}", plain(problem));
    }
    for line in &standing.log {
        let _ = writeln!(page, "  | {line}");
    }
    for table in [markdown::result(summary), markdown::memory(summary), markdown::configuration(summary)] {
        let _ = write!(page, "\n{}", table.aligned());
    }
    page.push('\n');
    if summary.flops_per_second.is_some() {
        let _ = writeln!(page, "matmul peak: {}", markdown::peak(summary));
    }
    page += &markdown::data_lines(summary);
    if let Some(sample) = &summary.sample {
        let _ = writeln!(page, "{}", texts::lines(sample));
    }
    if let Some(from) = &summary.forked_from {
        let _ = writeln!(page, "forked from {} at update {}", plain(&from.run), text::count(from.update));
    }
    if !standing.record.resumed.is_empty() {
        let from: Vec<_> = standing.record.resumed.iter().map(|&update| text::count(update)).collect();
        let _ = writeln!(page, "resumed from update {}", from.join(", then "));
    }
    for note in &summary.notes {
        let _ = writeln!(page, "at the start: {}", plain(note));
    }
    for command in &summary.interventions {
        let (what, update) = (markdown::commanded(command), text::count(command.update));
        let why = command.why.as_ref().map(|why| format!(": {}", plain(why))).unwrap_or_default();
        let _ = writeln!(page, "{} {} at update {update}{why}", plain(&what), command.outcome);
    }
    for alert in &summary.warnings {
        let _ = writeln!(page, "warning at update {}: {}", text::count(alert.update), plain(&alert.message));
    }
    if standing.record.skipped_lines > 0 {
        let lines = text::count(standing.record.skipped_lines);
        let _ = writeln!(page, "{lines} lines of events.jsonl cannot be read");
    }
    let stored: Vec<_> =
        checkpoint::checkpoints(run)?.iter().map(|checkpoint| text::count(checkpoint.update)).collect();
    let stored = if stored.is_empty() { "none".to_owned() } else { format!("update {}", stored.join(", ")) };
    let _ = writeln!(page, "checkpoints: {stored}");
    if let Some(command) = summary.resume_command.as_ref().filter(|_| !standing.state.is_live()) {
        let _ = writeln!(page, "go on with it: {}", plain(command));
    }
    let _ = writeln!(page, "folder: {}", run.path().display());
    Ok(page)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        protocol::{Alert, Event, Level},
        run::{EventWriter, sample},
    };

    #[test]
    fn a_crash_is_told_with_its_log_and_its_figures_so_far() {
        let (_folder, run) = sample::run("crash");
        EventWriter::create(&run, &sample::header(&run)).unwrap().append(&sample::update(7, 2.5)).unwrap();
        std::fs::write(run.worker_log(), "first\nKilled\n").unwrap();
        sample::checkpoint(&run, 5);
        let page = page(&run, &Standing::read(&run).unwrap()).unwrap();
        assert!(page.starts_with(&format!("{}  crashed\n", run.id())), "{page}");
        for part in ["  | Killed\n", "2.5000", "checkpoints: update 5\n", "115,", "8 x 1 = 8 sequences"] {
            assert!(page.contains(part), "{part}: {page}");
        }
    }

    #[test]
    fn what_was_learned_from_and_what_was_left_out_is_shown() {
        let (_folder, run) = sample::run("data");
        let mut header = sample::header(&run);
        header.data.left_out.insert("hidden file".into(), 1200);
        header.data.left_out_named.push(".notes\u{1b}[2J: hidden file".into());
        EventWriter::create(&run, &header).unwrap();
        let page = page(&run, &Standing::read(&run).unwrap()).unwrap();
        let told = "\n  left out: hidden file (1,200)\n    .notes [2J: hidden file\n";
        assert!(page.contains("\ndata: stories: 3 documents") && page.contains(told), "{page}");
    }

    #[test]
    fn what_was_said_once_and_what_somebody_noted_are_shown() {
        let (_folder, run) = sample::run("fork");
        let mut writer = EventWriter::create(&run, &sample::header(&run)).unwrap();
        let message = "optimizer state from adamw to adafactor, by the number of tensors: kept (29)".into();
        writer.append(&Event::Alert(Alert { update: 0, time: 0.0, level: Level::Info, message })).unwrap();
        crate::run::label::annotate(&run, "warm start").unwrap();
        let page = page(&run, &Standing::read(&run).unwrap()).unwrap();
        assert!(page.contains("\nnote: warm start\n"), "{page}");
        assert!(page.contains("\nat the start: optimizer state from adamw to adafactor"), "{page}");
    }

    #[test]
    fn a_command_is_told_with_its_value_and_a_refused_one_with_its_reason() {
        let (_folder, run) = sample::run("driven");
        let mut writer = EventWriter::create(&run, &sample::header(&run)).unwrap();
        writer.append(&sample::command("learning_rate", 41, Some(1e-4))).unwrap();
        writer.append(&sample::command("learning_rate", 60, None)).unwrap();
        let Event::Command(mut refused) = sample::command("step", 61, None) else { unreachable!() };
        (refused.outcome, refused.why) = ("rejected".into(), Some("the run is not paused".into()));
        writer.append(&Event::Command(refused)).unwrap();
        let page = page(&run, &Standing::read(&run).unwrap()).unwrap();
        for line in [
            "learning_rate 1.000e-4 applied at update 41",
            "learning_rate back to the schedule applied at update 60",
            "step rejected at update 61: the run is not paused",
        ] {
            assert!(page.lines().any(|told| told == line), "{line}: {page}");
        }
    }

    #[test]
    fn a_run_that_ended_says_how() {
        let (_folder, run) = sample::run("done");
        let mut writer = EventWriter::create(&run, &sample::header(&run)).unwrap();
        writer.append(&sample::update(1, 2.5)).unwrap();
        writer.append(&sample::run_ended(&run)).unwrap();
        let page = page(&run, &Standing::read(&run).unwrap()).unwrap();
        assert!(page.contains("done (finished)") && page.contains("checkpoints: none"), "{page}");
    }
}
