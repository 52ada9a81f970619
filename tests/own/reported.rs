//! A loop of one's own that reports what it does.

use std::process::{Child, Output, Stdio};

use serde_json::Value;

use crate::{
    screens::terminal::Terminal,
    support::{Sandbox, example, wait_for},
};

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A slow loop that is under way.
fn slow(sandbox: &Sandbox) -> Child {
    let child = sandbox.example("own-loop", &["--slow"]).stderr(Stdio::null()).spawn().unwrap();
    sandbox.wait_for_list("the loop to be under way", |runs| {
        runs.iter().any(|run| run["state"] == "live" && run["update"].as_u64() > Some(25))
    });
    child
}

#[test]
fn a_loop_of_ones_own_is_listed_shown_compared_and_exported() {
    let sandbox = Sandbox::new();
    for _ in 0..2 {
        let output = sandbox.example("own-loop", &[]).output().unwrap();
        assert!(output.status.success() && output.stdout.is_empty(), "{}", said(&output));
    }
    let list = sandbox.json(&["list", "--json"]);
    let runs = list["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 2);
    assert!(runs.iter().all(|run| run["state"] == "done" && run["update"] == 200 && run["name"] == "line"));
    assert_eq!(runs[0]["state_bytes"], 8, "as told, and not as the ledger has it");
    let shown = sandbox.json(&["show", "latest", "--json"]);
    assert_eq!((&shown["reason"], &shown["updates"]), (&"finished".into(), &200.into()));
    assert_eq!((&shown["tokens"], &shown["ledger"]["parameters"]), (&6400.into(), &2.into()));
    assert!(shown["final_train_loss"].as_f64() < Some(1e-3) && shown["final_val_loss"].as_f64().is_some());
    assert_eq!(
        (&shown["measured"]["state_elements"], &shown["measured"]["state_bytes"]),
        (&2.into(), &8.into())
    );
    assert_eq!(shown["config"]["task"]["momentum"], 0.9);
    assert_eq!(shown["resume_command"], Value::Null);
    let page = String::from_utf8(sandbox.run(&["show", "latest"]).stdout).unwrap();
    assert!(
        page.contains("task.momentum") && !page.contains("effective batch") && !page.contains("NaN"),
        "{page}"
    );
    // What nobody counts is no 0.
    let row = |name: &str| -> Vec<&str> {
        let found = page.lines().find(|line| line.starts_with(name));
        found.unwrap_or_else(|| panic!("no {name}: {page}")).split("  ").map(str::trim).collect()
    };
    let cells = |name: &str| -> Vec<&str> { row(name).into_iter().filter(|cell| !cell.is_empty()).collect() };
    assert_eq!(cells("parameters"), ["parameters", "8 B", "-", "-", "as the loop told"]);
    assert_eq!(cells("gradients")[..3], ["gradients", "-", "-"]);
    assert_eq!(cells("optimizer state ")[1..4], ["-", "8 B", "-"]);
    assert!(page.contains("data: line: n/a") && !page.contains("examples to train on"), "{page}");
    let ids: Vec<_> = runs.iter().map(|run| run["run"].as_str().unwrap()).collect();
    let compared = sandbox.json(&["compare", ids[0], ids[1], "--json"]);
    assert_eq!(compared["differences"].as_array().unwrap().len(), 0);
    for format in ["csv", "svg", "html", "md", "json", "jsonl"] {
        let output = sandbox.run(&["export", "latest", "--format", format]);
        assert!(output.status.success() && !output.stdout.is_empty(), "{format}: {}", said(&output));
    }
    let board = sandbox.path("board");
    let output = sandbox.run(&["export", "latest", "--format", "tensorboard", "-o", board.to_str().unwrap()]);
    assert!(output.status.success(), "{}", said(&output));
    for screen in ["train", "state", "runs", "setup"] {
        let output = sandbox.run(&["attach", "latest", "--once", "--screen", screen, "--size", "160x50"]);
        let frame = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success() && !frame.contains("NaN"), "{screen}: {} {frame}", said(&output));
        if screen == "train" {
            let unknown = |name: &str| {
                frame.lines().any(|line| line.contains(name) && line.contains("n/a") && !line.contains("0 B"))
            };
            assert!(["gradients", "optimizer state", "activations"].into_iter().all(unknown), "{frame}");
            assert!(frame.contains("> 8 B") && !frame.contains("~8 B"), "{frame}");
            assert!(!frame.contains("for the same tokens"), "{frame}");
        }
    }
    // What the record holds is shown, though there is no checkpoint to read it from.
    let state = sandbox.json(&["inspect", "latest", "--json"]);
    assert_eq!((&state["source"], &state["update"]), (&"record".into(), &200.into()));
    assert_eq!(state["tensors"][0]["state"]["momentum_buffer"]["elements"], 1);
    let output = sandbox.run(&["inspect", "latest", "--tensor", "slope"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("as the loop told it last") && !text.contains("offset"), "{text}");
    let output = sandbox.run(&["inspect", "latest", "--tensor", "slop"]);
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    let output = sandbox.run(&["export", "latest", "--format", "safetensors", "-o", "weights"]);
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert!(
        said(&output).contains("a loop of its own, which keeps its weights to itself"),
        "{}",
        said(&output)
    );
    for command in [["resume", "latest", "--headless"], ["fork", "latest", "--headless"]] {
        let output = sandbox.run(&command);
        assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    }
}

#[test]
fn a_live_loop_is_inspected_and_stopped() {
    let sandbox = Sandbox::new();
    let mut child = slow(&sandbox);
    let state = sandbox.json(&["inspect", "latest", "--json"]);
    let names: Vec<_> =
        state["tensors"].as_array().unwrap().iter().map(|tensor| tensor["name"].as_str().unwrap()).collect();
    assert_eq!((&state["source"], names), (&"live".into(), vec!["slope", "offset"]));
    assert_eq!(state["tensors"][0]["state"]["momentum_buffer"]["elements"], 1);
    let stopped = sandbox.run(&["stop", "latest"]);
    assert!(stopped.status.success(), "{}", said(&stopped));
    assert!(!said(&stopped).contains("resume"), "nothing goes on with a loop: {}", said(&stopped));
    assert!(child.wait().unwrap().success());
    let shown = sandbox.json(&["show", "latest", "--json"]);
    assert_eq!((&shown["reason"], &shown["state"]), (&"stopped".into(), &"stopped".into()));
    assert_eq!(shown["interventions"][0]["name"], "stop");
    assert!(!sandbox.runs()[0].join("control.sock").exists(), "nobody listens any more");
}

#[test]
fn a_signal_stops_it_where_it_asked_for_that() {
    let sandbox = Sandbox::new();
    let mut child = slow(&sandbox);
    std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(sandbox.json(&["show", "latest", "--json"])["reason"], "stopped");
}

#[test]
fn a_loop_that_panics_is_recorded_as_failed_and_one_that_is_killed_as_crashed() {
    let sandbox = Sandbox::new();
    let output = sandbox.example("own-loop", &["--panic"]).output().unwrap();
    assert!(!output.status.success() && said(&output).contains("a division by zero"), "{}", said(&output));
    let shown = sandbox.json(&["show", "latest", "--json"]);
    assert_eq!((&shown["reason"], &shown["updates"]), (&"failed".into(), &7.into()));
    assert!(shown["problem"].as_str().unwrap().contains("the loop panicked"), "{shown}");

    let mut child = slow(&sandbox);
    child.kill().unwrap();
    child.wait().unwrap();
    let state = wait_for("the run to be seen as crashed", || {
        let state = sandbox.json(&["show", "latest", "--json"])["state"].clone();
        (state != "live").then_some(state)
    });
    assert_eq!(state, "crashed");
}

#[test]
fn it_opens_the_screens_itself_and_is_paused_and_stopped_by_keys() {
    let sandbox = Sandbox::new();
    let mut terminal = Terminal::of(&sandbox, &example("own-loop"), &["--slow", "--screens"], &[], (40, 120));
    terminal.wait("the first updates", |screen| screen.contains("line") && screen.contains("learning rate"));
    terminal.press("p");
    terminal.wait_text("paused");
    let made = || sandbox.json(&["show", "latest", "--json"])["updates"].clone();
    let before = wait_for("a still counter", || {
        let first = made();
        std::thread::sleep(std::time::Duration::from_millis(100));
        (first == made()).then_some(first)
    });
    terminal.press(".");
    wait_for("one update more", || (made().as_u64() == before.as_u64().map(|made| made + 1)).then_some(()));
    terminal.press("2");
    terminal.wait_text("momentum_buffer");
    terminal.press("x");
    terminal.press("1");
    terminal.wait_text("stopped");
    terminal.press("q");
    assert_eq!(terminal.end(), 0);
    assert_eq!(sandbox.json(&["show", "latest", "--json"])["reason"], "stopped");
}
