//! Small models with random weights against transformers: logits, gradients of every parameter, and traces of 20 updates.
//! The fixtures are written by `tests/peers/parity.py`.

use std::path::PathBuf;

use safetensors::SafeTensors;
use serde_json::Value;
use tui_train::{
    config::{Arch, Config, Layers, schedule},
    data::{Batch, Pass},
    model::{Noise, TrainModel, distilbert::DistilBertForSequenceClassification, llama::Llama},
    run::weights::plan,
    worker::{
        trainer::{self, Training},
        weights,
    },
};

use super::{number, numbers};

/// Relative to the largest value: f32 sums in another order.
const LOGITS: f64 = 1e-4;
/// Relative to the largest gradient of the model. Some gradients are zero but for rounding, such as that of the key's bias,
/// which the softmax takes away.
const GRADIENTS: f64 = 1e-4;
/// Relative, after twenty updates: the reference in double precision is 1.5e-5 away from itself in single.
const TRACE: f64 = 1e-3;
/// Relative: both are f64.
const RATE: f64 = 1e-12;

fn folder(model: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/parity").join(model)
}

/// The model of a fixture, starting from its weights.
fn config(model: &str, settings: &[&str]) -> Config {
    let text = std::fs::read_to_string(folder(model).join("config.json")).unwrap();
    let theirs: Value = serde_json::from_str(&text).unwrap();
    let whole = |key: &str| theirs[key].as_u64().unwrap() as usize;
    let preset = if model == "distilbert" { "distilbert-nano" } else { "llama-nano" };
    let preset = format!("model.preset={preset}");
    let layers = Layers::new().with_assignment(&preset).unwrap().with_assignments(settings).unwrap();
    let mut config = layers.resolve().unwrap().config;
    let ours = &mut config.model;
    ours.weights = Some(folder(model).display().to_string());
    ours.vocab_size = whole("vocab_size");
    match ours.arch {
        Arch::DistilBert => {
            ours.hidden_size = whole("dim");
            ours.intermediate_size = whole("hidden_dim");
            ours.num_hidden_layers = whole("n_layers");
            ours.num_attention_heads = whole("n_heads");
            ours.max_position_embeddings = whole("max_position_embeddings");
            ours.num_labels = 3;
            (ours.dropout, ours.attention_dropout, ours.seq_classif_dropout) = (0.0, 0.0, 0.0);
        }
        _ => {
            ours.hidden_size = whole("hidden_size");
            ours.intermediate_size = whole("intermediate_size");
            ours.num_hidden_layers = whole("num_hidden_layers");
            ours.num_attention_heads = whole("num_attention_heads");
            ours.num_key_value_heads = whole("num_key_value_heads");
            ours.tie_word_embeddings = theirs["tie_word_embeddings"].as_bool().unwrap();
            ours.rope_theta = theirs["rope_theta"].as_f64().unwrap();
            ours.rms_norm_eps = theirs["rms_norm_eps"].as_f64().unwrap();
        }
    }
    config.train.seq_len = 12;
    config
}

/// The expected tensors of a model.
struct Expected(Vec<u8>);

impl Expected {
    fn of(model: &str) -> Self {
        Self(std::fs::read(folder(model).join("expected.safetensors")).unwrap())
    }

    fn floats(&self, name: &str) -> Vec<f64> {
        let file = SafeTensors::deserialize(&self.0).unwrap();
        let bytes = file.tensor(name).unwrap_or_else(|error| panic!("{name}: {error}")).data().to_vec();
        bytes.as_chunks::<4>().0.iter().map(|part| f64::from(f32::from_le_bytes(*part))).collect()
    }

    fn integers(&self, name: &str) -> Vec<i64> {
        let file = SafeTensors::deserialize(&self.0).unwrap();
        let bytes = file.tensor(name).unwrap().data().to_vec();
        bytes.as_chunks::<8>().0.iter().map(|part| i64::from_le_bytes(*part)).collect()
    }

    fn gradients(&self) -> Vec<String> {
        let file = SafeTensors::deserialize(&self.0).unwrap();
        file.names().into_iter().filter_map(|name| name.strip_prefix("grad.").map(str::to_owned)).collect()
    }

