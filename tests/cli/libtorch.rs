//! The program that links libtorch, as the other one finds, asks and refuses it. Scripts stand in for it.

use std::{os::unix::fs::PermissionsExt, process::Command};

use crate::support::{
    SMALL, Sandbox,
    nvml::{self, Library},
};

/// A program that does this.
pub(super) fn script(sandbox: &Sandbox, name: &str, body: &str) -> String {
    let path = sandbox.file(name, format!("#!/bin/sh\n{body}\n"));
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path
}

/// Runs on that device with that program as libtorch's; expects a refusal that holds these words.
fn refused(sandbox: &Sandbox, program: Option<&str>, device: &str, words: &[&str]) {
    refused_where(sandbox, program, device, words, |_| {});
}

/// The same in a surrounding that the closure makes; what was said.
fn refused_where(
    sandbox: &Sandbox,
    program: Option<&str>,
    device: &str,
    words: &[&str],
    surround: impl FnOnce(&mut Command),
) -> String {
    let device = format!("train.device={device}");
    let mut command = sandbox.command(&["run", "--headless", "--set", &device]);
    // Beside the program under test there may be a real one.
    match program {
        Some(program) => command.env("TUI_TRAIN_LIBTORCH", program),
        None => command.env("TUI_TRAIN_LIBTORCH", "/nowhere/tui-train-libtorch"),
    };
    surround(&mut command);
    let output = command.output().unwrap();
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert_eq!(message.trim_end().lines().count(), 1, "one sentence: {message}");
    for word in words {
        assert!(message.contains(word), "`{word}` is not in: {message}");
    }
    assert!(sandbox.runs().is_empty(), "a run that cannot start leaves no folder");
    message
}

/// Answers as a program with this to say about itself.
pub(super) fn answer(schema: u32, cuda_build: bool, cuda_devices: usize) -> String {
    answer_of(env!("CARGO_PKG_VERSION"), schema, cuda_build, cuda_devices)
}

fn answer_of(version: &str, schema: u32, cuda_build: bool, cuda_devices: usize) -> String {
    format!(
        r#"echo '{{"schema":{schema},"version":"{version}","libtorch":"2.9.0","folder":"/lib","cuda_build":{cuda_build},"cuda_devices":{cuda_devices}}}'"#
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
    // It speaks the same, and may not know every setting.
    let older = script(&sandbox, "older", &answer_of("0.0.1", 1, false, 0));
    let ours = env!("CARGO_PKG_VERSION");
    refused(
        &sandbox,
        Some(&older),
        "libtorch-cpu",
        &["is version 0.0.1", ours, "from one source", "cargo build"],
    );
}

#[test]
fn another_libtorch_than_it_was_built_for_is_told() {
    let sandbox = Sandbox::new();
    let path = sandbox.path("other").display().to_string();
    // As the loader of the C library says it.
    for (line, place) in [
        ("/opt/torch/lib/libtorch_cpu.so: undefined symbol: _ZN3c104impl", "another one in /opt/torch/lib:"),
        ("OWN: undefined symbol: _ZN2at6detail", "another one:"),
    ] {
        let line = format!("OWN: symbol lookup error: {line}").replace("OWN", &path);
        let other = script(&sandbox, "other", &format!("echo '{line}' >&2; exit 127"));
        let words = ["was built for libtorch 2.9.0", place, "undefined symbol", "cargo build"];
        let without_libtorch = |command: &mut Command| _ = command.env_remove("LD_LIBRARY_PATH");
        let said = refused_where(&sandbox, Some(&other), "libtorch-cpu", &words, without_libtorch);
        assert!(!said.contains("does not work"), "{said}");
    }
}

#[test]
fn a_program_that_says_much_before_it_answers_is_heard() {
    let sandbox = Sandbox::new();
    let much = "i=0; while [ $i -lt 5000 ]; do echo 'a warning of a library that is of no interest' >&2; i=$((i+1)); done";
    let chatty = script(&sandbox, "chatty", &format!("{much}; {}", answer(1, false, 0)));
    refused(&sandbox, Some(&chatty), "libtorch-cuda:0", &["without CUDA"]);
}

#[test]
fn what_auto_passes_over_is_said() {
    let sandbox = Sandbox::new();
    let old = script(&sandbox, "old", &answer(0, false, 0));
    let broken = script(&sandbox, "broken", "echo 'it is raining' >&2; exit 3");
    for (name, program, word) in [
        ("away", "/nowhere/tui-train-libtorch", "/nowhere/tui-train-libtorch is no file"),
        ("old", &*old, "speaks version 0"),
        ("broken", &*broken, "it is raining"),
    ] {
        let mut arguments =
            vec!["run", "--headless", "--device", "auto", "--name", name, "--set", "train.max_updates=2"];
        SMALL.iter().chain(&["schedule.warmup_updates=0"]).for_each(|set| arguments.extend(["--set", set]));
        let output = sandbox.command(&arguments).env("TUI_TRAIN_LIBTORCH", program).output().unwrap();
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{message}");
        assert!(
            message.contains("train.device = auto trains on flex") && message.contains(word),
            "{message}"
        );
        let run = sandbox.json(&["show", name, "--json"]);
        assert_eq!(run["device"], "flex");
        assert!(run["notes"].to_string().contains(word), "{}", run["notes"]);
    }
}

#[test]
fn cuda_that_cannot_be_had_is_told_apart() {
    let sandbox = Sandbox::new();
    let cpu = script(&sandbox, "cpu", &answer(1, false, 0));
    refused(&sandbox, Some(&cpu), "libtorch-cuda:0", &["without CUDA", "libtorch-cpu"]);
    let none = script(&sandbox, "none", &answer(1, true, 0));
    refused(&sandbox, Some(&none), "libtorch-cuda", &["no CUDA device", "driver"]);
    let said = |library, words, mask: &str, wanted: &[&str]| {
        refused_where(&sandbox, Some(&none), "libtorch-cuda:0", wanted, |command| {
            nvml::answer(command, library, words);
            if !mask.is_empty() {
                command.env("CUDA_VISIBLE_DEVICES", mask);
            }
        })
    };
    said(Library::Full, "", "-1", &["\"-1\" masks them all", "unset CUDA_VISIBLE_DEVICES"]);
    // A mask that hides nothing is not what is wrong.
    for (library, words, mask, wanted) in [
        (Library::Full, "", "0", ["too old", "nvidia-smi"]),
        (Library::Full, "", "", ["too old", "nvidia-smi"]),
        (Library::Full, "none", "0", ["lists no GPU", "nvidia-smi"]),
        (Library::Full, "unloaded", "0", ["is not loaded", "sudo modprobe nvidia"]),
        (Library::Broken, "", "0", ["cannot be loaded", "nvidia-smi"]),
    ] {
        let said = said(library, words, mask, &wanted);
        assert!(!said.contains("CUDA_VISIBLE_DEVICES"), "{said}");
    }
    // What libraries print before the answer does no harm.
    let one = script(&sandbox, "one", &format!("echo warning; {}", answer(1, true, 1)));
    let seen = |words, mask: &str| {
        refused_where(&sandbox, Some(&one), "libtorch-cuda:1", &["sees 1 CUDA device"], |command| {
            nvml::answer(command, Library::Full, words).env("CUDA_VISIBLE_DEVICES", mask);
        })
    };
    assert!(seen("", "0").contains("CUDA_VISIBLE_DEVICES = \"0\" masks 1 more"), "there are two");
    assert!(!seen("denied", "0").contains("masks"), "the other one may not be opened by anybody");
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
