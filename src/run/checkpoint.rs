//! Checkpoints on disk: `checkpoints/<update>/` with `model.safetensors`, `optimizer.safetensors` and
//! `checkpoint.json`. A folder appears whole or not at all.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use super::{RunDir, RunError, atomic, bounded};

/// A checkpoint that is complete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    /// Updates made when it was written.
    pub update: u64,
    pub path: PathBuf,
}

/// `checkpoint.json`: what is neither a weight nor optimizer state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CheckpointInfo {
    pub schema: u32,
    /// Id of the run that wrote it.
    pub run: String,
    pub update: u64,
    /// Real input tokens trained.
    pub tokens: u64,
    /// Name of the optimizer whose state is stored.
    pub optimizer: String,
    /// Where the data goes on.
    pub cursor: serde_json::Value,
    /// Updates applied to each parameter.
    pub steps: BTreeMap<String, u64>,
}

impl Checkpoint {
    /// Weights under Hugging Face's names.
    pub fn model(&self) -> PathBuf {
        self.path.join("model.safetensors")
    }

    /// Optimizer state under `<parameter>.<state>`.
    pub fn optimizer(&self) -> PathBuf {
        self.path.join("optimizer.safetensors")
    }

    /// Everything else.
    pub fn info_json(&self) -> PathBuf {
        self.path.join("checkpoint.json")
    }

    /// What `checkpoint.json` says.
    ///
    /// # Errors
    /// The file cannot be read or is damaged.
    pub fn info(&self) -> Result<CheckpointInfo, RunError> {
        let path = self.info_json();
        let bytes =
            bounded::read(&path, bounded::LONGEST_FILE).map_err(RunError::io("cannot read", &path))?;
        serde_json::from_slice(&bytes).map_err(|error| RunError::Damaged { path, problem: error.to_string() })
    }
}

/// Every complete checkpoint of a run, oldest first.
///
/// # Errors
/// The folder exists and cannot be read.
pub fn checkpoints(run: &RunDir) -> Result<Vec<Checkpoint>, RunError> {
    let folder = run.checkpoints();
    let entries = match fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(RunError::io("cannot read", &folder)(error)),
    };
    let mut found = Vec::new();
    for entry in entries {
        let path = entry.map_err(RunError::io("cannot read", &folder))?.path();
        let update = path.file_name().and_then(|name| name.to_str()).and_then(|name| name.parse().ok());
        if let Some(update) = update {
            let checkpoint = Checkpoint { update, path };
            if checkpoint.info_json().is_file() {
                found.push(checkpoint);
            }
        }
    }
    found.sort_by_key(|checkpoint| checkpoint.update);
    Ok(found)
}

/// The checkpoint of the most updates.
///
/// # Errors
/// The folder exists and cannot be read.
pub fn latest_checkpoint(run: &RunDir) -> Result<Option<Checkpoint>, RunError> {
    Ok(checkpoints(run)?.pop())
}

/// Removes all but the newest `keep` checkpoints (at least one stays) and what a dead worker left half written.
/// Returns the updates whose checkpoints were removed. Only the worker that holds the run's lock may call this.
///
/// # Errors
/// A folder cannot be removed.
pub fn prune(run: &RunDir, keep: usize) -> Result<Vec<u64>, RunError> {
    let folder = run.checkpoints();
    let remove = |path: &Path| fs::remove_dir_all(path).map_err(RunError::io("cannot remove", path));
    let mut found = checkpoints(run)?;
    found.truncate(found.len().saturating_sub(keep.max(1)));
    for checkpoint in &found {
        // Renamed first: a removal that stops half way must not leave something that looks complete.
        let aside = folder.join(format!(".{:08}.tmp-old", checkpoint.update));
        fs::rename(&checkpoint.path, &aside).map_err(RunError::io("cannot remove", &checkpoint.path))?;
        remove(&aside)?;
    }
    if let Ok(entries) = fs::read_dir(&folder) {
        for entry in entries.flatten() {
            if atomic::is_temporary(&entry.file_name().to_string_lossy()) {
                remove(&entry.path())?;
            }
        }
    }
    Ok(found.into_iter().map(|checkpoint| checkpoint.update).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::sample;

    fn write(run: &RunDir, update: u64) {
        let folder = run.checkpoint(update);
        fs::create_dir_all(&folder).unwrap();
        let info = CheckpointInfo {
            schema: 1,
            run: run.id().into(),
            update,
            tokens: 512 * update,
            optimizer: "adamw".into(),
            cursor: serde_json::json!({"epoch": 1}),
            steps: BTreeMap::from([("model.norm.weight".into(), update)]),
        };
        fs::write(folder.join("checkpoint.json"), serde_json::to_vec(&info).unwrap()).unwrap();
    }

    #[test]
    fn the_latest_is_that_of_the_most_updates_and_is_complete() {
        let (_folder, run) = sample::run("checkpoints");
        assert_eq!(latest_checkpoint(&run).unwrap(), None);
        for update in [10, 200, 100_000_000] {
            write(&run, update);
        }
        fs::create_dir_all(run.checkpoint(300_000_000)).unwrap();
        let latest = latest_checkpoint(&run).unwrap().unwrap();
        assert_eq!((latest.update, latest.info().unwrap().tokens), (100_000_000, 51_200_000_000));
        let updates: Vec<_> = checkpoints(&run).unwrap().iter().map(|c| c.update).collect();
        assert_eq!(updates, [10, 200, 100_000_000]);
    }

    #[test]
    fn pruning_keeps_the_newest_and_sweeps_what_was_left_half_written() {
        let (_folder, run) = sample::run("prune");
        for update in [1, 2, 3, 4] {
            write(&run, update);
        }
        fs::create_dir(run.checkpoints().join(".00000005.tmp-1-0")).unwrap();
        assert_eq!(prune(&run, 2).unwrap(), [1, 2]);
        assert_eq!(prune(&run, 0).unwrap(), [3], "one always stays");
        let left = fs::read_dir(run.checkpoints()).unwrap().count();
        assert_eq!((left, latest_checkpoint(&run).unwrap().unwrap().update), (1, 4));
    }
}
