//! The mouse: everything that can be seen to be pressed can be pressed.

use super::terminal::Terminal;
use crate::support::Sandbox;

fn trained() -> Sandbox {
    let sandbox = Sandbox::new();
    for (name, optimizer) in [("first", "adamw"), ("second", "adafactor")] {
        let optimizer = format!("optimizer.name={optimizer}");
        sandbox.train(
            name,
            &["train.max_updates=12", "schedule.warmup_updates=1", "log.state_every=4", &optimizer],
        );
    }
    sandbox
}

#[test]
fn tabs_rows_heads_panels_keys_and_answers_are_clicked() {
    let sandbox = trained();
    let mut terminal = Terminal::start(&sandbox, &["attach", "first"], &[], 40, 120);
    terminal.wait_text("12 / 12");
    // A tab, and the head of a column, twice.
    terminal.click(" 2 State");
    terminal.wait_text("exp_avg_sq");
    terminal.click("bytes");
    terminal.wait_text("bytes▼");
    terminal.click("bytes▼");
    terminal.wait_text("bytes▲");
    // A row is selected, and opened by the next click.
    let row = terminal.find("norm");
    terminal.mouse(0, row);
    terminal.mouse(0, row);
    terminal.wait_text("closes, ←→ move");
    // A key at the bottom.
    terminal.click("? help");
    terminal.wait_text("Everywhere");
    let middle = (60, 20);
    terminal.mouse(65, middle);
    terminal.wait("the help scrolled", |screen| !screen.contains("Everywhere"));
    terminal.mouse(64, middle);
    terminal.wait_text("Everywhere");
    terminal.mouse(0, (2, 20));
    terminal.wait("the help closed", |screen| !screen.contains("Everywhere"));
    // A line of the palette.
    terminal.click(": commands");
    terminal.wait_text(":█");
    terminal.mouse(65, middle);
    terminal.press("runs");
    terminal.wait("the lines that fit", |screen| screen.contains(":runs█") && !screen.contains("micro-step"));
    terminal.click("the Runs screen");
    terminal.wait_text("runs 2");
    terminal.click("val loss");
    terminal.wait_text("by val loss");
    terminal.mouse(0, (5, 5));
    terminal.click("m mark");
    terminal.wait_text("1 marked");
    // Two clicks on a row watch its run.
    let row = terminal.find("second ");
    terminal.mouse(0, row);
    terminal.mouse(0, row);
    terminal.wait_text("adafactor on ");
    // A field is focused, then edited.
    terminal.click(" 3 Setup");
    terminal.wait_text("next run");
    let field = terminal.find("accumulate");
    terminal.mouse(0, field);
    terminal.mouse(0, field);
    terminal.wait_text("Enter take");
    terminal.click("Esc drop");
    terminal.wait("the keys of the form again", |screen| !screen.contains("Esc drop"));
    terminal.click("q quit");
    assert_eq!(terminal.end(), 0);
}

#[test]
fn the_answers_of_a_question_are_clicked() {
    let sandbox = Sandbox::new();
    let endless = ["train.max_updates=1000000"];
    let mut terminal = Terminal::start(&sandbox, &["run", "--name", "asked"], &endless, 30, 100);
    terminal.wait_text("tok/s");
    terminal.click("q quit");
    terminal.wait_text("is still training");
    terminal.click("cancel");
    terminal.wait("the question gone", |screen| !screen.contains("is still training"));
    terminal.click("p pause");
    terminal.wait_text("paused");
    terminal.click("p resume");
    terminal.wait("training again", |screen| screen.contains("p pause"));
    terminal.click("q quit");
    terminal.click("save a checkpoint, then leave");
    assert_eq!(terminal.end(), 0);
    sandbox.wait_for_list("a stopped run", |runs| runs[0]["state"] == "stopped");
}

#[test]
fn without_the_mouse_the_terminal_keeps_it() {
    let sandbox = trained();
    let asks = |terminal: &Terminal| {
        let raw = String::from_utf8_lossy(&terminal.raw()).into_owned();
        ["?1000h", "?1002h", "?1003h", "?1006h"].map(|mode| raw.contains(mode))
    };
    let file = sandbox.file("ui.toml", "mouse = false\n");
    let own = [("TUI_TRAIN_UI", &*file)];
    for (arguments, variables, asked) in [
        (vec!["attach", "first", "--no-mouse"], vec![], [false; 4]),
        (vec!["attach", "first"], own.to_vec(), [false; 4]),
        // Movements without a button are nothing that a slow line should carry.
        (vec!["attach", "first"], vec![], [true, true, false, true]),
    ] {
        let mut terminal = Terminal::start_with(&sandbox, &arguments, &[], &variables, 30, 110);
        terminal.wait_text("12 / 12");
        assert_eq!(asks(&terminal), asked, "{arguments:?}");
        terminal.press("q");
        assert_eq!(terminal.end(), 0);
    }
}
