//! A run that is killed now and then, and held against one that never was.

use std::{
    collections::BTreeMap,
    fs,
    io::{BufRead, BufReader, Read},
    path::{Path, PathBuf},
    process::{Child, ChildStdout, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use rand_chacha::ChaCha8Rng;
use serde_json::Value;
use tui_train::{
    data::random::{below, generator},
    run::{Home, Record, RunDir, State, atomic, checkpoint, list},
};

use crate::support::{
    DEADLINE, Sandbox, events,
    trace::{checkpoints, last, trace},
};

/// When the worker is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Moment {
    /// Soon after it was started: while it takes its lock, reads its data and its checkpoint, goes on with the record.
    Start,
    /// Once so many events were printed.
    Event(u64),
    /// While a checkpoint is being written.
    Writing,
    /// Once the last update is told: the last validation, the last checkpoint, the summary.
    End,
}

/// Time between two looks at a condition.
const LOOK: Duration = Duration::from_micros(200);

/// What the printed lines have told so far.
#[derive(Debug, Default)]
struct Seen {
    events: AtomicU64,
    update: AtomicU64,
    over: AtomicBool,
}

/// Reads all lines on a thread of its own, so that nobody waits for a full pipe.
fn reader(stdout: ChildStdout, seen: Arc<Seen>) -> JoinHandle<Vec<String>> {
    std::thread::spawn(move || {
        let mut lines = Vec::new();
        for line in BufReader::new(stdout).lines() {
            let line = line.unwrap();
            if line.starts_with("{\"type\":\"update\"") {
                let event: Value = serde_json::from_str(&line).unwrap();
                seen.update.store(event["update"].as_u64().unwrap(), SeqCst);
            }
            lines.push(line);
            seen.events.fetch_add(1, SeqCst);
        }
        seen.over.store(true, SeqCst);
        lines
    })
}

/// Waits until the condition holds; false when the run was over first.
fn until(seen: &Seen, mut condition: impl FnMut() -> bool) -> bool {
    let begun = Instant::now();
    while !condition() {
        if seen.over.load(SeqCst) {
            return false;
        }
        assert!(begun.elapsed() < DEADLINE, "nothing happens");
        std::thread::sleep(LOOK);
    }
    true
}

/// The only child of a process.
fn child_of(pid: u32) -> Option<u32> {
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).ok()?;
    children.split_whitespace().next()?.parse().ok()
}

fn kill(pid: u32) {
    // It may just have ended by itself.
    let _ = Command::new("kill").args(["-9", &pid.to_string()]).stderr(Stdio::null()).status();
}

fn being_written(run: &Path) -> bool {
    let entries = fs::read_dir(run.join("checkpoints")).into_iter().flatten().flatten();
    entries.into_iter().any(|entry| atomic::is_temporary(&entry.file_name().to_string_lossy()))
}

/// What an undisturbed run of these settings was.
pub(crate) struct Straight {
    trace: Vec<Value>,
    files: BTreeMap<&'static str, Vec<u8>>,
    updates: u64,
}

const FILES: [&str; 2] = ["model.safetensors", "optimizer.safetensors"];

impl Straight {
    pub(super) fn of(run: &Path) -> Self {
        let trace = trace(run);
        let updates = trace.iter().filter_map(|row| row[0].as_u64()).max().unwrap();
        Self { trace, files: FILES.map(|file| (file, last(run, file))).into(), updates }
    }

    /// Trains it.
    pub(crate) fn train(settings: &[&str]) -> Self {
        let sandbox = Sandbox::new();
        let output = sandbox.run(&arguments("straight", settings));
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(events(&output.stdout).last().unwrap()["reason"], "finished");
        Self::of(&sandbox.runs()[0])
    }

    /// The run has ended and is the same: every figure of every update, every weight and every state, to the bit.
    pub(crate) fn assert_same(&self, run: &Path) {
        let ours = trace(run);
        if let Some((ours, theirs)) = ours.iter().zip(&self.trace).find(|(ours, theirs)| ours != theirs) {
            panic!("{} differs: {ours} where undisturbed it is {theirs}", run.display());
        }
        assert_eq!(ours.len(), self.trace.len(), "{}", run.display());
        assert!(!being_written(run), "what was begun is swept: {}", run.display());
        self.assert_same_end(run);
    }

    /// Its last checkpoint is the same.
    pub(super) fn assert_same_end(&self, run: &Path) {
        for (file, bytes) in &self.files {
            assert!(last(run, file) == *bytes, "{}: another {file}", run.display());
        }
        let newest = checkpoints(run).pop().unwrap();
        assert!(newest.ends_with(format!("{:08}", self.updates)), "{}", newest.display());
    }

    /// What the record tells is so, though it may not tell everything.
    pub(super) fn assert_told_truly(&self, run: &Path) {
        for row in trace(run) {
            assert!(self.trace.contains(&row), "{row} was never so");
        }
    }
}

