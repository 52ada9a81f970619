//! What reaches the terminal besides the screen: the clipboard, a call at the end, a title; and nothing while idle.

use super::terminal::Terminal;
use crate::support::{Sandbox, wait_for};

/// What base64 stands for.
fn decoded(text: &str) -> String {
    let signs = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut bytes = Vec::new();
    let values: Vec<u32> = text.chars().filter_map(|c| signs.find(c)).map(|at| at as u32).collect();
    for four in values.chunks(4) {
        let bits = four.iter().enumerate().fold(0, |bits, (at, value)| bits | value << (18 - 6 * at));
        bytes.extend((0..four.len() - 1).map(|at| (bits >> (16 - 8 * at)) as u8));
    }
    String::from_utf8(bytes).unwrap()
}

/// The newest text that was given to the clipboard.
fn clipboard(terminal: &Terminal) -> String {
    let raw = String::from_utf8_lossy(&terminal.raw()).into_owned();
    let last = raw.rsplit("]52;c;").next().unwrap();
    decoded(last.split(['\x07', '\x1b']).next().unwrap())
}

#[test]
fn a_figure_and_a_command_are_copied_to_the_clipboard() {
    let sandbox = Sandbox::new();
    let events = sandbox.train("copied", &["train.max_updates=6", "schedule.warmup_updates=1"]);
    let loss = events.iter().rfind(|event| event["type"] == "update").unwrap()["train/loss"].as_f64();
    let mut terminal = Terminal::start(&sandbox, &["attach", "copied"], &[], 30, 110);
    terminal.wait_text("6 / 6");
    terminal.press("Y");
    terminal.wait_text("copied loss at update 6");
    assert_eq!(clipboard(&terminal).parse().ok(), loss, "every digit");
    terminal.press("C");
    terminal.wait_text("copied the command that trains it again");
    let command = clipboard(&terminal);
    assert!(
        command.starts_with("tui-train run /") && command.ends_with("run.toml --name copied"),
        "{command}"
    );
    // The command does what it says.
    let arguments: Vec<&str> = command.split(' ').skip(1).chain(["--headless"]).collect();
    assert!(sandbox.run(&arguments).status.success());
    assert_eq!(sandbox.runs().len(), 2);
    terminal.press("3");
    terminal.wait_text("next run");
    terminal.press(":copy\r");
    terminal.wait_text("copied setting model.preset");
    assert!(clipboard(&terminal).starts_with("model.preset="));
    terminal.press("q");
    assert_eq!(terminal.end(), 0);

    let tmux = [("TMUX", "/tmp/tmux-0/default,1,0")];
    let mut terminal = Terminal::start_with(&sandbox, &["attach", "copied"], &[], &tmux, 30, 110);
    terminal.wait_text("6 / 6");
    terminal.press("Y");
    terminal.wait_text("set-clipboard on");
    terminal.wait_raw("\x1bPtmux;\x1b\x1b]52;c;");
    terminal.press("q");
    assert_eq!(terminal.end(), 0);
}

#[test]
fn the_end_of_a_run_calls_if_asked_and_the_record_of_one_does_not() {
    let sandbox = Sandbox::new();
    let started = ["run", "--name", "called"];
    let file = sandbox.file("ui.toml", "notice = \"osc9\"\ntitle = true\n");
    let own = [("TUI_TRAIN_UI", &*file)];
    let long = ["train.max_updates=1000000"];
    let mut terminal = Terminal::start_with(&sandbox, &started, &long, &own, 30, 110);
    terminal.wait_text("tok/s");
    terminal.wait_raw("\x1b]2;called: live - tui-train\x07");
    terminal.press("x");
    terminal.wait_text("stopped");
    terminal.wait_raw("\x1b]9;tui-train: called: stopped after ");
    terminal.wait_raw("\x1b]2;called: stopped - tui-train\x07");
    terminal.press("q");
    terminal.wait_raw("\x1b[23;2t");
    assert_eq!(terminal.end(), 0);
    let flags = ["attach", "called", "--notice", "bell"];
    let mut terminal = Terminal::start(&sandbox, &flags, &[], 30, 110);
    terminal.wait_text("stopped");
    terminal.press("2");
    terminal.wait_text("exp_avg");
    let raw = terminal.raw();
    assert!(!raw.contains(&7), "what is over is no news");
    assert!(!raw.windows(4).any(|window| window == b"\x1b]2;"), "no title unless it is asked for");
    terminal.press("q");
    assert_eq!(terminal.end(), 0);
}

