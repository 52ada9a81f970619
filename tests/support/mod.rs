//! A place for the real binary to run in: a state folder of its own, nothing inherited that could change a result.

pub(crate) mod library;
pub(crate) mod nvml;
pub(crate) mod trace;

use std::{
    path::{Path, PathBuf},
    process::{Command, Output},
    time::{Duration, Instant},
};

use serde_json::Value;

/// What the tests train on: flex, or the device that `TEST_DEVICE` names, in a build that has it.
pub(crate) fn device_name() -> String {
    std::env::var("TEST_DEVICE").unwrap_or_else(|_| "flex".to_owned())
}

/// The same, opened.
pub(crate) fn device() -> burn::tensor::Device {
    tui_train::backend::devices::open(device_name().parse().unwrap()).unwrap().device
}

/// Longest that any condition is waited for.
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);

/// Settings that make the demo train in a second.
pub(crate) const SMALL: [&str; 4] =
    ["train.seq_len=16", "train.micro_batch=2", "model.num_hidden_layers=1", "train.validate_every=5"];

/// Where an example of this package is.
pub(crate) fn example(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_BIN_EXE_tui-train")).with_file_name("examples").join(name);
    assert!(path.is_file(), "{} is not built: run `cargo build --examples`", path.display());
    path
}

pub(crate) struct Sandbox {
    folder: tempfile::TempDir,
}

impl Sandbox {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    /// A path in the sandbox.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.path("state")
    }

    /// Writes a file and returns its path as text.
    pub(crate) fn file(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// A file of commands that pause a run at that update, so that whatever a test does to it comes in time. A run that is
    /// resumed from a checkpoint of the update goes on.
    pub(crate) fn pause_at(&self, update: u64) -> String {
        self.file("pause.toml", format!("[[command]]\nat_update = {update}\nname = \"pause\"\n"))
    }

    /// The binary with these arguments, not started.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        self.program(Path::new(env!("CARGO_BIN_EXE_tui-train")), arguments)
    }

    /// An example of this package with these arguments, not started; `cargo test` builds it beside the binary.
    pub(crate) fn example(&self, name: &str, arguments: &[&str]) -> Command {
        self.program(&example(name), arguments)
    }

    fn program(&self, program: &Path, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        for (name, _) in std::env::vars()
            .filter(|(name, _)| name.starts_with("TUI_TRAIN_") && name != "TUI_TRAIN_LIBTORCH")
        {
            command.env_remove(name);
        }
        command.args(arguments).current_dir(self.folder.path());
        // Left to itself a program takes the best device there is, and its neighbour in the target folder may be libtorch's.
        command.env("TUI_TRAIN_TRAIN_DEVICE", device_name());
        command.env("TUI_TRAIN_HOME", self.home()).env_remove("HOME").env_remove("XDG_STATE_HOME");
        command
    }

    /// Runs the binary to its end.
    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// Runs the binary, expects success, and reads standard output as JSON.
    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        let output = self.run(arguments);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{arguments:?}: {error} in {text}"))
    }

    /// Trains headless with small settings and these on top; every event of the run.
    pub(crate) fn train(&self, name: &str, settings: &[&str]) -> Vec<Value> {
        let mut arguments = vec!["run", "--json", "--name", name];
        for setting in SMALL.iter().chain(settings) {
            arguments.extend(["--set", setting]);
        }
        let output = self.run(&arguments);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        events(&output.stdout)
    }

    /// Kills the process that starts queued runs, as a reboot does.
    pub(crate) fn kill_runner(&self) {
        if let Ok(id) = std::fs::read_to_string(self.home().join("queue/runner")) {
            let _ = Command::new("kill").args(["-9", id.trim()]).output();
        }
    }

    /// Run folders, sorted.
    pub(crate) fn runs(&self) -> Vec<PathBuf> {
        let Ok(entries) = std::fs::read_dir(self.home().join("runs")) else { return Vec::new() };
        let mut runs: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
        runs.sort();
        runs
    }

    /// Waits until `list --json` satisfies the condition.
    pub(crate) fn wait_for_list(&self, what: &str, condition: impl Fn(&[Value]) -> bool) -> Vec<Value> {
        wait_for(what, || {
            let list = self.json(&["list", "--json"]);
            let runs = list["runs"].as_array().unwrap().clone();
            condition(&runs).then_some(runs)
        })
    }
}

impl Drop for Sandbox {
    /// No worker outlives its test.
    fn drop(&mut self) {
        if tui_train::run::Queue::of(&tui_train::run::Home::at(self.home())).has_runner().unwrap_or(false) {
            self.kill_runner();
        }
        for run in self.runs() {
            let Ok(id) = std::fs::read_to_string(run.join("lock")) else { continue };
            // A test may itself hold the lock of a run that it made.
            let ours = id.trim() == std::process::id().to_string();
            if !ours && !run.join("summary.json").exists() {
                let _ = Command::new("kill").args(["-9", id.trim()]).output();
            }
        }
    }
}

/// The lines of `--json`.
pub(crate) fn events(stdout: &[u8]) -> Vec<Value> {
    String::from_utf8_lossy(stdout)
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error} in {line}")))
        .collect()
}

/// Waits until the condition gives a value.
pub(crate) fn wait_for<T>(what: &str, mut condition: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(value) = condition() {
            return value;
        }
        assert!(begun.elapsed() < DEADLINE, "waited {DEADLINE:?} for {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
