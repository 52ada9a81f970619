//! Queued runs: they train one after another, each in a process of its own, whether or not anybody watches.
//!
//! The folder `queue` beside `runs` holds one small file a queued run; its name is the place in the line and the
//! run's id. Whoever holds the lock `queue/runner` starts the next one: a process without a terminal, which ends when
//! nothing is queued. Both locks are the operating system's, so a runner that was killed, or a machine that was
//! switched off, leaves nothing that blocks: the next program that looks starts another runner, which goes on.
//!
//! The line is kept outside the runs' own folders, so that a folder that comes from somewhere else never starts
//! training by itself.

mod runner;
mod waits;

#[cfg(test)]
mod tests;

use std::{
    fs::{self, File, TryLockError},
    io,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use super::{Home, RunDir, RunError};
pub use waits::Waits;

/// Longest that the line is held by somebody who changes it.
const CHANGE: Duration = Duration::from_secs(10);
/// In a run's folder: it was taken out of the line before it started.
const REMOVED: &str = "removed";
/// Before the name of an entry whose run is being started or trains.
const TAKEN: &str = "taken-";

/// The line of queued runs of one home.
#[derive(Debug, Clone)]
pub struct Queue {
    home: Home,
}

/// One place in the line.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    place: u64,
    id: String,
    /// A runner has begun to start it.
    taken: bool,
}

impl Entry {
    /// Other files in the folder are none of ours.
    fn parse(name: &str) -> Option<Self> {
        let (taken, rest) = name.strip_prefix(TAKEN).map_or((false, name), |rest| (true, rest));
        let (place, id) = rest.split_once('-')?;
        let own = !id.is_empty() && place.len() == 12 && !id.contains('/');
        own.then(|| Some(Self { place: place.parse().ok()?, id: id.to_owned(), taken }))?
    }

    fn name(&self) -> String {
        format!("{}{:012}-{}", if self.taken { TAKEN } else { "" }, self.place, self.id)
    }
}

/// The right to change the line, for a moment.
struct Change {
    _file: File,
}

impl Queue {
    /// The line of that home; nothing is made.
    pub fn of(home: &Home) -> Self {
        Self { home: home.clone() }
    }

    /// The line of the home that the run lies in.
    pub fn beside(run: &RunDir) -> Option<Self> {
        run.path().parent().and_then(Path::parent).map(|home| Self::of(&Home::at(home)))
    }

    fn folder(&self) -> PathBuf {
        self.home.path().join("queue")
    }

    fn path(&self, entry: &Entry) -> PathBuf {
        self.folder().join(entry.name())
    }

    /// Ids of the runs that wait, the next one first.
    ///
    /// # Errors
    /// The folder exists and cannot be read.
    pub fn waiting(&self) -> Result<Vec<String>, RunError> {
        let entries = self.entries()?.into_iter().filter(|entry| !entry.taken);
        Ok(entries.map(|entry| entry.id).collect())
    }

    /// Whether the run waits, or is just being started.
    ///
    /// # Errors
    /// The folder exists and cannot be read.
    pub fn holds(&self, run: &RunDir) -> Result<bool, RunError> {
        Ok(self.entries()?.iter().any(|entry| entry.id == run.id()))
    }

    fn entries(&self) -> Result<Vec<Entry>, RunError> {
        let folder = self.folder();
        let listed = match fs::read_dir(&folder) {
            Ok(listed) => listed,
            // Where there is no folder for runs nothing waits; whoever needs one says so.
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                return Ok(Vec::new());
            }
            Err(error) => return Err(RunError::io("cannot read", &folder)(error)),
        };
        let mut entries = Vec::new();
        for entry in listed {
            let entry = entry.map_err(RunError::io("cannot read", &folder))?;
            entries.extend(Entry::parse(&entry.file_name().to_string_lossy()));
        }
        entries.sort();
        Ok(entries)
    }

    /// Waits for the right to change the line.
    fn change(&self) -> Result<Change, RunError> {
        let folder = self.folder();
        fs::create_dir_all(&folder)
            .map_err(|source| RunError::HomeNotWritable { path: self.home.path().to_owned(), source })?;
        let path = folder.join("change");
        let until = Instant::now() + CHANGE;
        loop {
            if let Some(file) = try_lock(&path)? {
                return Ok(Change { _file: file });
            }
            if Instant::now() > until {
                let problem = "is held by another program for too long: is one suspended?".to_owned();
                return Err(RunError::Damaged { path, problem });
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Puts runs that nobody has started at the end of the line, in this order.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn add(&self, runs: &[RunDir]) -> Result<(), RunError> {
        let _change = self.change()?;
        let last = self.entries()?.last().map_or(0, |entry| entry.place);
        for (place, run) in (last + 1..).zip(runs) {
            let path = self.path(&Entry { place, id: run.id().to_owned(), taken: false });
            File::create(&path).map_err(RunError::io("cannot write", &path))?;
        }
        Ok(())
    }

    /// Takes a run out of the line; false when it does not wait there, for example because it has just been started.
    ///
    /// # Errors
    /// The folder cannot be read or written.
    pub fn remove(&self, run: &RunDir) -> Result<bool, RunError> {
        if !self.folder().exists() {
            return Ok(false);
        }
        let _change = self.change()?;
        let entries = self.entries()?;
        let Some(entry) = entries.iter().find(|entry| entry.id == run.id() && !entry.taken) else {
            return Ok(false);
        };
        let marker = run.path().join(REMOVED);
        fs::write(&marker, "taken out of the queue before it started\n")
            .map_err(RunError::io("cannot write", &marker))?;
        self.forget(entry)?;
        Ok(true)
    }

    fn forget(&self, entry: &Entry) -> Result<(), RunError> {
        let path = self.path(entry);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(RunError::io("cannot remove", &path)(error))
            }
            _ => Ok(()),
        }
    }

    fn rename(&self, entry: &Entry, taken: bool) -> Result<Entry, RunError> {
        let renamed = Entry { taken, ..entry.clone() };
        let from = self.path(entry);
        fs::rename(&from, self.path(&renamed)).map_err(RunError::io("cannot rename", &from))?;
        Ok(renamed)
    }
}

/// Whether the run waits in the line of its home, or is being started from there.
pub fn holds(run: &RunDir) -> bool {
    // Where the line cannot be read nobody knows.
    Queue::beside(run).is_some_and(|line| line.holds(run).unwrap_or(false))
}

/// Whether the run was taken out of the line before it started.
pub fn was_removed(run: &RunDir) -> bool {
    run.path().join(REMOVED).exists()
}

fn try_lock(path: &Path) -> Result<Option<File>, RunError> {
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(path)
        .map_err(RunError::io("cannot open", path))?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(RunError::io("cannot lock", path)(error)),
    }
}
