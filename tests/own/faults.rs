//! A task that goes wrong ends in a sentence, and where there is a run, in its record.

use crate::{
    screens::terminal::Terminal,
    support::{Sandbox, example},
};

/// Exit code and standard error of a run with that fault.
fn run(sandbox: &Sandbox, fault: &str) -> (Option<i32>, String) {
    let setting = format!("task.fault={fault}");
    let output =
        sandbox.example("own-faults", &["run", "--headless", "--name", fault, "--set", &setting]).output();
    let output = output.unwrap();
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn nothing_is_wrong_with_it_as_such() {
    let sandbox = Sandbox::new();
    let (code, said) = run(&sandbox, "none");
    assert_eq!(code, Some(0), "{said}");
}

#[test]
fn a_panic_of_the_model_ends_the_run_in_a_sentence() {
    let sandbox = Sandbox::new();
    let (code, said) = run(&sandbox, "forward");
    assert_eq!(code, Some(1), "{said}");
    assert!(
        said.contains("the task `broken` failed with a panic, worker.log says where: matrices of [3, 4] and [5, 6] cannot be multiplied"),
        "{said}"
    );
    assert!(!said.contains("RUST_BACKTRACE") && !said.contains("thread '"), "{said}");
    let shown = sandbox.json(&["show", "forward", "--json"]);
    assert_eq!((&shown["reason"], &shown["state"]), (&"failed".into(), &"failed".into()));
    assert!(shown["problem"].as_str().unwrap().contains("cannot be multiplied"), "{shown}");
    let log = std::fs::read_to_string(sandbox.runs()[0].join("worker.log")).unwrap();
    assert!(log.contains("faulty.rs:"), "where it was: {log}");
}

#[test]
fn a_panic_while_batches_are_made_ends_the_run_in_a_sentence() {
    let sandbox = Sandbox::new();
    let (code, said) = run(&sandbox, "batch");
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("preparing the batches failed") && said.contains("is no row"), "{said}");
    assert_eq!(sandbox.json(&["show", "batch", "--json"])["reason"], "failed");
}

#[test]
fn a_loss_that_is_not_finite_ends_the_run_as_such() {
    let sandbox = Sandbox::new();
    let (code, said) = run(&sandbox, "nan");
    assert_eq!(code, Some(4), "{said}");
    assert!(said.contains("2 updates in a row had a loss or gradient that is not finite"), "{said}");
    assert_eq!(sandbox.json(&["show", "nan", "--json"])["reason"], "not_finite");
}

#[test]
fn what_is_wrong_with_model_or_data_is_told_before_there_is_a_run() {
    let sandbox = Sandbox::new();
    for (fault, sentence) in [
        ("twice", "the model of the task `broken` has two parameters named `nameless.weight`"),
        ("shared", "has one parameter under two names, `one.weight` and `other.0.weight`"),
        ("model", "cannot be made: a panic while it was made: no model of this width (tests/own/faulty.rs:"),
        (
            "open",
            "the data of the task `broken` cannot be used: a panic while it was opened: the disk has a hole",
        ),
        ("open-error", "cannot be used: there is no file `rows.bin`: make it with `make rows`"),
        ("empty", "it has no example to train on"),
    ] {
        let (code, said) = run(&sandbox, fault);
        assert_eq!(code, Some(2), "{fault}: {said}");
        assert!(said.contains(sentence), "{fault}: {said}");
        assert_eq!(said.trim_end().lines().count(), 1, "one sentence: {said}");
    }
    assert!(sandbox.runs().is_empty());
}

#[test]
fn the_screens_tell_it_and_give_the_terminal_back() {
    let sandbox = Sandbox::new();
    let arguments = ["run", "--name", "seen", "--set", "task.fault=forward"];
    let mut terminal = Terminal::of(&sandbox, &example("own-faults"), &arguments, &[], (40, 120));
    terminal.wait("how it ended", |screen| screen.contains("failed"));
    terminal.press("q");
    assert_eq!(terminal.end(), 0);
    assert_eq!(sandbox.json(&["show", "seen", "--json"])["reason"], "failed");

    // A model that cannot be made is told beside the field, where it was typed.
    let mut terminal = Terminal::of(&sandbox, &example("own-faults"), &[], &[], (40, 120));
    terminal.wait("the task's own setting", |screen| screen.contains("fault") && screen.contains("broken"));
    terminal.press(":set task.fault=model\r");
    terminal.wait("why not", |screen| screen.contains("no model of this width"));
    terminal.press("q");
    terminal.end();
}
