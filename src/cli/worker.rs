//! `tui-train worker RUNDIR`: the process of a run.

use std::path::PathBuf;

/// The run directory.
#[derive(Debug, clap::Args)]
pub struct Args {
    path: PathBuf,
    /// Go on where the run stood
    #[arg(long)]
    resume: bool,
    /// Go on with this setting
    #[arg(long = "set", value_name = "KEY=VALUE", requires = "resume")]
    set: Vec<String>,
}

/// Trains to the end; the exit code tells how it went.
///
/// # Errors
/// The directory cannot be trained.
pub fn run(args: Args) -> anyhow::Result<i32> {
    crate::worker::process::main(&args.path, args.resume.then_some(args.set.as_slice()))
}
