//! The terminal is stopped, asked to end, or lost; the run is not.

use std::process::{Command, Stdio};

use super::terminal::Terminal;
use crate::support::{SMALL, Sandbox, wait_for};

const ENDLESS: &str = "train.max_updates=1000000";

fn signal(name: &str, pid: u32) {
    assert!(Command::new("kill").args([name, &pid.to_string()]).status().unwrap().success());
}

/// Whether the process is stopped.
fn stopped(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('T'))
}

fn live(sandbox: &Sandbox) -> Terminal {
    let terminal = Terminal::start(sandbox, &["run", "--name", "long"], &[ENDLESS], 30, 100);
    terminal.wait_text("tokens/s");
    terminal.wait_text("live");
    terminal
}

#[test]
fn ctrl_z_and_its_signal_give_the_terminal_back_and_take_it_again() {
    let sandbox = Sandbox::new();
    let mut terminal = live(&sandbox);
    let pid = terminal.pid();
    for by_key in [true, false] {
        if by_key {
            terminal.press("\x1a");
        } else {
            signal("-TSTP", pid);
        }
        wait_for("the program to stop", || stopped(pid).then_some(()));
        wait_for("the screen to be left", || (!terminal.alternate()).then_some(()));
        let updates = || sandbox.json(&["list", "--json"])["runs"][0]["update"].as_u64().unwrap();
        let before = updates();
        wait_for("the run to go on", || (updates() > before).then_some(()));
        signal("-CONT", pid);
        wait_for("the screen to come back", || terminal.alternate().then_some(()));
        terminal.wait_text("tokens/s");
    }
    terminal.press("qs");
    assert_eq!(terminal.end(), 0);
    sandbox.wait_for_list("a stopped run", |runs| runs[0]["state"] == "stopped");
}

#[test]
fn a_signal_that_ends_the_screens_stops_the_run_as_an_interrupt_does() {
    let sandbox = Sandbox::new();
    let terminal = live(&sandbox);
    signal("-TERM", terminal.pid());
    assert_eq!(terminal.end(), 130);
    let runs = sandbox.wait_for_list("a stopped run", |runs| runs[0]["state"] == "stopped");
    assert!(runs[0]["update"].as_u64().unwrap() > 0);
}

#[test]
fn a_lost_terminal_ends_the_screens_not_the_run() {
    let sandbox = Sandbox::new();
    // The pseudo-terminal belongs to a process that is killed: it closes without a word.
    let mut holder = Command::new("script");
    holder.args(["-qfc", &format!("exec {} run --name long", env!("CARGO_BIN_EXE_tui-train")), "/dev/null"]);
    holder.env_clear().env("TERM", "xterm-256color").env("TUI_TRAIN_HOME", sandbox.home());
    holder.env("PATH", "/usr/bin:/bin").env("SHELL", "/bin/sh").env("TUI_TRAIN_TRAIN_DEVICE", "flex");
    for setting in SMALL.iter().chain(&[ENDLESS]) {
        let (key, value) = setting.split_once('=').unwrap();
        holder.env(format!("TUI_TRAIN_{}", key.replace('.', "_").to_uppercase()), value);
    }
    let mut holder = holder.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    sandbox.wait_for_list("updates", |runs| runs.first().is_some_and(|run| run["update"].as_u64() > Some(3)));
    let screens = wait_for("the process with the screens", || {
        let children = format!("/proc/{0}/task/{0}/children", holder.id());
        std::fs::read_to_string(children).ok()?.split_whitespace().next()?.parse::<u32>().ok()
    });
    holder.kill().unwrap();
    holder.wait().unwrap();
    wait_for("the screens to end", || {
        (!std::path::Path::new(&format!("/proc/{screens}")).exists()).then_some(())
    });
    let before = sandbox.json(&["list", "--json"])["runs"][0]["update"].as_u64();
    sandbox.wait_for_list("the run goes on", |runs| runs[0]["update"].as_u64() > before);
    assert!(sandbox.run(&["stop", "long"]).status.success());
}

