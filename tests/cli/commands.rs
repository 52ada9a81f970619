//! A run that a person drove is trained again from its own record, without a person.

use std::process::Stdio;

use serde_json::Value;
use tui_train::{
    protocol::{Answer, Command},
    run::{Client, RunDir},
};

use super::lifecycle::wait_for_update;
use crate::support::{DEADLINE, SMALL, Sandbox, events, trace::last};

/// Exports the commands of a run and trains them. Returns the file and what was printed.
fn replay(sandbox: &Sandbox, run: &str, name: &str) -> (String, Vec<Value>) {
    let file = sandbox.path(&format!("{name}.toml"));
    let file = file.to_str().unwrap();
    let exported = sandbox.run(&["export", run, "--format", "commands", "-o", file]);
    assert!(exported.status.success(), "{}", String::from_utf8_lossy(&exported.stderr));
    let output = sandbox.run(&["run", "--json", "--name", name, "--commands", file]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    (std::fs::read_to_string(file).unwrap(), events(&output.stdout))
}

fn losses(events: &[Value]) -> Vec<(u64, String, String)> {
    let updates = events.iter().filter(|event| event["type"] == "update");
    updates
        .map(|event| {
            let update = event["update"].as_u64().unwrap();
            (update, event["train/loss"].to_string(), event["train/learning_rate"].to_string())
        })
        .collect()
}

#[test]
fn the_commands_of_a_run_train_it_again_with_the_same_losses() {
    let sandbox = Sandbox::new();
    let mut arguments = vec!["run", "--json", "--name", "driven"];
    let settings = SMALL.iter().chain(&["train.accumulate=2", "train.max_updates=1000000"]);
    settings.for_each(|setting| arguments.extend(["--set", setting]));
    let mut printer = sandbox.command(&arguments).stdout(Stdio::piped()).spawn().unwrap();
    let mut reader = std::io::BufReader::new(printer.stdout.take().unwrap());
    wait_for_update(&mut reader);
    let run = RunDir::open(&sandbox.runs()[0]).unwrap();
    let mut client = Client::connect(&run).unwrap();
    let mut ask = |command: Command| {
        let Answer::Applied { at_update } = client.ask(command.clone(), DEADLINE).unwrap() else {
            panic!("{command:?} is applied")
        };
        at_update
    };
    ask(Command::LearningRate { value: Some(0.02) });
    let paused = ask(Command::Pause);
    assert_eq!(ask(Command::Step), paused + 1);
    ask(Command::LearningRate { value: Some(0.0001) });
    // In the middle of a window: what is given there holds for its update.
    assert_eq!(ask(Command::StepMicroBatch), paused + 1);
    ask(Command::LearningRate { value: Some(0.003) });
    assert_eq!(ask(Command::StepMicroBatch), paused + 2);
    ask(Command::LearningRate { value: None });
    // The run goes on in the middle of a window, and is paused wherever it is by then.
    ask(Command::StepMicroBatch);
    ask(Command::Resume);
    ask(Command::Pause);
    // A window that is begun and given up, or its end.
    ask(Command::StepMicroBatch);
    let stopped = ask(Command::Stop);
    std::io::copy(&mut reader, &mut std::io::sink()).unwrap();
    assert!(printer.wait().unwrap().success());
    let driven = losses(&events(&std::fs::read(run.events()).unwrap()));
    assert_eq!(driven.len() as u64, stopped);

    let (text, again) = replay(&sandbox, "driven", "again");
    assert!(text.contains("[[command]]") && text.contains("train.seq_len = 16"), "{text}");
    assert_eq!(losses(&again), driven);
    assert_eq!(again.last().unwrap()["reason"], "stopped");
    let names = |events: &[Value]| -> Vec<String> {
        let commands = events.iter().filter(|event| event["type"] == "command");
        commands.map(|event| format!("{} {}", event["name"], event["update"])).collect()
    };
    assert_eq!(names(&again), names(&events(&std::fs::read(run.events()).unwrap())));
}

#[test]
fn settings_that_a_resumption_and_a_fork_changed_are_replayed_to_the_bit() {
    let sandbox = Sandbox::new();
    let settings = [
        "train.max_updates=6",
        "checkpoint.every_updates=2",
        "checkpoint.keep_last=9",
        "schedule.warmup_updates=0",
    ];
    sandbox.train("base", &settings);
    let more = ["--set", "train.max_updates=10", "--set", "optimizer.lr=0.001"];
    let resumed = sandbox.run(&[&["resume", "base", "--json"], &more[..]].concat());
    assert!(resumed.status.success(), "{}", String::from_utf8_lossy(&resumed.stderr));
    let changes =
        ["--set", "optimizer.name=adafactor", "--set", "train.accumulate=2", "--set", "train.seed=5"];
    let fork = ["fork", "base", "--at", "8", "--name", "fork", "--json", "--set", "train.max_updates=12"];
    let forked = sandbox.run(&[&fork[..], &changes].concat());
    assert!(forked.status.success(), "{}", String::from_utf8_lossy(&forked.stderr));
    let of = |name: &str| {
        let run = sandbox.runs().into_iter().find(|run| run.to_str().unwrap().ends_with(name)).unwrap();
        (events(&std::fs::read(run.join("events.jsonl")).unwrap()), last(&run, "optimizer.safetensors"))
    };
    let ((base, base_state), (fork, fork_state)) = (of("-base"), of("-fork"));
    let whole = [&losses(&base)[..8], &losses(&fork)].concat();
    assert_eq!(whole.last().unwrap().0, 12);

    let (text, again) = replay(&sandbox, "base", "base-again");
    assert!(text.contains("\nat_update = 6\nname = \"settings\"") && !text.contains("# "), "{text}");
    assert_eq!(losses(&again), losses(&base));
    assert!(of("-base-again").1 == base_state, "another state");
    let alerts: Vec<_> =
        again.iter().filter(|event| event["type"] == "alert").map(|e| &e["message"]).collect();
    assert!(alerts[0].as_str().unwrap().contains("train.max_updates 6 -> 10"), "{alerts:?}");
    let ends = again.iter().filter(|event| event["type"] == "run_ended").count();
    assert_eq!((ends, &again.last().unwrap()["reason"]), (1, &"finished".into()));

    let (text, again) = replay(&sandbox, "fork", "fork-again");
    assert!(text.contains("\nat_update = 8\nname = \"settings\""), "{text}");
    assert_eq!(losses(&again), whole);
    assert!(of("-fork-again").1 == fork_state, "another state");
    // What was replayed is a run like any other: its own commands tell the same.
    let exported = sandbox.run(&["export", "fork-again", "--format", "commands", "-o", "-"]);
    assert_eq!(String::from_utf8_lossy(&exported.stdout), text);
    let shown = sandbox.json(&["show", "fork-again", "--json"]);
    assert_eq!((&shown["updates"], &shown["config"]["optimizer"]["name"]), (&12.into(), &"adafactor".into()));
}

#[test]
fn a_run_that_its_commands_stopped_goes_on_when_it_is_resumed() {
    let sandbox = Sandbox::new();
    let stop =
        "train.max_updates = 4\nschedule.warmup_updates = 0\n[[command]]\nat_update = 2\nname = \"stop\"\n";
    let file = sandbox.file("stop.toml", stop);
    let stopped = sandbox.run(&["run", "--json", "--name", "halves", "--commands", &file]);
    assert_eq!(events(&stopped.stdout).last().unwrap()["summary"]["updates"], 2);
    let output = sandbox.run(&["resume", "halves", "--json"]);
    let ended = events(&output.stdout).pop().unwrap();
    assert_eq!((&ended["reason"], &ended["summary"]["updates"]), (&"finished".into(), &4.into()));
}

#[test]
fn commands_that_are_given_on_other_data_say_so() {
    let sandbox = Sandbox::new();
    let text = sandbox.file("text.txt", "a line that is learnt\n".repeat(200));
    sandbox
        .train("first", &["train.max_updates=3", "schedule.warmup_updates=0", &format!("data.path={text}")]);
    let notes = |sandbox: &Sandbox, run: &str| {
        sandbox.json(&["export", run, "--format", "json"])["notes"].as_array().map_or(0, Vec::len)
    };
    let (file, _) = replay(&sandbox, "first", "again");
    assert!(file.contains("trained_on = "), "{file}");
    assert_eq!(notes(&sandbox, "again"), 0);
    // As long, and another.
    sandbox.file("text.txt", "a text that is learnt\n".repeat(200));
    let (_, events) = replay(&sandbox, "first", "other");
    let told = events[0]["notes"][0].as_str().unwrap_or_default();
    assert!(told.contains("other.toml was written for a run on other data"), "{}", events[0]);
}

#[test]
fn commands_that_cannot_be_given_are_refused_before_a_run_starts() {
    let sandbox = Sandbox::new();
    let file = sandbox.file("wrong.toml", "[[command]]\nat_update = 3\nname = \"dance\"\n");
    let output = sandbox.run(&["run", "--headless", "--commands", &file]);
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert!(message.contains("wrong.toml") && message.contains("dance"), "{message}");
    let settings =
        "[[command]]\nat_update = 3\nname = \"settings\"\nset = [\"schedule.warmup_updates=900\"]\n";
    let file = sandbox.file("late.toml", settings);
    let output = sandbox.run(&["run", "--headless", "--commands", &file]);
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert!(message.contains("at update 3") && message.contains("warmup"), "{message}");
    assert!(sandbox.runs().is_empty());
}
