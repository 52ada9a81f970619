//! The screens are killed at any moment, again and again; the run is the one that nobody disturbed.

use std::{fs, path::Path, process::Command, time::Duration};

use tui_train::{
    data::random::{below, generator},
    run::{RunDir, is_live},
};

use super::terminal::Terminal;
use crate::{
    soak::victim::{Straight, assert_readable},
    support::{SMALL, Sandbox, device_name, wait_for},
};

const SETTINGS: [&str; 5] = [
    "train.max_updates=600",
    "train.accumulate=2",
    "train.validate_every=50",
    "checkpoint.every_updates=10",
    "log.state_every=0",
];

fn updates(run: &Path) -> usize {
    fs::read_to_string(run.join("events.jsonl")).unwrap_or_default().matches("\"type\":\"update\"").count()
}

/// Kills the program with the screens. What it started is not its own any more.
fn kill(terminal: Terminal) {
    assert!(Command::new("kill").args(["-9", &terminal.pid().to_string()]).status().unwrap().success());
    terminal.kill();
}

#[test]
fn screens_that_are_killed_take_nothing_from_the_run() {
    // The same numbers to the bit are a promise of flex alone.
    if device_name() != "flex" {
        return;
    }
    let settings: Vec<&str> = SMALL.iter().chain(&SETTINGS).copied().collect();
    let straight = Straight::train(&settings);
    let sandbox = Sandbox::new();
    let mut dice = generator(3, "screens", 0);
    let pause = sandbox.pause_at(10);
    let arguments = ["run", "--name", "watched", "--commands", &pause];
    let first = Terminal::start(&sandbox, &arguments, &SETTINGS, 30, 100);
    let run = wait_for("a checkpoint and the pause behind it", || {
        sandbox.runs().pop().filter(|run| run.join("checkpoints/00000010").exists())
    });
    // The screens, then the worker.
    kill(first);
    let worker = fs::read_to_string(run.join("lock")).unwrap();
    assert!(Command::new("kill").args(["-9", worker.trim()]).output().unwrap().status.success());
    wait_for("the lock to be free", || (!is_live(&RunDir::open(&run).unwrap())).then_some(()));
    assert_readable(&RunDir::open(&run).unwrap(), 1);
    let before = updates(&run);
    let again = Terminal::start(&sandbox, &["resume", "watched"], &[], 30, 100);
    wait_for("the run to go on", || (updates(&run) > before).then_some(()));
    kill(again);
    // Whoever looks while it trains is killed, too.
    for _ in 0..2 {
        let viewer = Terminal::start(&sandbox, &["attach", "watched"], &[], 30, 100);
        viewer.wait("the run", |screen| screen.contains("tokens/s") || screen.contains("finished"));
        std::thread::sleep(Duration::from_micros(below(&mut dice, 50_000)));
        kill(viewer);
    }
    wait_for("the end", || run.join("summary.json").exists().then_some(()));
    sandbox.wait_for_list("a finished run", |runs| runs[0]["state"] == "done");
    straight.assert_same(&run);
    assert_readable(&RunDir::open(&run).unwrap(), 1);
}
