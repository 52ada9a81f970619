//! Starting a run: its folder and its worker process.

use std::{
    fs::File,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
    time::{Duration, Instant},
};

use anyhow::Context;

use super::{
    Home, RunDir, RunError, checkpoint, death, last,
    libtorch::{self, Chosen, LibtorchError},
    list::Lister,
    lock, own,
    queue::Queue,
    reaper,
    script::{self, Given},
    weights,
};
use crate::{
    config::{
        DeviceName, NamePattern, Precision, Resolved, Task, Tokenizer, TrainConfig, change,
        file_kind::{self, Layout},
        own as own_task, validate,
    },
    ledger,
};

/// How long a new worker may take to hold its run's lock.
pub(super) const START: Duration = Duration::from_secs(20);
/// Time between two looks.
const POLL: Duration = Duration::from_millis(10);
/// Lines of the worker's log in an error.
const LOG_LINES: usize = 3;

/// Makes a run's folder and starts its worker, a process of its own that writes to `worker.log` and outlives this
/// one. Returns once the worker holds the run's lock.
///
/// # Errors
/// The weights to start from are not the model's, the folder cannot be written, the process cannot be started, or it
/// ends before it holds the lock.
pub fn start(home: &Home, resolved: &Resolved, name: &str) -> anyhow::Result<RunDir> {
    start_with(home, resolved, name, &[])
}

/// The same for a run that is given these commands.
///
/// # Errors
/// The same, or the settings that they change do not go together.
pub fn start_with(
    home: &Home,
    resolved: &Resolved,
    name: &str,
    commands: &[Given],
) -> anyhow::Result<RunDir> {
    script::check(resolved, commands)?;
    let (resolved, program) = prepare(resolved, libtorch::choose)?;
    let run = RunDir::create(home, name, &resolved)?;
    if !commands.is_empty() {
        script::write(&run, commands)?;
    }
    begin(&run, &program)?;
    Ok(run)
}

/// A run in a folder that `create` makes, whatever its weights come from.
pub(super) fn start_in(
    resolved: Resolved,
    create: impl FnOnce(&Resolved) -> Result<RunDir, RunError>,
) -> anyhow::Result<RunDir> {
    let (resolved, program) = settle(resolved, libtorch::choose)?;
    let run = create(&resolved)?;
    begin(&run, &program)?;
    Ok(run)
}

/// The same at the end of the line.
pub(super) fn queue_in(
    home: &Home,
    resolved: Resolved,
    create: impl FnOnce(&Resolved) -> Result<RunDir, RunError>,
) -> anyhow::Result<RunDir> {
    let (resolved, _) = settle(resolved, libtorch::choose)?;
    let run = create(&resolved)?;
    line_up(home, std::slice::from_ref(&run))?;
    Ok(run)
}

/// At the end of the line, and something there that starts them.
fn line_up(home: &Home, runs: &[RunDir]) -> anyhow::Result<()> {
    let queue = Queue::of(home);
    queue.add(runs)?;
    queue.wake()
}

/// Puts runs at the end of the line, in this order, and sees to it that something starts them. Their folders exist when
/// this returns.
///
/// # Errors
/// One of them could not start as things are now (then none is queued), or the folder cannot be written.
pub fn queue(home: &Home, drafts: &[(Resolved, String)]) -> anyhow::Result<Vec<RunDir>> {
    // Asking the program that links libtorch takes seconds: once a device is enough.
    let mut known: Vec<(DeviceName, Chosen)> = Vec::new();
    let mut choose = |device| {
        if let Some((_, chosen)) = known.iter().find(|(asked, _)| *asked == device) {
            return Ok(chosen.clone());
        }
        let chosen = libtorch::choose(device)?;
        known.push((device, chosen.clone()));
        Ok(chosen)
    };
    let prepared =
        drafts.iter().map(|(resolved, _)| prepare(resolved, &mut choose)).collect::<Result<Vec<_>, _>>()?;
    let mut runs = Vec::with_capacity(drafts.len());
    for ((resolved, _), (_, name)) in prepared.iter().zip(drafts) {
        runs.push(RunDir::create(home, name, resolved)?);
    }
    line_up(home, &runs)?;
    Ok(runs)
}

/// Starts the worker of a run that was queued; returns once it holds the run's lock, or has ended.
///
/// # Errors
/// Its device is not here any more, the process cannot be started, or it ends before it holds the lock.
pub fn begin_queued(run: &RunDir) -> anyhow::Result<()> {
    let config = run.config()?;
    own_task::present(&config)?;
    begin(run, &libtorch::choose_for(&config, libtorch::choose)?.program)
}

/// Everything that can be found out before there is a run: the settings that its folder keeps, and the program that
/// becomes its worker.
fn prepare(
    resolved: &Resolved,
    choose: impl FnOnce(DeviceName) -> Result<Chosen, LibtorchError>,
) -> anyhow::Result<(Resolved, PathBuf)> {
    validate::trainable(&resolved.config)?;
    let mut resolved = resolved.clone();
    // Whatever is wrong with the weights is told before there is a run to show it in.
    if let Some(plan) = weights::plan(&resolved.config.model)? {
        resolved.notes.extend(plan.notes());
    }
    settle(resolved, choose)
}

