//! Texts that the model writes at each validation: what they are, and that they change nothing.

use std::{fs, path::PathBuf};

use serde_json::Value;

use crate::support::{Sandbox, trace};

const LONG: [&str; 3] = ["train.max_updates=10", "schedule.warmup_updates=0", "train.seq_len=32"];

fn of_type<'a>(events: &'a [Value], kind: &str) -> Vec<&'a Value> {
    events.iter().filter(|event| event["type"] == kind).collect()
}

/// The folder of the run of that name.
fn folder(sandbox: &Sandbox, name: &str) -> PathBuf {
    sandbox.runs().into_iter().find(|run| run.to_str().unwrap().ends_with(&format!("-{name}"))).unwrap()
}

#[test]
fn texts_change_no_number_of_training() {
    let sandbox = Sandbox::new();
    let trained = |name: &str, more: &[&str]| {
        sandbox.train(name, &[&LONG, more].concat());
        let run = folder(&sandbox, name);
        let stored = ["model.safetensors", "optimizer.safetensors"].map(|file| trace::last(&run, file));
        (trace::trace(&run), stored)
    };
    let without = trained("none", &["log.sample_tokens=0"]);
    assert_eq!(without.0.len(), 10 + 2);
    assert!(trained("some", &["log.sample_tokens=16"]) == without);
    assert!(trained("wild", &["log.sample_tokens=7", "log.sample_temperature=3"]) == without);
}

#[test]
fn a_text_goes_on_with_the_held_out_text_and_is_the_same_again() {
    let sandbox = Sandbox::new();
    let more = ["log.sample_tokens=12", "log.sample_prompt=10", "log.tensorboard=true"];
    let texts = |name: &str, set: &[&str]| {
        let events = sandbox.train(name, &[&LONG, &more[..], set].concat());
        of_type(&events, "sample").into_iter().cloned().collect::<Vec<_>>()
    };
    let first = texts("first", &[]);
    let updates: Vec<_> = first.iter().map(|sample| sample["update"].as_u64().unwrap()).collect();
    assert_eq!(updates, [5, 10], "one a validation");
    for sample in &first {
        assert_eq!(sample["prompt"].as_str().unwrap().chars().count(), 10, "{sample}");
        assert_eq!(sample["prompt"], first[0]["prompt"]);
        assert!(sample["seconds"].as_f64().unwrap() > 0.0);
        let manners: Vec<_> =
            sample["texts"].as_array().unwrap().iter().map(|text| &text["temperature"]).collect();
        assert_eq!(manners, [0.0, 0.8]);
        for text in sample["texts"].as_array().unwrap() {
            assert_eq!(text["tokens"], 12);
            let harmful = |c: char| c.is_control() && c != '\n' && c != '\t';
            assert!(!text["text"].as_str().unwrap().contains(harmful), "{text}");
        }
    }
    let written =
        |samples: &[Value]| samples.iter().map(|sample| sample["texts"].clone()).collect::<Vec<_>>();
    assert_eq!(written(&texts("again", &[])), written(&first));
    // One seed draws otherwise than another; there is one text where nothing is drawn, and none without held-out text.
    assert_ne!(written(&texts("other", &["train.seed=2"])), written(&first));
    let greedy = texts("greedy", &["log.sample_temperature=0"]);
    assert_eq!(greedy[0]["texts"].as_array().unwrap().len(), 1);
    assert!(texts("nothing", &["data.validation_fraction=0"]).is_empty());

    let prompt = first[0]["prompt"].as_str().unwrap().trim();
    for format in ["md", "html", "jsonl"] {
        let output = sandbox.run(&["export", "first", "--format", format]);
        assert!(String::from_utf8_lossy(&output.stdout).contains(prompt), "{format}");
    }
    let page = sandbox.run(&["show", "first"]);
    assert!(String::from_utf8_lossy(&page.stdout).contains("text after update 10"));
    let summary = sandbox.json(&["show", "first", "--json"]);
    assert_eq!(summary["sample"]["texts"], first[1]["texts"]);
    let run = folder(&sandbox, "first");
    let board = fs::read_dir(run.join("tensorboard")).unwrap().next().unwrap().unwrap().path();
    let bytes = fs::read(board).unwrap();
    assert!(bytes.windows(8).filter(|part| part == b"val/text").count() >= 2);
}

#[test]
fn a_classification_writes_nothing_and_refuses_the_settings() {
    let sandbox = Sandbox::new();
    let nano = [
        "model.preset=distilbert-nano",
        "train.max_updates=2",
        "train.seq_len=64",
        "schedule.warmup_updates=0",
    ];
    let mut arguments = vec!["run", "--json", "--name", "pairs"];
    nano.iter().for_each(|setting| arguments.extend(["--set", setting]));
    let events = crate::support::events(&sandbox.run(&arguments).stdout);
    assert_eq!(of_type(&events, "run_ended")[0]["reason"], "finished");
    assert!(of_type(&events, "sample").is_empty());
    // Its speed is told all the same.
    assert!(of_type(&events, "update")[0]["perf/flops_per_second"].as_f64().unwrap() > 0.0);
    arguments.extend(["--set", "log.sample_tokens=3"]);
    let refused = sandbox.run(&arguments);
    let told = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(refused.status.code() == Some(2) && told.contains("log.sample_tokens has no effect"), "{told}");
}

#[test]
fn the_share_of_the_matmul_peak_is_told_once_it_was_measured() {
    let sandbox = Sandbox::new();
    let before = sandbox.train("before", &LONG);
    let update = of_type(&before, "update")[1].clone();
    let speed = update["perf/flops_per_second"].as_f64().unwrap();
    // 2 rows of 32 tokens of a model of one layer.
    let operations = 2.0 * (32.0 * 6.0 * (49_152.0 + 16_384.0) + 32.0 * 32.0 * 12.0 * 64.0);
    let seconds = 64.0 / update["perf/tokens_per_second"].as_f64().unwrap();
    assert!((speed * seconds / operations - 1.0).abs() < 1e-3, "{speed} in {seconds} s");
    assert!(update.get("perf/mfu").is_none(), "nothing was measured yet");
    let devices = String::from_utf8(sandbox.run(&["devices"]).stdout).unwrap();
    assert!(devices.contains("matmul peak: not measured, `tui-train bench --device flex` does"), "{devices}");

    let report = sandbox.json(&["bench", "--json", "--updates", "2", "--set", "train.seq_len=16"]);
    let peak = report["matmul_peak"]["flops_per_second"].as_f64().unwrap();
    let share = report["flops_per_second"].as_f64().unwrap() / peak;
    assert!(peak > 1e8 && (report["mfu"].as_f64().unwrap() / share - 1.0).abs() < 1e-9, "{report}");
    assert!(report["matmul_now"].as_f64().unwrap() <= peak);

    let after = sandbox.train("after", &LONG);
    assert_eq!(of_type(&after, "header")[0]["matmul_peak"], report["matmul_peak"]);
    let update = of_type(&after, "update")[1];
    let share = update["perf/flops_per_second"].as_f64().unwrap() / peak;
    assert!((update["perf/mfu"].as_f64().unwrap() / share - 1.0).abs() < 1e-3, "{update}");
    let page = String::from_utf8(sandbox.run(&["show", "after"]).stdout).unwrap();
    assert!(page.contains("of matmul peak") && page.contains("f32 matrices of"), "{page}");
    let devices = sandbox.json(&["devices", "--json"]);
    assert_eq!(devices["devices"][0]["matmul_peaks"][0], report["matmul_peak"]);
}