#[test]
fn an_interrupt_stops_the_run_on_the_screen_and_tells_what_goes_on() {
    for by_key in [true, false] {
        let sandbox = Sandbox::new();
        let mut terminal = live(&sandbox);
        // A second run beside the first, and a third in the queue.
        terminal.press("3");
        terminal.wait_text("next run");
        terminal.press("s");
        terminal.wait_text("start the draft beside it");
        terminal.press("\r");
        let two = sandbox.wait_for_list("two live runs", |runs| {
            runs.len() == 2 && runs.iter().all(|run| run["state"] == "live")
        });
        terminal.wait_text("tokens/s");
        let second = two[0]["run"].as_str().unwrap().to_owned();
        terminal.press("3");
        terminal.wait_text("next run");
        terminal.press("Q");
        terminal.wait_text("starts when its turn comes");
        if by_key {
            terminal.press("\x03");
        } else {
            signal("-TERM", terminal.pid());
        }
        let told = terminal.wait_text("its folder:");
        let words: Vec<&str> = told.split_whitespace().collect();
        assert!(words.contains(&second.as_str()), "{told}");
        for what in ["goes on without the screens", "the queue goes on: 1 waits there"] {
            assert!(told.contains(what), "{told}");
        }
        assert_eq!(terminal.end(), 130);
        let runs = sandbox.json(&["list", "--json"]);
        let of = |state: &str| {
            let runs = runs["runs"].as_array().unwrap();
            runs.iter()
                .filter(|run| run["state"] == state)
                .map(|run| &run["run"])
                .cloned()
                .collect::<Vec<_>>()
        };
        assert_eq!(of("stopped"), [second], "{runs}");
        assert_eq!((of("live").len(), of("queued").len()), (1, 1), "{runs}");
        let queued = of("queued")[0].as_str().unwrap().to_owned();
        assert!(sandbox.run(&["stop", &queued]).status.success());
        assert!(sandbox.run(&["stop", "long"]).status.success());
    }
}

#[test]
fn a_worker_that_is_killed_shows_as_crashed_with_its_signal() {
    let sandbox = Sandbox::new();
    let mut terminal = live(&sandbox);
    let worker = std::fs::read_to_string(sandbox.runs()[0].join("lock")).unwrap();
    signal("-KILL", worker.trim().parse().unwrap());
    terminal.wait_text("crashed");
    terminal.wait_text("SIGKILL");
    terminal.press("4");
    terminal.wait_text("SIGKILL");
    terminal.press("q");
    assert_eq!(terminal.end(), 0);
    let shown = String::from_utf8(sandbox.run(&["show", "long"]).stdout).unwrap();
    assert!(shown.contains("crashed") && shown.contains("SIGKILL (signal 9)"), "{shown}");
    let listed = String::from_utf8(sandbox.run(&["list"]).stdout).unwrap();
    assert!(listed.contains("SIGKILL (signal 9)"), "{listed}");
}

#[test]
fn any_number_may_look_and_their_commands_are_refused() {
    let sandbox = Sandbox::new();
    let mut first = live(&sandbox);
    let mut viewers: Vec<Terminal> =
        (0..2).map(|_| Terminal::start(&sandbox, &["attach", "long", "--readonly"], &[], 30, 100)).collect();
    for viewer in &mut viewers {
        viewer.wait_text("tokens/s");
        viewer.wait_text("read-only");
        for key in ["p", "x", ".", "c"] {
            viewer.press(key);
        }
        viewer.wait_text("read-only: started with --readonly");
        viewer.press("?");
        viewer.wait_text("commands to the run are refused");
        viewer.press("\x1b");
        viewer.wait("the help to close", |screen| !screen.contains("are refused"));
    }
    let record = std::fs::read_to_string(sandbox.runs()[0].join("events.jsonl")).unwrap();
    assert!(!record.contains("\"type\":\"command\""), "no command reached the run");
    for mut viewer in viewers {
        viewer.press("q");
        assert_eq!(viewer.end(), 0, "a viewer leaves without a question");
    }
    first.press("qs");
    assert_eq!(first.end(), 0);
}
