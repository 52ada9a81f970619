//! The process that starts what waits, one run after another.

use std::{
    fs::{File, TryLockError},
    io::{self, Write},
    process::{Command, Stdio},
    time::Duration,
};

use super::{Entry, Queue, try_lock, was_removed};
use crate::{
    config::{self, DeviceName},
    run::{RunDir, RunError, RunLock, lock, own},
};

/// Time between two looks at the runs that are waited for.
const POLL: Duration = Duration::from_millis(100);

impl Queue {
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
        let mut child = Command::new(config::own::worker_program())
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
        loop {
            let live = self.in_the_way(run)?;
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

    /// The runs that train on the device of this one.
    pub(super) fn in_the_way(&self, run: &RunDir) -> Result<Vec<RunDir>, RunError> {
        let Some(device) = device(run) else { return Ok(Vec::new()) };
        let mut live = RunDir::all(&self.home)?;
        live.retain(|other| lock::is_live(other) && self::device(other).is_none_or(|on| shares(on, device)));
        Ok(live)
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
}

fn device(run: &RunDir) -> Option<DeviceName> {
    run.config().ok().map(|config| config.train.device)
}

/// Two runs share a device unless they train on different graphics cards, or one on a card and one on the processor.
pub(super) fn shares(one: DeviceName, other: DeviceName) -> bool {
    let card = |device| match device {
        DeviceName::LibtorchCuda(index) => Some(index),
        _ => None,
    };
    card(one) == card(other)
}

/// A run that cannot be started ends like one whose worker died at once: with the reason in its log.
fn refused(run: &RunDir, why: &str) {
    let log = own::open(&run.worker_log(), File::options().create(true).append(true));
    // A folder that cannot be written has nobody to tell; the runner's own log has the reason, too.
    let _ = log.and_then(|mut log| writeln!(log, "{why}"));
    drop(RunLock::acquire(run));
}
