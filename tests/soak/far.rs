//! Runs on a disk that is far away, as those of networks are: slow, and without some of what a disk at hand has.

use std::process::Command;

use tui_train::run::RunDir;

use super::{
    WHOLE,
    victim::{Straight, arguments, assert_readable},
};
use crate::support::{Sandbox, device_name, events, library};

/// A command whose files are on such a disk.
fn far<'a>(command: &'a mut Command, slow_ms: &str, lacks: &str) -> &'a mut Command {
    let library = library::compiled("disk/far.c", "disk", "far.so", &["-D_GNU_SOURCE"]);
    command.env("LD_PRELOAD", library).env("SLOW_MS", slow_ms).env("FAR_DISK", lacks)
}

#[test]
#[cfg(target_os = "linux")]
fn a_slow_disk_that_cannot_sync_folders_costs_time_and_that_is_told_once() {
    if device_name() != "flex" {
        return;
    }
    let shorter = WHOLE.map(|setting| match setting {
        "train.max_updates=90" => "train.max_updates=12",
        other => other,
    });
    let straight = Straight::train(&shorter);
    let sandbox = Sandbox::new();
    let output =
        far(&mut sandbox.command(&arguments("far", &shorter)), "300", "folder-sync").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let run = sandbox.runs().pop().unwrap();
    straight.assert_same(&run);
    assert_readable(&RunDir::open(&run).unwrap(), 0);
    let told = events(&output.stdout);
    let alerts: Vec<&str> = told.iter().filter_map(|event| event["message"].as_str()).collect();
    assert_eq!(alerts.len(), 1, "{alerts:?}");
    assert!(alerts[0].contains("training waited") && alerts[0].contains("this disk can take"), "{alerts:?}");
    let written = told.iter().filter(|event| event["type"] == "checkpoint").count();
    assert_eq!(written, 4, "every checkpoint that was asked for is there all the same");
}

#[test]
#[cfg(target_os = "linux")]
fn a_disk_without_locks_is_refused_with_a_sentence() {
    let sandbox = Sandbox::new();
    let mut command = sandbox.command(&["run", "--headless", "--set", "train.max_updates=2"]);
    let output = far(&mut command, "0", "locks").output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    for word in ["lock cannot be locked", "set TUI_TRAIN_HOME to a folder on a file system with locks"] {
        assert!(said.contains(word), "{word}: {said}");
    }
    assert!(!said.contains("panicked"), "{said}");
}
