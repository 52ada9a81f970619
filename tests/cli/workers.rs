//! Workers that speak, hang, are told to end or lose their folder. Scripts stand in for the one that links libtorch.

use std::{
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use serde_json::Value;
use tui_train::{
    config::Layers,
    run::{Home, RunDir},
};

use super::libtorch::{answer, script};
use crate::support::{SMALL, Sandbox, events, wait_for};

/// A stand-in whose worker does this around a real one: `REAL` trains the run in `$2`.
fn stand_in(sandbox: &Sandbox, worker: &str) -> String {
    let real = env!("CARGO_BIN_EXE_tui-train");
    let probe = answer(1, false, 0);
    let worker = worker.replace("REAL", &format!("\"{real}\" worker \"$2\""));
    let flex = r#"sed -i 's/libtorch-cpu/flex/' "$2/run.toml""#;
    script(sandbox, "stand-in", &format!("case $1 in probe) {probe};; worker) {flex}; {worker};; esac"))
}

fn run_with(sandbox: &Sandbox, program: &str, updates: &str) -> Command {
    let mut command = sandbox.command(&["run", "--json", "--device", "libtorch-cpu", "--set", updates]);
    SMALL
        .iter()
        .chain(&["schedule.warmup_updates=0"])
        .for_each(|setting| _ = command.args(["--set", setting]));
    command.env("TUI_TRAIN_LIBTORCH", program);
    command
}

fn text(path: impl AsRef<Path>) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

fn signal(name: &str, pid: u32) {
    assert!(Command::new("kill").args([name, &pid.to_string()]).status().unwrap().success());
}

/// A worker of a new run, without anybody who started it for a person.
fn bare_worker(sandbox: &Sandbox) -> (RunDir, Child) {
    let settings = SMALL.iter().chain(&["train.max_updates=1000000", "train.device=flex"]);
    let resolved = Layers::new().with_assignments(settings).unwrap().resolve().unwrap();
    let run = RunDir::create(&Home::at(sandbox.home()), "bare", &resolved).unwrap();
    let path = run.path().to_str().unwrap().to_owned();
    let worker = sandbox.command(&["worker", &path]).stderr(Stdio::piped()).spawn().unwrap();
    wait_for("an update", || text(run.events()).contains("\"type\":\"update\"").then_some(()));
    (run, worker)
}

fn last_event(run: &RunDir) -> Value {
    events(&std::fs::read(run.events()).unwrap()).pop().unwrap()
}

fn temporaries(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.to_string_lossy().contains(".tmp-")).collect()
}

#[test]
fn what_a_worker_prints_goes_to_its_log_alone() {
    let sandbox = Sandbox::new();
    let chatty = stand_in(&sandbox, "echo said aloud; echo muttered >&2; exec REAL");
    let output = run_with(&sandbox, &chatty, "train.max_updates=3").output().unwrap();
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{message}");
    assert_eq!(events(&output.stdout).last().unwrap()["reason"], "finished", "JSON lines and nothing else");
    assert!(!message.contains("muttered"), "{message}");
    let log = text(sandbox.runs()[0].join("worker.log"));
    assert!(log.contains("said aloud") && log.contains("muttered"), "{log}");
}

#[test]
fn a_worker_refuses_a_setting_that_it_does_not_know() {
    let sandbox = Sandbox::new();
    let newer = r#"sed -i 's/^\[train\]/[train]\nlookahead = 3/' "$2/run.toml"; exec REAL"#;
    let output = run_with(&sandbox, &stand_in(&sandbox, newer), "train.max_updates=3").output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
    let ended = events(&output.stdout).pop().unwrap();
    assert_eq!(ended["reason"], "failed", "{ended}");
    let message = ended["message"].as_str().unwrap();
    for word in ["run.toml", "does not know the setting `train.lookahead`", env!("CARGO_PKG_VERSION")] {
        assert!(message.contains(word), "{word} in {message}");
    }
    assert_eq!(ended["summary"]["updates"], 0, "nothing was trained");
    assert!(sandbox.run(&["list"]).status.success(), "who only looks is not held up by it");
}

#[test]
fn a_worker_that_hangs_at_its_exit_is_killed_and_said_so() {
    let sandbox = Sandbox::new();
    let pid = sandbox.path("pid");
    let hangs = stand_in(&sandbox, &format!("echo $$ > {}; REAL; exec sleep 600", pid.display()));
    let output = run_with(&sandbox, &hangs, "train.max_updates=3").output().unwrap();
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "the run itself has ended well: {message}");
    assert!(message.contains("did not leave within") && message.contains("killed"), "{message}");
    let log = text(sandbox.runs()[0].join("worker.log"));
    assert!(log.contains("did not leave"), "{log}");
    assert!(!Path::new("/proc").join(text(&pid).trim()).exists(), "it is gone");
    let listed = sandbox.json(&["list", "--json"]);
    assert_eq!(listed["runs"][0]["state"], "done");
}