    fn batch(&self) -> Batch {
        batch(&self.integers("input_ids"), &self.integers("lengths"), &self.integers("targets"))
    }
}

fn batch(inputs: &[i64], lengths: &[i64], targets: &[i64]) -> Batch {
    let narrow = |values: &[i64]| -> Vec<i32> { values.iter().map(|&value| value as i32).collect() };
    Batch {
        rows: lengths.len(),
        seq_len: inputs.len() / lengths.len(),
        inputs: narrow(inputs),
        targets: narrow(targets),
        lengths: lengths.iter().map(|&length| length as usize).collect(),
        target_count: targets.iter().filter(|&&target| target >= 0).count() as u64,
        own: None,
    }
}

fn build(config: &Config) -> Box<dyn Training> {
    trainer::build(config, &crate::support::device()).unwrap_or_else(|error| panic!("{error}"))
}

/// Logits at the places that count: beyond a row's length they mean nothing.
fn compare_logits(model: &str, ours: Vec<f32>, expected: &Expected, batch: &Batch) {
    let theirs = expected.floats("logits");
    assert_eq!(ours.len(), theirs.len(), "{model}");
    let largest = theirs.iter().fold(0.0, |a: f64, b| a.max(b.abs()));
    let each = ours.len() / batch.targets.len();
    for (at, (ours, theirs)) in ours.iter().zip(theirs).enumerate() {
        let place = at / each;
        let real =
            batch.targets.len() == batch.rows || place % batch.seq_len < batch.lengths[place / batch.seq_len];
        let difference = (f64::from(*ours) - theirs).abs();
        assert!(!real || difference <= LOGITS * largest, "{model}: logit {at} is {ours}, expected {theirs}");
    }
}

#[test]
fn logits() {
    let device = crate::support::device();
    for model in ["llama-tied", "llama-untied"] {
        let (config, expected) = (config(model, &[]), Expected::of(model));
        let plan = plan(&config.model).unwrap().unwrap();
        let llama = weights::load(Llama::init(&config, &device), &plan).unwrap();
        let batch = expected.batch();
        compare_logits(model, llama.forward(&batch).into_data().iter::<f32>().collect(), &expected, &batch);
    }
    let (config, expected) = (config("distilbert", &[]), Expected::of("distilbert"));
    let plan = plan(&config.model).unwrap().unwrap();
    let distilbert =
        weights::load(DistilBertForSequenceClassification::init(&config, &device), &plan).unwrap();
    let batch = expected.batch();
    let logits = distilbert.forward(&batch, &Noise::off());
    compare_logits("distilbert", logits.into_data().iter::<f32>().collect(), &expected, &batch);
}

#[test]
fn loss_and_every_gradient() {
    for model in ["llama-tied", "llama-untied", "distilbert"] {
        let expected = Expected::of(model);
        let mut training = build(&config(model, &["clip.max_norm=0"]));
        let batch = expected.batch();
        training.micro_batch(&batch, Pass::alone(1, &batch));
        let gradients = training.accumulated().gradients;
        let names = expected.gradients();
        assert_eq!(gradients.len(), names.len(), "{model}: {names:?}");
        let largest = names
            .iter()
            .flat_map(|name| expected.floats(&format!("grad.{name}")))
            .fold(0.0, |a: f64, b| a.max(b.abs()));
        for (name, ours) in gradients {
            let theirs = expected.floats(&format!("grad.{name}"));
            assert_eq!(ours.len(), theirs.len(), "{model}, {name}");
            for (at, (ours, theirs)) in ours.iter().zip(theirs).enumerate() {
                let difference = (f64::from(*ours) - theirs).abs();
                assert!(
                    difference <= GRADIENTS * largest,
                    "{model}, {name}[{at}]: {ours}, expected {theirs}"
                );
            }
        }
        let loss = training.update(0.0, false).loss * batch.target_count as f64;
        let theirs = expected.floats("loss_sum")[0];
        assert!((loss - theirs).abs() <= LOGITS * theirs, "{model}: summed loss {loss}, expected {theirs}");
    }
}

