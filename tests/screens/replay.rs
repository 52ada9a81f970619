//! A recording looks the same however it is read: at once when the run has ended, or line by line while it is written.

use std::io::Write;

use tui_train::{
    app::run::RunView,
    run::{RunDir, tail::Tail},
};

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
