//! Which checkpoints stay.

use std::{fs, path::Path};

use super::{Checkpoint, checkpoints};
use crate::run::{RunDir, RunError, atomic, fault::step};

/// Of the checkpoints that were written right after a validation, that of the lowest loss.
fn best(all: &[Checkpoint]) -> Option<u64> {
    let losses = all.iter().filter_map(|checkpoint| {
        let loss = checkpoint.info().ok()?.progress.val_loss.filter(|loss| loss.is_finite())?;
        Some((loss, checkpoint.update))
    });
    losses.min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, update)| update)
}

/// Removes all but the newest `keep` checkpoints (at least one stays), but not the one of the lowest validation loss
/// when that is to be kept, and what a dead worker left half written. Returns the updates whose checkpoints were
/// removed. Only the worker that holds the run's lock may call this.
///
/// # Errors
/// A folder cannot be removed.
pub fn prune(run: &RunDir, keep: usize, keep_best: bool) -> Result<Vec<u64>, RunError> {
    let folder = run.checkpoints();
    let remove = |path: &Path| {
        step().and_then(|()| fs::remove_dir_all(path)).map_err(RunError::io("cannot remove", path))
    };
    let mut found = checkpoints(run)?;
    let best = if keep_best { best(&found) } else { None };
    found.truncate(found.len().saturating_sub(keep.max(1)));
    found.retain(|checkpoint| Some(checkpoint.update) != best);
    for checkpoint in &found {
        // Renamed first: a removal that stops half way must not leave something that looks complete.
        let aside = folder.join(format!(".{:08}.tmp-old", checkpoint.update));
        step()
            .and_then(|()| fs::rename(&checkpoint.path, &aside))
            .map_err(RunError::io("cannot remove", &checkpoint.path))?;
        remove(&aside)?;
    }
    sweep(run)?;
    Ok(found.into_iter().map(|checkpoint| checkpoint.update).collect())
}

/// Removes checkpoints that dead workers left half written or half removed. Only the worker that holds the run's lock may
/// call this.
///
/// # Errors
/// A folder cannot be removed.
pub fn sweep(run: &RunDir) -> Result<(), RunError> {
    // A folder that cannot be read has nothing to be swept from.
    for entry in fs::read_dir(run.checkpoints()).into_iter().flatten().flatten() {
        if atomic::is_temporary(&entry.file_name().to_string_lossy()) {
            let path = entry.path();
            step().and_then(|()| fs::remove_dir_all(&path)).map_err(RunError::io("cannot remove", &path))?;
        }
    }
    Ok(())
}

/// Sets a checkpoint that cannot be used aside, so that nobody takes it for the newest one. What is whole of it stays for
/// a person to look at.
///
/// # Errors
/// It cannot be renamed.
pub fn set_aside(checkpoint: &Checkpoint) -> Result<(), RunError> {
    let names = (1_u32..).map(|number| match number {
        1 => "damaged".to_owned(),
        more => format!("damaged-{more}"),
    });
    let mut free = names.map(|end| checkpoint.path.with_extension(end)).filter(|path| !path.exists());
    let Some(aside) = free.next() else { return Ok(()) };
    fs::rename(&checkpoint.path, aside).map_err(RunError::io("cannot rename", &checkpoint.path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::{
        checkpoint::{
            latest_checkpoint,
            tests::{write, write_with},
        },
        sample,
    };

    #[test]
    fn pruning_keeps_the_newest_and_sweeps_what_was_left_half_written() {
        let (_folder, run) = sample::run("prune");
        for update in [1, 2, 3, 4] {
            write(&run, update);
        }
        fs::create_dir(run.checkpoints().join(".00000005.tmp-1-0")).unwrap();
        assert_eq!(prune(&run, 2, true).unwrap(), [1, 2]);
        assert_eq!(prune(&run, 0, true).unwrap(), [3], "one always stays");
        let left = fs::read_dir(run.checkpoints()).unwrap().count();
        assert_eq!((left, latest_checkpoint(&run).unwrap().unwrap().update), (1, 4));
    }

    #[test]
    fn pruning_keeps_the_best_if_it_is_to() {
        let (_folder, run) = sample::run("best");
        for (update, loss) in [(1, Some(3.0)), (2, Some(1.5)), (3, None), (4, Some(f64::NAN)), (5, Some(2.0))]
        {
            write_with(&run, update, loss);
        }
        assert_eq!(prune(&run, 1, true).unwrap(), [1, 3, 4], "the best and the newest stay");
        write_with(&run, 6, Some(1.0));
        assert_eq!(prune(&run, 1, true).unwrap(), [2, 5], "one is the newest and the best");
        write_with(&run, 7, Some(9.0));
        assert_eq!(prune(&run, 1, false).unwrap(), [6]);
    }
}
