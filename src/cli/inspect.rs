//! `tui-train inspect RUN`: the optimizer's state, tensor by tensor. A live run is asked; of any other the last
//! checkpoint is read.

use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use globset::GlobBuilder;
use serde_json::json;

use super::{output, progress::Waiting};
use crate::{
    ledger,
    protocol::{Answer, Command, SCHEMA, StateReport, StateTensor, TensorStats, state::figures},
    run::{
        Client, Home, Record, RunDir, RunError,
        checkpoint::{Checkpoint, latest_checkpoint, none_of},
        checkpoint_view::{CheckpointView, nearest},
        is_live,
        table::Table,
        text::{bytes, count, dash, number, shape},
    },
};

/// A worker answers between two micro-batches.
const PATIENCE: Duration = Duration::from_secs(60);

/// Which run, which tensors, and how to print them.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Id, unique prefix, name, path, or `latest`
    #[arg(value_name = "RUN")]
    run: String,
    /// Only parameters whose name matches, such as 'model.layers.0.*'
    #[arg(long, value_name = "GLOB")]
    tensor: Option<String>,
    /// As JSON
    #[arg(long)]
    json: bool,
}

/// Prints one row a state tensor.
///
/// # Errors
/// The run cannot be found, no parameter matches, or there is nothing to read.
pub fn run(args: Args) -> anyhow::Result<i32> {
    let run = RunDir::resolve(&Home::from_env()?, &args.run)?;
    let wanted = Wanted::new(args.tensor.as_deref())?;
    let waiting = Waiting::on("reading the state");
    let (source, report) = read(&run, &wanted)?;
    drop(waiting);
    if args.json {
        output::json(&as_json(&run, &source, &report))
    } else {
        output::text(&page(&source, &report))
    }
}

/// The names that the pattern chooses.
struct Wanted {
    pattern: String,
    glob: Option<globset::GlobMatcher>,
}

impl Wanted {
    fn new(pattern: Option<&str>) -> anyhow::Result<Self> {
        let glob = pattern
            .map(|pattern| GlobBuilder::new(pattern).literal_separator(false).build())
            .transpose()
            .context("--tensor is not a pattern")?;
        let glob = glob.map(|glob| glob.compile_matcher());
        Ok(Self { pattern: pattern.unwrap_or_default().to_owned(), glob })
    }

    fn chooses(&self, name: &str) -> bool {
        self.glob.as_ref().is_none_or(|glob| glob.is_match(name))
    }

    /// The names among these that are chosen.
    fn of<'a>(&self, names: impl Iterator<Item = &'a str> + Clone) -> Result<Vec<String>, RunError> {
        let chosen: Vec<_> = names.clone().filter(|name| self.chooses(name)).map(str::to_owned).collect();
        if chosen.is_empty() {
            let plain = self.pattern.replace(['*', '?', '[', ']', '{', '}'], "");
            return Err(RunError::NoTensor {
                pattern: self.pattern.clone(),
                nearest: nearest(&plain, names),
            });
        }
        Ok(chosen)
    }
}

/// Where the figures come from: the live run, a checkpoint, or the record of a loop of its own, which keeps none.
enum Source {
    Live,
    Checkpoint(Checkpoint),
    Record,
}

fn read(run: &RunDir, wanted: &Wanted) -> anyhow::Result<(Source, StateReport)> {
    let asked = if is_live(run) { Some(ask(run, wanted)) } else { None };
    let stored = latest_checkpoint(run)?;
    match (asked, stored) {
        (Some(Ok(report)), _) => Ok((Source::Live, report)),
        (Some(Err(error)), _) if error.is::<RunError>() && is_no_tensor(&error) => Err(error),
        (Some(Err(error)), None) => Err(error),
        (Some(Err(error)), Some(checkpoint)) => {
            let update = count(checkpoint.update);
            output::message(&format!("{error:#}; this is the checkpoint of update {update} instead"));
            stored_report(checkpoint, wanted)
        }
        (None, Some(checkpoint)) => stored_report(checkpoint, wanted),
        (None, None) => match none_of(run) {
            RunError::OwnLoop { .. } => recorded(run, wanted),
            none => Err(none.into()),
        },
    }
}

fn is_no_tensor(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(RunError::NoTensor { .. }))
}

fn ask(run: &RunDir, wanted: &Wanted) -> anyhow::Result<StateReport> {
    let parameters = ledger::parameters(&run.config()?.model);
    let names = wanted.of(parameters.iter().map(|parameter| parameter.name.as_str()))?;
    let mut client = Client::connect(run).map_err(|error| match error {
        // Its lock is held, so the run is live.
        RunError::NotLive(run) => {
            anyhow!("the worker of run {run} does not listen, it may still be starting")
        }
        other => other.into(),
    })?;
    match client.ask(Command::Inspect { names }, PATIENCE)? {
        Answer::State(report) => Ok(report),
        Answer::Rejected { why } => bail!("run {} does not show its state: {why}", run.id()),
        _ => bail!("run {} gave an answer that is none to `inspect`", run.id()),
    }
}