/// The command line of a new run.
pub(super) fn arguments<'a>(name: &'a str, settings: &[&'a str]) -> Vec<&'a str> {
    let mut arguments = vec!["run", "--json", "--name", name];
    settings.iter().for_each(|setting| arguments.extend(["--set", setting]));
    arguments
}

/// Everything in a run's folder can be read, whatever happened to its worker. `deaths` is how many workers it has lost.
pub(crate) fn assert_readable(run: &RunDir, deaths: u64) {
    let record = Record::read(run).unwrap();
    assert!(record.skipped_lines <= deaths, "{} lines cannot be read", record.skipped_lines);
    run.config().unwrap();
    run.meta().unwrap();
    for whole in checkpoint::checkpoints(run).unwrap() {
        let info = whole.verified().unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(info.update, whole.update);
    }
    for entry in fs::read_dir(run.path().join("checkpoints")).into_iter().flatten() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(!name.contains("damaged"), "{name}");
    }
    for name in ["summary.json", "worker.json", "death.json"] {
        if let Ok(bytes) = fs::read(run.path().join(name)) {
            serde_json::from_slice::<Value>(&bytes).unwrap_or_else(|error| panic!("{name}: {error}"));
        }
    }
}

/// One run of a soak.
pub(super) struct Victim<'a> {
    sandbox: &'a Sandbox,
    name: String,
    settings: &'a [&'a str],
    straight: &'a Straight,
    deaths: u64,
}

impl<'a> Victim<'a> {
    pub(super) fn new(
        sandbox: &'a Sandbox,
        name: String,
        settings: &'a [&'a str],
        straight: &'a Straight,
    ) -> Self {
        Self { sandbox, name, settings, straight, deaths: 0 }
    }

    fn path(&self) -> Option<PathBuf> {
        let ends = format!("Z-{}", self.name);
        self.sandbox.runs().into_iter().find(|run| run.to_string_lossy().ends_with(&ends))
    }

    fn start(&self) -> Child {
        let arguments = match self.path() {
            None => arguments(&self.name, self.settings),
            Some(_) => vec!["resume", &self.name, "--json"],
        };
        self.sandbox.command(&arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// Starts the run or goes on with it and kills its worker at that moment. False: the run has ended before, and is what
    /// it had to be.
    pub(super) fn kill_at(&mut self, moment: Moment, dice: &mut ChaCha8Rng) -> bool {
        let mut printer = self.start();
        let seen = Arc::new(Seen::default());
        let lines = reader(printer.stdout.take().unwrap(), Arc::clone(&seen));
        let mut worker = None;
        let begun = until(&seen, || {
            worker = child_of(printer.id());
            worker.is_some()
        });
        let pause = |dice: &mut ChaCha8Rng, most: u64| {
            std::thread::sleep(Duration::from_micros(below(dice, most)));
        };
        let told = |events: u64| until(&seen, || seen.events.load(SeqCst) >= events);
        let reached = begun
            && match moment {
                Moment::Start => {
                    pause(dice, 120_000);
                    true
                }
                Moment::Event(events) => {
                    let told = told(events);
                    pause(dice, 3_000);
                    told
                }
                Moment::Writing => {
                    // Any one of the first few.
                    let wait = below(dice, 12);
                    let reached =
                        told(wait) && until(&seen, || self.path().is_some_and(|run| being_written(&run)));
                    pause(dice, 2_500);
                    reached
                }
                Moment::End => {
                    let reached = until(&seen, || seen.update.load(SeqCst) == self.straight.updates);
                    pause(dice, 15_000);
                    reached
                }
            };
        if reached {
            kill(worker.unwrap());
        }
        let lines = lines.join().unwrap();
        let status = printer.wait().unwrap();
        let mut message = String::new();
        printer.stderr.take().unwrap().read_to_string(&mut message).unwrap();
        if status.success() {
            let ended = lines.last().is_some_and(|line| line.contains("\"reason\":\"finished\""));
            assert!(ended, "{moment:?}: {lines:?} {message}");
            self.ended();
            return false;
        }
        assert!(
            message.contains("SIGKILL") || message.contains("signal: 9"),
            "{moment:?}: {:?} {message}",
            status.code()
        );
        self.deaths += 1;
        self.died();
        true
    }

    /// Lets it come to its end.
    pub(super) fn finish(&self) {
        let output = self.start().wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        self.ended();
    }

    fn died(&self) {
        let run = RunDir::open(self.path().unwrap()).unwrap();
        assert_readable(&run, self.deaths);
        let home = Home::at(self.sandbox.home());
        let entry = list(&home).unwrap().into_iter().find(|entry| entry.run == run.id()).unwrap();
        assert_eq!(entry.state, State::Crashed, "{entry:?}");
    }

    fn ended(&self) {
        let run = self.path().unwrap();
        assert_readable(&RunDir::open(&run).unwrap(), self.deaths);
        self.straight.assert_same(&run);
        assert!(!being_written(&run), "what dead workers left is swept");
        assert!(run.join("summary.json").exists());
    }
}

/// The generator of a soak; its seed is printed, so that a failure can be had again.
pub(super) fn dice(seed: u64) -> ChaCha8Rng {
    generator(seed, "soak", 0)
}
