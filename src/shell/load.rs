//! A thread that reads what is too slow to be read between two frames.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::mpsc::{Sender, SyncSender, channel},
};

use anyhow::Context;

use super::following::Following;
use crate::{
    app::{
        Msg, RunRef,
        form::Origin,
        manage::Relabel,
        runs::{Comparison, Curves, RunRow},
        tensors::History,
    },
    config::Config,
    protocol::Event,
    run::{
        Home, RunDir, RunEntry, RunError, Tail, atomic,
        checkpoint::{checkpoints, latest_checkpoint, none_of},
        checkpoint_view::CheckpointView,
        compare,
        export::{self, Format, NAMES},
        fork, label,
        list::Lister,
        lock, trash,
    },
};

/// Something to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Job {
    Runs,
    Curves {
        run: String,
    },
    /// The optimizer's state in the run's last checkpoint.
    State {
        run: String,
    },
    Detail {
        run: String,
        tensor: String,
        width: usize,
    },
    /// What the record says of one parameter.
    History {
        run: String,
        tensor: String,
    },
    Compare {
        runs: Vec<String>,
    },
    Export {
        run: String,
        format: String,
    },
    /// The checkpoints of a run that is to be forked.
    Checkpoints {
        run: String,
    },
    /// What the draft of a fork starts from.
    ForkBase {
        run: String,
        update: u64,
    },
    /// Give a run another name, or write a note on it.
    Relabel {
        run: String,
        label: Relabel,
    },
    /// Which of these have a worker.
    Alive {
        runs: Vec<RunRef>,
    },
    /// Move a run to the trash folder.
    Delete {
        run: String,
    },
}

/// The thread's handle; dropping it ends the thread once its queue is empty.
#[derive(Debug)]
pub struct Loader {
    jobs: Sender<Job>,
}

impl Loader {
    /// Starts the thread. Its messages carry number 0: they belong to no watched run.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn start(home: Home, messages: SyncSender<(u64, Msg)>) -> std::io::Result<Self> {
        let (jobs, queue) = channel();
        std::thread::Builder::new().name("load".into()).spawn(move || {
            let mut reader = Reader::new(home);
            for job in queue {
                if messages.send((0, reader.read(job))).is_err() {
                    return;
                }
            }
        })?;
        Ok(Self { jobs })
    }

    /// Queues something to read.
    pub fn ask(&self, job: Job) {
        // The thread ends only after this handle.
        let _ = self.jobs.send(job);
    }
}

/// Reads one thing after the other, and remembers what it would otherwise read again.
pub(super) struct Reader {
    home: Home,
    lister: Lister,
    following: Following,
    /// A run's configuration never changes: it is read once.
    configs: BTreeMap<String, Option<Config>>,
}

impl Reader {
    pub(super) fn new(home: Home) -> Self {
        Self { home, lister: Lister::default(), following: Following::default(), configs: BTreeMap::new() }
    }

    pub(super) fn read(&mut self, job: Job) -> Msg {
        match job {
            Job::Runs => match self.lister.list(&self.home) {
                Ok(entries) => {
                    let newest = entries.first().and_then(|entry| self.config(entry));
                    let mut rows: Vec<RunRow> = entries.into_iter().map(row).collect();
                    if let Some(first) = rows.first_mut() {
                        first.config = newest;
                    }
                    Msg::Runs(rows)
                }
                Err(error) => Msg::Failed(error.to_string()),
            },
            Job::Curves { run } => match self.curves(&run) {
                Ok(curves) => Msg::Curves { run, curves },
                Err(error) => Msg::Failed(error.to_string()),
            },
            Job::State { run } => {
                let report = self.checkpoint(&run).and_then(|view| view.report(|_| true));
                Msg::State { run, report: report.map_err(|error| error.to_string()) }
            }
            Job::Detail { run, tensor, width } => {
                let detail = self.checkpoint(&run).and_then(|view| view.detail(&tensor, width));
                Msg::Detail { run, detail: detail.map(Box::new).map_err(|error| error.to_string()) }
            }
            Job::History { run, tensor } => {
                let history = self.history(&run, &tensor).map_err(|error| error.to_string());
                Msg::History { run, tensor, history }
            }
            Job::Compare { runs } => Msg::Comparison(self.compare(runs).map_err(|error| error.to_string())),
            Job::Checkpoints { run } => {
                let (name, found) = self.checkpoints(&run);
                Msg::Checkpoints { run, name, found: found.map_err(|error| error.to_string()) }
            }
            Job::ForkBase { run, update } => {
                let found = RunDir::resolve(&self.home, &run);
                let name = found.as_ref().map_or_else(|_| run.clone(), RunDir::name);
                let base = found.and_then(|run| fork::base(&run, update));
                let base = base.map(Box::new).map_err(|error| error.to_string());
                Msg::ForkBase { origin: Origin { run, name, update }, base }
            }
            Job::Relabel { run, label } => match self.relabel(&run, &label) {
                Ok(told) => Msg::Done(told),
                Err(error) => Msg::Failed(error.to_string()),
            },
            Job::Alive { runs } => {
                let live = |run: &RunRef| RunDir::open(&run.path).is_ok_and(|run| lock::is_live(&run));
                Msg::Others { live: runs.into_iter().filter(live).map(|run| run.id).collect() }
            }
            Job::Delete { run } => {
                let found = RunDir::resolve(&self.home, &run);
                match found.and_then(|run| trash::discard(&self.home, &run)) {
                    Ok(path) => Msg::Deleted { run, told: format!("moved to {}", path.display()) },
                    Err(error) => Msg::Failed(error.to_string()),
                }
            }
            Job::Export { run, format } => match self.export(&run, &format) {
                Ok(path) => Msg::Done(format!("written: {}", path.display())),
                Err(error) => Msg::Failed(format!("{error:#}")),
            },
        }
    }

