//! Going on with a run: what is used, what is said, what is refused.

use std::io::{BufRead, BufReader};

use serde_json::Value;

use crate::support::{SMALL, Sandbox, events};

fn stderr(output: &std::process::Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn updates(events: &[Value]) -> Vec<&Value> {
    events.iter().filter(|event| event["type"] == "update").collect()
}

#[test]
fn a_finished_run_goes_on_when_it_gets_more_updates_with_the_rate_it_is_given() {
    let sandbox = Sandbox::new();
    sandbox.train("longer", &["train.max_updates=4", "schedule.name=constant", "schedule.warmup_updates=0"]);
    let refused = sandbox.run(&["resume", "longer", "--headless"]);
    assert_eq!(refused.status.code(), Some(2), "{}", stderr(&refused));
    assert!(stderr(&refused).contains("train.max_updates=8"), "{}", stderr(&refused));

    let more = [
        "--set",
        "train.max_updates=6",
        "--set",
        "optimizer.lr=0.0123",
        "--set",
        "checkpoint.every_updates=1",
    ];
    let output = sandbox.run(&[&["resume", "longer", "--json"], &more[..]].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    let said = stderr(&output);
    assert!(said.contains("optimizer.adamw.lr: 0.003 -> 0.0123"), "{said}");
    let told = events(&output.stdout);
    assert_eq!(told[0]["type"], "resumed");
    assert_eq!(told[0]["changed"].as_array().unwrap().len(), 3);
    let made = updates(&told);
    assert_eq!(made.iter().map(|update| update["update"].as_u64().unwrap()).collect::<Vec<_>>(), [5, 6]);
    assert!(made.iter().all(|update| update["train/learning_rate"] == 0.0123), "{made:?}");
    assert!(made[0]["tokens"].as_u64().unwrap() > 4 * 16, "tokens go on");
    let shown = sandbox.json(&["show", "longer", "--json"]);
    assert_eq!(
        (&shown["updates"], &shown["config"]["optimizer"]["adamw"]["lr"]),
        (&6.into(), &0.0123.into())
    );
    let warning = shown["warnings"][0]["message"].as_str().unwrap();
    assert!(warning.contains("optimizer.adamw.lr 0.003 -> 0.0123"), "the page says so: {warning}");
    let list = sandbox.json(&["list", "--json"]);
    assert_eq!((&list["runs"][0]["update"], &list["runs"][0]["total_updates"]), (&6.into(), &6.into()));
    assert!(sandbox.runs()[0].join("run.toml").exists());
    let again = sandbox.run(&["resume", "longer", "--headless", "--set", "train.max_updates=7"]);
    assert!(again.status.success(), "{}", stderr(&again));
    assert!(!stderr(&again).contains("lr:"), "what was changed before is no change any more");
}

#[test]
fn settings_that_would_mean_something_else_are_refused_before_anything_happens() {
    let sandbox = Sandbox::new();
    sandbox.train("kept", &["train.max_updates=3", "schedule.warmup_updates=0"]);
    let record = || std::fs::read(sandbox.runs()[0].join("events.jsonl")).unwrap();
    let before = record();
    for setting in ["optimizer.name=sgd", "train.accumulate=2", "data.shuffle=false", "train.max_updtes=9"] {
        let output = sandbox.run(&["resume", "kept", "--headless", "--set", setting]);
        assert_eq!(output.status.code(), Some(2), "{setting}: {}", stderr(&output));
        assert!(stderr(&output).contains("fork") || setting.contains("updtes"), "{}", stderr(&output));
    }
    assert!(record() == before);
    assert_eq!(sandbox.run(&["resume", "nothing", "--headless"]).status.code(), Some(2));
}

#[test]
fn a_stopped_run_says_how_to_go_on_and_does() {
    let sandbox = Sandbox::new();
    let mut arguments = vec!["run", "--json", "--name", "stopped", "--set", "train.max_updates=1000000"];
    arguments.extend(["--set", "schedule.warmup_updates=0"]);
    SMALL.iter().for_each(|setting| arguments.extend(["--set", setting]));
    let mut printer = sandbox.command(&arguments).stdout(std::process::Stdio::piped()).spawn().unwrap();
    let mut reader = BufReader::new(printer.stdout.take().unwrap());
    let mut line = String::new();
    while !line.contains("\"update\"") {
        line.clear();
        assert!(reader.read_line(&mut line).unwrap() > 0);
    }
    let live = sandbox.run(&["resume", "stopped", "--headless"]);
    assert_eq!(live.status.code(), Some(1), "{}", stderr(&live));
    assert!(stderr(&live).contains("already being trained"), "{}", stderr(&live));
    let stopped = sandbox.run(&["stop", "stopped"]);
    let id = sandbox.runs()[0].file_name().unwrap().to_string_lossy().into_owned();
    assert!(stderr(&stopped).contains(&format!("tui-train resume {id}")), "{}", stderr(&stopped));
    std::io::copy(&mut reader, &mut std::io::sink()).unwrap();
    assert!(printer.wait().unwrap().success());
    let shown = sandbox.json(&["show", "stopped", "--json"]);
    assert_eq!(shown["resume_command"], format!("tui-train resume {id}"));
    let made = shown["updates"].as_u64().unwrap();
    let more = format!("train.max_updates={}", made + 2);
    let output = sandbox.run(&["resume", &id, "--json", "--set", &more]);
    assert!(output.status.success(), "{}", stderr(&output));
    let told = events(&output.stdout);
    assert_eq!((&told[0]["from_update"], updates(&told).len()), (&made.into(), 2));
    assert!(updates(&told)[0]["time"].as_f64() >= told[0]["time"].as_f64(), "time goes on");
}

#[test]
fn a_damaged_checkpoint_is_passed_over_with_a_word_and_without_any_the_run_starts_over() {
    let sandbox = Sandbox::new();
    let settings = ["train.max_updates=6", "checkpoint.every_updates=3", "schedule.warmup_updates=0"];
    sandbox.train("damaged", &settings);
    let run = sandbox.runs()[0].clone();
    let newest = run.join("checkpoints/00000006/model.safetensors");
    let mut bytes = std::fs::read(&newest).unwrap();
    *bytes.last_mut().unwrap() ^= 0x40;
    std::fs::write(&newest, bytes).unwrap();
    let more = ["--set", "train.max_updates=7"];
    let output = sandbox.run(&[&["resume", "damaged", "--json"], &more[..]].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    let told = events(&output.stdout);
    assert_eq!(told[0]["from_update"], 3);
    let alert =
        told.iter().find(|event| event["type"] == "alert").unwrap()["message"].as_str().unwrap().to_owned();
    assert!(alert.contains("00000006/model.safetensors") && alert.contains("update 3"), "{alert}");

    let aside = run.join("checkpoints/00000006.damaged/model.safetensors");
    assert!(aside.exists(), "it is no newest checkpoint any more, and nothing of it is lost");

    std::fs::remove_dir_all(run.join("checkpoints")).unwrap();
    let output = sandbox.run(&["resume", "damaged", "--json", "--set", "train.max_updates=8"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let told = events(&output.stdout);
    assert_eq!((&told[0]["from_update"], updates(&told).len()), (&0.into(), 8));
}

#[test]
fn a_clock_writes_checkpoints_too() {
    let sandbox = Sandbox::new();
    let mut arguments = vec!["run", "--json", "--name", "clock", "--set", "train.max_updates=1000000"];
    for setting in SMALL.iter().chain(&["checkpoint.every_seconds=1", "checkpoint.keep_best=false"]) {
        arguments.extend(["--set", setting]);
    }
    let mut printer = sandbox.command(&arguments).stdout(std::process::Stdio::piped()).spawn().unwrap();
    let mut reader = BufReader::new(printer.stdout.take().unwrap());
    let mut written = Vec::new();
    let mut line = String::new();
    while written.len() < 2 {
        line.clear();
        assert!(reader.read_line(&mut line).unwrap() > 0, "the run ended first");
        let event: Value = serde_json::from_str(&line).unwrap();
        if event["type"] == "checkpoint" {
            written.push(event);
        }
    }
    let between = written[1]["time"].as_f64().unwrap() - written[0]["time"].as_f64().unwrap();
    assert!(between >= 1.0, "{between}");
    let folder = sandbox.runs()[0].join(written[1]["path"].as_str().unwrap());
    assert!(folder.join("checkpoint.json").exists(), "it is told once it is on the disk");
    assert!(sandbox.run(&["stop", "clock"]).status.success());
    std::io::copy(&mut reader, &mut std::io::sink()).unwrap();
    let _ = printer.wait();
}

#[test]
fn a_run_does_not_go_on_with_other_data_than_it_had() {
    let sandbox = Sandbox::new();
    let text = "The quick brown fox jumps over the lazy dog, again and again.\n".repeat(60);
    let path = sandbox.file("text.txt", &text);
    let data = format!("data.path={path}");
    sandbox.train(
        "data",
        &["train.max_updates=2", "schedule.name=constant", "schedule.warmup_updates=0", &data],
    );
    let more = ["resume", "data", "--headless", "--set", "train.max_updates=3"];
    sandbox.file("text.txt", text.clone() + "And once more.\n");
    let output = sandbox.run(&more);
    assert_eq!(output.status.code(), Some(1));
    let said = stderr(&output);
    assert!(
        said.contains("text.txt is not what the run was trained on (3720 bytes then, 3735 now)"),
        "{said}"
    );
    sandbox.file("text.txt", text.replace("lazy", "busy"));
    let said = stderr(&sandbox.run(&more));
    assert!(said.contains("(something else of the same size)"), "{said}");
    // What lies elsewhere now is the same.
    std::fs::remove_file(&path).unwrap();
    let moved = format!("data.path={}", sandbox.file("moved.txt", &text));
    let output = sandbox.run(&[&more[..], &["--set", &moved]].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    let trained = sandbox.json(&["show", "data", "--json"]);
    assert_eq!(trained["updates"], 3);
    // It went on in the data, too: a run that was never stopped ends with the same loss.
    sandbox.train(
        "whole",
        &["train.max_updates=3", "schedule.name=constant", "schedule.warmup_updates=0", &moved],
    );
    let whole = sandbox.json(&["show", "whole", "--json"]);
    assert_eq!(trained["final_train_loss"], whole["final_train_loss"]);
}