fn stored_report(checkpoint: Checkpoint, wanted: &Wanted) -> anyhow::Result<(Source, StateReport)> {
    let view = CheckpointView::open(&checkpoint)?;
    let names: Vec<&str> = view.names().collect();
    let chosen = wanted.of(names.iter().copied())?;
    let report = view.report(|name| chosen.iter().any(|chosen| chosen == name))?;
    Ok((Source::Checkpoint(checkpoint), report))
}

/// What a loop of its own told last.
fn recorded(run: &RunDir, wanted: &Wanted) -> anyhow::Result<(Source, StateReport)> {
    let Some(mut report) = Record::read(run)?.state else {
        bail!(
            "run {} was trained by a loop of its own, which told nothing of its optimizer's state: give it to \
             `Recorder::state` there",
            run.id()
        );
    };
    let chosen = wanted.of(report.tensors.iter().map(|tensor| tensor.name.as_str()))?;
    report.tensors.retain(|tensor| chosen.contains(&tensor.name));
    Ok((Source::Record, report))
}

fn as_json(run: &RunDir, source: &Source, report: &StateReport) -> serde_json::Value {
    let mut value = json!({
        "schema": SCHEMA,
        "run": run.id(),
        "source": match source {
            Source::Live => "live",
            Source::Checkpoint(_) => "checkpoint",
            Source::Record => "record",
        },
        "update": report.update,
        "optimizer": report.optimizer,
        "state_elements": report.elements(),
        "state_bytes": report.bytes(),
        "tensors": report.tensors,
    });
    if !report.shared.is_empty() {
        value["shared"] = json!(report.shared);
    }
    value
}

fn page(source: &Source, report: &StateReport) -> String {
    let from = match source {
        Source::Live => "live".to_owned(),
        Source::Checkpoint(checkpoint) => format!("from {}", checkpoint.path.display()),
        Source::Record => "as the loop told it last".to_owned(),
    };
    let mut table = Table::new(&[
        "parameter",
        "shape",
        ">step",
        "state",
        "shape",
        "dtype",
        ">bytes",
        ">rms",
        ">min",
        ">max",
        ">zeros",
        ">not finite",
    ]);
    for tensor in &report.tensors {
        let head = [tensor.name.clone(), shape(&tensor.shape), count(tensor.step)];
        if tensor.state.is_empty() {
            table.row(head.iter().cloned().chain(["none".to_owned()]));
        }
        for (index, (name, state)) in tensor.state.iter().enumerate() {
            // The parameter stands once, before its first state tensor.
            let head = if index == 0 { head.clone() } else { Default::default() };
            table.row(head.into_iter().chain(cells(name, state)));
        }
    }
    for (index, (name, state)) in report.shared.iter().enumerate() {
        let head = if index == 0 { "(shared by all)" } else { "" };
        table.row([head.to_owned(), String::new(), String::new()].into_iter().chain(cells(name, state)));
    }
    let measured = measured(report).map(|table| table.aligned() + "\n").unwrap_or_default();
    format!(
        "{} at update {}, {from}\n\n{}\n{measured}{} parameter{}, {} state elements, {}\n",
        report.optimizer,
        count(report.update),
        table.aligned(),
        count(report.tensors.len() as u64),
        if report.tensors.len() == 1 { "" } else { "s" },
        count(report.elements()),
        bytes(report.bytes())
    )
}

/// What the table says of one state tensor, from its name on.
fn cells(name: &str, state: &StateTensor) -> Vec<String> {
    let mut cells = vec![name.to_owned(), shape(&state.shape), state.dtype.clone(), bytes(state.bytes)];
    if state.shape.is_empty() {
        // A number has no statistics: it is what it is.
        cells.push(state.stats.as_ref().map_or_else(dash, |stats| format!("= {}", scalar(stats.max))));
        return cells;
    }
    let stat = |of: fn(&TensorStats) -> String| state.stats.as_ref().map_or_else(dash, of);
    cells.extend([
        stat(|stats| number(stats.rms)),
        stat(|stats| number(stats.min)),
        stat(|stats| number(stats.max)),
        stat(|stats| count(stats.zeros)),
        stat(|stats| count(stats.nonfinite)),
    ]);
    cells
}

/// Heading and name of each figure, in the order of the columns.
const FIGURES: [(&str, &str); 4] = [
    (">factorisation error", figures::FACTORIZATION_ERROR),
    (">8-bit error of m", figures::QUANTIZATION_ERROR_1),
    (">8-bit error of v", figures::QUANTIZATION_ERROR_2),
    (">rows never touched", figures::ROWS_NEVER_TOUCHED),
];

