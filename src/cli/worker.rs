//! `tui-train worker RUNDIR`: the process of a run.

use std::path::PathBuf;

/// The run directory.
#[derive(Debug, clap::Args)]
pub struct Args {
    path: PathBuf,
}

/// Trains to the end; the exit code tells how it went.
///
/// # Errors
/// The directory cannot be trained.
pub fn run(args: Args) -> anyhow::Result<i32> {
    crate::worker::process::main(&args.path)
}
