//! `tui-train resume RUN`: goes on with a run where its newest checkpoint stands.

use std::{
    io::{BufRead, IsTerminal, Write},
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
};

use super::{
    INTERRUPTED, attach, follow,
    look::{self, Look},
    output,
    progress::Waiting,
    settings,
};
use crate::{
    config::{Config, ConfigError, change, fields},
    run::{Home, RunDir, goes_on, launch},
};

/// Which run, and what is to change.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Id, unique start of an id, name (the newest of that name), path, or `latest`
    #[arg(value_name = "RUN", default_value = "latest")]
    run: String,
    /// Change one key that leaves state and data alone, such as train.max_updates=1000; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Go on on this device: auto, flex, libtorch-cpu or libtorch-cuda:N
    #[arg(long, value_name = "DEVICE")]
    device: Option<String>,
    #[command(flatten)]
    look: Look,
    /// Print lines instead of opening the screens
    #[arg(long)]
    headless: bool,
    /// Print every event from now on as one JSON line; implies --headless
    #[arg(long)]
    json: bool,
}

/// Goes on with the run in a process of its own and follows it.
///
/// # Errors
/// There is no such run, it is live or finished, a setting cannot be changed, or no checkpoint can be used.
pub fn run(args: Args) -> anyhow::Result<i32> {
    let run = RunDir::resolve(&Home::from_env()?, &args.run)?;
    let mut set = args.set;
    set.extend(args.device.map(|device| format!("train.device={device}")));
    let headless = args.headless || args.json || !look::can_draw();
    if !agreed(&run, &set, headless)? {
        return Ok(INTERRUPTED);
    }
    let presses = headless.then(follow::interrupts).transpose()?;
    let waiting = Waiting::on("the worker is starting");
    let begun = launch::resume(&run, &set, presses.as_deref().unwrap_or(&AtomicUsize::new(0)));
    drop(waiting);
    let (from, notes) = match begun {
        Err(_) if presses.as_ref().is_some_and(|presses| presses.load(Relaxed) > 1) => {
            output::message(&format!(
                "the worker was ended before it went on; go on with the run: {}",
                goes_on::resumed(&run)
            ));
            return Ok(INTERRUPTED);
        }
        begun => begun?,
    };
    notes.iter().for_each(|note| output::message(note));
    match presses {
        None => attach::open(run, &args.look),
        Some(presses) => follow::follow(&run, from, args.json, &presses),
    }
}

/// Lists what changes, and asks where somebody can answer.
fn agreed(run: &RunDir, set: &[String], headless: bool) -> anyhow::Result<bool> {
    let before = run.config()?;
    for note in not_used(&before)? {
        output::message(&note);
    }
    let changed = change::on_resume(&before, &before.changed(&run.explicit()?, set)?.config)?;
    for [key, was, is] in &changed {
        output::message(&format!("{key}: {was} -> {is}"));
    }
    if changed.is_empty() || headless || !std::io::stdin().is_terminal() {
        return Ok(true);
    }
    let mut err = std::io::stderr().lock();
    // A terminal that cannot be written cannot be asked.
    let _ = write!(err, "go on with run {} so? [Y/n] ", run.id());
    let _ = err.flush();
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "" | "y" | "Y" | "yes"))
}

/// The variables of the environment that ask for something else: a run keeps the settings it has.
fn not_used(config: &Config) -> Result<Vec<String>, ConfigError> {
    let variables: Vec<_> = settings::environment().collect();
    let mut notes = Vec::new();
    for field in fields::all() {
        let name = field.variable();
        let Some((_, value)) = variables.iter().find(|(known, _)| *known == name) else { continue };
        let asked = config.changed(&std::collections::BTreeMap::new(), &[format!("{}={value}", field.key)]);
        if asked.is_ok_and(|asked| asked.config != *config) {
            notes.push(format!(
                "{name}={value} is not used: a resumed run keeps its settings; --set {}={value} would change it",
                field.key
            ));
        }
    }
    Ok(notes)
}