    /// The run's name, and the updates of its checkpoints.
    fn checkpoints(&self, id: &str) -> (String, Result<Vec<u64>, RunError>) {
        let run = match RunDir::resolve(&self.home, id) {
            Ok(run) => run,
            Err(error) => return (id.to_owned(), Err(error)),
        };
        let updates = checkpoints(&run)
            .map(|found| found.into_iter().map(|checkpoint| checkpoint.update).collect::<Vec<_>>())
            .and_then(|updates| if updates.is_empty() { Err(none_of(&run)) } else { Ok(updates) });
        (run.name(), updates)
    }

    fn relabel(&self, id: &str, what: &Relabel) -> Result<String, RunError> {
        let run = RunDir::resolve(&self.home, id)?;
        let before = run.name();
        match what {
            Relabel::Name(name) => {
                label::rename(&run, name)?;
                Ok(format!("{before} is now called {}", name.trim()))
            }
            Relabel::Note(note) => {
                label::annotate(&run, note)?;
                Ok(if note.is_empty() {
                    format!("no note on {before} any more")
                } else {
                    format!("noted on {before}")
                })
            }
        }
    }

    fn checkpoint(&self, id: &str) -> Result<CheckpointView, RunError> {
        let run = RunDir::resolve(&self.home, id)?;
        let newest = latest_checkpoint(&run)?.ok_or_else(|| none_of(&run))?;
        CheckpointView::open(&newest)
    }

    fn compare(&self, ids: Vec<String>) -> Result<Comparison, RunError> {
        let runs: Vec<RunDir> =
            ids.iter().map(|id| RunDir::resolve(&self.home, id)).collect::<Result<_, _>>()?;
        let compared = compare::compare(&runs)?;
        Ok(Comparison {
            runs: ids,
            differences: compared.differences.iter().map(|one| (one.key.clone(), one.told())).collect(),
            verdict: compared.verdict.text,
        })
    }

    /// Writes the run in that format into its own folder and returns the file.
    fn export(&self, id: &str, name: &str) -> anyhow::Result<PathBuf> {
        let run = RunDir::resolve(&self.home, id)?;
        let Some(format) = Format::named(name) else { return folder(&run, name) };
        let ending = if format == Format::Commands { "toml" } else { name };
        let path = run.path().join(format!("export.{ending}"));
        atomic::stream_file(&path, |out| export::write(&run, format, out, &mut |_, _| {}))
            .with_context(|| format!("cannot write {}", path.display()))?;
        Ok(path)
    }

    fn config(&mut self, entry: &RunEntry) -> Option<Config> {
        let read = || RunDir::open(&entry.path).and_then(|run| run.config()).ok();
        self.configs.entry(entry.run.clone()).or_insert_with(read).clone()
    }

    fn curves(&mut self, id: &str) -> anyhow::Result<Curves> {
        Ok(self.following.curves(&RunDir::resolve(&self.home, id)?)?)
    }

    fn history(&self, id: &str, tensor: &str) -> anyhow::Result<Box<History>> {
        let run = RunDir::resolve(&self.home, id)?;
        let mut history = History::default();
        Tail::open(&run).each(u64::MAX, |event| match &event {
            Event::State(report) => history.push(tensor, report),
            Event::Resumed(resumed) => history.truncate(resumed.from_update),
            _ => {}
        })?;
        Ok(Box::new(history))
    }
}

/// Writes an export that is a folder into the run's own and returns it. One that is there already may be in use.
fn folder(run: &RunDir, name: &str) -> anyhow::Result<PathBuf> {
    let path = run.path().join(format!("export-{name}"));
    if !NAMES.iter().any(|(known, _)| *known == name) {
        let names: Vec<&str> = NAMES.iter().map(|(known, _)| *known).collect();
        anyhow::bail!("`{name}` is no format: there are {}", names.join(", "));
    }
    if path.symlink_metadata().is_ok() {
        anyhow::bail!("{} is there already: remove it, or export with -o to another place", path.display());
    }
    if name == "safetensors" {
        export::safetensors::write(run, None, &path)?;
    } else {
        let fill = |folder: &Path| export::tensorboard::write(run, folder, &mut |_, _| {}).map(drop);
        atomic::write_folder(&path, fill).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(path)
}

fn row(entry: RunEntry) -> RunRow {
    RunRow {
        id: entry.run,
        name: entry.name,
        note: entry.note,
        forked_from: entry.forked_from,
        state: entry.state.as_str().to_owned(),
        update: entry.update,
        total: entry.total_updates,
        optimizer: entry.optimizer,
        batch: entry.micro_batch.zip(entry.accumulate),
        config: None,
        train_loss: entry.final_train_loss,
        val_loss: entry.final_val_loss,
        measured_on: entry.measured_on,
        state_bytes: entry.state_bytes,
        peak: entry.peak_bytes.zip(entry.peak_source),
        tokens_per_second: entry.tokens_per_second,
        problem: entry.problem,
        resume_command: entry.resume_command,
    }
}