#[test]
fn a_second_interrupt_leaves_a_run_at_once_that_does_not_come_to_go_on() {
    let sandbox = Sandbox::new();
    sandbox.train("stuck", &["train.max_updates=3", "schedule.warmup_updates=0"]);
    let pid = sandbox.path("pid");
    let stuck = format!("trap '' TERM; echo $$ > {}; while :; do sleep 1; done", pid.display());
    let program = script(
        &sandbox,
        "stand-in",
        &format!("case $1 in probe) {};; worker) {stuck};; esac", answer(1, false, 0)),
    );
    let more = ["resume", "stuck", "--headless", "--device", "libtorch-cpu", "--set", "train.max_updates=6"];
    let mut command = sandbox.command(&more);
    let resuming = command
        .env("TUI_TRAIN_LIBTORCH", program)
        .stderr(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    wait_for("a worker", || text(&pid).ends_with('\n').then_some(()));
    let record = text(sandbox.runs()[0].join("events.jsonl"));
    signal("-INT", resuming.id());
    // Signals that come together are one.
    let mut pressed = 1;
    let worker = Path::new("/proc").join(text(&pid).trim());
    wait_for("the end of its worker", || {
        pressed += usize::from(
            pressed < 50
                && Command::new("kill")
                    .args(["-INT", &resuming.id().to_string()])
                    .status()
                    .unwrap()
                    .success(),
        );
        (!worker.exists()).then_some(())
    });
    let output = resuming.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{said}");
    assert!(said.contains("ended before it went on; go on with the run: tui-train resume "), "{said}");
    assert_eq!(text(sandbox.runs()[0].join("events.jsonl")), record);
    assert_eq!(sandbox.json(&["list", "--json"])["runs"][0]["state"], "done");
}

#[test]
fn a_signal_to_the_worker_ends_the_run_with_a_checkpoint() {
    for name in ["-TERM", "-INT"] {
        let sandbox = Sandbox::new();
        let (run, mut worker) = bare_worker(&sandbox);
        signal(name, worker.id());
        assert_eq!(worker.wait().unwrap().code(), Some(130));
        let last = last_event(&run);
        assert_eq!((&last["type"], &last["reason"]), (&"run_ended".into(), &"stopped".into()));
        let updates = last["summary"]["updates"].as_u64().unwrap();
        assert!(run.checkpoint(updates).join("optimizer.safetensors").exists());
    }
}

/// A program that prints a run which does not end by itself, and whose first update is made.
fn follower(sandbox: &Sandbox) -> Child {
    let mut arguments = vec!["run", "--json", "--set", "train.max_updates=1000000"];
    SMALL.iter().for_each(|setting| arguments.extend(["--set", setting]));
    let follower = sandbox.command(&arguments).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    wait_for("a record", || {
        let run = sandbox.runs().pop()?;
        text(run.join("events.jsonl")).contains("\"type\":\"update\"").then_some(())
    });
    follower
}

#[test]
fn whoever_follows_a_worker_that_a_signal_ends_exits_as_after_an_interrupt() {
    let sandbox = Sandbox::new();
    let follower = follower(&sandbox);
    signal("-TERM", text(sandbox.runs()[0].join("lock")).trim().parse().unwrap());
    let output = follower.wait_with_output().unwrap();
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{message}");
    assert!(message.contains("tui-train resume"), "{message}");
}

#[test]
fn a_worker_that_is_suspended_is_said_to_show_no_sign_of_life() {
    let sandbox = Sandbox::new();
    let mut arguments = vec!["run", "--json", "--set", "train.max_updates=1000000"];
    SMALL.iter().for_each(|setting| arguments.extend(["--set", setting]));
    let mut follower =
        sandbox.command(&arguments).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    wait_for("a record", || {
        let run = sandbox.runs().pop()?;
        text(run.join("events.jsonl")).contains("\"type\":\"update\"").then_some(())
    });
    let worker = text(sandbox.runs()[0].join("lock")).trim().parse().unwrap();
    signal("-STOP", worker);
    let silent = sandbox.wait_for_list("its silence", |runs| !runs[0]["problem"].is_null());
    assert_eq!(silent[0]["state"], "live", "{}", silent[0]);
    assert!(silent[0]["problem"].as_str().unwrap().starts_with("no sign of life for"), "{}", silent[0]);
    let mut line = String::new();
    let stderr = follower.stderr.take().unwrap();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(stderr), &mut line).unwrap();
    assert!(line.contains("no sign of life of the worker"), "{line}");
    signal("-CONT", worker);
    sandbox.wait_for_list("signs of life", |runs| runs[0]["problem"].is_null());
    signal("-TERM", worker);
    assert_eq!(follower.wait().unwrap().code(), Some(130));
}

