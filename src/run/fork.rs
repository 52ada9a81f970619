//! A new run from a checkpoint of another one.
//!
//! The checkpoint becomes the fork's first own one, by hard links where the file system has them: so it stays when the
//! other run removes it, and a fork goes on like any other run. Its files are never written again.

use std::{collections::BTreeMap, fs, io, path::Path};

use super::{
    Home, RunDir, RunError, atomic,
    checkpoint::{self, Checkpoint, CheckpointInfo},
    dir, launch, weights,
};
use crate::{
    config::{Config, Layers, OptimizerName, Resolved, change, own},
    protocol::Lineage,
};

/// A fork that can be started.
#[derive(Debug)]
pub struct Plan {
    /// What it trains.
    pub resolved: Resolved,
    run: RunDir,
    checkpoint: Checkpoint,
    info: CheckpointInfo,
}

/// Looks at the checkpoint of that update, or the newest one, and puts the changes on top of the configuration that
/// wrote it.
///
/// # Errors
/// There is no such checkpoint, a setting cannot be used, or the weights are not the changed model's.
pub fn plan(run: &RunDir, at: Option<u64>, set: &[String]) -> anyhow::Result<Plan> {
    own::present(&run.config()?)?;
    let (checkpoint, info) = checkpoint::chosen(run, at)?;
    let (config, explicit) = in_force(run, &info)?;
    let resolved = config.changed(&explicit, set)?;
    if resolved.config.model.weights != config.model.weights {
        return Err(RunError::WeightsOfAFork.into());
    }
    // The weights must fit whatever has become of the model; where they once came from does not matter any more.
    let mut model = resolved.config.model.clone();
    model.weights = Some(checkpoint.model().display().to_string());
    weights::plan(&model)?;
    Ok(Plan { resolved, run: run.clone(), checkpoint, info })
}

/// What was set by hand for the run when its checkpoint of that update was written: what the draft of a fork starts
/// from.
///
/// # Errors
/// There is no such checkpoint, or a file of the run cannot be read.
pub fn base(run: &RunDir, update: u64) -> Result<Layers, RunError> {
    let found = checkpoint::checkpoints(run)?.into_iter().find(|checkpoint| checkpoint.update == update);
    let info = match found {
        Some(checkpoint) => checkpoint.info()?,
        None => checkpoint::chosen(run, Some(update))?.1,
    };
    let (config, explicit) = in_force(run, &info)?;
    dir::layers_of(&config, explicit, run.id())
}

/// The configuration that held when a checkpoint was written, and what of it was set by hand. The first checkpoint of a
/// fork was written by another run: there it is what the fork was made with.
fn in_force(run: &RunDir, info: &CheckpointInfo) -> Result<(Config, BTreeMap<String, String>), RunError> {
    let (meta, made) = (run.meta()?, run.made_with()?);
    let inherited = meta.forked_from.is_some_and(|from| from.update == info.update);
    let config = if inherited { made.clone() } else { info.config.clone() };
    let mut explicit = meta.explicit;
    explicit.extend(change::literals(&made, &config));
    Ok((config, explicit))
}

impl Plan {
    /// Whether a run of so many updates has any left after the fork.
    ///
    /// # Errors
    /// It has none.
    pub fn leaves_something_to_do(&self, total: u64) -> Result<(), RunError> {
        let (run, update) = (self.run.id().to_owned(), self.info.update);
        if update < total { Ok(()) } else { Err(RunError::NothingLeft { run, update, total }) }
    }

    /// What differs from the run it comes from, and what that does to state and data, one sentence each.
    pub fn changes(&self) -> Vec<String> {
        let (before, now) = (&self.info.config, &self.resolved.config);
        let changed = before.differences(now);
        let mut said: Vec<String> =
            changed.iter().map(|(key, was, is)| format!("{key}: {was} -> {is}")).collect();
        if let Some((key, ..)) = changed.iter().find(|(key, ..)| change::restarts_the_data(key)) {
            said.push(format!("{key} is another than before: the data begins at its beginning"));
        }
        let (from, to) = (before.optimizer.name, now.optimizer.name);
        if from != to {
            said.push(format!("optimizer state from {from} to {to}: {}", becomes(from, to)));
        } else if before.train.precision != now.train.precision {
            said.push(
                "optimizer state and parameters go on in f32: only the passes have another precision"
                    .to_owned(),
            );
        }
        said
    }
}

/// What becomes of the state, as `optim::convert` does it; how many tensors it is, the run itself says.
const fn becomes(from: OptimizerName, to: OptimizerName) -> &'static str {
    use OptimizerName::{Adafactor, AdamW, AdamW8bit, Lion, Muon, Sgd};
    match (from, to) {
        (AdamW, AdamW8bit) => "both moments of large tensors are quantised",
        (AdamW8bit, AdamW) => "both moments are what their codes stand for",
        (AdamW | AdamW8bit, Adafactor) => {
            "the second moment goes on by its row and column means, the first is dropped"
        }
        (AdamW | AdamW8bit, Muon) => "matrices of hidden layers start empty, everything else goes on",
        (Muon, AdamW | AdamW8bit | Adafactor) => {
            "what Muon left to AdamW goes on, matrices of hidden layers start empty"
        }
        (Lion | Sgd | Adafactor, _) | (_, Lion | Sgd) => "it has no counterpart and starts empty",
        _ => "it goes on as it is",
    }
}

/// Makes the fork's folder with its first checkpoint and starts its worker. Without a name it is called after what it
/// trains.
///
/// # Errors
/// The folder or the checkpoint in it cannot be written, or the worker does not start.
pub fn start(home: &Home, plan: Plan, name: Option<&str>) -> anyhow::Result<RunDir> {
    begin(home, plan, name, false)
}

