//! The summary of a run from its record.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{
    Record, RunDir, RunError, goes_on::GoesOn, label::Label, standing, standing::State, text,
    text::shell_word,
};
use crate::{
    config::{Arch, Config, Layers, own, presets},
    protocol::{Alert, Level, Reason, SCHEMA, Summary, summary::Measured},
};

/// Lines of `worker.log` that a crashed run shows.
const LOG_LINES: usize = 12;

/// What the record does not say, or says less exactly than the worker knows it.
#[derive(Debug, Clone, PartialEq)]
pub struct Finish {
    pub reason: Reason,
    pub updates: u64,
    /// Real input tokens trained.
    pub tokens: u64,
    /// Seconds since the start, pauses included.
    pub wall_seconds: f64,
    /// Tokens over the time spent training.
    pub tokens_per_second: Option<f64>,
    pub measured: Measured,
    /// How a run that has not made all of its updates can go on.
    pub goes_on: GoesOn,
}

impl Finish {
    /// As far as the record tells, for a run whose worker has not summed it up.
    pub fn so_far(record: &Record) -> Self {
        let ledger = record.header.as_ref().map(|header| header.ledger.clone()).unwrap_or_default();
        Self {
            reason: Reason::Stopped,
            updates: record.updates(),
            tokens: record.tokens(),
            wall_seconds: record.totals.time,
            tokens_per_second: record.tokens_per_second(),
            measured: record.totals.peaks.tell(Measured {
                parameter_bytes: ledger.parameter_bytes,
                state_elements: ledger.state_elements,
                state_bytes: ledger.state_bytes,
                peak_source: "readings so far; parameters and state by the ledger".into(),
                ..Measured::default()
            }),
            goes_on: GoesOn::Resumed,
        }
    }
}

/// The summary of a run with this record; nothing when the record has no header yet.
pub fn build(record: &Record, finish: Finish) -> Option<Summary> {
    let header = record.header.as_ref()?;
    Some(Summary {
        schema: SCHEMA,
        run: header.run.clone(),
        name: header.name.clone(),
        reason: finish.reason,
        started: header.started.clone(),
        version: header.version.clone(),
        git: header.git.clone(),
        device: header.device.clone(),
        threads: header.threads,
        hardware: header.hardware.clone(),
        differences_from_default: differences_from_default(&header.config),
        seed: header.config.train.seed,
        config: header.config.clone(),
        data: header.data.clone(),
        updates: finish.updates,
        skipped_updates: record.skipped_updates(),
        tokens: finish.tokens,
        wall_seconds: finish.wall_seconds,
        final_train_loss: record.final_train_loss(),
        best_train_loss: record.best_train_loss(),
        final_val_loss: record.final_val_loss(),
        best_val_loss: record.best_val_loss(),
        eval_accuracy: record.last_validation().and_then(|validation| validation.accuracy),
        eval_f1: record.last_validation().and_then(|validation| validation.f1),
        eval_f1_macro: record.last_validation().and_then(|validation| validation.f1_macro),
        tokens_per_second: finish.tokens_per_second,
        flops_per_second: record.flops_per_second(),
        mfu: record.mfu(),
        matmul_peak: header.matmul_peak.clone(),
        gpu_energy_joules: record.totals.energy.joules(),
        gpu_joules_per_token: record.joules_per_token(finish.tokens),
        sample: record.samples.back().cloned(),
        ledger: header.ledger.clone(),
        measured: finish.measured,
        interventions: record.commands.clone(),
        warnings: warnings(record),
        notes: notes(record),
        note: None,
        show_command: format!("{} show {}", own::program(), header.run),
        resume_command: match finish.goes_on {
            _ if finish.reason.is_complete() || header.config.model.arch == Arch::Loop => None,
            GoesOn::Resumed => Some(format!("{} resume {}", own::program(), header.run)),
            GoesOn::By(command) => Some(command),
            GoesOn::Not => None,
        },
        forked_from: header.forked_from.clone(),
    })
}

