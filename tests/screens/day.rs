//! A day's run on the screens: what they take of memory, and of the processor while nothing happens.
//!
//! `cargo test --release --test e2e a_day_of -- --ignored --nocapture`

use std::{
    fs::File,
    io::{BufWriter, Write},
    time::Duration,
};

use tui_train::{
    config::Layers,
    protocol::Event,
    run::{Home, RunDir, RunLock},
};

use super::terminal::Terminal;
use crate::support::Sandbox;

#[path = "../bench/made.rs"]
#[allow(dead_code, reason = "the bench of the frames needs more of it")]
mod made;

/// Most memory, and the largest share of one core while nothing happens.
const MOST_BYTES: u64 = 60 << 20;
const MOST_SHARE: f64 = 0.01;
/// How long nothing happens.
const STILL: Duration = Duration::from_secs(10);
/// Statistics of the state in the record, as often as by default.
const STATISTICS: u64 = 5_000;

/// The record of a million updates in a day, with statistics of a thousand parameters.
fn record(run: &RunDir) {
    let mut out = BufWriter::with_capacity(1 << 20, File::create(run.events()).unwrap());
    let mut line = |event: &Event| {
        serde_json::to_writer(&mut out, event).unwrap();
        out.write_all(b"\n").unwrap();
    };
    line(&Event::Header(Box::new(made::header(run.id()))));
    for update in 1..=made::UPDATES {
        made::events(update).iter().for_each(&mut line);
        if update.is_multiple_of(STATISTICS) {
            line(&Event::State(made::report(update)));
        }
    }
}

/// A figure of `/proc/PID/status`, in bytes.
fn memory(pid: u32, name: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with(name)).unwrap();
    1024 * line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap()
}

/// Hundredths of a second on a processor so far.
fn ticks(pid: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit(") ").next().unwrap().split(' ').collect();
    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
}

#[test]
#[ignore = "writes half a gigabyte and takes a minute: cargo test --release --test e2e a_day_of -- --ignored --nocapture"]
fn a_day_of_training_takes_little_memory_and_no_time_while_nothing_happens() {
    let sandbox = Sandbox::new();
    let resolved = Layers::new().resolve().unwrap();
    let run = RunDir::create(&Home::at(sandbox.home()), "day", &resolved).unwrap();
    record(&run);
    // A worker that is alive and says nothing.
    let lock = RunLock::acquire(&run).unwrap();
    let mut terminal = Terminal::start(&sandbox, &["attach", "latest"], &[], 60, 200);
    terminal.wait_text("update 1,000,000");
    let pid = terminal.pid();
    let mut worst = 0.0_f64;
    for (screen, text) in
        [("1", "loss"), ("2", "exp_avg_sq_row"), ("3", "next run"), ("4", "runs 1"), ("1", "loss")]
    {
        terminal.press(screen);
        terminal.wait_text(text);
        let before = ticks(pid);
        std::thread::sleep(STILL);
        let share = (ticks(pid) - before) as f64 / 100.0 / STILL.as_secs_f64();
        println!("screen {screen}: {:.2} % of a core while nothing happens", 100.0 * share);
        worst = worst.max(share);
    }
    let (now, peak) = (memory(pid, "VmRSS"), memory(pid, "VmHWM"));
    println!("memory: {:.1} MiB, at most {:.1} MiB", now as f64 / 1048576.0, peak as f64 / 1048576.0);
    drop(lock);
    terminal.press("q");
    terminal.press("d");
    terminal.end();
    assert!(peak < MOST_BYTES, "{peak} bytes");
    assert!(worst < MOST_SHARE, "{worst} of a core");
}
