//! The trash: a folder beside the one of the runs, for runs that somebody deleted.

use std::{fs, path::PathBuf};

use super::{Home, Queue, RunDir, RunError, RunLock, is_live};

/// Moves a run to the trash folder and says where it lies there. Nothing is erased.
///
/// # Errors
/// A worker holds the run, it waits in the queue, it does not lie among this home's runs, or it cannot be moved.
pub fn discard(home: &Home, run: &RunDir) -> Result<PathBuf, RunError> {
    let refused =
        |problem: &str| RunError::Damaged { path: run.path().to_owned(), problem: problem.to_owned() };
    if run.path().parent() != Some(&*home.runs()) {
        return Err(refused("does not lie among the runs: remove it by hand"));
    }
    if is_live(run) {
        return Err(RunError::Locked(run.id().to_owned()));
    }
    if Queue::of(home).holds(run)? {
        return Err(refused("waits in the queue: take it out first"));
    }
    // Held until it is moved, so that no worker begins in between.
    let lock = RunLock::acquire(run)?;
    let trash = home.path().join("trash");
    fs::create_dir_all(&trash).map_err(RunError::io("cannot make", &trash))?;
    let free = |path: &PathBuf| fs::symlink_metadata(path).is_err();
    let named = |number: u32| match number {
        1 => trash.join(run.id()),
        number => trash.join(format!("{}-{number}", run.id())),
    };
    let Some(place) = (1..1000).map(named).find(free) else {
        return Err(refused("has been deleted too often: empty the trash folder"));
    };
    fs::rename(run.path(), &place).map_err(RunError::io("cannot move", run.path()))?;
    drop(lock);
    Ok(place)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Layers;

    fn made(home: &Home) -> RunDir {
        let resolved = Layers::new().resolve().unwrap();
        RunDir::create(home, "gone", &resolved).unwrap()
    }

    #[test]
    fn a_run_moves_with_all_it_holds_and_its_name_is_free_again() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path());
        let run = made(&home);
        let place = discard(&home, &run).unwrap();
        assert!(!run.path().exists() && place.join("run.toml").exists());
        assert_eq!(place.parent(), Some(&*home.path().join("trash")));
        assert!(RunDir::all(&home).unwrap().is_empty());
        // A run of the same id again lies beside the first.
        fs::create_dir(run.path()).unwrap();
        fs::copy(place.join("run.toml"), run.run_toml()).unwrap();
        let second = discard(&home, &RunDir::open(run.path()).unwrap()).unwrap();
        assert!(second != place && second.exists() && place.exists());
    }

    #[test]
    fn what_is_trained_or_lies_elsewhere_stays() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path());
        let run = made(&home);
        let lock = RunLock::acquire(&run).unwrap();
        assert!(matches!(discard(&home, &run), Err(RunError::Locked(_))));
        drop(lock);
        let other = Home::at(folder.path().join("other"));
        assert!(discard(&other, &run).unwrap_err().to_string().contains("among the runs"));
        assert!(run.path().exists());
    }
}