/// The summary of the run in that folder, which may be a copy: its commands are about this one.
pub fn of_folder(mut summary: Summary, run: &RunDir) -> Summary {
    let called = run.called();
    summary.show_command = about(&summary.show_command, &called);
    summary.resume_command = summary.resume_command.map(|command| about(&command, &called));
    run.id().clone_into(&mut summary.run);
    summary
}

/// A command that shows, resumes or forks a run, with that one in its place; any other as it is.
pub(super) fn about(command: &str, called: &str) -> String {
    for verb in [" show ", " resume ", " fork "] {
        if let Some((program, rest)) = command.split_once(verb).filter(|(program, _)| !program.contains(' '))
        {
            // Its name is one word, in quotes where it has spaces of its own.
            let end = if rest.starts_with('\'') { rest.find("' ").map(|at| at + 1) } else { rest.find(' ') };
            return format!("{program}{verb}{}{}", shell_word(called), end.map_or("", |end| &rest[end..]));
        }
    }
    command.to_owned()
}

fn warnings(record: &Record) -> Vec<Alert> {
    collapsed(record.alerts.iter().filter(|alert| alert.level != Level::Info))
}

/// A run that skips an update after another says the same each time, with other figures: one line says how often.
pub(super) fn collapsed<'a>(alerts: impl Iterator<Item = &'a Alert>) -> Vec<Alert> {
    struct Kind {
        first: Alert,
        words: String,
        more: u64,
        last: u64,
    }
    let mut kinds: Vec<Kind> = Vec::new();
    for alert in alerts {
        let words = without_figures(&alert.message);
        let same = |kind: &&mut Kind| kind.words == words && kind.first.level == alert.level;
        if let Some(kind) = kinds.iter_mut().find(same) {
            (kind.more, kind.last) = (kind.more + 1, alert.update);
        } else {
            kinds.push(Kind { first: alert.clone(), words, more: 0, last: alert.update });
        }
    }
    let told = kinds.into_iter().map(|Kind { mut first, more, last, .. }| {
        if more > 0 {
            let what = if more == 1 { "one more".to_owned() } else { format!("{} more", text::count(more)) };
            first.message += &format!(" ({what} like this, the last at update {})", text::count(last));
        }
        first
    });
    told.collect()
}

/// A message with every figure as the same sign, so that two of one kind are equal.
fn without_figures(message: &str) -> String {
    let figure = |word: &str| {
        let bare = word.trim_matches(|c: char| !c.is_alphanumeric()).to_ascii_lowercase();
        matches!(&*bare, "nan" | "inf") || bare.starts_with(|c: char| c.is_ascii_digit())
    };
    let words: Vec<&str> =
        message.split_whitespace().map(|word| if figure(word) { "#" } else { word }).collect();
    words.join(" ")
}

/// What was said once: with the configuration, and when the run began.
fn notes(record: &Record) -> Vec<String> {
    let mut notes = Vec::new();
    notes.extend(record.header.iter().flat_map(|header| &header.notes).cloned());
    let told = record.alerts.iter().filter(|alert| alert.level == Level::Info);
    notes.extend(told.map(|alert| alert.message.clone()));
    notes
}

/// The settings that are not what the preset gives, and the preset if it is not the demo: set by hand on top of the
/// defaults they make this configuration.
pub fn differences_from_default(config: &Config) -> BTreeMap<String, String> {
    let preset = config.model.preset.as_deref().unwrap_or(presets::DEMO);
    let base = Layers::new()
        .with_assignment(&format!("model.preset={preset}"))
        .and_then(|layers| layers.resolve())
        .or_else(|_| Layers::new().resolve());
    // The demo resolves: without a base there would be no program to run.
    let Ok(base) = base else { return BTreeMap::new() };
    let differences = config.differences(&base.config).into_iter();
    // Of a task that this program does not have nothing tells what it starts from: what it is set to is said.
    let known = config.model.arch == base.config.model.arch;
    let mut all: BTreeMap<String, String> = differences
        .filter(|(_, ours, _)| known || ours != "-")
        .map(|(key, ours, _)| (key.into_owned(), ours))
        .collect();
    if preset != presets::DEMO {
        all.insert("model.preset".to_owned(), preset.to_owned());
    }
    all
}

