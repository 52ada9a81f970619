//! `tui-train fork RUN`: a new run that starts from a checkpoint of another one, with anything changed.

use super::{
    attach, follow,
    look::{self, Look},
    output,
    progress::{Waiting, open_data},
};
use crate::{
    config::validate,
    data::total_updates,
    run::{Home, RunDir, fork},
};

/// Which checkpoint, and what is to change.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Id, unique start of an id, name (the newest of that name), path, or `latest`
    #[arg(value_name = "RUN", default_value = "latest")]
    run: String,
    /// The checkpoint of this update; the newest without it
    #[arg(long, value_name = "UPDATE")]
    at: Option<u64>,
    /// Change one key, such as optimizer.name=adafactor; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Device to train on: auto, flex, libtorch-cpu or libtorch-cuda:N
    #[arg(long, value_name = "DEVICE")]
    device: Option<String>,
    /// Name of the new run
    #[arg(long, value_parser = crate::run::label::run_name)]
    name: Option<String>,
    #[command(flatten)]
    look: Look,
    /// Print lines instead of opening the screens
    #[arg(long)]
    headless: bool,
    /// Print every event as one JSON line; implies --headless
    #[arg(long)]
    json: bool,
}

/// Starts the fork in a process of its own and follows it.
///
/// # Errors
/// There is no such checkpoint, a setting cannot be used, or the checkpoint does not fit what is to be trained.
pub fn run(args: Args) -> anyhow::Result<i32> {
    let home = Home::from_env()?;
    let run = RunDir::resolve(&home, &args.run)?;
    let mut set = args.set;
    set.extend(args.device.map(|device| format!("train.device={device}")));
    let waiting = Waiting::on("reading the checkpoint");
    let plan = fork::plan(&run, args.at, &set)?;
    drop(waiting);
    let dataset = open_data(&plan.resolved.config)?;
    let total = total_updates(&plan.resolved.config, &dataset);
    validate::warmup(&plan.resolved.config, total)?;
    plan.leaves_something_to_do(total)?;
    drop(dataset);
    plan.changes().iter().for_each(|change| output::message(change));
    let headless = args.headless || args.json || !look::can_draw();
    let presses = headless.then(follow::interrupts).transpose()?;
    let waiting = Waiting::on("copying the checkpoint");
    let fork = fork::start(&home, plan, args.name.as_deref())?;
    drop(waiting);
    match presses {
        None => attach::open(fork, &args.look),
        Some(presses) => follow::follow(&fork, 0, args.json, &presses),
    }
}