/// The figures of updates, for the parameters that have any; nothing when none has.
fn measured(report: &StateReport) -> Option<Table> {
    let known = |figure: &str| report.tensors.iter().any(|tensor| tensor.figures.contains_key(figure));
    let shown: Vec<_> = FIGURES.into_iter().filter(|(_, figure)| known(figure)).collect();
    let ratios = report.tensors.iter().any(|tensor| tensor.update_ratio.is_some());
    let heading = ["parameter"].into_iter().chain(ratios.then_some(">update/parameter"));
    let mut table = Table::new(&heading.chain(shown.iter().map(|(title, _)| *title)).collect::<Vec<_>>());
    for tensor in &report.tensors {
        if tensor.update_ratio.is_none() && tensor.figures.is_empty() {
            continue;
        }
        let mut row = vec![tensor.name.clone()];
        if ratios {
            row.push(tensor.update_ratio.map_or_else(dash, number));
        }
        row.extend(shown.iter().map(|(_, figure)| match tensor.figures.get(*figure) {
            Some(&value) if *figure == figures::ROWS_NEVER_TOUCHED => {
                let rows: usize = tensor.shape.iter().rev().skip(1).product();
                format!("{} of {}", scalar(value), count(rows as u64))
            }
            Some(&value) => number(value),
            None => dash(),
        }));
        table.row(row);
    }
    (!table.is_empty()).then_some(table)
}

/// A number of the state: a count such as `step` without decimals.
fn scalar(value: f64) -> String {
    if value.fract() == 0.0 && (0.0..1e15).contains(&value) { count(value as u64) } else { number(value) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::{RunLock, sample};

    fn of(run: &RunDir, pattern: Option<&str>) -> anyhow::Result<serde_json::Value> {
        let (source, report) = read(run, &Wanted::new(pattern)?)?;
        assert!(page(&source, &report).contains("state elements"));
        Ok(as_json(run, &source, &report))
    }

    #[test]
    fn a_checkpoint_is_read_and_added_up() {
        let (_folder, run) = sample::run_with("inspect", &["optimizer.name=adafactor"]);
        assert!(of(&run, None).unwrap_err().to_string().contains("no checkpoint"));
        sample::checkpoint(&run, 12);
        let all = of(&run, None).unwrap();
        let ledger = ledger::ledger(&run.config().unwrap());
        assert_eq!(
            (all["state_bytes"].as_u64(), all["update"].as_u64()),
            (Some(ledger.state_bytes), Some(12))
        );
        let one = of(&run, Some("*.0.self_attn.q_proj*")).unwrap();
        assert_eq!(one["tensors"].as_array().unwrap().len(), 1);
        let row = &one["tensors"][0]["state"]["exp_avg_sq_row"];
        assert_eq!(
            (row["shape"][0].as_u64(), row["bytes"].as_u64(), row["zeros"].as_u64()),
            (Some(64), Some(256), Some(1))
        );
        assert_eq!(one["state_elements"], 64 + 64 + 2);
        assert_eq!((scalar(1250.0), scalar(0.5)), ("1,250".into(), "0.5000".into()));
    }

    #[test]
    fn shared_state_and_figures_are_told() {
        let (_folder, run) = sample::run_with("codes", &["optimizer.name=adamw8bit"]);
        sample::checkpoint(&run, 3);
        let (source, mut report) = read(&run, &Wanted::new(None).unwrap()).unwrap();
        let json = as_json(&run, &source, &report);
        let ledger = ledger::ledger(&run.config().unwrap());
        assert_eq!(json["state_bytes"], ledger.state_bytes);
        assert_eq!(
            (&json["shared"]["qmap1"]["bytes"], &json["shared"]["qmap2"]["elements"]),
            (&1024.into(), &256.into())
        );
        assert_eq!(json["tensors"][0]["figures"]["rows_never_touched"], 0.0);
        let text = page(&source, &report);
        assert!(text.contains("(shared by all)") && text.contains("0 of 256"), "{text}");
        assert!(!text.contains("update/parameter") && !text.contains("8-bit error"), "{text}");
        report.tensors[1].update_ratio = Some(1e-3);
        report.tensors[1].figures.insert(figures::QUANTIZATION_ERROR_1.into(), 0.0125);
        let text = page(&source, &report);
        assert!(text.contains("update/parameter") && text.contains("0.01250"), "{text}");
        let plain = sample::run("plain");
        sample::checkpoint(&plain.1, 1);
        assert!(of(&plain.1, None).unwrap().get("shared").is_none());
    }

    #[test]
    fn no_match_names_the_nearest() {
        let (_folder, run) = sample::run("nearest");
        sample::checkpoint(&run, 1);
        let told = of(&run, Some("*.norm.wieght")).unwrap_err();
        assert!(told.to_string().contains("`model.norm.weight`"), "{told}");
        assert_eq!(told.downcast_ref::<RunError>().unwrap().exit_code(), 2);
        assert!(of(&run, Some("[")).is_err());
    }

    #[test]
    fn a_live_run_that_cannot_be_asked_is_read_from_its_checkpoint() {
        let (_folder, run) = sample::run("deaf");
        let _lock = RunLock::acquire(&run).unwrap();
        assert!(of(&run, None).unwrap_err().to_string().contains("does not listen"));
        sample::checkpoint(&run, 4);
        assert_eq!(of(&run, None).unwrap()["source"], "checkpoint");
        let told = of(&run, Some("nothing*")).unwrap_err().to_string();
        assert!(told.contains("no parameter matches"), "{told}");
    }
}
