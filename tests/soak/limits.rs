//! Disks that fill and memory that ends under a run that trains.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use rustix::process::{Pid, Resource, Rlimit, prlimit};
use serde_json::Value;
use tui_train::{
    protocol::{Answer, Command as Ask},
    run::{Client, Home, RunDir, list},
};

use super::{
    WHOLE,
    victim::{Straight, arguments, assert_readable},
};
use crate::support::{DEADLINE, Sandbox, device_name, events, wait_for};

fn written(run: &Path) -> Vec<Value> {
    let text = fs::read(run.join("events.jsonl")).unwrap_or_default();
    let whole = text.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
    events(&text[..whole])
}

fn alerts(run: &Path, words: &str) -> usize {
    let alerts = written(run).into_iter().filter(|event| event["type"] == "alert");
    alerts.filter(|alert| alert["message"].as_str().unwrap().contains(words)).count()
}

/// Where the runs pause, one of the updates that have a checkpoint.
const PAUSED_AT: u64 = 9;
/// So many updates begin more than one checkpoint.
const A_FEW: u64 = 7;

struct Live {
    sandbox: Sandbox,
    follower: Child,
    run: PathBuf,
    worker: Pid,
    client: Client,
}

impl Live {
    /// A run that has paused, with a checkpoint of that update on the disk: whatever is done to it comes in time.
    fn start(sandbox: Sandbox, settings: &[&str]) -> Self {
        let pause = sandbox.pause_at(PAUSED_AT);
        let mut arguments = arguments("limited", settings);
        arguments.extend(["--commands", &pause]);
        let mut command = sandbox.command(&arguments);
        let follower = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let run = wait_for("a pause and a checkpoint before it", || {
            let run = sandbox.runs().pop()?;
            let written = written(&run);
            let happened = |kind| {
                written.iter().any(|event| {
                    event["type"] == kind
                        && [&event["update"], &event["at_update"]].contains(&&PAUSED_AT.into())
                })
            };
            (happened("command") && happened("checkpoint")).then_some(run)
        });
        let worker = fs::read_to_string(run.join("lock")).unwrap().trim().parse().unwrap();
        let mut client = Client::connect(&RunDir::open(&run).unwrap()).unwrap();
        // It has been let in.
        client.ask(Ask::Hello, DEADLINE).unwrap();
        Self { sandbox, follower, run, worker: Pid::from_raw(worker).unwrap(), client }
    }

    /// Makes updates while it is paused, doing something before each.
    fn step(&mut self, updates: u64, before: impl Fn()) {
        for _ in 0..updates {
            before();
            let answer = self.client.ask(Ask::Step, DEADLINE).unwrap();
            assert!(matches!(answer, Answer::Applied { .. }), "{answer:?}");
        }
    }

    fn go_on(&mut self) {
        self.client.send(Ask::Resume).unwrap();
    }

    fn limit(&self, resource: Resource, most: Option<u64>) {
        // The upper limit stays, so that the lower one can be lifted.
        prlimit(Some(self.worker), resource, Rlimit { current: most, maximum: None }).unwrap();
    }

    fn kill(&mut self) {
        rustix::process::kill_process(self.worker, rustix::process::Signal::KILL).unwrap();
        self.follower.wait().unwrap();
    }

    fn readable(&self, deaths: u64) {
        assert_readable(&RunDir::open(&self.run).unwrap(), deaths);
        assert_eq!(list(&Home::at(self.sandbox.home())).unwrap().len(), 1);
    }

