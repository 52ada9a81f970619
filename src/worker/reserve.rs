//! Room that is kept on the disk, so that a run whose disk is full can still record how it ended.

use std::{fs, path::PathBuf};

use crate::run::RunDir;

/// Enough for the last line of the record and both summaries.
const BYTES: usize = 64 << 10;

fn path(run: &RunDir) -> PathBuf {
    run.path().join(".reserve")
}

/// Takes the room. Where there is none a run begins all the same: it may be made before the run ends.
pub(super) fn take(run: &RunDir) {
    // Some file systems store nothing for zeros.
    let filler: Vec<u8> =
        (0..BYTES).map(|at| (at as u32).wrapping_mul(2_654_435_769).to_be_bytes()[0]).collect();
    let _ = fs::write(path(run), filler);
}

/// Gives the room back.
pub(super) fn give_back(run: &RunDir) {
    let _ = fs::remove_file(path(run));
}
