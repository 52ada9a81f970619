//! A run that a person drove is trained again from its own record, without a person.

use serde_json::Value;
use tui_train::{
    protocol::{Answer, Command},
    run::{Client, RunDir},
};

use super::lifecycle::{start_with, wait_for_update};
use crate::support::{DEADLINE, Sandbox, events};

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
    let mut printer = start_with(&sandbox, "driven", "train.max_updates=1000000");
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
    assert_eq!(ask(Command::StepMicroBatch), paused + 2);
    ask(Command::LearningRate { value: None });
    ask(Command::Resume);
    let stopped = ask(Command::Stop);
    std::io::copy(&mut reader, &mut std::io::sink()).unwrap();
    assert!(printer.wait().unwrap().success());
    let driven = losses(&events(&std::fs::read(run.events()).unwrap()));
    assert_eq!(driven.len() as u64, stopped);

    let file = sandbox.path("driven.toml");
    let file = file.to_str().unwrap();
    let exported = sandbox.run(&["export", "driven", "--format", "commands", "-o", file]);
    assert!(exported.status.success(), "{}", String::from_utf8_lossy(&exported.stderr));
    let text = std::fs::read_to_string(file).unwrap();
    assert!(text.contains("[[command]]") && text.contains("train.seq_len = 16"), "{text}");

    let output = sandbox.run(&["run", "--json", "--name", "again", "--commands", file]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let again = events(&output.stdout);
    assert_eq!(losses(&again), driven);
    assert_eq!(again.last().unwrap()["reason"], "stopped");
    let names = |events: &[Value]| -> Vec<String> {
        let commands = events.iter().filter(|event| event["type"] == "command");
        commands.map(|event| format!("{} {}", event["name"], event["update"])).collect()
    };
    assert_eq!(names(&again), names(&events(&std::fs::read(run.events()).unwrap())));
}

#[test]
fn commands_that_cannot_be_given_are_refused_before_a_run_starts() {
    let sandbox = Sandbox::new();
    let file = sandbox.file("wrong.toml", "[[command]]\nat_update = 3\nname = \"dance\"\n");
    let output = sandbox.run(&["run", "--headless", "--commands", &file]);
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert!(message.contains("wrong.toml") && message.contains("dance"), "{message}");
    assert!(sandbox.runs().is_empty());
}
