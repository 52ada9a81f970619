//! A run that is resumed is the run that was never stopped: bit for bit on flex, to 1e-6 elsewhere.

use std::path::{Path, PathBuf};

use serde_json::Value;
use tui_train::run::RunDir;

use crate::support::{
    Sandbox, device_name, events,
    trace::{checkpoints, last, trace},
};

/// Settings under which nothing is left out: shuffling, accumulation, and a schedule that moves.
const WHOLE: [&str; 9] = [
    "train.seq_len=16",
    "train.micro_batch=2",
    "train.accumulate=2",
    "checkpoint.keep_last=9",
    "train.validate_every=3",
    "schedule.warmup_updates=2",
    "checkpoint.every_updates=4",
    "log.state_every=3",
    "model.num_hidden_layers=1",
];

fn train(sandbox: &Sandbox, name: &str, settings: &[&str]) -> PathBuf {
    let mut arguments = vec!["run", "--json", "--name", name];
    settings.iter().for_each(|setting| arguments.extend(["--set", setting]));
    let output = sandbox.run(&arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    sandbox.runs().pop().unwrap()
}

/// Makes the run one that was killed after that update, with the checkpoint of update 4 as its newest.
fn killed(run: &Path, after: u64) {
    let text = std::fs::read_to_string(run.join("events.jsonl")).unwrap();
    let mut kept = String::new();
    for line in text.lines() {
        let event: Value = serde_json::from_str(line).unwrap();
        if event["type"] == "update" && event["update"].as_u64() > Some(after) {
            break;
        }
        kept += line;
        kept.push('\n');
    }
    // In the middle of a line.
    std::fs::write(run.join("events.jsonl"), kept + "{\"type\":\"upda").unwrap();
    for newer in checkpoints(run).into_iter().filter(|path| !path.ends_with("00000004")) {
        std::fs::remove_dir_all(newer).unwrap();
    }
}

/// Whether numbers are the same: to the bit on flex.
fn same(ours: &Value, theirs: &Value) -> bool {
    match (ours, theirs) {
        (Value::Array(ours), Value::Array(theirs)) => {
            ours.len() == theirs.len() && ours.iter().zip(theirs).all(|(ours, theirs)| same(ours, theirs))
        }
        (Value::Number(a), Value::Number(b)) if device_name() != "flex" => {
            let (a, b) = (a.as_f64().unwrap(), b.as_f64().unwrap());
            (a - b).abs() <= 1e-6 * b.abs().max(1.0)
        }
        _ => ours == theirs,
    }
}

fn is_exact(settings: &[&str]) {
    is_exact_over(&[&["train.max_updates=8"], settings].concat(), 8);
}

fn is_exact_over(settings: &[&str], updates: u64) {
    let sandbox = Sandbox::new();
    let settings: Vec<&str> = WHOLE.iter().chain(settings).copied().collect();
    let run = train(&sandbox, "exact", &settings);
    let (straight, weights, state) =
        (trace(&run), last(&run, "model.safetensors"), last(&run, "optimizer.safetensors"));
    let made = straight.iter().filter(|row| row.as_array().unwrap().len() == 5).count();
    assert_eq!(made as u64, updates);
    killed(&run, 6);
    let output = sandbox.run(&["resume", "latest", "--json"]);
    assert!(output.status.success(), "{settings:?}: {}", String::from_utf8_lossy(&output.stderr));
    let told = events(&output.stdout);
    assert_eq!((&told[0]["type"], &told[0]["from_update"]), (&"resumed".into(), &4.into()));
    let resumed = trace(&run);
    assert!(
        same(&resumed.clone().into(), &straight.clone().into()),
        "{settings:?}: {resumed:?} {straight:?}"
    );
    if device_name() == "flex" {
        assert!(last(&run, "model.safetensors") == weights, "{settings:?}: other weights");
        assert!(last(&run, "optimizer.safetensors") == state, "{settings:?}: other state");
    }
    let ended = told.last().unwrap();
    assert_eq!((&ended["reason"], &ended["summary"]["updates"]), (&"finished".into(), &updates.into()));
    let shown = sandbox.json(&["show", "latest", "--json"]);
    assert_eq!((&shown["updates"], &shown["state"]), (&updates.into(), &"done".into()));
    assert!(RunDir::open(&run).unwrap().summary_json().exists());
}

#[test]
fn adamw_goes_on_as_if_it_had_never_stopped() {
    is_exact(&["optimizer.name=adamw", "optimizer.adamw.amsgrad=true"]);
}

#[test]
fn adafactor_goes_on_as_if_it_had_never_stopped() {
    is_exact(&["optimizer.name=adafactor", "optimizer.adafactor.beta1=0.9"]);
}

#[test]
fn adamw8bit_goes_on_as_if_it_had_never_stopped() {
    is_exact(&["optimizer.name=adamw8bit", "optimizer.min_8bit_size=1024"]);
}

#[test]
fn sgd_goes_on_as_if_it_had_never_stopped() {
    is_exact(&["optimizer.name=sgd", "optimizer.sgd.momentum=0.9"]);
}

#[test]
fn lion_goes_on_as_if_it_had_never_stopped() {
    is_exact(&["optimizer.name=lion"]);
}

#[test]
fn muon_goes_on_as_if_it_had_never_stopped() {
    is_exact(&["optimizer.name=muon"]);
}

#[test]
fn dropout_goes_on_with_the_masks_it_would_have_had() {
    is_exact(&["model.preset=distilbert-nano", "data.source=sentence-pairs", "train.seq_len=32"]);
}

#[test]
fn epochs_go_on_in_the_middle_of_one() {
    let sandbox = Sandbox::new();
    // 4,000 bytes are some sixty sequences; the last window of an epoch is short.
    let path = sandbox.file("text.txt", "Once upon a time there was a fox who liked maps. ".repeat(82));
    let data = [format!("data.path={path}"), "train.seq_len=64".to_owned(), "train.epochs=1".to_owned()];
    is_exact_over(&data.each_ref().map(String::as_str), 15);
}
