//! Disks that fill and memory that ends under a run that trains.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use rustix::process::{Pid, Resource, Rlimit, prlimit};
use serde_json::Value;
use tui_train::run::{Home, RunDir, list};

use super::{
    WHOLE,
    victim::{Straight, arguments, assert_readable},
};
use crate::support::{Sandbox, device_name, events, wait_for};

fn written(run: &Path) -> Vec<Value> {
    let text = fs::read(run.join("events.jsonl")).unwrap_or_default();
    let whole = text.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
    events(&text[..whole])
}

fn updates(run: &Path) -> u64 {
    let last = written(run).into_iter().rev().find(|event| event["type"] == "update");
    last.map_or(0, |event| event["update"].as_u64().unwrap())
}

fn alerts(run: &Path, words: &str) -> usize {
    let alerts = written(run).into_iter().filter(|event| event["type"] == "alert");
    alerts.filter(|alert| alert["message"].as_str().unwrap().contains(words)).count()
}

struct Live {
    sandbox: Sandbox,
    follower: Child,
    run: PathBuf,
    worker: Pid,
}

impl Live {
    /// A run that trains.
    fn start(sandbox: Sandbox, settings: &[&str]) -> Self {
        let mut command = sandbox.command(&arguments("limited", settings));
        let follower = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let run = wait_for("a few updates", || {
            let run = sandbox.runs().pop()?;
            (updates(&run) > 8).then_some(run)
        });
        let worker = fs::read_to_string(run.join("lock")).unwrap().trim().parse().unwrap();
        Self { sandbox, follower, run, worker: Pid::from_raw(worker).unwrap() }
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

fn settings() -> Vec<&'static str> {
    let longer = WHOLE.iter().map(|setting| match *setting {
        "train.max_updates=90" => "train.max_updates=240",
        other => other,
    });
    longer.collect()
}

#[test]
fn a_disk_that_fills_under_a_run_costs_checkpoints_and_events_and_never_a_number() {
    if device_name() != "flex" {
        return;
    }
    let settings = settings();
    let straight = Straight::train(&settings);
    for killed in [true, false] {
        let mut live = Live::start(Sandbox::new(), &settings);
        let before = alerts(&live.run, "was not written");
        assert_eq!(before, 0);
        // No weights fit, and a few events more.
        let length = fs::metadata(live.run.join("events.jsonl")).unwrap().len();
        live.limit(Resource::Fsize, Some(length + 6000));
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
    let settings = settings();
    let sandbox = Sandbox::new();
    let Some(small) = Small::mount(sandbox.home(), "12m") else {
        println!("no file system can be mounted here: not tested");
        return;
    };
    let straight = Straight::train(&settings);
    let mut live = Live::start(sandbox, &settings);
    let filler = small.0.join("filler");
    let fill = || {
        let mut file = fs::File::options().create(true).append(true).open(&filler).unwrap();
        while std::io::Write::write_all(&mut file, &[0; 4096]).is_ok() {}
    };
    fill();
    let (mut length, mut grown) = (0, Instant::now());
    wait_for("something that has no room", || {
        // What a failed checkpoint gives back is taken, too.
        fill();
        let now = fs::metadata(live.run.join("events.jsonl")).unwrap().len();
        if std::mem::replace(&mut length, now) != now {
            grown = Instant::now();
        }
        let told = alerts(&live.run, "No space left") + alerts(&live.run, "could not be written");
        // An update takes milliseconds: a record that stands still loses them, and nothing may have room to tell of it.
        (told > 0 || grown.elapsed() > Duration::from_secs(2)).then_some(())
    });
    fs::remove_file(&filler).unwrap();
    live.follower.wait().unwrap();
    wait_for("the end", || live.run.join("summary.json").exists().then_some(()));
    let told = alerts(&live.run, "No space left") + alerts(&live.run, "could not be written");
    assert!(told > 0, "it is told");
    straight.assert_same_end(&live.run);
    straight.assert_told_truly(&live.run);
    live.readable(0);
}

#[test]
fn a_run_whose_memory_ends_goes_on_from_its_checkpoint_when_there_is_more() {
    if device_name() != "flex" {
        return;
    }
    let settings = settings();
    let straight = Straight::train(&settings);
    let mut live = Live::start(Sandbox::new(), &settings);
    // Below what it has: not one more page.
    live.limit(Resource::As, Some(1 << 20));
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