    fn resume(&self) {
        let output = self.sandbox.run(&["resume", "limited", "--json"]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn a_disk_that_fills_under_a_run_costs_checkpoints_and_events_and_never_a_number() {
    if device_name() != "flex" {
        return;
    }
    let straight = Straight::train(&WHOLE);
    for killed in [true, false] {
        let mut live = Live::start(Sandbox::new(), &WHOLE);
        let before = alerts(&live.run, "was not written");
        assert_eq!(before, 0);
        // No weights fit, and a few events more.
        let length = fs::metadata(live.run.join("events.jsonl")).unwrap().len();
        live.limit(Resource::Fsize, Some(length + 6000));
        live.step(A_FEW, || {});
        wait_for("a checkpoint that fails", || (alerts(&live.run, "was not written") > 0).then_some(()));
        let failed = written(&live.run).into_iter().find(|event| {
            event["message"].as_str().is_some_and(|message| message.contains("was not written"))
        });
        let failed = failed.unwrap();
        assert_eq!(failed["level"], "error", "{failed}");
        assert!(failed["message"].as_str().unwrap().starts_with("the checkpoint of update"), "{failed}");
        live.readable(0);
        if killed {
            live.kill();
            live.readable(1);
            live.resume();
            straight.assert_same(&live.run);
            live.readable(1);
            continue;
        }
        live.limit(Resource::Fsize, None);
        live.go_on();
        live.follower.wait().unwrap();
        wait_for("the end", || live.run.join("summary.json").exists().then_some(()));
        straight.assert_same_end(&live.run);
        straight.assert_told_truly(&live.run);
        live.readable(0);
    }
}

/// A file system of a few megabytes, where this user may mount one.
struct Small(PathBuf);

impl Small {
    fn mount(path: PathBuf, size: &str) -> Option<Self> {
        fs::create_dir_all(&path).unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={size},mode=700"), "none"]).arg(&path);
        let mounted = mount.stderr(Stdio::null()).status().is_ok_and(|status| status.success());
        mounted.then_some(Self(path))
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn a_file_system_without_space_is_survived_and_used_again_when_there_is_some() {
    if device_name() != "flex" {
        return;
    }
    let sandbox = Sandbox::new();
    let Some(small) = Small::mount(sandbox.home(), "12m") else {
        println!("no file system can be mounted here: not tested");
        return;
    };
    let straight = Straight::train(&WHOLE);
    let mut live = Live::start(sandbox, &WHOLE);
    let filler = small.0.join("filler");
    let fill = || {
        let mut file = fs::File::options().create(true).append(true).open(&filler).unwrap();
        while std::io::Write::write_all(&mut file, &[0; 4096]).is_ok() {}
    };
    // What a failed checkpoint gives back is taken, too.
    live.step(A_FEW, fill);
    fs::remove_file(&filler).unwrap();
    live.go_on();
    live.follower.wait().unwrap();
    wait_for("the end", || live.run.join("summary.json").exists().then_some(()));
    // Nothing may have had room to tell of it then.
    let told = alerts(&live.run, "No space left") + alerts(&live.run, "could not be written");
    assert!(told > 0, "it is told");
    straight.assert_same_end(&live.run);
    straight.assert_told_truly(&live.run);
    live.readable(0);
}

#[test]
fn a_run_whose_last_checkpoint_has_no_room_has_failed_and_makes_what_is_lost_again() {
    if device_name() != "flex" {
        return;
    }
    let straight = Straight::train(&WHOLE);
    let mut live = Live::start(Sandbox::new(), &WHOLE);
    // Nothing else is written in the way: only the weights do not fit.
    let length = fs::metadata(live.run.join("events.jsonl")).unwrap().len();
    live.limit(Resource::Fsize, Some(length + 150_000));
    live.go_on();
    let ended = live.follower.wait().unwrap();
    assert_eq!(ended.code(), Some(1), "its weights are lost");
    let shown = live.sandbox.json(&["show", "limited", "--json"]);
    assert_eq!((&shown["reason"], &shown["updates"]), (&"failed".into(), &90.into()));
    let listed = live.sandbox.json(&["list", "--json"]);
    let problem = listed["runs"][0]["problem"].as_str().unwrap();
    let told = "all 90 updates are made, but their checkpoint was not written: ";
    assert!(problem.starts_with(told), "{problem}");
    assert!(problem.ends_with("what is left is the checkpoint of update 9"), "{problem}");
    assert_eq!(shown["resume_command"], format!("tui-train resume {}", shown["run"].as_str().unwrap()));
    live.resume();
    straight.assert_same(&live.run);
    live.readable(0);
    let again = live.sandbox.run(&["resume", "limited"]);
    let refused = String::from_utf8_lossy(&again.stderr).into_owned();
    assert!(refused.contains("has made 90 updates, and its settings end it at 90"), "{refused}");
}

#[test]
fn a_run_whose_memory_ends_goes_on_from_its_checkpoint_when_there_is_more() {
    if device_name() != "flex" {
        return;
    }
    let straight = Straight::train(&WHOLE);
    let mut live = Live::start(Sandbox::new(), &WHOLE);
    // Below what it has: not one more page.
    live.limit(Resource::As, Some(1 << 20));
    live.go_on();
    let ended = live.follower.wait().unwrap();
    live.readable(1);
    if !ended.success() {
        let listed = live.sandbox.json(&["list", "--json"]);
        assert_eq!(listed["runs"][0]["state"], "crashed", "{listed}");
        let problem = listed["runs"][0]["problem"].as_str().unwrap();
        assert!(problem.contains("memory") || problem.contains("SIG"), "{problem}");
        live.resume();
    }
    straight.assert_same(&live.run);
    live.readable(1);
}
