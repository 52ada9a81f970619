//! One run's folder: the paths in it, and how it comes to be.

use std::{
    collections::BTreeMap,
    fs, io,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Home, RunError, atomic, label::Label, own};
use crate::{
    config::{Config, Layers, Resolved, change, presets},
    protocol::{Lineage, SCHEMA},
};

/// Longest part of a run's name that goes into the name of its folder, in bytes.
const NAME_IN_FOLDER: usize = 48;

/// A run's folder. Its last component is the run's id.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct RunDir {
    path: PathBuf,
    id: String,
}

/// What `run.toml` does not hold: `meta.json`, written with the folder and never changed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Meta {
    pub schema: u32,
    /// The name as it was given; the folder's name holds a safe form of it.
    pub name: String,
    /// UTC, RFC 3339.
    pub created: String,
    /// Keys set by hand, with their values.
    #[serde(default)]
    pub explicit: BTreeMap<String, String>,
    /// Things said once at the start.
    #[serde(default)]
    pub notes: Vec<String>,
    /// The checkpoint of another run that it starts from; it is among its own checkpoints.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked_from: Option<Lineage>,
}

impl RunDir {
    /// Makes a new folder with `run.toml` and `meta.json`. It appears whole, under a name nobody else has.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn create(home: &Home, name: &str, resolved: &Resolved) -> Result<Self, RunError> {
        Self::create_at(home, name, resolved, Timestamp::now())
    }

    /// The same at a given time.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn create_at(home: &Home, name: &str, resolved: &Resolved, now: Timestamp) -> Result<Self, RunError> {
        let meta = Meta {
            schema: SCHEMA,
            name: name.trim().to_owned(),
            created: String::new(),
            explicit: resolved.explicit.clone(),
            notes: resolved.notes.clone(),
            forked_from: None,
        };
        Self::fill(home, meta, resolved, now, |_| Ok(()))
    }

    /// A new folder for a fork, named like any other, into which `more` puts what it starts from.
    ///
    /// # Errors
    /// The folder cannot be written, or `more` fails.
    pub fn create_fork(
        home: &Home,
        name: &str,
        resolved: &Resolved,
        from: Lineage,
        more: impl Fn(&Path) -> io::Result<()>,
    ) -> Result<Self, RunError> {
        let meta = Meta {
            schema: SCHEMA,
            name: name.trim().to_owned(),
            created: String::new(),
            explicit: resolved.explicit.clone(),
            notes: resolved.notes.clone(),
            forked_from: Some(from),
        };
        Self::fill(home, meta, resolved, Timestamp::now(), more)
    }

    fn fill(
        home: &Home,
        meta: Meta,
        resolved: &Resolved,
        now: Timestamp,
        more: impl Fn(&Path) -> io::Result<()>,
    ) -> Result<Self, RunError> {
        let runs = home.ensure()?;
        let stem = format!("{}-{}", now.strftime("%Y%m%dT%H%M%SZ"), safe_name(&meta.name));
        let meta = Meta { created: now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(), ..meta };
        let toml = resolved.config.to_toml()?;
        let not_writable = |source| RunError::HomeNotWritable { path: home.path().to_owned(), source };
        let meta = serde_json::to_vec_pretty(&meta).map_err(|error| not_writable(error.into()))?;
        for attempt in 1_u32.. {
            let id = if attempt == 1 { stem.clone() } else { format!("{stem}-{attempt}") };
            let path = runs.join(&id);
            if path.exists() {
                continue;
            }
            let fill = |folder: &Path| -> io::Result<()> {
                fs::write(folder.join("run.toml"), &toml)?;
                fs::write(folder.join("meta.json"), &meta)?;
                more(folder)
            };
            match create_new_folder(&path, fill) {
                Ok(()) => return Ok(Self { path, id }),
                Err(error) if taken(&error) => {}
                Err(error) => return Err(not_writable(error)),
            }
        }
        Err(not_writable(io::Error::other("every name is taken")))
    }

    /// An existing run's folder.
    ///
    /// # Errors
    /// The folder is missing or holds neither `run.toml` nor `events.jsonl`.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, RunError> {
        let path = path.as_ref();
        let full = fs::canonicalize(path).map_err(RunError::io("cannot open run", path))?;
        let run = Self::unchecked(full);
        if run.run_toml().is_file() || run.events().is_file() {
            Ok(run)
        } else {
            Err(RunError::NotARun(run.path))
        }
    }

    /// A folder that is known to be a run.
    pub(super) fn unchecked(path: PathBuf) -> Self {
        let id = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        Self { path, id }
    }

    /// The run's id: the name of its folder.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// What a command calls it by: its id where it lies among the runs of the state folder, elsewhere its path.
    pub fn called(&self) -> String {
        let runs = Home::from_env().ok().and_then(|home| fs::canonicalize(home.runs()).ok());
        let folder = self.path.parent().and_then(|folder| fs::canonicalize(folder).ok());
        if runs.is_some() && runs == folder { self.id.clone() } else { self.path.display().to_string() }
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The resolved configuration.
    pub fn run_toml(&self) -> PathBuf {
        self.path.join("run.toml")
    }

    /// The configuration since a resumption changed it; absent while `run.toml` holds.
    pub fn resumed_toml(&self) -> PathBuf {
        self.path.join("resumed.toml")
    }

    /// Name and keys set by hand.
    pub fn meta_json(&self) -> PathBuf {
        self.path.join("meta.json")
    }

    /// The name and the note that a person gave the run later.
    pub fn label_json(&self) -> PathBuf {
        self.path.join("label.json")
    }

    /// The record, one JSON line an event.
    pub fn events(&self) -> PathBuf {
        self.path.join("events.jsonl")
    }

    /// The summary of a run that ended.
    pub fn summary_json(&self) -> PathBuf {
        self.path.join("summary.json")
    }

    /// The same as one page.
    pub fn summary_md(&self) -> PathBuf {
        self.path.join("summary.md")
    }

    /// One folder a checkpoint.
    pub fn checkpoints(&self) -> PathBuf {
        self.path.join("checkpoints")
    }

    /// The folder of the checkpoint of that update.
    pub fn checkpoint(&self, update: u64) -> PathBuf {
        self.checkpoints().join(format!("{update:08}"))
    }

    /// What grows for TensorBoard while the run trains.
    pub fn tensorboard(&self) -> PathBuf {
        self.path.join("tensorboard")
    }

    /// How far the data is, before the run begins.
    pub fn preparing(&self) -> PathBuf {
        self.path.join("preparing")
    }

    /// What the worker and its libraries say.
    pub fn worker_log(&self) -> PathBuf {
        self.path.join("worker.log")
    }

    /// Held while a worker lives.
    pub fn lock(&self) -> PathBuf {
        self.path.join("lock")
    }

    /// Commands that the run is given at fixed updates.
    pub fn commands_toml(&self) -> PathBuf {
        self.path.join("commands.toml")
    }

    /// What the worker notes when it starts.
    pub fn worker_json(&self) -> PathBuf {
        self.path.join("worker.json")
    }

    /// What whoever started the worker notes when it ends without a word.
    pub fn death_json(&self) -> PathBuf {
        self.path.join("death.json")
    }

    /// The worker's socket, or a file that says where it is.
    pub fn control_sock(&self) -> PathBuf {
        self.path.join("control.sock")
    }

    /// The configuration in force: that of `run.toml`, or what the last resumption with other settings made of it.
    ///
    /// # Errors
    /// The file is missing or is not a configuration.
    pub fn config(&self) -> Result<Config, RunError> {
        self.read_config(self.in_force())
    }

    fn in_force(&self) -> PathBuf {
        let resumed = self.resumed_toml();
        if resumed.is_file() { resumed } else { self.run_toml() }
    }

    /// Checks that this program knows every setting of the configuration in force. Who looks at a run of a newer program
    /// passes over what it does not know; who trains it would ignore a setting.
    ///
    /// # Errors
    /// The first key that it does not know; or the file cannot be read.
    pub fn refuse_unknown_settings(&self) -> Result<(), RunError> {
        let path = self.in_force();
        let text = own::read_text(&path).map_err(RunError::io("cannot read", &path))?;
        match change::unknown(&text, &self.read_config(path.clone())?) {
            None => Ok(()),
            Some(key) => Err(RunError::UnknownSetting { path, key }),
        }
    }

    /// The keys that were set by hand, when the run was made or when it was resumed, with their values in TOML.
    ///
    /// # Errors
    /// A file cannot be read or is damaged.
    pub fn explicit(&self) -> Result<BTreeMap<String, String>, RunError> {
        let mut explicit = self.meta()?.explicit;
        if self.resumed_toml().is_file() {
            explicit.extend(change::literals(&self.made_with()?, &self.config()?));
        }
        Ok(explicit)
    }

    /// The configuration that the run was made with, whatever a resumption has made of it since.
    ///
    /// # Errors
    /// The file is missing or is not a configuration.
    pub fn made_with(&self) -> Result<Config, RunError> {
        self.read_config(self.run_toml())
    }

    /// What was set by hand, for a draft to start from: so one change there is one difference.
    ///
    /// # Errors
    /// A file cannot be read, or what it holds cannot be set any more.
    pub fn layers(&self) -> Result<Layers, RunError> {
        layers_of(&self.config()?, self.explicit()?, self.id())
    }

    fn read_config(&self, path: PathBuf) -> Result<Config, RunError> {
        let text = own::read_text(&path).map_err(RunError::io("cannot read", &path))?;
        let damaged = |problem: &str| RunError::Damaged {
            path: path.clone(),
            problem: format!("is not a run's configuration: {problem}"),
        };
        let config: Config =
            toml::from_str(&text).map_err(|error: toml::de::Error| damaged(error.message()))?;
        config.in_range().map_err(|error| damaged(&error.to_string()))?;
        Ok(config)
    }

    /// What `meta.json` says; a run without one has the name of its folder.
    ///
    /// # Errors
    /// The file cannot be read or is damaged.
    pub fn meta(&self) -> Result<Meta, RunError> {
        let path = self.meta_json();
        match own::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes)
                .map_err(|error| RunError::Damaged { path, problem: error.to_string() }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Ok(Meta { schema: SCHEMA, name: self.name_in_id().to_owned(), ..Meta::default() })
            }
            Err(error) => Err(RunError::io("cannot read", &path)(error)),
        }
    }

    /// The name as a person gave it, when the run was made or later.
    pub fn name(&self) -> String {
        let made = || self.meta().map_or_else(|_| self.name_in_id().to_owned(), |meta| meta.name);
        Label::of(self).name.unwrap_or_else(made)
    }

    /// The id without its time.
    pub(super) fn name_in_id(&self) -> &str {
        self.id.split_once("Z-").map_or(&self.id, |(_, name)| name)
    }
}

