//! What a run was: the figures of its updates, as its record keeps them.

use std::path::{Path, PathBuf};

use serde_json::Value;

/// Losses, norms and rates of every update that counts, and every validation loss, as they are written.
pub(crate) fn trace(run: &Path) -> Vec<Value> {
    let mut trace: Vec<Value> = Vec::new();
    let written = std::fs::read_to_string(run.join("events.jsonl")).unwrap();
    for event in written.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
        match event["type"].as_str().unwrap() {
            "resumed" => trace.retain(|row| row[0].as_u64() <= event["from_update"].as_u64()),
            "update" => trace.push(serde_json::json!([
                event["update"],
                event["train/loss"],
                event["train/grad_norm"],
                event["train/learning_rate"],
                event["tokens"],
            ])),
            "validation" => trace.push(serde_json::json!([event["update"], event["val/loss"]])),
            _ => {}
        }
    }
    trace
}

/// The folders of a run's checkpoints, oldest first.
pub(crate) fn checkpoints(run: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(run.join("checkpoints")).unwrap();
    let mut all: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    all.sort();
    all
}

/// A file of the newest checkpoint.
pub(crate) fn last(run: &Path, file: &str) -> Vec<u8> {
    std::fs::read(checkpoints(run).pop().unwrap().join(file)).unwrap()
}
