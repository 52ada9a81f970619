//! A recording looks the same however it is read: at once when the run has ended, or line by line while it is written.

use std::io::Write;

use tui_train::{
    app::run::RunView,
    run::{RunDir, tail::Tail},
};

use super::terminal::Terminal;
use crate::support::Sandbox;

fn fold(view: &mut RunView, tail: &mut Tail) {
    tail.poll().unwrap().iter().for_each(|event| view.apply(event));
}

#[test]
fn a_recording_read_in_torn_pieces_is_the_run_read_at_once() {
    let sandbox = Sandbox::new();
    sandbox.train(
        "recorded",
        &["train.max_updates=30", "train.accumulate=2", "log.state_every=10", "optimizer.name=adafactor"],
    );
    let recorded = RunDir::open(&sandbox.runs()[0]).unwrap();
    let mut whole = RunView::default();
    fold(&mut whole, &mut Tail::open(&recorded));

    let lines = std::fs::read(recorded.events()).unwrap();
    let copy = sandbox.path("copy");
    std::fs::create_dir_all(&copy).unwrap();
    std::fs::copy(recorded.run_toml(), copy.join("run.toml")).unwrap();
    let mut growing = std::fs::File::create(copy.join("events.jsonl")).unwrap();
    let copy = RunDir::open(&copy).unwrap();
    let (mut view, mut tail) = (RunView::default(), Tail::open(&copy));
    // Pieces of a prime length end inside lines nearly always.
    for piece in lines.chunks(997) {
        growing.write_all(piece).unwrap();
        fold(&mut view, &mut tail);
    }
    assert_eq!(format!("{view:?}"), format!("{whole:?}"));
    assert_eq!(view.done(), 30);
}

#[test]
fn a_finished_run_is_played_paused_and_takes_no_commands() {
    let sandbox = Sandbox::new();
    sandbox.train("played", &["train.max_updates=40", "log.state_every=10"]);
    let before = std::fs::read(sandbox.runs()[0].join("events.jsonl")).unwrap();
    // So slow that nothing but the start is ever due.
    let mut slow = Terminal::start(&sandbox, &["attach", "played", "--replay", "0.0001"], &[], 30, 110);
    slow.wait_text("replay 0.0001x");
    slow.press(" ");
    slow.wait_text("replay paused");
    slow.press("x");
    slow.wait_text("takes no commands");
    slow.press(" ");
    slow.wait_text("replay 0.0001x");
    slow.press("?");
    slow.wait_text("help: a replay");
    slow.press("\x1b");
    // Together they would be Alt+q.
    slow.wait("the help to close", |screen| !screen.contains("help: a replay"));
    slow.press("q");
    assert_eq!(slow.end(), 0, "a replay is left without a question");

    let mut fast = Terminal::start(&sandbox, &["attach", "played", "--replay", "max"], &[], 30, 110);
    fast.wait("the end", |screen| screen.contains("finished") && screen.contains("40 / 40"));
    fast.press("q");
    assert_eq!(fast.end(), 0);
    assert_eq!(std::fs::read(sandbox.runs()[0].join("events.jsonl")).unwrap(), before);

    let wrong = sandbox.run(&["attach", "played", "--replay", "fast"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&wrong.stderr).contains("no speed"));
}
