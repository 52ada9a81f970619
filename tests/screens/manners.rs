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

#[test]
fn the_look_is_chosen_by_flag_or_variable_and_a_wrong_name_is_told_the_right_ones() {
    let sandbox = Sandbox::new();
    sandbox.train("look", &["train.max_updates=6", "schedule.warmup_updates=1"]);
    let once = ["attach", "latest", "--once", "--size", "100x30"];
    let frame = |arguments: &[&str], variables: &[(&str, &str)]| {
        let mut command = sandbox.command(&[&once[..], arguments].concat());
        command.env_remove("LC_ALL").env_remove("NO_COLOR").envs(variables.iter().copied());
        let output = command.output().unwrap();
        (
            output.status.code(),
            String::from_utf8(output.stdout).unwrap() + &String::from_utf8_lossy(&output.stderr),
        )
    };
    let is_braille = |text: &str| text.chars().any(|sign| ('\u{2801}'..='\u{28ff}').contains(&sign));
    let utf8 = ("LC_ALL", "C.UTF-8");
    let (code, text) = frame(&["--signs", "braille"], &[]);
    assert!(code == Some(0) && is_braille(&text), "{text}");
    for (arguments, variables) in [
        (vec!["--ascii"], vec![utf8]),
        (vec!["--signs", "ascii"], vec![utf8]),
        (vec![], vec![("TUI_TRAIN_SIGNS", "ascii")]),
    ] {
        let (code, text) = frame(&arguments, &variables);
        assert!(code == Some(0) && text.is_ascii(), "{arguments:?} {variables:?}: {text}");
    }
    let (code, text) = frame(&["--theme", "light"], &[("TUI_TRAIN_SIGNS", "blocks")]);
    assert!(code == Some(0) && !is_braille(&text) && text.contains('▄'), "{text}");
    for (arguments, variables) in
        [(vec!["--theme", "blue"], vec![]), (vec![], vec![("TUI_TRAIN_THEME", "blue")])]
    {
        let (code, text) = frame(&arguments, &variables);
        assert!(code == Some(2) && text.contains("high-contrast"), "{code:?} {text}");
    }
}

#[test]
fn a_chart_is_read_and_zoomed_by_keys_and_by_the_mouse() {
    let sandbox = Sandbox::new();
    sandbox.train("curve", &["train.max_updates=40", "schedule.warmup_updates=1"]);
    let mut terminal = Terminal::start(&sandbox, &["attach", "latest"], &[], 40, 120);
    terminal.wait_text("update 40 / 40");
    terminal.press("\x1b[D");
    terminal.wait_text(" at 40 ");
    terminal.press("+");
    terminal.wait_text("by updates 21-40, following");
    terminal.press("<");
    terminal.wait_text("by updates 17-36 ");
    terminal.press("\x1b");
    terminal.wait("the newest figures", |screen| !screen.contains(" at 40 "));
    terminal.press("\x1b[<0;30;12M\x1b[<0;30;12m");
    terminal.wait("figures of the update that was clicked", |screen| screen.contains(" at 2"));
    terminal.press("0");
    terminal
        .wait("the whole run", |screen| !screen.contains(" at 2") && screen.contains("linear, by updates "));
    terminal.press("T");
    terminal.wait_text("theme light");
    terminal.press("q");
    assert_eq!(terminal.end(), 0);
}
