//! A new run from a checkpoint of another one.

use serde_json::Value;

use crate::support::{Sandbox, events};

const BASE: [&str; 4] = [
    "train.max_updates=6",
    "checkpoint.every_updates=2",
    "checkpoint.keep_last=9",
    "schedule.warmup_updates=0",
];

fn fork(sandbox: &Sandbox, arguments: &[&str]) -> (Vec<Value>, String) {
    let output = sandbox.run(&[&["fork", "base", "--json"], arguments].concat());
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{arguments:?}: {said}");
    (events(&output.stdout), said)
}

fn losses(events: &[Value]) -> Vec<(u64, Value)> {
    let updates = events.iter().filter(|event| event["type"] == "update");
    updates.map(|event| (event["update"].as_u64().unwrap(), event["train/loss"].clone())).collect()
}

#[test]
fn the_weights_of_a_fork_are_those_of_its_checkpoint() {
    let sandbox = Sandbox::new();
    sandbox.train("base", &BASE);
    let output = sandbox.run(&["fork", "base", "--headless", "--set", "model.weights=other.safetensors"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("model.weights cannot be set for a fork"), "{said}");
    assert_eq!(sandbox.runs().len(), 1, "nothing was made");
}

#[test]
fn a_fork_says_what_has_no_effect() {
    let sandbox = Sandbox::new();
    sandbox.train("base", &[BASE[0], "optimizer.name=adafactor"]);
    let set = ["--set", "optimizer.adafactor.relative_step=true", "--set", "train.max_updates=7"];
    let (forked, _) = fork(&sandbox, &set);
    let told = "relative_step: Adafactor sets its own rate, the schedule has no effect";
    assert!(forked[0]["notes"].as_array().unwrap().contains(&told.into()), "{}", forked[0]["notes"]);
}

#[test]
fn a_fork_with_nothing_changed_is_the_rest_of_the_run() {
    let sandbox = Sandbox::new();
    let base = sandbox.train("base", &BASE);
    let (forked, _) = fork(&sandbox, &["--at", "2", "--name", "same"]);
    assert_eq!(losses(&forked), losses(&base)[2..], "its updates count on");
    let header = &forked[0];
    assert_eq!(
        (&header["forked_from"]["run"], &header["forked_from"]["update"]),
        (&base[0]["run"], &2.into())
    );
    let tokens = |events: &[Value]| -> Vec<Value> {
        events.iter().filter(|event| event["type"] == "update").map(|event| event["tokens"].clone()).collect()
    };
    assert_eq!(tokens(&forked), tokens(&base)[2..]);
    let listed = sandbox.json(&["list", "--json"]);
    let forks = listed["runs"].as_array().unwrap().iter().find(|run| run["name"] == "same").unwrap();
    assert_eq!(forks["forked_from"], header["forked_from"], "lists know where it comes from");
    let shown = sandbox.json(&["show", "same", "--json"]);
    assert_eq!((&shown["updates"], &shown["forked_from"]["update"]), (&6.into(), &2.into()));
    assert_eq!(sandbox.json(&["inspect", "same", "--json"])["optimizer"], "adamw");
}

#[test]
fn another_optimizer_goes_on_with_what_its_state_can_take_and_says_which() {
    let sandbox = Sandbox::new();
    let base = sandbox.train("base", &BASE);
    for (optimizer, said) in [
        ("adamw8bit", "quantised"),
        ("adafactor", "row and column means"),
        ("lion", "starts empty"),
        ("muon", "start empty"),
    ] {
        let name = format!("optimizer.name={optimizer}");
        let (forked, told) =
            fork(&sandbox, &["--at", "4", "--set", &name, "--set", "optimizer.adamw8bit.min_8bit_size=1024"]);
        assert!(told.contains(said), "{optimizer}: {told}");
        let alert = forked.iter().find(|event| event["type"] == "alert").unwrap();
        assert!(
            alert["message"].as_str().unwrap().contains(&format!("from adamw to {optimizer}")),
            "{alert}"
        );
        let notes = sandbox.json(&["show", "latest", "--json"])["notes"].to_string();
        assert!(notes.contains(&format!("optimizer state from adamw to {optimizer}")), "{notes}");
        assert_eq!(losses(&forked).iter().map(|(update, _)| *update).collect::<Vec<_>>(), [5, 6]);
        assert_eq!(losses(&forked)[0].1, losses(&base)[4].1, "{optimizer}: the same weights, the same data");
        let steps: Vec<u64> = sandbox.json(&["inspect", "latest", "--json"])["tensors"]
            .as_array()
            .unwrap()
            .iter()
            .map(|tensor| tensor["step"].as_u64().unwrap())
            .collect();
        assert_eq!(steps.contains(&6), optimizer != "lion", "{steps:?}");
    }
}

#[test]
fn what_does_not_fit_is_refused_and_other_data_is_said() {
    let sandbox = Sandbox::new();
    sandbox.train("base", &BASE);
    let refused = |arguments: &[&str], part: &str| {
        let output = sandbox.run(&[&["fork", "base", "--headless"], arguments].concat());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.contains(part), "{arguments:?}: {said}");
    };
    refused(&["--set", "model.hidden_size=128"], "hidden_size");
    refused(&["--at", "3"], "2, 4, 6");
    refused(&[], "train.max_updates");
    refused(&["--set", "model.preset=llama-tiny"], "model.preset");
    assert_eq!(sandbox.runs().len(), 1, "nothing was left behind");
    let (forked, said) = fork(&sandbox, &["--at", "2", "--set", "train.seq_len=32"]);
    assert!(said.contains("begins at its beginning"), "{said}");
    assert_eq!(losses(&forked).len(), 4);
}