#[test]
fn nothing_is_sent_while_nothing_happens() {
    let sandbox = Sandbox::new();
    sandbox.train("idle", &["train.max_updates=6", "schedule.warmup_updates=1"]);
    let mut terminal = Terminal::start(&sandbox, &["attach", "idle"], &[], 30, 110);
    terminal.wait_text("6 / 6");
    for (key, mark) in [("1", "learning rate"), ("4", "runs 1"), ("2", "exp_avg"), ("3", "next run")] {
        terminal.press(key);
        terminal.wait_text(mark);
        // It comes to rest; then the clock ticks on, and the list of runs is read again.
        let still = || {
            let before = terminal.raw().len();
            std::thread::sleep(std::time::Duration::from_millis(if key == "4" { 2500 } else { 300 }));
            (terminal.raw().len() == before).then_some(())
        };
        wait_for(&format!("screen {key} to rest"), still);
    }
    terminal.press("q");
    assert_eq!(terminal.end(), 0);
}

#[test]
fn a_screen_is_written_as_a_picture_as_text_and_as_text_with_colours() {
    let sandbox = Sandbox::new();
    sandbox.train("drawn", &["train.max_updates=6", "schedule.warmup_updates=1"]);
    for (name, marks) in
        [("a.svg", ["<svg", "6"]), ("a.txt", ["6 / 6", "learning rate"]), ("a.ans", ["\x1b[", "6 / 6"])]
    {
        let arguments = ["attach", "drawn", "--size", "100x30", "-o", name];
        let output = sandbox.run(&arguments);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = std::fs::read_to_string(sandbox.path(name)).unwrap();
        assert!(marks.iter().all(|mark| text.contains(mark)), "{text}");
        assert!(!sandbox.run(&arguments).status.success(), "nothing is overwritten");
    }
    let wrong = sandbox.run(&["attach", "drawn", "-o", "a.png"]);
    assert_eq!(wrong.status.code(), Some(2));
    let once = sandbox.run(&["attach", "drawn", "--once", "--coloured", "--size", "100x30"]);
    assert_eq!(
        String::from_utf8(once.stdout).unwrap().trim_end(),
        std::fs::read_to_string(sandbox.path("a.ans")).unwrap().trim_end()
    );
    let mut terminal = Terminal::start(&sandbox, &["attach", "drawn"], &[], 30, 110);
    terminal.wait_text("6 / 6");
    terminal.press(":picture b.txt\r");
    terminal.wait_text("written: b.txt");
    let text = std::fs::read_to_string(sandbox.path("b.txt")).unwrap();
    assert!(text.contains("6 / 6") && text.lines().count() == 30, "{text}");
    terminal.press(":export html\r");
    terminal.wait_text("export.html");
    terminal.press(":export tensorboard\r");
    terminal.wait_text("export-tensorboard");
    assert!(sandbox.runs()[0].join("export-tensorboard").is_dir());
    terminal.press("q");
    assert_eq!(terminal.end(), 0);
}

#[test]
fn without_a_terminal_a_run_is_told_in_lines() {
    let sandbox = Sandbox::new();
    sandbox.train("lines", &["train.max_updates=6", "schedule.warmup_updates=1"]);
    let output = sandbox.run(&["attach", "lines"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && text.contains("6 / 6") && !text.contains('\x1b'), "{text}");
    let dumb = [("TERM", "dumb")];
    let long = ["train.max_updates=300", "schedule.warmup_updates=1"];
    let lines = Terminal::start_with(&sandbox, &["run", "--name", "dumb"], &long, &dumb, 30, 100);
    lines.wait_text("parameters");
    let viewer = Terminal::start_with(&sandbox, &["attach", "dumb"], &[], &dumb, 60, 120);
    viewer.wait_raw("learning rate");
    assert_eq!((lines.end(), viewer.end()), (0, 0));
}
