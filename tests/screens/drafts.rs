//! What becomes of the draft besides being started: a file, or an earlier run's settings.

use super::terminal::Terminal;
use crate::support::{Sandbox, wait_for};

#[test]
fn the_draft_becomes_a_file_that_starts_the_same_run() {
    let sandbox = Sandbox::new();
    let mut terminal = Terminal::start(&sandbox, &[], &[], 40, 120);
    terminal.wait_text("next run");
    terminal.wait("whether each optimizer fits", |screen| screen.matches("✓").count() >= 6);
    terminal.press(":set optimizer.lr=1e-3\r");
    terminal.press(":save wide.toml\r");
    terminal.wait_text("wide.toml");
    let file = wait_for("the file", || std::fs::read_to_string(sandbox.path("wide.toml")).ok());
    assert!(file.contains("optimizer.adamw.lr = 0.001"), "{file}");
    terminal.press(":save wide.toml\r");
    terminal.wait_text("is there already");
    terminal.press("q");
    assert_eq!(terminal.end(), 0);
    let output = sandbox.run(&["config", "print", "wide.toml"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success() && text.contains("lr = 0.001") && text.contains("seq_len = 16"),
        "{text}"
    );
}

#[test]
fn an_earlier_run_gives_its_settings() {
    let sandbox = Sandbox::new();
    sandbox.train(
        "first",
        &["train.max_updates=20", "schedule.warmup_updates=1", "train.seed=77", "optimizer.name=lion"],
    );
    let mut terminal = Terminal::start(&sandbox, &["attach", "latest"], &[], 40, 120);
    terminal.wait_text("update 20 / 20");
    terminal.press("3");
    terminal.wait_text("next run");
    terminal.press("o");
    terminal.wait("another optimizer", |screen| screen.contains("lion → muon"));
    terminal.press("R");
    terminal.wait_text("the draft has the settings of first");
    terminal.wait("the same settings", |screen| screen.contains("same settings as first"));
    terminal.press("q");
    assert_eq!(terminal.end(), 0);
}
