//! A run is a process of its own: it is stopped, survives its printer, and its death is told.

use std::{
    io::{BufRead, BufReader, Read},
    process::{Child, Stdio},
};

use serde_json::Value;
use tui_train::{
    protocol::{Answer, Command},
    run::{Client, RunDir},
};

use crate::support::{DEADLINE, SMALL, Sandbox, wait_for};

/// A run that would take hours, followed as JSON lines.
fn start(sandbox: &Sandbox, name: &str) -> Child {
    start_with(sandbox, name, &[])
}

fn start_with(sandbox: &Sandbox, name: &str, settings: &[&str]) -> Child {
    let mut arguments = vec!["run", "--json", "--name", name];
    let hours = ["train.max_updates=1000000"];
    SMALL.iter().chain(&hours).chain(settings).for_each(|setting| arguments.extend(["--set", setting]));
    sandbox.command(&arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

pub(super) fn wait_for_update(reader: &mut impl BufRead) -> Value {
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
    for signal in ["-INT", "-TERM"] {
        let sandbox = Sandbox::new();
        let mut printer = start(&sandbox, "interrupted");
        let mut reader = BufReader::new(printer.stdout.take().unwrap());
        wait_for_update(&mut reader);
        let id = printer.id().to_string();
        assert!(std::process::Command::new("kill").args([signal, &id]).status().unwrap().success());
        std::io::copy(&mut reader, &mut std::io::sink()).unwrap();
        assert_eq!(printer.wait().unwrap().code(), Some(130));
        sandbox.wait_for_list("the run has stopped", |runs| runs[0]["state"] == "stopped");
    }
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
    assert!(message.contains("died") && message.contains("SIGKILL (signal 9)"), "{message}");
    let runs = sandbox.wait_for_list("the run is crashed", |runs| runs[0]["state"] == "crashed");
    assert!(runs[0]["problem"].as_str().unwrap().contains("SIGKILL"), "{}", runs[0]);
    let shown = sandbox.run(&["show", "killed"]);
    let shown = String::from_utf8_lossy(&shown.stdout);
    assert!(shown.contains("crashed") && shown.contains("SIGKILL"), "{shown}");
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

#[test]
fn commands_are_obeyed_answered_and_recorded_and_a_pause_changes_nothing() {
    let sandbox = Sandbox::new();
    // No update depends on how many there will be.
    let settings = ["schedule.name=constant", "schedule.warmup_updates=0"];
    let mut printer = start_with(&sandbox, "paused", &settings);
    let mut reader = BufReader::new(printer.stdout.take().unwrap());
    wait_for_update(&mut reader);
    let run = RunDir::open(&sandbox.runs()[0]).unwrap();
    let mut client = Client::connect(&run).unwrap();
    let mut ask = |command: Command| client.ask(command, DEADLINE).unwrap();

    assert!(matches!(ask(Command::Step), Answer::Rejected { why } if why.contains("not paused")));
    let Answer::Applied { at_update: paused } = ask(Command::Pause) else { panic!("a pause is applied") };
    assert!(matches!(ask(Command::Step), Answer::Applied { at_update } if at_update == paused + 1));
    assert!(matches!(ask(Command::StepMicroBatch), Answer::Applied { at_update } if at_update == paused + 2));
    assert!(matches!(ask(Command::Checkpoint), Answer::Applied { at_update } if at_update == paused + 2));
    assert!(run.checkpoint(paused + 2).join("optimizer.safetensors").exists());
    assert!(matches!(ask(Command::LearningRate { value: Some(-1.0) }), Answer::Rejected { .. }));
    let Answer::Opened(detail) = ask(Command::Open { tensor: "model.norm.weight".into(), width: 16 }) else {
        panic!("a parameter is opened")
    };
    assert_eq!(detail.tensor.step, paused + 2);
    assert!(detail.strips.iter().all(|strip| strip.length == 64 && strip.values.len() == 16));
    assert!(detail.look.is_none(), "no update was made since it was opened");
    assert!(detail.histograms.iter().all(|histogram| histogram.total() == 64 && histogram.every == 1));
    assert!(matches!(ask(Command::Open { tensor: "nothing".into(), width: 1 }), Answer::Rejected { .. }));
    assert!(matches!(ask(Command::Step), Answer::Applied { at_update } if at_update == paused + 3));
    let Answer::Opened(detail) = ask(Command::Open { tensor: "model.norm.weight".into(), width: 16 }) else {
        panic!("a parameter is opened")
    };
    let look = detail.look.expect("the update after it was opened was looked into");
    assert_eq!((look.step, look.update.total(), look.gradient.total()), (paused + 3, 64, 64));
    assert!(matches!(ask(Command::Resume), Answer::Applied { at_update } if at_update == paused + 3));
    let Answer::Applied { at_update: made } = ask(Command::Stop) else { panic!("a stop is applied") };

    let mut rest = Vec::new();
    reader.read_to_end(&mut rest).unwrap();
    assert!(printer.wait().unwrap().success());
    let written = crate::support::events(&std::fs::read(run.events()).unwrap());
    let commands: Vec<(&str, &str)> = written
        .iter()
        .filter(|event| event["type"] == "command")
        .map(|event| (event["name"].as_str().unwrap(), event["outcome"].as_str().unwrap()))
        .collect();
    let expected = [
        ("step", "rejected"),
        ("pause", "applied"),
        ("step", "applied"),
        ("step_micro_batch", "applied"),
        ("checkpoint", "applied"),
        ("learning_rate", "rejected"),
        ("step", "applied"),
        ("resume", "applied"),
        ("stop", "applied"),
    ];
    assert_eq!(commands, expected, "looking leaves no trace");

    let losses = |events: &[Value]| -> Vec<Value> {
        events
            .iter()
            .filter(|event| event["type"] == "update")
            .map(|event| event["train/loss"].clone())
            .collect()
    };
    let length = format!("train.max_updates={made}");
    let undisturbed = sandbox.train("undisturbed", &[settings[0], settings[1], &length]);
    assert_eq!(losses(&written), losses(&undisturbed));
}
