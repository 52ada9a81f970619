//! The lock of a run: an operating-system lock on a file, so it ends with the process that holds it and no
//! stale number ever blocks a run.

use std::{
    fs::{File, OpenOptions, TryLockError},
    io::Write,
    time::Duration,
};

use super::{RunDir, RunError, own};

/// Held by the worker for as long as it lives; dropping it frees the run.
#[derive(Debug)]
pub struct RunLock {
    // Closing the file releases the lock.
    _file: File,
}

/// How often and how long to try: somebody who looks whether the run is live holds the lock for a moment.
const ATTEMPTS: u32 = 50;
const PAUSE: Duration = Duration::from_millis(10);

impl RunLock {
    /// Takes the lock. The file also holds the process id, for people.
    ///
    /// # Errors
    /// Another process trains this run, or the file cannot be written.
    pub fn acquire(run: &RunDir) -> Result<Self, RunError> {
        let path = run.lock();
        let mut file = own::open(&path, OpenOptions::new().create(true).truncate(false).write(true))
            .map_err(RunError::io("cannot open", &path))?;
        for attempt in 1..=ATTEMPTS {
            match file.try_lock() {
                Ok(()) => {
                    let id = format!("{}\n", std::process::id());
                    file.set_len(0)
                        .and_then(|()| file.write_all(id.as_bytes()))
                        .map_err(RunError::io("cannot write", &path))?;
                    return Ok(Self { _file: file });
                }
                Err(TryLockError::WouldBlock) if attempt < ATTEMPTS => std::thread::sleep(PAUSE),
                Err(TryLockError::WouldBlock) => break,
                Err(TryLockError::Error(source)) => return Err(RunError::NoLocks { path, source }),
            }
        }
        Err(RunError::Locked(run.id().to_owned()))
    }
}

/// Whether a worker holds the run's lock now.
pub fn is_live(run: &RunDir) -> bool {
    own::open(&run.lock(), OpenOptions::new().read(true))
        .is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
}

/// Whether a worker ever took the run's lock: the file is there before it is locked, and says who holds it from then on.
pub fn was_started(run: &RunDir) -> bool {
    run.lock().metadata().is_ok_and(|file| file.len() > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_live_exactly_while_its_lock_is_held() {
        let folder = tempfile::tempdir().unwrap();
        let run = RunDir::unchecked(folder.path().to_owned());
        assert!(!is_live(&run) && !was_started(&run));
        let lock = RunLock::acquire(&run).unwrap();
        assert!(is_live(&run));
        assert!(matches!(RunLock::acquire(&run), Err(RunError::Locked(_))));
        drop(lock);
        assert!(!is_live(&run) && was_started(&run));
        RunLock::acquire(&run).unwrap();
    }

    #[test]
    fn a_file_that_a_dead_process_left_does_not_block() {
        let folder = tempfile::tempdir().unwrap();
        let run = RunDir::unchecked(folder.path().to_owned());
        std::fs::write(run.lock(), "").unwrap();
        assert!(!was_started(&run), "it has been made and not locked yet");
        std::fs::write(run.lock(), "123456789012\n").unwrap();
        assert!(!is_live(&run) && was_started(&run));
        let _lock = RunLock::acquire(&run).unwrap();
        assert_eq!(std::fs::read_to_string(run.lock()).unwrap(), format!("{}\n", std::process::id()));
    }
}
