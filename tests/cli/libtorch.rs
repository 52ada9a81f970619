//! The program that links libtorch, as the other one finds, asks and refuses it. Scripts stand in for it.

use std::os::unix::fs::PermissionsExt;

use crate::support::Sandbox;

/// A program that does this.
pub(super) fn script(sandbox: &Sandbox, name: &str, body: &str) -> String {
    let path = sandbox.file(name, format!("#!/bin/sh\n{body}\n"));
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path
}

/// Runs on that device with that program as libtorch's; expects a refusal that holds these words.
fn refused(sandbox: &Sandbox, program: Option<&str>, device: &str, words: &[&str]) {
    let device = format!("train.device={device}");
    let mut command = sandbox.command(&["run", "--headless", "--set", &device]);
    // Beside the program under test there may be a real one.
    match program {
        Some(program) => command.env("TUI_TRAIN_LIBTORCH", program),
        None => command.env("TUI_TRAIN_LIBTORCH", "/nowhere/tui-train-libtorch"),
    };
    let output = command.output().unwrap();
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert_eq!(message.trim_end().lines().count(), 1, "one sentence: {message}");
    for word in words {
        assert!(message.contains(word), "`{word}` is not in: {message}");
    }
    assert!(sandbox.runs().is_empty(), "a run that cannot start leaves no folder");
}

/// Answers as a program with this to say about itself.
pub(super) fn answer(schema: u32, cuda_build: bool, cuda_devices: usize) -> String {
    format!(
        r#"echo '{{"schema":{schema},"version":"9.9.9","libtorch":"2.9.0","folder":"/lib","cuda_build":{cuda_build},"cuda_devices":{cuda_devices}}}'"#
    )
}

#[test]
fn a_program_that_is_not_there_or_does_not_start() {
    let sandbox = Sandbox::new();
    refused(&sandbox, None, "libtorch-cpu", &["/nowhere/tui-train-libtorch", "TUI_TRAIN_LIBTORCH"]);
    let moved = script(
        &sandbox,
        "moved",
        "echo 'moved: error while loading shared libraries: libtorch.so: cannot open shared object file' >&2; exit 127",
    );
    refused(&sandbox, Some(&moved), "libtorch-cpu", &["libtorch.so", "libtorch has moved", "cargo build"]);
    let broken = script(&sandbox, "broken", "echo Hello; echo 'it is raining' >&2; exit 3");
    refused(&sandbox, Some(&broken), "libtorch-cpu", &["does not work", "it is raining", "exit status: 3"]);
}

#[test]
fn a_program_of_another_version_says_which() {
    let sandbox = Sandbox::new();
    let old = script(&sandbox, "old", &answer(0, false, 0));
    refused(&sandbox, Some(&old), "libtorch-cpu", &["version 0", "version 1", "from one source"]);
}

#[test]
fn cuda_that_cannot_be_had_is_told_apart() {
    let sandbox = Sandbox::new();
    let cpu = script(&sandbox, "cpu", &answer(1, false, 0));
    refused(&sandbox, Some(&cpu), "libtorch-cuda:0", &["without CUDA", "libtorch-cpu"]);
    let none = script(&sandbox, "none", &answer(1, true, 0));
    refused(&sandbox, Some(&none), "libtorch-cuda", &["no CUDA device", "driver"]);
    // What libraries print before the answer does no harm.
    let one = script(&sandbox, "one", &format!("echo warning; {}", answer(1, true, 1)));
    refused(&sandbox, Some(&one), "libtorch-cuda:1", &["libtorch-cuda:1", "sees 1 CUDA device,", "from 0"]);
}

#[test]
fn devices_say_what_is_there_and_what_would_change_it() {
    let sandbox = Sandbox::new();
    let listed = |program: &str| {
        let output =
            sandbox.command(&["devices", "--json"]).env("TUI_TRAIN_LIBTORCH", program).output().unwrap();
        let list: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let devices = list["devices"].as_array().unwrap().clone();
        devices
            .iter()
            .map(|device| (device["name"].as_str().unwrap().to_owned(), device["available"] == true))
            .collect::<Vec<_>>()
    };
    let named = |name: &str, available| (name.to_owned(), available);
    assert_eq!(listed("/nowhere"), [named("flex", true), named("libtorch-cpu", false)]);
    let two = script(&sandbox, "two", &answer(1, true, 2));
    assert_eq!(
        listed(&two),
        [
            named("flex", true),
            named("libtorch-cpu", true),
            named("libtorch-cuda:0", true),
            named("libtorch-cuda:1", true)
        ]
    );
}