/// A run as it stands: its summary, final or so far.
#[derive(Debug, Clone, PartialEq)]
pub struct Standing {
    pub state: State,
    /// `summary.reason` means nothing unless the run has ended.
    pub summary: Summary,
    pub record: Record,
    /// What went wrong: the worker's sentence, or what is known of a crash.
    pub problem: Option<String>,
    /// The end of the worker's log, for a run that crashed.
    pub log: Vec<String>,
}

impl Standing {
    /// Reads a run.
    ///
    /// # Errors
    /// The record cannot be read, or there is none yet because the run is queued or crashed before its first line.
    pub fn read(run: &RunDir) -> Result<Self, RunError> {
        Self::of(run, Record::read(run)?)
    }

    /// The same of a run whose record has been read.
    ///
    /// # Errors
    /// The record has no header.
    pub fn of(run: &RunDir, record: Record) -> Result<Self, RunError> {
        let state = State::of(run, record.ended.as_ref().map(|ended| ended.reason), record.paused);
        let summary = match &record.ended {
            Some(ended) => Some(ended.summary.clone()),
            None => build(&record, Finish::so_far(&record)),
        };
        let Some(summary) = summary else { return Err(no_record(run, state)) };
        let mut summary = of_folder(summary, run);
        let Label { name, note, .. } = Label::of(run);
        (summary.name, summary.note) = (name.unwrap_or(summary.name), note);
        let (mut problem, mut log) =
            (record.ended.as_ref().and_then(|ended| ended.message.clone()), Vec::new());
        if state == State::Crashed {
            let (told, lines) = standing::crash_report(run, LOG_LINES);
            (problem, log) = (Some(told), lines);
        }
        Ok(Self { state, summary, record, problem, log })
    }

    /// Whether the summary is final.
    pub const fn has_ended(&self) -> bool {
        self.record.ended.is_some()
    }

    /// The shape of `summary.json` with the state; the reason is `null` unless the run has ended.
    ///
    /// # Errors
    /// None in practice: a summary has a JSON form.
    pub fn json(&self) -> serde_json::Result<Value> {
        let mut value = serde_json::to_value(&self.summary)?;
        if let Some(map) = value.as_object_mut() {
            map.insert("state".into(), serde_json::to_value(self.state)?);
            if !self.has_ended() {
                map.insert("reason".into(), Value::Null);
            }
            if let Some(problem) = &self.problem {
                map.insert("problem".into(), problem.clone().into());
            }
            if !self.log.is_empty() {
                map.insert("log".into(), self.log.clone().into());
            }
            if self.record.skipped_lines > 0 {
                map.insert("unreadable_lines".into(), self.record.skipped_lines.into());
            }
        }
        Ok(value)
    }
}

