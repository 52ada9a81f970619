//! Queued runs: they train one after another, each in a process of its own, whether or not anybody watches.
//!
//! The folder `queue` beside `runs` holds one small file a queued run; its name is the place in the line and the
//! run's id. Whoever holds the lock `queue/runner` starts the next one: a process without a terminal, which ends when
//! nothing is queued. Both locks are the operating system's, so a runner that was killed, or a machine that was
//! switched off, leaves nothing that blocks: the next program that looks starts another runner, which goes on.
//!
//! The line is kept outside the runs' own folders, so that a folder that comes from somewhere else never starts
//! training by itself.

use std::{
    fs::{self, File, TryLockError},
    io::{self, Write},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use super::{Home, RunDir, RunError, lock};
use crate::config::{DeviceName, own};

/// Time between two looks at the runs that are waited for.
const POLL: Duration = Duration::from_millis(100);
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

    /// Whether a runner is there to start what waits.
    ///
    /// # Errors
    /// The lock cannot be looked at.
    pub fn has_runner(&self) -> Result<bool, RunError> {
        match File::open(self.folder().join("runner")) {
            Ok(file) => Ok(matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(RunError::io("cannot open", &self.folder().join("runner"))(error)),
        }
    }

    /// Starts a runner if something waits and none is there. It outlives this process.
    ///
    /// # Errors
    /// The line cannot be read or the process cannot be started.
    pub fn wake(&self) -> anyhow::Result<()> {
        if self.entries()?.is_empty() || self.has_runner()? {
            return Ok(());
        }
        let path = self.folder().join("log");
        let log = File::options()
            .create(true)
            .append(true)
            .open(&path)
            .map_err(RunError::io("cannot write", &path))?;
        let mut child = Command::new(own::worker_program())
            .arg("queue")
            .env("TUI_TRAIN_HOME", self.home.path())
            .current_dir(self.home.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()?;
        // So that no zombie stays when it ends before this process. Without a thread it lasts as long as this one: no harm.
        let _ = std::thread::Builder::new().name("reaper".into()).spawn(move || child.wait());
        Ok(())
    }

    /// Starts what waits, one after another, until nothing does. Returns at once when another runner is there.
    ///
    /// # Errors
    /// The line cannot be read or written. A run that cannot be started is no error: its log says why, and the next
    /// one follows.
    pub fn work(&self, begin: impl Fn(&RunDir) -> anyhow::Result<()>) -> Result<(), RunError> {
        let Some(runner) = self.become_runner()? else { return Ok(()) };
        loop {
            self.settle()?;
            let Some(next) = self.entries()?.into_iter().next() else {
                // Nobody can add between this look and the release: then they would find no runner, and start one.
                let _change = self.change()?;
                if self.entries()?.is_empty() {
                    drop(runner);
                    return Ok(());
                }
                continue;
            };
            let Ok(run) = RunDir::open(self.home.runs().join(&next.id)) else {
                // Somebody removed the folder: there is nothing to start.
                self.forget(&next)?;
                continue;
            };
            self.wait_for_room(&run)?;
            let Some(taken) = self.take(&next)? else { continue };
            if let Err(error) = begin(&run) {
                refused(&run, &format!("{error:#}"));
            }
            while lock::is_live(&run) {
                std::thread::sleep(POLL);
            }
            self.forget(&taken)?;
        }
    }

    fn become_runner(&self) -> Result<Option<File>, RunError> {
        let _change = self.change()?;
        let Some(mut file) = try_lock(&self.folder().join("runner"))? else { return Ok(None) };
        // The process id is for people; without it the lock holds all the same.
        let _ = file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id()));
        Ok(Some(file))
    }

    /// Puts the line in order after a runner that died: what it had started is waited for, what it had not is next.
    fn settle(&self) -> Result<(), RunError> {
        for entry in self.entries()?.into_iter().filter(|entry| entry.taken) {
            let run = RunDir::unchecked(self.home.runs().join(&entry.id));
            while lock::is_live(&run) {
                std::thread::sleep(POLL);
            }
            let _change = self.change()?;
            if lock::was_started(&run) || !run.path().exists() {
                self.forget(&entry)?;
            } else {
                self.rename(&entry, false)?;
            }
        }
        Ok(())
    }

    /// Waits until no other run trains on the device of this one, or until it is taken out of the line.
    fn wait_for_room(&self, run: &RunDir) -> Result<(), RunError> {
        let Some(device) = device(run) else { return Ok(()) };
        loop {
            let live: Vec<RunDir> = RunDir::all(&self.home)?
                .into_iter()
                .filter(|other| {
                    lock::is_live(other) && self::device(other).is_none_or(|on| shares(on, device))
                })
                .collect();
            if live.is_empty() {
                return Ok(());
            }
            while live.iter().any(lock::is_live) {
                if !self.holds(run)? {
                    return Ok(());
                }
                std::thread::sleep(POLL);
            }
        }
    }

    /// Claims an entry for its start; nothing when it was taken out of the line.
    fn take(&self, entry: &Entry) -> Result<Option<Entry>, RunError> {
        let _change = self.change()?;
        let run = RunDir::unchecked(self.home.runs().join(&entry.id));
        if !self.path(entry).exists() {
            return Ok(None);
        }
        if was_removed(&run) || lock::was_started(&run) {
            self.forget(entry)?;
            return Ok(None);
        }
        self.rename(entry, true).map(Some)
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
    let home = run.path().parent().and_then(Path::parent).map(Home::at);
    // Where the line cannot be read nobody knows.
    home.is_some_and(|home| {
        Queue::of(&home).entries().is_ok_and(|entries| entries.iter().any(|entry| entry.id == run.id()))
    })
}

/// Whether the run was taken out of the line before it started.
pub fn was_removed(run: &RunDir) -> bool {
    run.path().join(REMOVED).exists()
}

fn device(run: &RunDir) -> Option<DeviceName> {
    run.config().ok().map(|config| config.train.device)
}

/// Two runs share a device unless they train on different graphics cards, or one on a card and one on the processor.
fn shares(one: DeviceName, other: DeviceName) -> bool {
    let card = |device| match device {
        DeviceName::LibtorchCuda(index) => Some(index),
        _ => None,
    };
    card(one) == card(other)
}

/// A run that cannot be started ends like one whose worker died at once: with the reason in its log.
fn refused(run: &RunDir, why: &str) {
    let log = File::options().create(true).append(true).open(run.worker_log());
    // A folder that cannot be written has nobody to tell; the runner's own log has the reason, too.
    let _ = log.and_then(|mut log| writeln!(log, "{why}"));
    let lock = File::options().create(true).append(true).open(run.lock());
    let _ = lock.and_then(|mut lock| writeln!(lock, "no worker could be started"));
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

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::{
        config::Layers,
        run::{RunLock, State},
    };

    fn queued(home: &Home, names: &[&str]) -> Vec<RunDir> {
        let resolved = Layers::new().with_assignment("train.device=flex").unwrap().resolve().unwrap();
        let runs: Vec<_> = names.iter().map(|name| RunDir::create(home, name, &resolved).unwrap()).collect();
        Queue::of(home).add(&runs).unwrap();
        runs
    }

    fn home() -> (tempfile::TempDir, Home) {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path());
        (folder, home)
    }

    /// Runs the line down and returns the names in the order in which they were started.
    fn worked(home: &Home) -> Vec<String> {
        let started = Mutex::new(Vec::new());
        Queue::of(home)
            .work(|run| {
                started.lock().unwrap().push(run.name());
                drop(RunLock::acquire(run).unwrap());
                Ok(())
            })
            .unwrap();
        started.into_inner().unwrap()
    }

    #[test]
    fn what_was_queued_first_is_started_first_whatever_it_is_called() {
        let (_folder, home) = home();
        queued(&home, &["z", "a"]);
        queued(&home, &["m"]);
        assert_eq!(Queue::of(&home).waiting().unwrap().len(), 3);
        assert_eq!(worked(&home), ["z", "a", "m"]);
        assert!(Queue::of(&home).waiting().unwrap().is_empty());
        assert_eq!(worked(&home), Vec::<String>::new());
    }

    #[test]
    fn a_run_that_cannot_be_started_says_why_and_does_not_stop_the_rest() {
        let (_folder, home) = home();
        let runs = queued(&home, &["bad", "good"]);
        let begin = |run: &RunDir| match &*run.name() {
            "bad" => anyhow::bail!("no such device"),
            _ => RunLock::acquire(run).map(drop).map_err(Into::into),
        };
        Queue::of(&home).work(begin).unwrap();
        assert_eq!(State::of(&runs[0], None, false), State::Crashed);
        assert_eq!(std::fs::read_to_string(runs[0].worker_log()).unwrap(), "no such device\n");
        assert!(lock::was_started(&runs[1]));
    }

    #[test]
    fn a_run_taken_out_of_the_line_is_stopped_and_never_started() {
        let (_folder, home) = home();
        let runs = queued(&home, &["a", "b", "c"]);
        assert_eq!(State::of(&runs[1], None, false), State::Queued);
        let queue = Queue::of(&home);
        assert!(queue.remove(&runs[1]).unwrap());
        assert!(!queue.remove(&runs[1]).unwrap(), "it is gone already");
        assert_eq!(State::of(&runs[1], None, false), State::Stopped);
        std::fs::remove_dir_all(runs[2].path()).unwrap();
        assert_eq!(worked(&home), ["a"], "one was removed, of another the folder is gone");
    }

    #[test]
    fn a_runner_goes_on_where_a_dead_one_left_off() {
        let (_folder, home) = home();
        let runs = queued(&home, &["trained", "claimed", "next"]);
        let queue = Queue::of(&home);
        for run in &runs[..2] {
            let entry = queue.entries().unwrap().into_iter().find(|entry| entry.id == run.id()).unwrap();
            queue.rename(&entry, true).unwrap();
        }
        drop(RunLock::acquire(&runs[0]).unwrap());
        assert!(!queue.remove(&runs[1]).unwrap(), "a run that is being started is stopped, not removed");
        assert_eq!(worked(&home), ["claimed", "next"]);
    }

    #[test]
    fn there_is_one_runner_and_it_waits_for_the_runs_of_its_device() {
        let (_folder, home) = home();
        let busy = queued(&home, &["busy"]).remove(0);
        let held = RunLock::acquire(&busy).unwrap();
        queued(&home, &["next"]);
        let queue = Queue::of(&home);
        assert!(!queue.has_runner().unwrap());
        let other = home.clone();
        let runner = std::thread::spawn(move || worked(&other));
        while !queue.has_runner().unwrap() {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(worked(&home), Vec::<String>::new(), "another one is there");
        assert!(!runner.is_finished());
        drop(held);
        assert_eq!(runner.join().unwrap(), ["next"]);
        assert!(!queue.has_runner().unwrap());
    }

    #[test]
    fn other_files_in_the_folder_are_none_of_ours_and_devices_are_told_apart() {
        let (_folder, home) = home();
        let run = queued(&home, &["a"]).remove(0);
        for name in ["log", "000000000009-", "1-x", "taken-", ".swp", "00000000000x-y"] {
            std::fs::write(home.path().join("queue").join(name), "").unwrap();
        }
        assert_eq!(Queue::of(&home).waiting().unwrap(), [run.id()]);
        let cuda = DeviceName::LibtorchCuda;
        assert!(shares(DeviceName::Flex, DeviceName::LibtorchCpu) && shares(cuda(1), cuda(1)));
        assert!(!shares(cuda(0), cuda(1)) && !shares(DeviceName::Flex, cuda(0)));
    }
}
