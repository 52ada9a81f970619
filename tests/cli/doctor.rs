//! What `doctor` finds, what it says about it, and the exit code. Scripts and a library of our own stand in for libtorch
//! and the driver.

use serde_json::Value;

use super::libtorch::{answer, script};
use crate::support::{
    Sandbox,
    nvml::{self, Library},
};

/// A sandbox whose machine has two GPUs and what the closure changes; the checks by name, and the exit code.
struct Doctor {
    sandbox: Sandbox,
    library: Library,
    words: &'static str,
    environment: Vec<(&'static str, String)>,
}

impl Doctor {
    fn new() -> Self {
        let sandbox = Sandbox::new();
        let program = script(&sandbox, "libtorch", &answer(1, true, 2));
        let environment = vec![
            ("TUI_TRAIN_LIBTORCH", program),
            ("TERM", "xterm-256color".to_owned()),
            ("LC_ALL", "C.UTF-8".to_owned()),
        ];
        Self { sandbox, library: Library::Full, words: "", environment }
    }

    fn set(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.environment.push((name, value.into()));
        self
    }

    fn libtorch(self, body: &str) -> Self {
        let program = script(&self.sandbox, "other", body);
        self.set("TUI_TRAIN_LIBTORCH", program)
    }

    fn driver(mut self, library: Library, words: &'static str) -> Self {
        (self.library, self.words) = (library, words);
        self
    }

    fn output(&self, arguments: &[&str]) -> (Option<i32>, String) {
        let mut command = self.sandbox.command(arguments);
        nvml::answer(&mut command, self.library, self.words);
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        let output = command.output().unwrap();
        assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    }

    /// Exit code and report.
    fn report(&self) -> (Option<i32>, Value) {
        let (code, text) = self.output(&["doctor", "--json"]);
        let report: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(report["can_train"], code == Some(0));
        (code, report)
    }

    /// The check of that name has this result, says these words, and names a command with this in it, or none.
    fn assert(&self, name: &str, result: &str, words: &[&str], command: Option<&str>) {
        let (code, report) = self.report();
        assert_eq!(code, Some(i32::from(result == "failed")), "{report}");
        let check = find(&report, name).unwrap_or_else(|| panic!("no {name}: {report}"));
        assert_eq!(check["result"], result, "{check}");
        for word in words {
            assert!(check["found"].as_str().unwrap().contains(word), "`{word}` is not in {check}");
        }
        match command {
            Some(part) => assert!(check["command"].as_str().is_some_and(|all| all.contains(part)), "{check}"),
            None => assert!(check["command"].is_null(), "{check}"),
        }
    }
}

fn find<'a>(report: &'a Value, name: &str) -> Option<&'a Value> {
    report["checks"].as_array().unwrap().iter().find(|check| check["name"] == name)
}

#[test]
fn a_machine_with_everything_is_well() {
    let doctor = Doctor::new();
    let (code, report) = doctor.report();
    assert_eq!(code, Some(0));
    for name in ["characters", "state folder", "flex", "driver", "libtorch", "CUDA"] {
        assert_eq!(find(&report, name).unwrap()["result"], "ok", "{report}");
    }
    doctor.assert("driver", "ok", &["555.42.06", "Fake GPU 0, Fake GPU 1"], None);
    doctor.assert("CUDA", "ok", &["libtorch-cuda:0 to libtorch-cuda:1"], None);
    doctor.assert("flex", "ok", &["trained one update"], None);
    assert!(find(&report, "mask").is_none(), "there is none");
    assert!(!doctor.sandbox.home().exists(), "looking changes nothing");
}

#[test]
fn libtorch_that_cannot_be_had_is_told_with_its_command_and_flex_still_trains() {
    let build = Some("cargo build --release --features libtorch");
    Doctor::new().set("TUI_TRAIN_LIBTORCH", "/nowhere").assert(
        "libtorch",
        "note",
        &["/nowhere is no file"],
        Some("unset TUI_TRAIN_LIBTORCH"),
    );
    let moved = "echo 'x: error while loading shared libraries: libtorch.so' >&2; exit 127";
    Doctor::new().libtorch(moved).assert("libtorch", "note", &["has moved"], build);
    Doctor::new().libtorch("exit 3").assert("libtorch", "note", &["does not work"], build);
    Doctor::new().libtorch(&answer(0, true, 1)).assert("libtorch", "note", &["version 0"], build);
}

