//! Weights in and out: a run starts from a checkpoint, and its own weights go on as a folder for other libraries.

use std::{collections::BTreeMap, path::Path};

use safetensors::{SafeTensors, tensor::TensorView};
use serde_json::{Value, json};

use super::bad_input::refused_in;
use crate::support::{Sandbox, events};

/// Settings under which weights stay as they are: one update at rate 0.
const STILL: [&str; 3] = ["train.max_updates=1", "optimizer.lr=0", "schedule.warmup_updates=0"];

fn fixture(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/parity/formats");
    format!("model.weights={}", folder.join(name).display())
}

/// Name to shape and bytes.
fn tensors(path: impl AsRef<Path>) -> BTreeMap<String, (Vec<usize>, Vec<u8>)> {
    let bytes = std::fs::read(path).unwrap();
    let file = SafeTensors::deserialize(&bytes).unwrap();
    let all = file.tensors().into_iter();
    all.map(|(name, view)| (name, (view.shape().to_vec(), view.data().to_vec()))).collect()
}

fn write(path: &Path, tensors: &BTreeMap<String, (Vec<usize>, Vec<u8>)>) {
    let views = tensors.iter().map(|(name, (shape, bytes))| {
        (name.clone(), TensorView::new(safetensors::Dtype::F32, shape.clone(), bytes).unwrap())
    });
    std::fs::write(path, safetensors::serialize(views, None).unwrap()).unwrap();
}

fn first_loss(events: &[Value]) -> f64 {
    events.iter().find(|event| event["type"] == "update").unwrap()["train/loss"].as_f64().unwrap()
}

#[test]
fn what_is_exported_is_started_from_bit_for_bit() {
    let sandbox = Sandbox::new();
    let trained = sandbox.train("first", &["train.max_updates=4", "schedule.warmup_updates=1"]);
    let output = sandbox.run(&["export", "first", "--format", "safetensors"]);
    assert!(output.status.success() && output.stdout.is_empty());
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(told.contains("wrote first-safetensors") && told.contains("after update 4"), "{told}");
    let exported = tensors(sandbox.path("first-safetensors/model.safetensors"));
    let state = tensors(sandbox.path("first-safetensors/optimizer.safetensors"));
    assert_eq!(state["model.norm.weight.exp_avg"].0, [64]);
    let config = std::fs::read_to_string(sandbox.path("first-safetensors/config.json")).unwrap();
    let config: Value = serde_json::from_str(&config).unwrap();
    assert_eq!(config["architectures"], json!(["LlamaForCausalLM"]));
    assert_eq!((&config["num_hidden_layers"], &config["max_position_embeddings"]), (&1.into(), &16.into()));

    let fresh = first_loss(&sandbox.train("fresh", &STILL));
    let checkpoint = sandbox.runs()[0].join("checkpoints/00000004");
    let checkpoint = format!("model.weights={}", checkpoint.display());
    // A path is relative to the folder the command runs in.
    for (name, weights) in [("export", "model.weights=first-safetensors"), ("checkpoint", &*checkpoint)] {
        let events = sandbox.train(name, &[&STILL[..], &[weights]].concat());
        assert!(first_loss(&events) < fresh - 0.01, "{name}: as good as the run it starts from");
        let kept = events[0]["config"]["model"]["weights"].as_str().unwrap();
        assert!(Path::new(kept).is_absolute(), "{kept}");
        assert_eq!(events[0]["notes"], json!([]));
        let path = sandbox.runs().into_iter().find(|run| run.to_str().unwrap().ends_with(name)).unwrap();
        assert_eq!(tensors(path.join("checkpoints/00000001/model.safetensors")), exported, "{name}");
    }
    assert!(first_loss(&trained) > fresh - 0.01, "the first run started from nothing");
}

#[test]
fn a_model_without_its_head_gets_a_new_one_and_the_run_says_so() {
    let sandbox = Sandbox::new();
    let untied = "model.tie_word_embeddings=false";
    sandbox.train("whole", &[&STILL[..], &[untied]].concat());
    let whole = tensors(sandbox.runs()[0].join("checkpoints/00000001/model.safetensors"));
    let base = whole
        .into_iter()
        .filter_map(|(name, tensor)| name.strip_prefix("model.").map(|name| (name.to_owned(), tensor)));
    write(&sandbox.path("base.safetensors"), &base.collect());
    let mut arguments = vec!["run", "--json", "--name", "base", "--set", "model.weights=base.safetensors"];
    crate::support::SMALL
        .iter()
        .chain(&STILL)
        .chain(&[untied])
        .for_each(|set| arguments.extend(["--set", set]));
    let output = sandbox.run(&arguments);
    let events = events(&output.stdout);
    assert_eq!(events.last().unwrap()["reason"], "finished");
    let note = events[0]["notes"][0].as_str().unwrap();
    assert!(note.contains("newly initialised") && note.contains("lm_head.weight"), "{note}");
}

