//! The whole tour: start, pause, one update, State, another optimizer and accumulation, a second run, overlay, export.

use super::terminal::Terminal;
use crate::support::{Sandbox, events, wait_for};

const ENDLESS: &str = "train.max_updates=1000000";

/// The number behind `update ` on the Train screen of a run that is being watched.
fn update_of(screen: &str) -> Option<u64> {
    if !screen.contains(&format!(" on {}", crate::support::device_name()))
        || !screen.contains("learning rate")
    {
        return None;
    }
    let digits = screen.split("update ").nth(1)?.trim_start();
    digits.split([' ', '/']).next()?.replace(',', "").parse().ok()
}

#[test]
fn a_person_drives_two_runs_and_compares_them() {
    let sandbox = Sandbox::new();
    let mut terminal = Terminal::start(&sandbox, &[], &[ENDLESS, "log.state_every=10"], 40, 120);
    terminal.wait_text("next run");
    terminal.wait_text("effective batch");
    terminal.press("\r");
    terminal.wait("the first updates", |screen| update_of(screen).is_some_and(|update| update > 3));

    terminal.press("p");
    let paused = terminal.wait_text("paused");
    let before = wait_for("a still counter", || {
        let first = update_of(&terminal.screen());
        std::thread::sleep(std::time::Duration::from_millis(300));
        (first == update_of(&terminal.screen())).then_some(first).flatten()
    });
    assert!(update_of(&paused).is_some());
    terminal.press(".");
    terminal.wait("one update more", |screen| update_of(screen) == Some(before + 1));

    terminal.press("2");
    terminal.wait_text("exp_avg_sq");
    terminal.press("/norm\r");
    terminal.wait("only norms", |screen| screen.contains("norm") && !screen.contains("q_proj"));
    terminal.press("\r");
    terminal.wait_text("model.layers.0.input_layernorm.weight");
    terminal.wait_text("exp_avg_sq 64");
    // A single step is measured, whatever the interval is.
    terminal.press(".");
    let measured = format!("measured at {}", before + 2);
    terminal.wait("what the step did", |screen| screen.replace(',', "").contains(&measured));
    terminal.press("\x1b");
    terminal.wait("the table again", |screen| !screen.contains("exp_avg_sq 64"));

    terminal.press("x");
    terminal.press("1");
    terminal.wait_text("stopped");

    terminal.press("3");
    terminal.wait_text("next run");
    terminal.press("o");
    terminal.wait_text("adamw → adafactor");
    terminal.press("]");
    terminal.wait_text("8 x 2 = 16".replace('8', "2").replace("16", "4").as_str());
    terminal.press("s");
    terminal.wait("the second run", |screen| {
        screen.contains(&format!("adafactor on {}", crate::support::device_name()))
            && update_of(screen).is_some_and(|update| update > 3)
    });
    assert_eq!(sandbox.runs().len(), 2);
    terminal.press("x");
    terminal.wait_text("stopped");

    terminal.press("4");
    terminal.wait_text("runs 2");
    terminal.press("mjm");
    terminal.wait_text("optimizer.name");
    terminal.wait_text("train.accumulate");
    terminal.press("1");
    terminal.press(":export md\r");
    let run = sandbox.runs().into_iter().max().unwrap();
    wait_for("the exported page", || {
        let written = std::fs::read_dir(sandbox.path("")).unwrap().filter_map(Result::ok);
        let here =
            written.map(|entry| entry.path()).any(|path| path.extension().is_some_and(|end| end == "md"));
        (here || run.join("summary.md").exists()).then_some(())
    });
    terminal.press("q");
    assert_eq!(terminal.end(), 0);
}

#[test]
fn a_finished_run_is_resumed_into_its_screens() {
    let sandbox = Sandbox::new();
    sandbox.train("again", &["train.max_updates=30"]);
    let more = ["resume", "latest", "--set", "train.max_updates=1000000"];
    let mut terminal = Terminal::start(&sandbox, &more, &[], 30, 100);
    terminal.wait_text("train.max_updates: 30 -> 1000000");
    terminal.press("y\r");
    terminal.wait("the next updates", |screen| update_of(screen).is_some_and(|update| update > 33));
    terminal.press("\x03");
    assert_eq!(terminal.end(), 130);
    let runs = sandbox.wait_for_list("a stopped run", |runs| runs[0]["state"] == "stopped");
    assert_eq!((runs.len(), runs[0]["total_updates"].as_u64()), (1, Some(1_000_000)));
}

#[test]
fn the_run_goes_on_without_its_screens_and_attach_finds_it() {
    let sandbox = Sandbox::new();
    let mut first = Terminal::start(&sandbox, &["run", "--name", "long"], &[ENDLESS], 30, 100);
    first.wait("the first updates", |screen| update_of(screen).is_some_and(|update| update > 3));

    let second = Terminal::start(&sandbox, &["attach", "long"], &[], 30, 100);
    second.wait_text("read-only");
    second.kill();

    first.press("q");
    first.wait_text("detach");
    first.press("d");
    assert_eq!(first.end(), 0);
    sandbox.wait_for_list("a live run", |runs| runs[0]["state"] == "live");

    let third = Terminal::start(&sandbox, &["attach", "latest"], &[], 30, 100);
    let seen = third.wait("the curve again", |screen| update_of(screen).is_some());
    third.kill();
    let after = update_of(&seen).unwrap();
    sandbox.wait_for_list("the run goes on", |runs| runs[0]["update"].as_u64().unwrap() > after + 5);

    let mut fourth = Terminal::start(&sandbox, &["attach", "long"], &[], 30, 100);
    fourth.wait("the curve again", |screen| update_of(screen).is_some());
    fourth.press("\x03");
    assert_eq!(fourth.end(), 130, "an interrupt stops the run and leaves when it has ended");
    sandbox.wait_for_list("a stopped run", |runs| runs[0]["state"] == "stopped");
}

#[test]
fn a_rate_given_on_the_screens_is_that_of_the_run_that_goes_on() {
    let sandbox = Sandbox::new();
    sandbox.train("rated", &["train.max_updates=8", "schedule.warmup_updates=0", "schedule.name=constant"]);
    let mut terminal = Terminal::start(&sandbox, &["attach", "latest"], &[], 24, 80);
    terminal.wait_text("finished");
    let line = ":resume optimizer.lr=7e-5 train.max_updates=16\r";
    line.chars().for_each(|key| terminal.press(&key.to_string()));
    terminal.wait_text("16 / 16");
    terminal.wait_text("finished");
    terminal.press("q");
    terminal.end();
    let summary = sandbox.json(&["show", "latest", "--json"]);
    assert_eq!(
        (&summary["updates"], &summary["config"]["optimizer"]["adamw"]["lr"]),
        (&16.into(), &7e-5.into())
    );
    let log = std::fs::read(sandbox.runs()[0].join("events.jsonl")).unwrap();
    let rates: Vec<_> = events(&log)
        .into_iter()
        .filter(|event| event["type"] == "update" && event["update"].as_u64() > Some(8))
        .map(|event| event["train/learning_rate"].as_f64().unwrap())
        .collect();
    assert_eq!(rates, [7e-5; 8], "it is really used");
}