/// The same, but it waits at the end of the queue for its turn.
///
/// # Errors
/// The folder, the checkpoint in it or the queue cannot be written.
pub fn queue(home: &Home, plan: Plan, name: Option<&str>) -> anyhow::Result<RunDir> {
    begin(home, plan, name, true)
}

fn begin(home: &Home, plan: Plan, name: Option<&str>, queued: bool) -> anyhow::Result<RunDir> {
    let Plan { resolved, run, checkpoint, info } = plan;
    let name = name.map_or_else(|| resolved.config.run_name(), str::to_owned);
    let from = Lineage {
        run: run.id().to_owned(),
        update: info.update,
        tokens: info.tokens,
        time: info.progress.time,
    };
    let create = |resolved: &Resolved| {
        RunDir::create_fork(home, &name, resolved, from, |folder| bring(&checkpoint, folder))
    };
    if queued { launch::queue_in(home, resolved, create) } else { launch::start_in(resolved, create) }
}

/// Brings the checkpoint into the folder of the fork.
fn bring(checkpoint: &Checkpoint, folder: &Path) -> io::Result<()> {
    let folder = folder.join("checkpoints");
    fs::create_dir(&folder)?;
    atomic::write_new_folder(&folder.join(format!("{:08}", checkpoint.update)), |inside| {
        for file in [checkpoint.model(), checkpoint.optimizer(), checkpoint.info_json()] {
            let Some(name) = file.file_name() else { continue };
            let to = inside.join(name);
            // Another file system, or one without links: a copy does as well.
            if fs::hard_link(&file, &to).is_err() {
                fs::copy(&file, &to)?;
            }
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::sample;

    #[test]
    fn a_fork_takes_any_checkpoint_and_any_change_that_fits_it() {
        let (_folder, run) = sample::run("base");
        for update in [10, 20] {
            sample::checkpoint(&run, update);
        }
        let set = |text: &str| vec![text.to_owned()];
        let newest = plan(&run, None, &[]).unwrap();
        assert_eq!((newest.info.update, newest.changes()), (20, Vec::<String>::new()));
        let eight = plan(&run, Some(10), &set("optimizer.name=adamw8bit")).unwrap();
        assert_eq!(eight.info.update, 10);
        assert!(
            eight.changes().iter().any(|said| said.ends_with("both moments of large tensors are quantised"))
        );
        assert!(eight.leaves_something_to_do(11).is_ok() && eight.leaves_something_to_do(10).is_err());
        let half = plan(&run, None, &set("train.precision=bf16")).unwrap().changes();
        assert!(half.iter().any(|said| said.contains("go on in f32")), "{half:?}");
        let other = plan(&run, None, &set("train.seq_len=32")).unwrap();
        assert!(
            other.changes().iter().any(|said| said.contains("begins at its beginning")),
            "{:?}",
            other.changes()
        );
        let text = plan(&run, None, &set("model.hidden_size=128")).unwrap_err().to_string();
        assert!(text.contains("shape") || text.contains("hidden_size"), "{text}");
        assert!(plan(&run, Some(11), &[]).unwrap_err().to_string().contains("10, 20"));
    }

    #[test]
    fn the_draft_of_a_fork_has_what_held_when_the_checkpoint_was_written() {
        let (folder, run) = sample::run_with("base", &["optimizer.name=lion"]);
        sample::checkpoint(&run, 10);
        // Resumed with another rate since: that holds for the later checkpoint alone.
        let mut config = run.config().unwrap();
        config.train.max_updates = Some(900);
        fs::write(run.resumed_toml(), config.to_toml().unwrap()).unwrap();
        sample::checkpoint(&run, 20);
        let total = |run: &RunDir, at| base(run, at).unwrap().resolve().unwrap().config.train.max_updates;
        assert_eq!((total(&run, 10), total(&run, 20)), (Some(600), Some(900)));
        let planned = plan(&run, Some(10), &[]).unwrap();
        assert_eq!(planned.resolved.config.train.max_updates, Some(600));
        assert!(!planned.resolved.explicit.contains_key("train.max_updates"));
        assert!(base(&run, 11).unwrap_err().to_string().contains("10, 20"));
        // The first checkpoint of a fork is another run's, its settings are its own.
        let Plan { resolved, checkpoint, info, .. } =
            plan(&run, Some(10), &["clip.max_norm=3".into()]).unwrap();
        let from = Lineage { run: run.id().into(), update: 10, tokens: info.tokens, time: 1.5 };
        let home = Home::at(folder.path());
        let fork = RunDir::create_fork(&home, "fork", &resolved, from, |at| bring(&checkpoint, at)).unwrap();
        assert_eq!(base(&fork, 10).unwrap().resolve().unwrap().config.clip.max_norm, 3.0);
        assert_eq!(plan(&fork, None, &[]).unwrap().resolved.config.clip.max_norm, 3.0);
    }

    #[test]
    fn the_checkpoint_stays_with_the_fork_when_the_other_run_removes_it() {
        let (folder, run) = sample::run("base");
        sample::checkpoint(&run, 10);
        let Plan { resolved, checkpoint, info, .. } = plan(&run, None, &[]).unwrap();
        let from = Lineage { run: run.id().into(), update: 10, tokens: info.tokens, time: 1.5 };
        let home = Home::at(folder.path());
        let fork =
            RunDir::create_fork(&home, "fork", &resolved, from.clone(), |at| bring(&checkpoint, at)).unwrap();
        fs::remove_dir_all(run.path()).unwrap();
        let good = checkpoint::newest_good(&fork).unwrap().unwrap();
        assert_eq!((good.info.update, good.info.run == *run.id()), (10, true));
        assert_eq!(fork.meta().unwrap().forked_from, Some(from));
    }
}