/// Why there is nothing to show, with what the worker said last.
pub(super) fn no_record(run: &RunDir, state: State) -> RunError {
    let problem = match state {
        State::Queued => "the run is queued: no worker has started it yet".to_owned(),
        State::Live | State::Paused => "the worker is still starting; try again in a moment".to_owned(),
        _ => match standing::crash_line(run) {
            Some(line) => format!("the worker died before it recorded anything: {line}"),
            None => "the worker died before it recorded or said anything".to_owned(),
        },
    };
    RunError::Damaged { path: run.path().to_owned(), problem }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        protocol::{Event, Header, Host, RunEnded},
        run::{EventWriter, RunLock, list, sample},
    };

    #[test]
    fn differences_reproduce_the_configuration() {
        let set = ["model.preset=llama-tiny", "train.accumulate=4", "optimizer.name=sgd"];
        let resolved = Layers::new().with_assignments(set).unwrap().resolve().unwrap();
        let differences = differences_from_default(&resolved.config);
        assert_eq!(differences.len(), 3, "{differences:?}");
        let again = differences.iter().map(|(key, value)| format!("{key}={value}"));
        assert_eq!(Layers::new().with_assignments(again).unwrap().resolve().unwrap().config, resolved.config);
        assert!(differences_from_default(&Layers::new().resolve().unwrap().config).is_empty());
    }

    #[test]
    fn a_run_on_a_gpu_whose_process_is_not_told_is_compared_by_its_tensors() {
        let (_folder, run) = sample::run("gpu");
        let mut writer = EventWriter::create(&run, &sample::header(&run)).unwrap();
        let host = Host {
            allocator_peak: Some(900),
            gpu_allocated_peak: Some(70),
            gpu_reserved_peak: Some(80),
            gpu_retries: Some(0),
            ..Host::default()
        };
        writer.append(&Event::Host(host)).unwrap();
        let measured = Finish::so_far(&Record::read(&run).unwrap()).measured;
        assert_eq!((measured.peak_gpu_reserved_bytes, measured.gpu_retries), (Some(80), Some(0)));
        let (bytes, source) = list::peak(&measured).unwrap();
        assert!(bytes == 70 && source.contains("libtorch"), "{bytes} by {source}");
    }

    #[test]
    fn warnings_of_one_kind_are_one_line_and_what_was_said_once_is_a_note() {
        let (_folder, run) = sample::run("skips");
        let header = Header { notes: vec!["forked".into()], ..sample::header(&run) };
        let mut writer = EventWriter::create(&run, &header).unwrap();
        let mut told = |update: u64, level: Level, message: String| {
            writer.append(&Event::Alert(Alert { update, time: 1.0, level, message })).unwrap();
        };
        for (update, loss) in [(3, "2.5"), (4, "nan"), (5, "inf"), (1400, "-inf")] {
            told(
                update,
                Level::Warning,
                format!("update {update} skipped: loss {loss} and norm {loss}, left alone"),
            );
        }
        told(7, Level::Warning, "the disk is full".into());
        told(7, Level::Info, "optimizer state from adamw to adafactor".into());
        let record = Record::read(&run).unwrap();
        let summary = build(&record, Finish::so_far(&record)).unwrap();
        let lines: Vec<_> = summary.warnings.iter().map(|alert| (alert.update, &*alert.message)).collect();
        let first = "update 3 skipped: loss 2.5 and norm 2.5, left alone (3 more like this, the last at update 1,400)";
        assert_eq!(lines, [(3, first), (7, "the disk is full")]);
        assert_eq!(summary.notes, ["forked", "optimizer state from adamw to adafactor"]);
    }

    #[test]
    fn a_run_stands_as_queued_live_crashed_or_ended() {
        let (_folder, run) = sample::run("standing");
        assert!(Standing::read(&run).unwrap_err().to_string().contains("queued"));
        let lock = RunLock::acquire(&run).unwrap();
        assert!(Standing::read(&run).unwrap_err().to_string().contains("still starting"));
        let mut writer = EventWriter::create(&run, &sample::header(&run)).unwrap();
        writer.append(&sample::update(5, 2.0)).unwrap();
        let live = Standing::read(&run).unwrap();
        assert_eq!((live.state, live.summary.updates, live.summary.tokens), (State::Live, 5, 2560));
        assert_eq!(live.json().unwrap()["reason"], Value::Null);
        drop(lock);
        std::fs::write(run.worker_log(), "Killed\n").unwrap();
        let crashed = Standing::read(&run).unwrap();
        assert_eq!((crashed.state, &crashed.log[..]), (State::Crashed, &["Killed".to_owned()][..]));
        let json = crashed.json().unwrap();
        assert_eq!((json["state"].as_str(), json["log"][0].as_str()), (Some("crashed"), Some("Killed")));
        let ended = RunEnded { reason: Reason::Failed, message: Some("no".into()), summary: live.summary };
        writer.append(&Event::RunEnded(Box::new(ended))).unwrap();
        let ended = Standing::read(&run).unwrap();
        assert_eq!((ended.state, ended.problem.as_deref()), (State::Failed, Some("no")));
    }

    #[test]
    fn a_worker_that_died_before_its_first_line_is_told_with_its_last_words() {
        let (_folder, run) = sample::run("early");
        drop(RunLock::acquire(&run).unwrap());
        std::fs::write(run.worker_log(), "corpus.txt is empty\n").unwrap();
        let text = Standing::read(&run).unwrap_err().to_string();
        assert!(text.contains("corpus.txt is empty"), "{text}");
    }
}