/// Keys with their values in TOML, as something to put more on top of.
pub(super) fn layers_of(
    config: &Config,
    mut explicit: BTreeMap<String, String>,
    origin: &str,
) -> Result<Layers, RunError> {
    // What is left unsaid means the first preset of this program, which need not be that of the run.
    if config.model.name() != presets::first() {
        explicit.entry("model.preset".to_owned()).or_insert_with(|| format!("{:?}", config.model.name()));
    }
    let text: String = explicit.iter().map(|(key, value)| format!("{key} = {value}\n")).collect();
    Ok(Layers::new().with_toml(&text, origin)?)
}

/// Fills a temporary folder and renames it to a name that must be free.
fn create_new_folder(path: &Path, fill: impl FnOnce(&Path) -> io::Result<()>) -> io::Result<()> {
    let parent = path.parent().unwrap_or(path);
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let temporary = parent.join(format!(".{name}.tmp-{}", std::process::id()));
    // Nobody else looks into a run, and nobody else speaks to its socket.
    fs::DirBuilder::new().mode(0o700).create(&temporary)?;
    // Renaming onto a run fails, because a run's folder is never empty.
    let filled = fill(&temporary).and_then(|()| atomic::sync_tree(&temporary));
    let done = filled.and_then(|()| fs::rename(&temporary, path));
    if done.is_err() {
        let _ = fs::remove_dir_all(&temporary);
        return done;
    }
    atomic::sync_parent(path)
}

fn taken(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::AlreadyExists | io::ErrorKind::DirectoryNotEmpty)
}

/// A name that is safe in a path, in a shell and in a terminal.
pub fn safe_name(name: &str) -> String {
    let mut safe = String::new();
    for c in name.trim().chars() {
        let c = if c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '+' | '=') { c } else { '-' };
        if !(c == '-' && safe.ends_with('-')) && safe.len() < NAME_IN_FOLDER {
            safe.push(c);
        }
    }
    let safe = safe.trim_matches(['-', '.']);
    if safe.is_empty() { "run".to_owned() } else { safe.to_owned() }
}

#[cfg(test)]
mod tests;
