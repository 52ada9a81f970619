//! Queued runs train one after another, whoever watches, and a grid ends in a comparison.

use std::{
    io::{BufRead, BufReader},
    process::{Child, Stdio},
};

use serde_json::Value;

use crate::support::{SMALL, Sandbox, events, wait_for};

fn grid(sandbox: &Sandbox, name: &str, axes: &[&str], settings: &[&str]) -> std::process::Command {
    let mut arguments = vec!["run", "--json", "--name", name];
    SMALL.iter().chain(settings).for_each(|setting| arguments.extend(["--set", setting]));
    axes.iter().for_each(|axis| arguments.extend(["--grid", axis]));
    let mut command = sandbox.command(&arguments);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Waits until the first run of a grid has made an update.
fn first_update(printer: &mut Child) -> BufReader<std::process::ChildStdout> {
    let mut reader = BufReader::new(printer.stdout.take().unwrap());
    let mut line = String::new();
    while !line.contains(r#""type":"update""#) {
        line.clear();
        assert!(reader.read_line(&mut line).unwrap() > 0, "the run ended before its first update");
    }
    reader
}

fn kill(signal: &str, id: &str) {
    assert!(std::process::Command::new("kill").args([signal, id.trim()]).status().unwrap().success());
}

fn worker(sandbox: &Sandbox, name: &str) -> String {
    let run = sandbox.runs().into_iter().find(|run| run.to_str().unwrap().ends_with(name)).unwrap();
    std::fs::read_to_string(run.join("lock")).unwrap()
}

fn states(runs: &[Value]) -> Vec<(&str, &str)> {
    let mut states: Vec<_> =
        runs.iter().map(|run| (run["name"].as_str().unwrap(), run["state"].as_str().unwrap())).collect();
    states.sort_unstable();
    states
}

#[test]
fn a_grid_trains_its_product_in_order_and_ends_in_a_comparison() {
    let sandbox = Sandbox::new();
    let axes = ["optimizer.name=sgd,adafactor", "train.accumulate=2,1"];
    let settings = ["train.max_updates=3", "schedule.warmup_updates=0"];
    let output = grid(&sandbox, "g", &axes, &settings).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let told = events(&output.stdout);
    let of = |kind: &str| told.iter().filter(|event| event["type"] == kind).collect::<Vec<_>>();
    let names: Vec<_> = of("header").iter().map(|header| header["name"].as_str().unwrap()).collect();
    assert_eq!(
        names,
        ["g sgd accumulate=2", "g sgd accumulate=1", "g adafactor accumulate=2", "g adafactor accumulate=1"]
    );
    let first: Vec<_> = of("update")
        .into_iter()
        .filter(|update| update["update"] == 1)
        .map(|update| update["train/loss"].as_f64().unwrap())
        .collect();
    assert_eq!((first[0], first[1]), (first[2], first[3]), "the same start and the same data");
    let last = told.last().unwrap();
    assert_eq!(last["type"], "comparison");
    assert_eq!(last["runs"].as_array().unwrap().len(), 4);
    assert!(last["verdict"]["text"].as_str().unwrap().contains("adafactor"), "{last}");
    let starts: Vec<_> = of("run_ended").iter().map(|ended| ended["reason"].as_str().unwrap()).collect();
    assert_eq!(starts, ["finished"; 4]);
    wait_for("the runner has gone", || {
        let home = tui_train::run::Home::at(sandbox.home());
        (!tui_train::run::Queue::of(&home).has_runner().unwrap()).then_some(())
    });
}

#[test]
fn a_wrong_combination_is_told_before_anything_starts() {
    let sandbox = Sandbox::new();
    for (axes, word) in [
        (["optimizer.name=adamw,sgd", "optimizer.beta9=1"], "in the grid at optimizer.name=adamw"),
        (["train.max_updates=50,2", "schedule.warmup_updates=2"], "train.max_updates=2, schedule.warmup"),
        (["data.source=stories,path", "train.seed=1"], "data.source=path"),
    ] {
        let output = grid(&sandbox, "wrong", &axes, &[]).output().unwrap();
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{message}");
        assert!(message.contains(word), "{message}");
    }
    assert!(sandbox.runs().is_empty());
}

#[test]
fn a_run_that_dies_does_not_stop_the_rest_and_is_told_in_the_exit_code() {
    let sandbox = Sandbox::new();
    let axes = ["train.max_updates=1000000,4,3"];
    let mut printer = grid(&sandbox, "g", &axes, &["schedule.warmup_updates=0"]).spawn().unwrap();
    let mut reader = first_update(&mut printer);
    let waiting = sandbox.json(&["list", "--json"]);
    let expected =
        [("g max_updates=1000000", "live"), ("g max_updates=3", "queued"), ("g max_updates=4", "queued")];
    assert_eq!(states(waiting["runs"].as_array().unwrap()), expected);
    // One is taken out while it waits.
    let stopped = sandbox.run(&["stop", "g max_updates=4"]);
    assert!(stopped.status.success(), "{}", String::from_utf8_lossy(&stopped.stderr));
    kill("-9", &worker(&sandbox, "1000000"));
    let mut rest = String::new();
    std::io::Read::read_to_string(&mut reader, &mut rest).unwrap();
    assert_eq!(printer.wait().unwrap().code(), Some(1));
    let list = sandbox.json(&["list", "--json"]);
    let expected =
        [("g max_updates=1000000", "crashed"), ("g max_updates=3", "done"), ("g max_updates=4", "stopped")];
    assert_eq!(states(list["runs"].as_array().unwrap()), expected);
    assert!(rest.lines().last().unwrap().contains("comparison"), "what has trained is compared");
}

#[test]
fn the_queue_survives_its_printer_its_runner_and_a_reboot() {
    let sandbox = Sandbox::new();
    let axes = ["train.max_updates=1000000,2"];
    let mut printer = grid(&sandbox, "g", &axes, &["schedule.warmup_updates=0"]).spawn().unwrap();
    let reader = first_update(&mut printer);
    printer.kill().unwrap();
    printer.wait().unwrap();
    drop(reader);
    let before = sandbox.json(&["list", "--json"])["runs"].clone();
    assert_eq!(
        states(before.as_array().unwrap()),
        [("g max_updates=1000000", "live"), ("g max_updates=2", "queued")]
    );
    sandbox.kill_runner();
    kill("-9", &worker(&sandbox, "1000000"));
    // Its lock is free a moment after the signal was sent.
    wait_for("the runner's death to be told", || {
        let told = sandbox.run(&["list"]).stderr;
        String::from_utf8_lossy(&told).contains("1 runs are queued and nothing starts them").then_some(())
    });
    // The next program that starts a run starts the queue, too.
    sandbox.train("other", &["train.max_updates=2", "schedule.warmup_updates=0"]);
    let after = sandbox
        .wait_for_list("the queued run is done", |runs| states(runs).contains(&("g max_updates=2", "done")));
    assert!(states(&after).contains(&("g max_updates=1000000", "crashed")));
}

#[test]
fn an_interrupt_stops_the_run_and_empties_the_grid() {
    let sandbox = Sandbox::new();
    let axes = ["train.max_updates=1000000,2"];
    let mut printer = grid(&sandbox, "g", &axes, &["schedule.warmup_updates=0"]).spawn().unwrap();
    let mut reader = first_update(&mut printer);
    kill("-INT", &printer.id().to_string());
    std::io::copy(&mut reader, &mut std::io::sink()).unwrap();
    assert_eq!(printer.wait().unwrap().code(), Some(130));
    let list = sandbox
        .wait_for_list("both have stopped", |runs| states(runs).iter().all(|(_, state)| *state == "stopped"));
    let never = list.iter().find(|run| run["name"] == "g max_updates=2").unwrap();
    assert_eq!(never["update"], 0);
}