#[test]
fn a_classifier_starts_from_an_encoder_and_from_another_classifier() {
    let sandbox = Sandbox::new();
    let bert = "model.preset=distilbert-nano";
    sandbox.train("bert", &[&STILL[..2], &[bert, "schedule.warmup_updates=0"]].concat());
    let output = sandbox.run(&["export", "bert", "--format", "safetensors", "-o", "bert"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let config = std::fs::read_to_string(sandbox.path("bert/config.json")).unwrap();
    let config: Value = serde_json::from_str(&config).unwrap();
    assert_eq!(config["architectures"], json!(["DistilBertForSequenceClassification"]));
    assert_eq!(config["id2label"], json!({"0": "does not fit", "1": "fits"}), "the classes of the data");
    let whole = tensors(sandbox.path("bert/model.safetensors"));
    let base = whole.iter().filter_map(|(name, tensor)| {
        name.strip_prefix("distilbert.").map(|name| (name.to_owned(), tensor.clone()))
    });
    write(&sandbox.path("base.safetensors"), &base.collect());

    // Another seed makes other weights, but for what the files hold.
    let seed = "train.seed=2";
    let kept = |name: &str, weights: &str| {
        let events = sandbox.train(name, &[&STILL[..], &[bert, seed, weights]].concat());
        let run = sandbox.runs().into_iter().find(|run| run.to_str().unwrap().ends_with(name)).unwrap();
        (events[0]["notes"].clone(), tensors(run.join("checkpoints/00000001/model.safetensors")))
    };
    let (notes, same) = kept("again", "model.weights=bert");
    assert_eq!((notes, same), (json!([]), whole.clone()));
    let (notes, other) = kept("headless", "model.weights=base.safetensors");
    let note = notes[0].as_str().unwrap();
    let new = ["pre_classifier.weight", "pre_classifier.bias", "classifier.weight", "classifier.bias"];
    assert!(new.iter().all(|name| note.contains(name)), "{note}");
    let encoder = "distilbert.transformer.layer.0.ffn.lin1.weight";
    assert_eq!(other[encoder], whole[encoder]);
    assert_ne!(other["classifier.weight"], whole["classifier.weight"]);
}

#[test]
fn weights_that_are_not_the_models_are_refused_before_there_is_a_run() {
    let sandbox = Sandbox::new();
    let refused = |settings: &[&str], words: &[&str]| refused_in(&sandbox, settings, words);
    refused(&["model.weights=nowhere"], &["model.weights", "nowhere", "no such file or folder"]);
    refused(&[&fixture("evil.bin")], &["evil.bin", "posix.system", "not loaded", "as safetensors"]);
    assert!(!sandbox.path("EVIL_WAS_HERE").exists());
    refused(&[&fixture("legacy.bin")], &["legacy.bin", "before version 1.6", "save_file"]);
    refused(&[&fixture("distilbert-base")], &["distilbert-base", "no tensor of a llama model"]);
    refused(&[&fixture("single")], &["lacks `model.layers.1.self_attn.q_proj.weight`", "more"]);
    let one = "model.num_hidden_layers=1";
    let untied = "model.tie_word_embeddings=false";
    refused(&[&fixture("single"), one, untied], &["model.embed_tokens.weight", "[8, 8]", "[256, 64]"]);

    sandbox.file("texts/words.txt", "words");
    refused(&["model.weights=texts"], &["texts", "holds none of model.safetensors"]);
    refused(&["model.weights=texts/words.txt"], &["words.txt", ".safetensors, .bin, .pt or .pth"]);
    let whole = std::fs::read(fixture("single/model.safetensors").strip_prefix("model.weights=").unwrap());
    let whole = whole.unwrap();
    sandbox.file("short.safetensors", &whole[..whole.len() - 9]);
    refused(&["model.weights=short.safetensors"], &["short.safetensors", "cut short"]);
    sandbox.file("long.safetensors", [&u64::MAX.to_le_bytes()[..], &whole[8..]].concat());
    refused(&["model.weights=long.safetensors"], &["long.safetensors", "18446744073709551615 bytes"]);
}

#[test]
fn an_export_of_weights_overwrites_nothing() {
    let sandbox = Sandbox::new();
    let settings = ["train.max_updates=3", "checkpoint.every_updates=1", "schedule.warmup_updates=1"];
    sandbox.train("kept", &settings);
    let export = |more: &[&str]| {
        let output = sandbox.run(&[&["export", "kept", "--format", "safetensors"], more].concat());
        (output.status.code().unwrap(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    assert_eq!(export(&["-o", "out"]).0, 0);
    let before = std::fs::read(sandbox.path("out/model.safetensors")).unwrap();
    let (code, told) = export(&["-o", "out", "--at", "2"]);
    assert_eq!(code, 2);
    assert!(told.contains("out exists already") && told.contains("-o"), "{told}");
    assert_eq!(std::fs::read(sandbox.path("out/model.safetensors")).unwrap(), before);
    assert_eq!(export(&["-o", "earlier", "--at", "2"]).0, 0);
    assert_ne!(std::fs::read(sandbox.path("earlier/model.safetensors")).unwrap(), before);
    let (code, told) = export(&["-o", "first", "--at", "1"]);
    assert_eq!(code, 2);
    assert!(told.contains("no checkpoint of update 1; it has those of 2, 3"), "{told}");
    let (code, told) = export(&["-o", "-"]);
    assert!(code == 2 && told.contains("a folder"), "{told}");
    let output = sandbox.run(&["export", "kept", "--format", "csv", "--at", "2"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(!sandbox.path("first").exists());
}
