//! The check of accumulation from the screens: a key asks, the overlay answers, Esc closes it.

use super::terminal::Terminal;
use crate::support::Sandbox;

#[test]
fn a_key_checks_the_accumulation_of_the_draft() {
    let sandbox = Sandbox::new();
    let mut terminal = Terminal::start(&sandbox, &[], &["train.accumulate=2"], 30, 100);
    terminal.wait_text("next run");
    terminal.press("]");
    terminal.wait_text("2 x 4 = 8");
    terminal.press("A");
    let answer = terminal.wait_text("the same gradient but for rounding");
    assert!(
        answer.contains("1 x 8") && answer.contains("8 x 1") && answer.contains("128 targets"),
        "{answer}"
    );
    terminal.press("\x1b");
    terminal.wait("the form again", |screen| !screen.contains("accumulation check"));
    assert!(sandbox.runs().is_empty(), "a check is no run");
    terminal.press("q");
    assert_eq!(terminal.end(), 0);
}
