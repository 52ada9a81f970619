//! The list of runs: forks, names, notes, and a queued run that is watched.

use super::terminal::Terminal;
use crate::support::Sandbox;

#[test]
fn a_run_is_forked_named_and_noted_from_the_list() {
    let sandbox = Sandbox::new();
    let settings = ["train.max_updates=6", "checkpoint.every_updates=2", "checkpoint.keep_last=9"];
    sandbox.train("base", &[&settings[..], &["schedule.warmup_updates=0"]].concat());
    let mut terminal = Terminal::start(&sandbox, &["attach", "base"], &[], 40, 120);
    terminal.wait_text("finished");
    terminal.press("4");
    terminal.wait_text("runs 1");
    terminal.press("F");
    terminal.wait_text("start from its checkpoint of");
    terminal.press("j\r");
    terminal.wait_text("fork of base at update 4");
    terminal.press(":set train.max_updates=9\r");
    terminal.press(":name short\r");
    terminal.wait_text("short");
    terminal.press("\r");
    terminal.wait("the fork's end", |screen| screen.contains("update 9 / 9") && screen.contains("finished"));
    let runs = sandbox.wait_for_list("both have ended", |runs| runs.iter().all(|run| run["state"] == "done"));
    let fork = runs.iter().find(|run| run["name"] == "short").unwrap();
    assert_eq!((&fork["forked_from"]["update"], &fork["total_updates"]), (&4.into(), &9.into()));

    terminal.press("4");
    terminal.wait_text("runs 2");
    terminal.wait_text("forked from base at update 4");
    terminal.press("z");
    terminal.wait_text("updates from fork");
    terminal.press("E");
    terminal.wait_text(":rename short");
    terminal.press("er\r");
    terminal.wait_text("is now called shorter");
    terminal.press("a");
    terminal.wait_text(":note");
    terminal.press("warm start\r");
    terminal.wait_text("A note: warm start");
    let runs = sandbox.json(&["list", "--json"]);
    let named = |run: &&serde_json::Value| run["name"] == "shorter" && run["note"] == "warm start";
    assert_eq!(runs["runs"].as_array().unwrap().iter().filter(named).count(), 1);
    terminal.press("q");
    assert_eq!(terminal.end(), 0);
}

#[test]
fn a_queued_run_says_what_it_waits_for_and_who_leaves_is_asked_about_the_other() {
    let sandbox = Sandbox::new();
    let run = ["run", "--name", "busy", "--theme", "light"];
    let mut terminal = Terminal::start(&sandbox, &run, &["train.max_updates=1000000"], 40, 120);
    terminal.wait("the first updates", |screen| screen.contains("loss") && screen.contains("tok/s"));
    terminal.press("3");
    terminal.wait_text("next run");
    terminal.press(":name next\r");
    terminal.wait_text("is called next");
    terminal.press("Q");
    terminal.wait_text("queued: next starts when its turn comes");
    terminal.press("4");
    terminal.wait_text("runs 2");
    terminal.press("g\r");
    terminal.wait_text("place 1 of 1 in the queue: waits until busy ends");
    terminal.press(" ");
    terminal.wait_text("pause: the run has not started");
    terminal.press("q");
    terminal.wait_text("busy, which is not on the screen");
    terminal.press("\x1b");
    terminal.wait("the question gone", |screen| !screen.contains("which is not on the screen"));
    terminal.press("x");
    terminal.wait_text("take it out");
    terminal.press("\r");
    terminal.wait_text("taken out of the queue before it started");
    terminal.press("q");
    terminal.wait_text("busy, which is not on the screen");
    terminal.press("s");
    assert_eq!(terminal.end(), 0);
    let runs =
        sandbox.wait_for_list("both are stopped", |runs| runs.iter().all(|run| run["state"] == "stopped"));
    assert!(runs.iter().any(|run| run["name"] == "busy" && run["update"].as_u64() > Some(0)));
}

#[test]
fn nothing_of_a_run_that_was_deleted_stays_on_the_screens() {
    let sandbox = Sandbox::new();
    sandbox.train("unwanted", &["train.max_updates=4", "schedule.warmup_updates=1"]);
    let mut terminal = Terminal::start(&sandbox, &["attach", "unwanted"], &[], 30, 110);
    terminal.wait_text("4 / 4");
    terminal.press("2");
    terminal.wait_text("exp_avg_sq");
    terminal.press("\r");
    terminal.wait_text("after update");
    terminal.press("4");
    terminal.wait_text("unwanted");
    terminal.press("D");
    terminal.wait_text("delete a run");
    terminal.press("d");
    terminal.wait_text("moved to");
    terminal.press("1");
    let train = terminal.wait_text("no run is open");
    assert!(!train.lines().next().unwrap().contains("unwanted"), "{train}");
    terminal.press("2");
    let state = terminal.wait_text("start one on screen");
    assert!(!state.contains("reading its state") && !state.contains("no run is called"), "{state}");
}