/// The same but for the weights, which may come from a checkpoint.
fn settle(
    resolved: Resolved,
    choose: impl FnOnce(DeviceName) -> Result<Chosen, LibtorchError>,
) -> anyhow::Result<(Resolved, PathBuf)> {
    let mut resolved = with_whole_paths(resolved)?;
    let Chosen { program, device, notes: chosen } = libtorch::choose_for(&resolved.config, choose)?;
    resolved.config.train.device = device;
    let more = notes(&resolved);
    resolved.notes.extend(chosen.into_iter().chain(more));
    Ok((resolved, program))
}

/// Starts a worker that goes on with a run where it stood, with these settings changed. Returns once it has said in the
/// record that it does; what it says begins at the byte returned, beside which stands what a person should know of the
/// choice of its program. `presses` counts interrupts: of the first whoever follows the run tells the worker, the second ends it.
///
/// # Errors
/// The run is live or finished, a setting cannot be changed, or the worker ends before it goes on.
pub fn resume(run: &RunDir, set: &[String], presses: &AtomicUsize) -> anyhow::Result<(u64, Vec<String>)> {
    if lock::is_live(run) {
        return Err(RunError::Locked(run.id().to_owned()).into());
    }
    let (before, entry) = (run.config()?, Lister::default().entry(run));
    let now = before.changed(&run.explicit()?, set)?.config;
    change::on_resume(&before, &now)?;
    // How many updates other epochs make is known once the data is read.
    let known = entry.total_updates.filter(|_| now.train.epochs == before.train.epochs);
    let total = now.train.max_updates.or(known);
    // One that died in its last validation or checkpoint still has to end, and one that could not write its last checkpoint has
    // lost what it made since the one before.
    let over =
        entry.reason.is_some_and(|reason| reason.is_complete() || checkpoint::reaches(run, entry.update));
    if let Some(total) = total.filter(|&total| over && total > 0 && entry.update >= total) {
        return Err(RunError::AllMade { run: run.id().to_owned(), made: entry.update, total }.into());
    }
    let Chosen { program, device, notes } = libtorch::choose_for(&now, libtorch::choose)?;
    let mut arguments = vec!["--resume".to_owned()];
    arguments.extend(set.iter().map(|setting| format!("--set={setting}")));
    if device != now.train.device {
        arguments.push(format!("--set=train.device={device}"));
    }
    let length = || std::fs::metadata(run.events()).map_or(0, |file| file.len());
    let from = length();
    let mut child = spawn(run, &program, &arguments)?;
    while length() <= from {
        if presses.load(Relaxed) > 1 {
            // It may just have ended.
            let _ = child.kill();
        }
        if let Some(status) = child.try_wait().context("cannot look after the worker")?
            && length() <= from
        {
            return Err(ended_at_once(run, status));
        }
        std::thread::sleep(POLL);
    }
    reaper::look_after(child, run);
    Ok((from, notes))
}

fn begin(run: &RunDir, program: &Path) -> anyhow::Result<()> {
    let mut child = spawn(run, program, &[])?;
    let until = Instant::now() + START;
    while !lock::is_live(run) {
        if let Some(status) = child.try_wait().context("cannot look after the worker")? {
            // A run that is over already has said in its record how it went; who follows one that was deleted says that.
            if status.success() || run.events().exists() || !run.path().exists() {
                return Ok(());
            }
            death::died(run, child.id(), status);
            return Err(ended_at_once(run, status));
        }
        if Instant::now() > until {
            anyhow::bail!(
                "the worker of run {} does not start; see {}",
                run.id(),
                run.worker_log().display()
            );
        }
        std::thread::sleep(POLL);
    }
    reaper::look_after(child, run);
    Ok(())
}

fn ended_at_once(run: &RunDir, status: ExitStatus) -> anyhow::Error {
    let log = last::log_tail(&run.worker_log(), LOG_LINES).join("; ");
    let said = match log.is_empty() {
        true if death::disk_is_full(run) => "the disk of its folder is full, make room there".to_owned(),
        true => "its log is empty".to_owned(),
        false => log,
    };
    anyhow::anyhow!("the worker of run {} ended at once ({status}): {said}", run.id())
}

/// What a person who set something by hand would want to know.
fn notes(resolved: &Resolved) -> Vec<String> {
    let (config, explicit) = (&resolved.config, &resolved.explicit);
    let parameters = ledger::parameters(&config.model);
    let matches = |pattern: &String| {
        NamePattern::new(pattern)
            .is_ok_and(|pattern| parameters.iter().any(|parameter| pattern.matches(&parameter.name)))
    };
    let by_hand = explicit.contains_key("optimizer.no_decay");
    let idle = config.optimizer.no_decay.iter().filter(|pattern| by_hand && !matches(pattern));
    let mut notes: Vec<String> = idle
        .map(|pattern| format!("optimizer.no_decay: `{pattern}` is the name of no parameter of this model"))
        .collect();
    notes.extend(text(resolved));
    notes.extend(precision(&config.train));
    notes
}

