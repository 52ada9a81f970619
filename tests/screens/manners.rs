//! Small terminals, shrinking ones, and an exit that leaves nothing behind.

use super::terminal::Terminal;
use crate::support::Sandbox;

#[test]
fn a_terminal_that_is_too_small_says_so_and_recovers() {
    let sandbox = Sandbox::new();
    let mut terminal = Terminal::start(&sandbox, &[], &[], 5, 20);
    terminal.wait("the sentence", |screen| screen.contains("too small"));
    terminal.resize(24, 80);
    terminal.wait_text("next run");
    terminal.press("q");
    assert_eq!(terminal.end(), 0);
}

#[test]
fn a_terminal_that_shrinks_while_running_loses_nothing() {
    let sandbox = Sandbox::new();
    let mut terminal = Terminal::start(&sandbox, &["run"], &["train.max_updates=1000000"], 40, 120);
    terminal.wait_text("update ");
    for (rows, cols) in [(10, 40), (1, 1), (3, 200), (200, 3), (24, 80)] {
        terminal.resize(rows, cols);
    }
    terminal.wait_text("memory");
    terminal.press("qs");
    assert_eq!(terminal.end(), 0);
    sandbox.wait_for_list("a stopped run", |runs| runs[0]["state"] == "stopped");
}

#[test]
fn without_a_run_an_interrupt_leaves_with_0() {
    let sandbox = Sandbox::new();
    let mut terminal = Terminal::start(&sandbox, &[], &[], 24, 80);
    terminal.wait_text("next run");
    terminal.press("\x03");
    assert_eq!(terminal.end(), 0);
    assert!(sandbox.runs().is_empty());
}

#[test]
fn one_frame_is_printed_without_a_terminal() {
    let sandbox = Sandbox::new();
    sandbox.train("done", &["train.max_updates=6", "schedule.warmup_updates=1"]);
    let output = sandbox.run(&["attach", "latest", "--once"]);
    let frame = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success());
    assert!(frame.contains("learning rate") && frame.contains("6 / 6"), "{frame}");
    assert!(!frame.contains('\x1b'), "plain text");
}
