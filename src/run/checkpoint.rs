//! Checkpoints on disk: `checkpoints/<update>/` with `model.safetensors`, `optimizer.safetensors` and
//! `checkpoint.json`. A folder appears whole or not at all.

mod keep;

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{RunDir, RunError, list::Lister, own};
use crate::{
    config::{Arch, Config},
    protocol::number,
};

pub use keep::{prune, set_aside, sweep};

/// Bytes read at once.
const HASHED_AT_ONCE: usize = 1 << 20;

/// A checkpoint that is complete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    /// Updates made when it was written.
    pub update: u64,
    pub path: PathBuf,
}

/// Version of the files of a checkpoint; another one is refused.
pub const FORMAT: u32 = 2;

/// `checkpoint.json`: what is neither a weight nor optimizer state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CheckpointInfo {
    /// [`FORMAT`].
    #[serde(default)]
    pub format: u32,
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
    pub progress: Progress,
    /// The configuration in force when it was written.
    pub config: Config,
    /// Length and hash of each other file, by its name.
    pub files: BTreeMap<String, FileHash>,
}

/// The counters of a run that go on with it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Progress {
    /// Seconds since the run started, pauses included.
    #[serde(with = "number")]
    pub time: f64,
    /// Seconds of them spent on forward, backward and optimizer.
    #[serde(with = "number")]
    pub busy: f64,
    /// Updates skipped, without one that was made since.
    pub skipped_in_a_row: u64,
    /// A learning rate given by hand that is in force.
    #[serde(with = "number::optional", skip_serializing_if = "Option::is_none")]
    pub learning_rate: Option<f64>,
    /// The update of the last validation.
    pub last_validation: u64,
    /// Loss of a validation after this very update.
    #[serde(with = "number::optional", skip_serializing_if = "Option::is_none")]
    pub val_loss: Option<f64>,
}

/// What a file must be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileHash {
    pub bytes: u64,
    /// In hexadecimal digits, as `sha256sum` prints it.
    pub sha256: String,
}

