//! What a GPU tells, and what it does not: the real worker against a stand-in for NVIDIA's library. What is not told is
//! absent and never 0, and the note says why.

use serde_json::Value;

use super::libtorch::{answer, script};
use crate::support::{
    SMALL, Sandbox, events,
    nvml::{self, Library},
};

const MIB: u64 = 1024 * 1024;

/// The first reading of a run and its header; the environment as given on top.
fn read(library: Library, words: &str, device: &str, environment: &[(&str, &str)]) -> (Value, Value) {
    let all = recorded(library, words, device, environment);
    let first = |kind: &str| all.iter().find(|event| event["type"] == kind).cloned().unwrap();
    (first("host"), first("header"))
}

/// Every event of a run.
fn recorded(library: Library, words: &str, device: &str, environment: &[(&str, &str)]) -> Vec<Value> {
    let sandbox = Sandbox::new();
    // Stands in for the program that links libtorch: sees two CUDA devices, and its worker is the embedded one, which
    // reads the sensors of the device it is given before it finds that it cannot train on it.
    let real = env!("CARGO_BIN_EXE_tui-train");
    let body = format!("if [ \"$1\" = probe ]; then {}; else exec '{real}' \"$@\"; fi", answer(1, true, 2));
    let program = script(&sandbox, "libtorch", &body);
    let device = format!("train.device={device}");
    let mut command = sandbox.command(&["run", "--json", "--set", &device]);
    for setting in SMALL.iter().chain(&["train.max_updates=3", "schedule.warmup_updates=0"]) {
        command.args(["--set", setting]);
    }
    command.env("TUI_TRAIN_LIBTORCH", program);
    nvml::answer(&mut command, library, words).envs(environment.iter().copied());
    let output = command.output().unwrap();
    let all = events(&output.stdout);
    let ended = all.iter().find(|event| event["type"] == "run_ended");
    let reason = ended.map(|ended| ended["reason"].clone()).unwrap_or_default();
    let expected = if device.ends_with("flex") { "finished" } else { "failed" };
    assert_eq!(reason, expected, "{ended:?}: {}", String::from_utf8_lossy(&output.stderr));
    all
}

fn host(library: Library, words: &str, device: &str) -> Value {
    read(library, words, device, &[]).0
}

fn note(host: &Value) -> &str {
    host["sys/gpu_note"].as_str().unwrap_or_default()
}

fn assert_note(host: &Value, words: &[&str]) {
    for word in words {
        assert!(note(host).contains(word), "`{word}` is not in `{}`", note(host));
    }
}

fn assert_absent(host: &Value, keys: &[&str]) {
    for key in keys {
        assert!(host.get(*key).is_none(), "{key} is {}", host[*key]);
    }
}

#[test]
fn a_run_on_the_processor_reads_the_first_gpu_and_trains() {
    let (host, header) = read(Library::Full, "on0", "flex", &[]);
    assert_eq!(header["hardware"]["gpu"], "Fake GPU 0");
    assert_eq!(header["hardware"]["driver"], "555.42.06");
    assert_eq!(host["mem/gpu_device_used"], 256 * MIB);
    assert_eq!(host["mem/gpu_device_total"], 1024 * MIB);
    assert_eq!(host["sys/gpu_utilization"], 37);
    assert_eq!(host["sys/gpu_temperature"], 41);
    assert_eq!(host["sys/gpu_power"], 123.456);
    assert_absent(&host, &["mem/gpu_process_used", "sys/gpu_note"]);
}

#[test]
fn a_run_on_a_gpu_reads_that_one_and_its_own_memory() {
    let by_bus = [("CUDA_DEVICE_ORDER", "PCI_BUS_ID")];
    let (host, header) = read(Library::Full, "on1", "libtorch-cuda:1", &by_bus);
    assert_eq!(header["hardware"]["gpu"], "Fake GPU 1");
    assert_eq!(host["mem/gpu_device_used"], 512 * MIB);
    assert_eq!(host["mem/gpu_process_used"], 64 * MIB);
    assert_absent(&host, &["sys/gpu_note"]);
}

#[test]
fn a_mask_moves_the_devices() {
    let masked = |mask: &str, device: &str| {
        let environment = [("CUDA_DEVICE_ORDER", "PCI_BUS_ID"), ("CUDA_VISIBLE_DEVICES", mask)];
        read(Library::Full, "", device, &environment).0
    };
    assert_eq!(masked("1,0", "libtorch-cuda:0")["mem/gpu_device_used"], 512 * MIB);
    assert_eq!(masked("GPU-1111", "libtorch-cuda:0")["mem/gpu_device_used"], 512 * MIB);
    let hidden = masked("0,-1,1", "libtorch-cuda:1");
    assert_note(&hidden, &["no GPU readings", "CUDA device 1", "0,-1,1"]);
    assert_absent(&hidden, &["mem/gpu_device_used", "mem/gpu_process_used", "sys/gpu_utilization"]);
}

#[test]
fn an_order_that_is_not_certain_is_said_until_the_process_is_seen() {
    let unseen = host(Library::Full, "", "libtorch-cuda:0");
    assert_note(
        &unseen,
        &["assumed to be CUDA device 0", "CUDA_DEVICE_ORDER=PCI_BUS_ID", "n/a: this process"],
    );
    // The driver counts the fastest second: the process is where its number is.
    let seen = host(Library::Full, "on1", "libtorch-cuda:0");
    assert_eq!(seen["mem/gpu_device_used"], 512 * MIB);
    assert_eq!(seen["mem/gpu_process_used"], 64 * MIB);
    assert_absent(&seen, &["sys/gpu_note"]);
}

