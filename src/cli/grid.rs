//! `tui-train run --grid key=a,b`: the product of some settings as queued runs, and their comparison.

use std::{
    sync::atomic::{AtomicUsize, Ordering::SeqCst},
    time::{Duration, Instant},
};

use serde_json::Value;

use super::{
    FAILED, INTERRUPTED, attach, compare,
    follow::{follow_with, interrupts},
    output,
    printer::Printer,
    queue,
    run::{Args, check_data, fit_warmup},
};
use crate::{
    config::{Config, ConfigError, Resolved, grid},
    run::{Home, Queue, RunDir, State, compare::compare as compare_runs, launch, list::Lister, lock},
};

/// Time between two looks at a run that waits.
const POLL: Duration = Duration::from_millis(100);
/// Time between two looks whether anything starts what is queued.
const LOOK_AFTER: Duration = Duration::from_secs(2);

/// Queues the runs and shows them, or prints how each of them ends and what came of them all.
///
/// # Errors
/// A combination cannot be used: then nothing is queued.
pub(super) fn run(args: &Args) -> anyhow::Result<i32> {
    for setting in &args.settings.set {
        let key = setting.split('=').next().unwrap_or_default().trim();
        let in_grid = |axis: &String| axis.split('=').next().is_some_and(|other| other.trim() == key);
        if args.grid.iter().any(in_grid) {
            return Err(ConfigError::Conflict(format!(
                "{key} is set by --set and has its values in the grid: remove one of the two"
            ))
            .into());
        }
    }
    let mut members = grid::resolve(&args.settings.layers()?, &args.grid, args.name.as_deref())?;
    let mut checked: Vec<(Config, u64)> = Vec::new();
    for member in &mut members {
        let config = &member.resolved.config;
        // What the data and the length of the run depend on is the same in most grids.
        let same = |known: &&(Config, u64)| {
            (&known.0.model, &known.0.data, &known.0.train) == (&config.model, &config.data, &config.train)
        };
        let at = |error: anyhow::Error| error.context(format!("in the grid at {}", member.combination));
        let total = match checked.iter().find(same) {
            Some((_, total)) => *total,
            None => {
                let total = check_data(config).map_err(at)?;
                checked.push((config.clone(), total));
                total
            }
        };
        fit_warmup(&mut member.resolved, total).map_err(at)?;
    }
    let drafts: Vec<(Resolved, String)> =
        members.into_iter().map(|member| (member.resolved, member.name)).collect();
    let home = Home::from_env()?;
    let presses = args.prints().then(interrupts).transpose()?;
    let runs = launch::queue(&home, &drafts)?;
    let Some(presses) = presses else { return attach::list(home, args.settings.layers()?, &args.look) };
    if !args.json {
        for run in &runs {
            output::line(&format!("queued: {} ({})", run.id(), run.name()))?;
        }
    }
    follow(&home, &runs, args.json, &presses)
}

/// How one run of several came out.
enum Outcome {
    Ended(i32),
    /// Somebody took it out of the queue.
    Removed,
    /// Nobody reads what is printed.
    Unread,
}

fn follow(home: &Home, runs: &[RunDir], json: bool, presses: &AtomicUsize) -> anyhow::Result<i32> {
    let (mut worst, mut left) = (0, 0);
    let mut trained = Vec::new();
    for (at, run) in runs.iter().enumerate() {
        // Before the run stops: the next one would start.
        let mut before_stop = || {
            left += give_up(home, &runs[at + 1..])?;
            Ok(())
        };
        let outcome = match one(home, run, json, presses, &mut before_stop) {
            Ok(outcome) => outcome,
            Err(error) => {
                output::message(&format!("error: {error:#}"));
                Outcome::Ended(FAILED)
            }
        };
        match outcome {
            Outcome::Unread => return Ok(0),
            Outcome::Removed => output::message(&format!("run {}: taken out of the queue", run.id())),
            Outcome::Ended(code) => {
                worst = worse(worst, code);
                if run.events().exists() {
                    trained.push(run.clone());
                }
            }
        }
        if presses.load(SeqCst) > 0 {
            left += give_up(home, &runs[at..])?;
            output::message(&format!("{left} of the runs, not started yet, taken out of the queue"));
            return Ok(INTERRUPTED);
        }
    }
    if trained.len() > 1 {
        let comparison = compare_runs(&trained)?;
        if json {
            let mut value = serde_json::to_value(&comparison)?;
            if let Value::Object(map) = &mut value {
                map.shift_insert(0, "type".into(), "comparison".into());
            }
            output::line(&value.to_string())?;
        } else {
            output::line(&format!("\n{}", compare::page(&comparison).trim_end()))?;
        }
    }
    Ok(worst)
}

/// Waits for the run to start and prints it until it ends.
fn one(
    home: &Home,
    run: &RunDir,
    json: bool,
    presses: &AtomicUsize,
    before_stop: &mut dyn FnMut() -> anyhow::Result<()>,
) -> anyhow::Result<Outcome> {
    let line = Queue::of(home);
    let mut looked = Instant::now();
    while !(lock::is_live(run) || run.events().exists()) {
        if presses.load(SeqCst) > 0 {
            return Ok(Outcome::Removed);
        }
        let waits = line.holds(run)?;
        match Lister::default().entry(run).state {
            State::Stopped => return Ok(Outcome::Removed),
            State::Queued if waits => {}
            // The line may have been left between the two looks.
            State::Queued => anyhow::bail!("run {} is not in the queue any more and never started", run.id()),
            _ => break,
        }
        if looked.elapsed() > LOOK_AFTER {
            looked = Instant::now();
            queue::wake(home);
        }
        std::thread::sleep(POLL);
    }
    Ok(follow_with(run, 0, Printer::of_many(json), presses, before_stop)?
        .map_or(Outcome::Unread, Outcome::Ended))
}

/// Takes the runs that still wait out of the queue and returns how many there were.
fn give_up(home: &Home, runs: &[RunDir]) -> anyhow::Result<usize> {
    let line = Queue::of(home);
    let mut left = 0;
    for run in runs {
        left += usize::from(line.remove(run)?);
    }
    Ok(left)
}

/// Of two exit codes the one that matters more: an interrupt, a failure, a loss that is not finite, success.
fn worse(one: i32, other: i32) -> i32 {
    let weight = |code| match code {
        0 => 0,
        INTERRUPTED => 3,
        FAILED => 2,
        _ => 1,
    };
    if weight(other) > weight(one) { other } else { one }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_exit_code_is_told() {
        let worst = |codes: &[i32]| codes.iter().fold(0, |worst, code| worse(worst, *code));
        assert_eq!(worst(&[0, 0]), 0);
        assert_eq!(worst(&[0, 4, 0]), 4);
        assert_eq!(worst(&[4, 1, 4]), 1);
        assert_eq!(worst(&[1, 130, 0]), 130);
    }
}