impl FileHash {
    /// Reads a file through.
    ///
    /// # Errors
    /// It cannot be read, or is no file.
    pub fn of(path: &Path) -> io::Result<Self> {
        let mut file = own::look(path)?;
        let (mut hash, mut block, mut bytes) = (Sha256::new(), vec![0; HASHED_AT_ONCE], 0);
        loop {
            match io::Read::read(&mut file, &mut block) {
                Ok(0) => break,
                Ok(read) => {
                    hash.update(&block[..read]);
                    bytes += read as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        let sha256 = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Self { bytes, sha256 })
    }
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
        let bytes = own::read(&path).map_err(RunError::io("cannot read", &path))?;
        #[derive(Deserialize)]
        struct Version {
            #[serde(default)]
            format: u32,
        }
        let damaged = |problem: String| RunError::Damaged { path: path.clone(), problem };
        let version: Version = serde_json::from_slice(&bytes).map_err(|error| damaged(error.to_string()))?;
        if version.format != FORMAT {
            return Err(damaged(format!(
                "is of checkpoint format {}, and this version of tui-train reads format {FORMAT}: use the version that \
                 wrote it",
                version.format
            )));
        }
        serde_json::from_slice(&bytes).map_err(|error| damaged(error.to_string()))
    }

    /// What `checkpoint.json` says, once every file has been read through and is what it was when it was written.
    ///
    /// # Errors
    /// A file is missing, damaged or of another format; the sentence names it.
    pub fn verified(&self) -> Result<CheckpointInfo, RunError> {
        let info = self.info()?;
        for path in [self.model(), self.optimizer()] {
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            let damaged = |problem: String| RunError::Damaged { path: path.clone(), problem };
            let due =
                info.files.get(&name).ok_or_else(|| damaged("checkpoint.json has no hash of it".into()))?;
            let found = FileHash::of(&path).map_err(RunError::io("cannot read", &path))?;
            if found.bytes != due.bytes {
                return Err(damaged(format!("has {} bytes where {} were written", found.bytes, due.bytes)));
            }
            if found != *due {
                return Err(damaged("is not what was written: its SHA-256 differs".into()));
            }
        }
        Ok(info)
    }
}

/// A checkpoint to go on from.
#[derive(Debug, Clone, PartialEq)]
pub struct Good {
    pub checkpoint: Checkpoint,
    pub info: CheckpointInfo,
    /// The newer ones that cannot be used and why, newest first.
    pub passed_over: Vec<(Checkpoint, String)>,
}

/// The newest checkpoint whose files are what was written; nothing when the run has none at all.
///
/// # Errors
/// The run has checkpoints, and none of them can be used.
pub fn newest_good(run: &RunDir) -> Result<Option<Good>, RunError> {
    let mut passed_over = Vec::new();
    for checkpoint in checkpoints(run)?.into_iter().rev() {
        match checkpoint.verified() {
            Ok(info) => return Ok(Some(Good { checkpoint, info, passed_over })),
            Err(error) => passed_over.push((checkpoint, error.to_string())),
        }
    }
    match passed_over.into_iter().next() {
        Some((_, problem)) => Err(RunError::NoGoodCheckpoint { run: run.id().to_owned(), problem }),
        None => Ok(None),
    }
}

/// There is no checkpoint, which means something else for a run that waits than for one that is live or over.
pub fn none_of(run: &RunDir) -> RunError {
    if let Ok(config) = run.config()
        && config.model.arch == Arch::Loop
    {
        return RunError::OwnLoop { run: run.id().to_owned(), name: config.model.name().to_owned() };
    }
    RunError::NoCheckpoint { run: run.id().to_owned(), state: Lister::default().entry(run).state }
}

/// The checkpoint of that update, or the newest one, whose files must be what was written.
///
/// # Errors
/// There is none, or it is damaged; the sentence says which one can be used instead.
pub fn chosen(run: &RunDir, update: Option<u64>) -> Result<(Checkpoint, CheckpointInfo), RunError> {
    let mut all = checkpoints(run)?;
    let known = all.iter().map(|checkpoint| checkpoint.update.to_string()).collect::<Vec<_>>().join(", ");
    let Some(newest) = all.last().map(|checkpoint| checkpoint.update) else {
        return Err(none_of(run));
    };
    let update = update.unwrap_or(newest);
    let Some(at) = all.iter().position(|checkpoint| checkpoint.update == update) else {
        return Err(RunError::NoSuchCheckpoint { run: run.id().to_owned(), update, known });
    };
    let checkpoint = all.remove(at);
    match checkpoint.verified() {
        Ok(info) => Ok((checkpoint, info)),
        Err(error) => {
            let good = all.iter().rev().find(|other| other.verified().is_ok());
            Err(RunError::BadCheckpoint { problem: error.to_string(), good: good.map(|good| good.update) })
        }
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

/// Whether a checkpoint holds what this many updates came to.
pub fn reaches(run: &RunDir, updates: u64) -> bool {
    let newest = latest_checkpoint(run).ok().flatten();
    newest.is_some_and(|newest| newest.update >= updates)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::sample;

    pub(super) fn write(run: &RunDir, update: u64) {
        write_with(run, update, None);
    }

    pub(super) fn write_with(run: &RunDir, update: u64, val_loss: Option<f64>) {
        sample::checkpoint(run, update);
        let checkpoint = Checkpoint { update, path: run.checkpoint(update) };
        let mut info = checkpoint.info().unwrap();
        info.progress.val_loss = val_loss;
        fs::write(checkpoint.info_json(), serde_json::to_vec(&info).unwrap()).unwrap();
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
    fn a_damaged_checkpoint_is_told_and_an_older_one_is_named() {
        let (_folder, run) = sample::run("damaged");
        assert_eq!(newest_good(&run).unwrap(), None);
        let none = chosen(&run, None).unwrap_err();
        assert!(none.to_string().contains("waits in the queue and has not started"), "{none}");
        assert_eq!(none.exit_code(), 2, "it names what does not exist");
        let lock = crate::run::RunLock::acquire(&run).unwrap();
        let none = chosen(&run, None).unwrap_err().to_string();
        assert!(none.contains("with c on its screens"), "{none}");
        drop(lock);
        let none = chosen(&run, None).unwrap_err().to_string();
        assert!(none.contains("it ended before one was written"), "{none}");
        for update in [10, 20, 30] {
            write(&run, update);
        }
        assert_eq!(newest_good(&run).unwrap().unwrap().checkpoint.update, 30);
        let state = run.checkpoint(30).join("optimizer.safetensors");
        let mut bytes = fs::read(&state).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        fs::write(&state, &bytes).unwrap();
        let model = run.checkpoint(20).join("model.safetensors");
        let length = fs::metadata(&model).unwrap().len();
        fs::File::options().write(true).open(&model).unwrap().set_len(length - 1).unwrap();
        let good = newest_good(&run).unwrap().unwrap();
        assert_eq!(good.checkpoint.update, 10);
        let told: Vec<&str> = good.passed_over.iter().map(|(_, why)| why.as_str()).collect();
        assert!(
            told[0].contains("00000030/optimizer.safetensors") && told[0].contains("SHA-256"),
            "{told:?}"
        );
        assert!(
            told[1].contains("00000020/model.safetensors") && told[1].contains("bytes where"),
            "{told:?}"
        );
        let text = chosen(&run, None).unwrap_err().to_string();
        assert!(text.contains("00000030/optimizer.safetensors") && text.contains("update 10"), "{text}");
        assert!(matches!(chosen(&run, Some(11)), Err(RunError::NoSuchCheckpoint { .. })));
        assert_eq!(chosen(&run, Some(10)).unwrap().1.tokens, 5120);
        fs::remove_file(run.checkpoint(10).join("model.safetensors")).unwrap();
        assert!(matches!(newest_good(&run), Err(RunError::NoGoodCheckpoint { .. })));
        good.passed_over.iter().for_each(|(checkpoint, _)| set_aside(checkpoint).unwrap());
        assert_eq!(latest_checkpoint(&run).unwrap().unwrap().update, 10);
        assert!(run.checkpoints().join("00000030.damaged/optimizer.safetensors").exists());
    }

    #[test]
    fn another_format_is_refused_before_anything_else_is_read() {
        let (_folder, run) = sample::run("format");
        write(&run, 1);
        let checkpoint = latest_checkpoint(&run).unwrap().unwrap();
        fs::write(checkpoint.info_json(), br#"{"format":99,"dream":1}"#).unwrap();
        let text = checkpoint.verified().unwrap_err().to_string();
        assert!(text.contains("checkpoint format 99"), "{text}");
    }
}
