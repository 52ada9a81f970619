//! Runs, headers and events made up for tests.

use std::collections::BTreeMap;

use safetensors::Dtype;

use super::{
    Home, Record, RunDir,
    checkpoint::{CheckpointInfo, FORMAT, FileHash, Progress},
    summary::{Finish, build},
};
use crate::{
    config::Layers,
    ledger::{self, Element},
    protocol::{
        CommandRecord, Continuation, DataReport, Event, Header, Reason, RunEnded, SCHEMA, TextSample, Update,
        Validation,
    },
};

/// A new run in a folder of its own, with these settings.
pub(crate) fn run_with(name: &str, set: &[&str]) -> (tempfile::TempDir, RunDir) {
    let folder = tempfile::tempdir_in("/tmp").unwrap();
    let resolved = Layers::new().with_assignments(set).unwrap().resolve().unwrap();
    let run = RunDir::create(&Home::at(folder.path()), name, &resolved).unwrap();
    (folder, run)
}

/// A new run of the demo.
pub(crate) fn run(name: &str) -> (tempfile::TempDir, RunDir) {
    run_with(name, &[])
}

/// The header that a worker would write for the run.
pub(crate) fn header(run: &RunDir) -> Header {
    let config = run.config().unwrap();
    let meta = run.meta().unwrap();
    Header {
        schema: SCHEMA,
        run: run.id().to_owned(),
        name: meta.name,
        started: meta.created,
        explicit: meta.explicit,
        device: "flex".into(),
        threads: 2,
        version: "0.1.0".into(),
        git: None,
        hardware: BTreeMap::from([("cpu".into(), "a processor".into())]),
        total_updates: config.train.max_updates.unwrap_or(100),
        data: DataReport { source: "stories".into(), documents: 3, ..DataReport::default() },
        ledger: ledger::ledger(&config),
        notes: Vec::new(),
        forked_from: None,
        matmul_peak: None,
        config,
    }
}

/// A command that was applied after so many updates.
pub(crate) fn command(name: &str, update: u64, value: Option<f64>) -> Event {
    Event::Command(CommandRecord {
        micro_batches: 0,
        id: 1,
        name: name.into(),
        outcome: "applied".into(),
        update,
        time: 1.0,
        value,
        why: None,
    })
}

/// An update of 512 tokens that took half a second.
pub(crate) fn update(update: u64, loss: f64) -> Event {
    Event::Update(Update {
        update,
        time: update as f64 / 2.0,
        tokens: 512 * update,
        micro_batches: 1,
        loss,
        learning_rate: 1e-3,
        grad_norm: 0.5,
        tokens_per_second: 1024.0,
        flops_per_second: None,
        mfu: None,
        skipped: false,
    })
}

/// A validation after that update.
pub(crate) fn validation(update: u64, loss: f64) -> Event {
    Event::Validation(Validation {
        update,
        time: update as f64 / 2.0,
        loss,
        tokens: 4096,
        ..Validation::default()
    })
}

/// A text written after that update.
pub(crate) fn text(update: u64) -> Event {
    let text = |temperature| Continuation { temperature, tokens: 6, text: "the sun rises\n".into() };
    Event::Sample(TextSample {
        update,
        time: update as f64 / 2.0,
        seconds: 0.01,
        prompt: "Once ".into(),
        texts: vec![text(0.0), text(0.8)],
    })
}

/// The end of the run, finished, with the summary of its record so far.
pub(crate) fn run_ended(run: &RunDir) -> Event {
    let record = Record::read(run).unwrap();
    let reason = Reason::Finished;
    let summary = build(&record, Finish { reason, ..Finish::so_far(&record) }).unwrap();
    Event::RunEnded(Box::new(RunEnded { reason, message: None, summary }))
}

/// A complete checkpoint of the run after that update; element i of each of its tensors is i - 1, of bytes i
/// modulo 256.
pub(crate) fn checkpoint(run: &RunDir, update: u64) {
    let config = run.config().unwrap();
    let parameters = ledger::parameters(&config.model);
    let named = |name: String, shape: &[usize], element: Element| {
        let count: usize = shape.iter().product();
        let (dtype, bytes): (_, Vec<u8>) = match element {
            Element::F32 => (Dtype::F32, (0..count).flat_map(|i| (i as f32 - 1.0).to_le_bytes()).collect()),
            Element::U8 => (Dtype::U8, (0..count).map(|i| i as u8).collect()),
        };
        (name, dtype, shape.to_vec(), bytes)
    };
    let weights: Vec<_> = parameters.iter().map(|p| named(p.name.clone(), &p.shape, Element::F32)).collect();
    let mut state = Vec::new();
    for p in &parameters {
        for of in ledger::state_of(&config.optimizer, p) {
            state.push(named(format!("{}.{}", p.name, of.name), &of.shape, of.element));
        }
    }
    for of in ledger::shared_state(&config.optimizer, &parameters) {
        state.push(named(of.name.to_owned(), &of.shape, of.element));
    }
    let write = |path: &std::path::Path, tensors: &[(String, Dtype, Vec<usize>, Vec<u8>)]| {
        let views = tensors.iter().map(|(name, dtype, shape, bytes)| {
            let view = safetensors::tensor::TensorView::new(*dtype, shape.clone(), bytes);
            (name.clone(), view.unwrap())
        });
        std::fs::write(path, safetensors::serialize(views, None).unwrap()).unwrap();
    };
    let mut info = CheckpointInfo {
        format: FORMAT,
        schema: SCHEMA,
        run: run.id().to_owned(),
        update,
        tokens: 512 * update,
        optimizer: config.optimizer.name.to_string(),
        cursor: serde_json::json!({}),
        steps: parameters.iter().map(|p| (p.name.clone(), update)).collect(),
        progress: Progress::default(),
        config,
        files: BTreeMap::new(),
    };
    super::atomic::write_folder(&run.checkpoint(update), |folder| {
        for (name, tensors) in [("model.safetensors", &weights), ("optimizer.safetensors", &state)] {
            write(&folder.join(name), tensors);
            info.files.insert(name.to_owned(), FileHash::of(&folder.join(name))?);
        }
        std::fs::write(folder.join("checkpoint.json"), serde_json::to_vec(&info).unwrap())
    })
    .unwrap();
}