#[test]
fn a_second_signal_ends_the_worker_at_once_and_leaves_whole_files() {
    let sandbox = Sandbox::new();
    let (run, mut worker) = bare_worker(&sandbox);
    signal("-TERM", worker.id());
    signal("-INT", worker.id());
    assert_eq!(worker.wait().unwrap().code(), Some(130));
    let listed = sandbox.json(&["list", "--json"]);
    assert!(["crashed", "stopped"].contains(&listed["runs"][0]["state"].as_str().unwrap()), "{listed}");
    assert!(sandbox.run(&["show", "bare"]).status.success());
    assert!(!tui_train::run::is_live(&run), "nothing blocks the next worker");
    drop(tui_train::run::RunLock::acquire(&run).unwrap());
    // It holds the number of this process now, which is no worker to be killed at the end.
    std::fs::remove_file(run.lock()).unwrap();
}

#[test]
fn a_worker_goes_on_without_its_terminal() {
    let sandbox = Sandbox::new();
    let (run, mut worker) = bare_worker(&sandbox);
    let length = || std::fs::metadata(run.events()).unwrap().len();
    signal("-HUP", worker.id());
    let before = length();
    wait_for("more events", || (length() > before + 1000).then_some(()));
    signal("-TERM", worker.id());
    assert_eq!(worker.wait().unwrap().code(), Some(130));
}

#[test]
fn a_folder_deleted_under_its_worker_ends_the_run_with_one_sentence() {
    let sandbox = Sandbox::new();
    let (run, worker) = bare_worker(&sandbox);
    std::fs::remove_dir_all(run.path()).unwrap();
    let output = worker.wait_with_output().unwrap();
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(message.contains("deleted") && !message.contains("panicked"), "{message}");
    assert!(!run.path().exists(), "the folder does not come back");
}

#[test]
fn whoever_follows_a_run_whose_folder_is_deleted_is_told_so() {
    let sandbox = Sandbox::new();
    let follower = follower(&sandbox);
    let worker: u32 = text(sandbox.runs()[0].join("lock")).trim().parse().unwrap();
    std::fs::remove_dir_all(&sandbox.runs()[0]).unwrap();
    let output = follower.wait_with_output().unwrap();
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(message.contains("deleted while it trained"), "{message}");
    assert_eq!(message.trim().lines().count(), 1, "{message}");
    wait_for("the worker's end", || (!Path::new(&format!("/proc/{worker}")).exists()).then_some(()));
}

#[test]
fn a_disk_that_is_full_costs_events_and_checkpoints_not_the_run() {
    let sandbox = Sandbox::new();
    let settings = ["train.max_updates=60", "train.validate_every=0", "log.state_every=5"];
    let set: String = SMALL[..3].iter().chain(&settings).map(|setting| format!(" --set {setting}")).collect();
    // No file may grow beyond 16 KiB: the header fits, and little more.
    let command = format!("ulimit -f 16; exec {} run --headless{set}", env!("CARGO_BIN_EXE_tui-train"));
    let mut limited = Command::new("bash");
    limited.args(["-c", &command]).env_clear().env("TUI_TRAIN_HOME", sandbox.home());
    let output = limited.env("TUI_TRAIN_TRAIN_DEVICE", "flex").output().unwrap();
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{message}");
    let run = &sandbox.runs()[0];
    let log = text(run.join("worker.log"));
    assert!(!message.contains("panicked") && !log.contains("panicked"), "{message} {log}");
    assert!(
        message.contains("could not be written") || log.contains("could not be written"),
        "{message} {log}"
    );
    assert_eq!((temporaries(run), temporaries(&run.join("checkpoints"))), (Vec::new(), Vec::new()));
    // What was recorded reads as it should: the last line is whole.
    let record = text(run.join("events.jsonl"));
    assert!(record.ends_with('\n') && !events(record.as_bytes()).is_empty());
    assert!(sandbox.run(&["list"]).status.success());
}

#[test]
fn a_state_folder_that_cannot_be_written_is_told_before_anything_starts() {
    let sandbox = Sandbox::new();
    let file = sandbox.file("file", "");
    for home in ["/proc/nothing", &file, "/sys/kernel"] {
        let output = sandbox.command(&["run", "--headless"]).env("TUI_TRAIN_HOME", home).output().unwrap();
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{message}");
        assert_eq!(message.trim().lines().count(), 1, "{message}");
        assert!(message.contains(home) && message.contains("set TUI_TRAIN_HOME"), "{message}");
    }
}

#[test]
fn a_worker_refuses_a_run_that_would_write_elsewhere() {
    let sandbox = Sandbox::new();
    let precious = sandbox.file("precious", "mine");
    let resolved = Layers::new().with_assignments(SMALL).unwrap().resolve().unwrap();
    for name in ["events.jsonl", "lock", "worker.log", "control.sock", "checkpoints"] {
        let run = RunDir::create(&Home::at(sandbox.home()), "stranger", &resolved).unwrap();
        std::os::unix::fs::symlink(&precious, run.path().join(name)).unwrap();
        let output = sandbox.run(&["worker", run.path().to_str().unwrap()]);
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{message}");
        assert!(message.contains(name) && message.contains("is a link"), "{message}");
        assert_eq!(text(&precious), "mine");
    }
}