#[test]
fn memory_of_a_process_that_is_not_told_is_absent_and_not_zero() {
    for (words, why) in [
        ("", "not in the driver's list"),
        ("on0,hostpids", "in a container"),
        ("on0,nofigure", "without a figure"),
        ("noprocesses", "not told by the driver"),
    ] {
        let host = host(Library::Full, words, "libtorch-cuda:0");
        assert_absent(&host, &["mem/gpu_process_used"]);
        assert_note(&host, &["this process", why]);
        assert_eq!(host["mem/gpu_device_used"], 256 * MIB, "{words}: the device is told all the same");
    }
}

#[test]
fn memory_of_a_device_that_is_not_told_is_absent_and_the_rest_is_there() {
    for (words, why) in [("shared", "shares the machine's memory"), ("nonsense", "gives no figure")] {
        let host = host(Library::Full, words, "flex");
        assert_absent(&host, &["mem/gpu_device_used", "mem/gpu_device_total"]);
        assert_note(&host, &["n/a: memory", why]);
        assert_eq!(host["sys/gpu_temperature"], 41);
    }
    let host = host(Library::Full, "noload", "flex");
    assert_absent(&host, &["sys/gpu_utilization"]);
    assert_note(&host, &["n/a: utilisation"]);
    assert_eq!(host["mem/gpu_device_used"], 256 * MIB);
}

#[test]
fn a_driver_before_r510_is_asked_the_older_questions() {
    let host = host(Library::Old, "on0", "libtorch-cuda:0");
    assert_eq!(host["mem/gpu_device_used"], (256 + 16) * MIB, "what the driver keeps is used, too");
    assert_eq!(host["mem/gpu_process_used"], 64 * MIB);
}

#[test]
fn an_instance_has_memory_and_no_utilisation() {
    let environment = [("CUDA_VISIBLE_DEVICES", "MIG-33333333-dddd-dddd-dddd-333333333333")];
    let (host, header) = read(Library::Full, "mig,oni", "libtorch-cuda:0", &environment);
    assert_eq!(header["hardware"]["gpu"], "Fake GPU 1 MIG 2g");
    assert_eq!(host["mem/gpu_device_used"], 200 * MIB);
    assert_eq!(host["mem/gpu_device_total"], 896 * MIB);
    assert_eq!(host["mem/gpu_process_used"], 64 * MIB);
    assert_absent(&host, &["sys/gpu_utilization", "sys/gpu_power"]);
    assert_note(&host, &["utilisation (not told of a MIG instance)"]);
    // A divided GPU that is not masked stands for its first instance.
    let by_bus = [("CUDA_DEVICE_ORDER", "PCI_BUS_ID")];
    let first = read(Library::Full, "mig", "libtorch-cuda:1", &by_bus).0;
    assert_eq!(first["mem/gpu_device_used"], 100 * MIB);
    assert_note(&first, &["assumed"]);
}

#[test]
fn energy_is_that_of_the_gpu_that_trains_up_to_the_end() {
    let energy = |words, device| -> (Vec<Value>, Value) {
        let all = recorded(Library::Full, words, device, &[("CUDA_DEVICE_ORDER", "PCI_BUS_ID")]);
        let hosts = all.iter().filter(|event| event["type"] == "host");
        let ended = all.iter().find(|event| event["type"] == "run_ended").unwrap();
        (hosts.map(|host| host["sys/gpu_energy"].clone()).collect(), ended["summary"].clone())
    };
    let (told, summary) = energy("on1", "libtorch-cuda:1");
    // The stand-in counts 2.5 J from one question to the next, and the last one is asked at the end.
    let expected: Vec<Value> = (0..told.len()).map(|number| (2.5 * number as f64).into()).collect();
    assert!(told.len() > 1 && told == expected, "{told:?}");
    assert_eq!(summary["gpu_energy_joules"], expected[expected.len() - 1]);
    assert!(summary.get("gpu_joules_per_token").is_none(), "no token was trained");
    // Without a counter, and of a GPU that does not train: absent, and not 0.
    for (words, device) in [("on1,nocounter", "libtorch-cuda:1"), ("on1", "flex")] {
        let (told, summary) = energy(words, device);
        assert!(told.iter().all(Value::is_null), "{words}, {device}: {told:?}");
        assert!(summary.get("gpu_energy_joules").is_none(), "{words}, {device}");
    }
}

#[test]
fn a_library_that_does_not_serve_says_why_and_the_run_trains() {
    for (library, words, why) in [
        (Library::Full, "mismatch", "different versions"),
        (Library::Full, "unloaded", "driver is not loaded"),
        (Library::Full, "none", "no GPU"),
        (Library::OnlyStarts, "", "does not know the question"),
        (Library::Empty, "", "does not know the question"),
        (Library::Broken, "", "cannot be loaded"),
    ] {
        for device in ["flex", "libtorch-cuda:0"] {
            let (host, header) = read(library, words, device, &[]);
            assert_note(&host, &["no GPU readings", why]);
            assert_absent(&host, &["mem/gpu_device_used", "mem/gpu_process_used", "sys/gpu_utilization"]);
            assert!(header["hardware"].get("gpu").is_none());
        }
    }
    let denied = host(Library::Full, "denied", "libtorch-cuda:0");
    assert_eq!(
        denied["mem/gpu_device_used"],
        512 * MIB,
        "what may not be opened is no device of CUDA's either"
    );
}