#[test]
fn traces_of_twenty_updates() {
    let adamw = ["optimizer.name=adamw", "optimizer.lr=1e-2", "optimizer.weight_decay=0.01"];
    let adafactor = ["optimizer.name=adafactor", "optimizer.lr=1e-2"];
    let common =
        ["train.max_updates=20", "schedule.name=cosine", "schedule.warmup_updates=4", "schedule.min_lr=0.0"];
    for model in ["llama-untied", "distilbert"] {
        for (optimizer, settings) in [("adamw", &adamw[..]), ("adafactor", &adafactor[..])] {
            let path = folder(model).join(format!("trace-{optimizer}.json"));
            let trace: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
            let config = config(model, &[settings, &common].concat());
            let mut training = build(&config);
            let batches: Vec<Batch> =
                trace["micro_batches"].as_array().unwrap().iter().map(read_batch).collect();
            for (at, expected) in trace["updates"].as_array().unwrap().iter().enumerate() {
                let update = at as u64 + 1;
                let window: Vec<&Batch> =
                    numbers(&trace["windows"][at]).iter().map(|&micro| &batches[micro as usize]).collect();
                let target_count = window.iter().map(|batch| batch.target_count).sum();
                for (place, batch) in window.into_iter().enumerate() {
                    training.micro_batch(batch, Pass { update, micro_batch: place as u64, target_count });
                }
                let lr = schedule::of(&config, 20, update);
                let outcome = training.update(lr, false);
                let near = |what: &str, ours: f64, tolerance: f64| {
                    let theirs = number(&expected[what]);
                    assert!(
                        (ours - theirs).abs() <= tolerance * theirs.abs().max(1e-3),
                        "{model}, {optimizer}, update {update}: {what} {ours}, expected {theirs}"
                    );
                };
                near("lr", lr, RATE);
                near("loss", outcome.loss, TRACE);
                near("grad_norm", outcome.grad_norm, TRACE);
            }
            compare_final(&format!("{model}, {optimizer}"), &trace, &*training);
        }
    }
}

fn read_batch(value: &Value) -> Batch {
    fn flat(value: &Value) -> Vec<i64> {
        match value.as_array() {
            Some(all) => all.iter().flat_map(flat).collect(),
            None => vec![value.as_i64().unwrap()],
        }
    }
    batch(&flat(&value["input_ids"]), &flat(&value["lengths"]), &flat(&value["targets"]))
}

/// State and parameters of the tensors that the trace watches.
fn compare_final(at: &str, trace: &Value, training: &dyn Training) {
    let largest = |values: &[f64]| values.iter().fold(0.0, |a: f64, b| a.max(b.abs()));
    let compare = |what: &str, ours: &[f64], theirs: &[f64]| {
        assert_eq!(ours.len(), theirs.len(), "{at}: {what}");
        let tolerance = TRACE * largest(theirs);
        for (place, (ours, theirs)) in ours.iter().zip(theirs).enumerate() {
            assert!((ours - theirs).abs() <= tolerance, "{at}: {what}[{place}] {ours}, expected {theirs}");
        }
    };
    let weights = training.weights();
    for (name, states) in trace["final_state"].as_object().unwrap() {
        let entries = training.optimizer().entries(name);
        assert_eq!(entries.len(), states.as_object().unwrap().len(), "{at}: {name}");
        for entry in entries {
            let theirs = &states[entry.name];
            let ours = match &entry.value {
                tui_train::optim::Value::Tensor { values, .. } => super::optimizers::values(values),
                tui_train::optim::Value::Number(number) => vec![*number],
                _ => panic!("{at}: {name}.{} is not on a device", entry.name),
            };
            compare(&format!("{name}.{}", entry.name), &ours, &numbers(&theirs["data"]));
        }
        let ours = weights.iter().find(|tensor| tensor.name == *name).unwrap();
        let ours: Vec<f64> = ours.values().iter().map(|&value| f64::from(value)).collect();
        compare(name, &ours, &numbers(&trace["final_params"][name]["data"]));
    }
}