#[test]
fn cuda_that_cannot_be_had_is_told_apart() {
    let cpu = answer(1, false, 0);
    let seen = ["without CUDA", "the driver lists 2 GPUs"];
    Doctor::new().libtorch(&cpu).assert("CUDA", "note", &seen, Some("TORCH_CUDA_VERSION="));
    // Without a GPU nothing is amiss with such a build.
    Doctor::new().driver(Library::Broken, "").libtorch(&cpu).assert("CUDA", "ok", &["without CUDA"], None);
    let none = answer(1, true, 0);
    Doctor::new().libtorch(&none).assert("CUDA", "note", &["no CUDA device", "too old"], Some("nvidia-smi"));
    let masked = Doctor::new().libtorch(&none).set("CUDA_VISIBLE_DEVICES", "-1");
    masked.assert("CUDA", "note", &["masks them all"], Some("unset CUDA_VISIBLE_DEVICES"));
    masked.assert("mask", "note", &["hides every GPU"], Some("unset CUDA_VISIBLE_DEVICES"));
}

#[test]
fn a_mask_says_which_gpu_is_which_device() {
    let uuid = Doctor::new().set("CUDA_VISIBLE_DEVICES", "GPU-1111");
    uuid.assert("mask", "ok", &["libtorch-cuda:0 is Fake GPU 1 GPU-11111111-bbbb"], None);
    let index = Doctor::new().set("CUDA_VISIBLE_DEVICES", "1");
    index.assert("mask", "note", &["Fake GPU 1", "(assumed)"], Some("CUDA_DEVICE_ORDER=PCI_BUS_ID"));
    let certain = Doctor::new().set("CUDA_VISIBLE_DEVICES", "1").set("CUDA_DEVICE_ORDER", "PCI_BUS_ID");
    certain.assert("mask", "ok", &["Fake GPU 1"], None);
}

#[test]
fn a_driver_that_does_not_serve_is_told() {
    let mismatch = Doctor::new().driver(Library::Full, "mismatch");
    mismatch.assert("driver", "note", &["different versions"], Some("reboot"));
    let unloaded = Doctor::new().driver(Library::Full, "unloaded");
    unloaded.assert("driver", "note", &["not loaded"], Some("modprobe nvidia"));
    Doctor::new().driver(Library::Full, "none").assert(
        "driver",
        "note",
        &["lists no GPU"],
        Some("nvidia-smi"),
    );
    Doctor::new().driver(Library::Broken, "").assert("driver", "note", &["cannot be loaded"], None);
    Doctor::new().driver(Library::OnlyStarts, "").assert(
        "driver",
        "note",
        &["does not know"],
        Some("nvidia-smi"),
    );
}

#[test]
fn the_terminal_is_looked_at() {
    Doctor::new().set("TERM", "dumb").assert("terminal", "note", &["dumb"], Some("export TERM="));
    Doctor::new().assert("terminal", "note", &["no terminal"], None);
    Doctor::new().set("LC_ALL", "C").assert("characters", "note", &["LC_ALL = C", "--ascii"], Some("UTF-8"));
}

#[test]
fn a_state_folder_that_cannot_be_is_a_failure() {
    let doctor = Doctor::new();
    let file = doctor.sandbox.file("file", "");
    let doctor = doctor.set("TUI_TRAIN_HOME", format!("{file}/state"));
    doctor.assert("state folder", "failed", &[&file, "is no folder"], Some("export TUI_TRAIN_HOME="));
    let (code, text) = doctor.output(&["doctor"]);
    assert_eq!(code, Some(1));
    assert!(text.ends_with("No run can be trained here.\n"), "{text}");
}

#[test]
fn the_page_is_aligned_and_fits_eighty_columns() {
    let doctor = Doctor::new().set("CUDA_VISIBLE_DEVICES", "0,1").libtorch(&answer(1, false, 0));
    let (code, text) = doctor.output(&["doctor"]);
    assert_eq!(code, Some(0));
    let found_at = text.lines().next().unwrap().find("standard output").unwrap();
    for line in text.lines().filter(|line| !line.trim_start().starts_with("$ ")) {
        assert!(line.chars().count() <= 80, "{line}");
        let is_text = line.starts_with("A run") || line.is_empty();
        assert!(is_text || line.is_char_boundary(found_at) && line[..found_at].ends_with(' '), "{line}");
    }
    assert!(text.contains("        $ TORCH_CUDA_VERSION="), "{text}");
    assert!(text.ends_with("A run can be trained here.\n"), "{text}");
}
