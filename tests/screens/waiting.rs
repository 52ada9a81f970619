//! Where somebody waits: a sign of life on a terminal, and nothing where there is none.

use std::{fs, os::unix::fs::PermissionsExt as _};

use super::terminal::Terminal;
use crate::support::Sandbox;

/// A program in the place of libtorch's that does this before it fails.
fn slow(sandbox: &Sandbox, first: &str) -> String {
    let program = sandbox.file("slow", format!("#!/bin/sh\n{first}\nexit 1\n"));
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    program
}

#[test]
fn a_command_that_takes_long_says_so_on_a_terminal() {
    let sandbox = Sandbox::new();
    let go = sandbox.path("go");
    let program = slow(&sandbox, &format!("while [ ! -e '{}' ]; do sleep 0.05; done", go.display()));
    let terminal = Terminal::start(&sandbox, &["devices"], &[&format!("libtorch={program}")], 24, 120);
    terminal.wait_text("asking the devices, 1s so far");
    fs::write(&go, "").unwrap();
    let screen = terminal.wait_text("libtorch-cpu");
    assert!(!screen.contains("so far"), "it is gone: {screen}");
    assert_eq!(terminal.end(), 0);
}

#[test]
fn nothing_is_said_where_there_is_no_terminal() {
    let sandbox = Sandbox::new();
    let program = slow(&sandbox, "sleep 1.3");
    let output = sandbox.command(&["devices"]).env("TUI_TRAIN_LIBTORCH", program).output().unwrap();
    assert!(output.status.success() && output.stdout.starts_with(b"flex"));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}
