//! A run is a process of its own: it is stopped, survives its printer, and its death is told.

use std::{
    io::{BufRead, BufReader, Read},
    process::{Child, Stdio},
};

use serde_json::Value;

use crate::support::{SMALL, Sandbox, wait_for};

/// A run that would take hours, followed as JSON lines.
fn start(sandbox: &Sandbox, name: &str) -> Child {
    let mut arguments = vec!["run", "--json", "--name", name];
    SMALL
        .iter()
        .chain(&["train.max_updates=1000000"])
        .for_each(|setting| arguments.extend(["--set", setting]));
    sandbox.command(&arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn wait_for_update(reader: &mut impl BufRead) -> Value {
    let mut line = String::new();
    loop {
        line.clear();
        assert!(reader.read_line(&mut line).unwrap() > 0, "the run ended before its first update");
        let event: Value = serde_json::from_str(&line).unwrap();
        if event["type"] == "update" {
            return event;
        }
    }
}

#[test]
fn stop_finishes_the_update_and_writes_a_checkpoint() {
    let sandbox = Sandbox::new();
    let mut printer = start(&sandbox, "long");
    let mut reader = BufReader::new(printer.stdout.take().unwrap());
    wait_for_update(&mut reader);
    let live = sandbox.json(&["list", "--json"]);
    assert_eq!(live["runs"][0]["state"], "live");
    let inspected = sandbox.json(&["inspect", "long", "--tensor", "*norm*", "--json"]);
    assert_eq!(inspected["tensors"].as_array().unwrap().len(), 3, "two norms of the layer and the last one");

    let output = sandbox.run(&["stop", "long"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut rest = Vec::new();
    reader.read_to_end(&mut rest).unwrap();
    assert!(printer.wait().unwrap().success());
    let events = crate::support::events(&rest);
    let last = events.last().unwrap();
    assert_eq!(last["reason"], "stopped");
    let update = last["summary"]["updates"].as_u64().unwrap();
    let checkpoint = sandbox.runs()[0].join(format!("checkpoints/{update:08}"));
    assert!(checkpoint.join("optimizer.safetensors").exists(), "{}", checkpoint.display());
    assert!(
        events.iter().any(|event| event["type"] == "command"
            && event["name"] == "stop"
            && event["outcome"] == "applied")
    );

    let again = sandbox.run(&["stop", "long"]);
    assert_eq!(again.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&again.stderr).contains("not live"));
}

#[test]
fn a_closed_standard_output_ends_the_printing_not_the_run() {
    let sandbox = Sandbox::new();
    let mut printer = start(&sandbox, "piped");
    let mut reader = BufReader::new(printer.stdout.take().unwrap());
    reader.read_line(&mut String::new()).unwrap();
    drop(reader);
    assert_eq!(printer.wait().unwrap().code(), Some(0));
    let before = sandbox.wait_for_list("the run is live", |runs| runs[0]["state"] == "live");
    let updates = |runs: &[Value]| runs[0]["update"].as_u64().unwrap();
    sandbox.wait_for_list("the run goes on", |runs| updates(runs) > updates(&before));
    assert!(sandbox.run(&["stop", "latest"]).status.success());
    sandbox.wait_for_list("the run has stopped", |runs| runs[0]["state"] == "stopped");
}

#[test]
fn an_interrupt_stops_the_run_and_exits_130() {
    let sandbox = Sandbox::new();
    let mut printer = start(&sandbox, "interrupted");
    let mut reader = BufReader::new(printer.stdout.take().unwrap());
    wait_for_update(&mut reader);
    let id = printer.id().to_string();
    assert!(std::process::Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    std::io::copy(&mut reader, &mut std::io::sink()).unwrap();
    assert_eq!(printer.wait().unwrap().code(), Some(130));
    sandbox.wait_for_list("the run has stopped", |runs| runs[0]["state"] == "stopped");
}

#[test]
fn a_killed_worker_is_shown_as_crashed() {
    let sandbox = Sandbox::new();
    let mut printer = start(&sandbox, "killed");
    let mut reader = BufReader::new(printer.stdout.take().unwrap());
    wait_for_update(&mut reader);
    let worker = std::fs::read_to_string(sandbox.runs()[0].join("lock")).unwrap();
    assert!(std::process::Command::new("kill").args(["-9", worker.trim()]).status().unwrap().success());
    std::io::copy(&mut reader, &mut std::io::sink()).unwrap();
    let mut message = String::new();
    printer.stderr.take().unwrap().read_to_string(&mut message).unwrap();
    assert_eq!(printer.wait().unwrap().code(), Some(1));
    assert!(message.contains("died"), "{message}");
    sandbox.wait_for_list("the run is crashed", |runs| runs[0]["state"] == "crashed");
    let shown = sandbox.run(&["show", "killed"]);
    assert!(String::from_utf8_lossy(&shown.stdout).contains("crashed"));
}

#[test]
fn odd_names_are_kept_and_found() {
    let sandbox = Sandbox::new();
    let name = "lr 1e-3 / schön? ../..";
    sandbox.train(name, &["train.max_updates=2", "schedule.warmup_updates=0"]);
    assert_eq!(sandbox.runs().len(), 1, "the folder is where it belongs");
    let list = sandbox.json(&["list", "--json"]);
    assert_eq!(list["runs"][0]["name"], name);
    assert_eq!(sandbox.json(&["show", name, "--json"])["updates"], 2);
}

#[test]
fn only_one_worker_trains_a_run() {
    let sandbox = Sandbox::new();
    let mut printer = start(&sandbox, "locked");
    let mut reader = BufReader::new(printer.stdout.take().unwrap());
    wait_for_update(&mut reader);
    let run = sandbox.runs()[0].clone();
    let second = sandbox.run(&["worker", run.to_str().unwrap()]);
    assert_eq!(second.status.code(), Some(1));
    assert!(!second.stderr.is_empty());
    drop(reader);
    assert!(sandbox.run(&["stop", "latest"]).status.success());
    wait_for("the run has ended", || run.join("summary.json").exists().then_some(()));
    let _ = printer.wait();
}