/// How a file of rows is read, or is not.
fn text(resolved: &Resolved) -> Option<String> {
    let (config, explicit) = (&resolved.config, &resolved.explicit);
    let path = config.data.path.as_ref().filter(|_| config.model.arch.task() == Task::LanguageModel)?;
    let name = Path::new(path);
    let layout = file_kind::of(name).1;
    let json = file_kind::extension(&file_kind::unpacked(name).1).is_some_and(|kind| kind == "json");
    let rows = matches!(layout, Layout::Lines | Layout::Delimited(_));
    if json || rows && config.data.field.is_empty() {
        return Some(format!(
            "{path} is trained on as the text it is, with its marks and the names of its columns"
        ));
    }
    (layout == Layout::Text && explicit.contains_key("data.field") && !name.is_dir()).then(|| {
        format!("data.field has no effect: {path} is no .jsonl, .csv or .tsv file, and all of it is text")
    })
}

/// What the chosen types of numbers mean on the chosen device.
fn precision(train: &TrainConfig) -> Option<String> {
    let cuda = matches!(train.device, DeviceName::LibtorchCuda(_));
    match train.precision {
        Precision::Bf16 if train.tf32 => {
            Some("train.tf32 has no effect with train.precision = \"bf16\"".to_owned())
        }
        Precision::Bf16 if !cuda => Some(format!(
            "train.precision = \"bf16\" on {}: a processor computes it in software, slower than f32",
            train.device
        )),
        Precision::F32 if train.tf32 && !cuda => {
            Some(format!("train.tf32 has no effect on {}: only CUDA devices have it", train.device))
        }
        _ => None,
    }
}

/// A relative path means another file in another folder: the record keeps whole paths.
fn with_whole_paths(mut resolved: Resolved) -> anyhow::Result<Resolved> {
    let Resolved { config, explicit, .. } = &mut resolved;
    let tokenizer = match &mut config.data.tokenizer {
        Tokenizer::File(path) => Some(path),
        Tokenizer::Bytes | Tokenizer::Bpe(_) => None,
    };
    let paths = [
        ("data.path", config.data.path.as_mut()),
        ("data.tokenizer", tokenizer),
        ("model.weights", config.model.weights.as_mut()),
    ];
    for (key, path) in paths {
        let Some(path) = path else { continue };
        let whole = std::path::absolute(&*path).context("the path of the present folder is unknown")?;
        *path = whole.display().to_string();
        if let Some(explicit) = explicit.get_mut(key) {
            *explicit = toml::Value::String(path.clone()).to_string();
        }
    }
    Ok(resolved)
}

fn spawn(run: &RunDir, program: &Path, arguments: &[String]) -> anyhow::Result<Child> {
    let path = run.worker_log();
    let log = own::open(&path, File::options().create(true).append(true))
        .with_context(|| format!("cannot write {}", path.display()))?;
    // The worker opens a session of its own, so that no terminal's signals reach it.
    Command::new(program)
        .arg("worker")
        .arg(run.path())
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(log.try_clone().context("cannot share the worker's log")?)
        .stderr(log)
        .spawn()
        .with_context(|| format!("cannot start {}", program.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Layers;

    #[test]
    fn the_record_keeps_whole_paths() {
        let here = std::env::current_dir().unwrap();
        let set = ["data.path=texts", "data.tokenizer=a/tokenizer.json", "model.weights=weights"];
        let given = Layers::new().with_assignments(set).unwrap().resolve().unwrap();
        let whole = with_whole_paths(given).unwrap();
        let at = |path: &str| here.join(path).display().to_string();
        assert_eq!(whole.config.data.path, Some(at("texts")));
        assert_eq!(whole.config.data.tokenizer, Tokenizer::File(at("a/tokenizer.json")));
        assert_eq!(whole.config.model.weights, Some(at("weights")));
        for (key, path) in [("data.path", "texts"), ("model.weights", "weights")] {
            assert_eq!(whole.explicit[key], format!("\"{}\"", at(path)), "{key}");
        }
        let bytes = with_whole_paths(Layers::new().resolve().unwrap()).unwrap();
        assert_eq!(bytes.config.data.tokenizer, Tokenizer::Bytes, "a word, and no path");
    }

    #[test]
    fn weights_of_another_model_leave_no_run_behind() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path());
        let weights = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/parity/formats/single");
        let resolved = Layers::new().with_assignments([format!("model.weights={weights}")]).unwrap();
        let error = start(&home, &resolved.resolve().unwrap(), "other").unwrap_err();
        assert!(error.is::<weights::WeightsError>(), "{error:#}");
        assert!(!home.runs().exists());
    }
}
