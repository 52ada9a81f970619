//! Properties of a classification, and the reference implementation's figures.

use std::collections::BTreeMap;

use burn::{
    module::{Module, ModuleMapper, Param},
    tensor::{Device, Tensor, TensorData},
};
use safetensors::SafeTensors;
use tui_train::{
    config::{Config, Layers},
    data::{Batch, Pass},
    ledger,
    model::{Noise, TrainModel, distilbert::DistilBertForSequenceClassification},
    optim::Gradients,
    worker::trainer::{self, Outcome, Training},
};

const NO_DROPOUT: [&str; 3] = ["model.dropout=0", "model.attention_dropout=0", "model.seq_classif_dropout=0"];

fn config(settings: &[&str]) -> Config {
    let small = ["model.preset=distilbert-nano", "model.hidden_size=32", "model.intermediate_size=48"];
    let layers = Layers::new().with_assignments(small).unwrap().with_assignments(settings).unwrap();
    layers.resolve().unwrap().config
}

/// Rows with their classes, filled to the longest.
fn batch(rows: &[(&[i32], i32)]) -> Batch {
    let seq_len = rows.iter().map(|(ids, _)| ids.len()).max().unwrap();
    filled(rows, seq_len)
}

fn filled(rows: &[(&[i32], i32)], seq_len: usize) -> Batch {
    let padded =
        |ids: &[i32]| ids.iter().copied().chain(std::iter::repeat(0)).take(seq_len).collect::<Vec<_>>();
    Batch {
        rows: rows.len(),
        seq_len,
        inputs: rows.iter().flat_map(|(ids, _)| padded(ids)).collect(),
        targets: rows.iter().map(|&(_, class)| class).collect(),
        lengths: rows.iter().map(|(ids, _)| ids.len()).collect(),
        target_count: rows.len() as u64,
    }
}

/// Four rows of different lengths whose classes follow no rule.
const ROWS: [(&[i32], i32); 4] = [
    (&[256, 97, 98, 99, 257, 100, 101], 1),
    (&[256, 102, 103, 257], 0),
    (&[256, 97, 98, 99, 257, 100, 102], 0),
    (&[256, 104, 257, 105, 257], 1),
];

fn build(config: &Config) -> Box<dyn Training> {
    trainer::build(config, &Device::flex()).unwrap()
}

/// One update on these micro-batches.
fn update(training: &mut dyn Training, number: u64, batches: &[Batch], lr: f64) -> Outcome {
    let target_count = batches.iter().map(|batch| batch.target_count).sum();
    for (at, batch) in batches.iter().enumerate() {
        training.micro_batch(batch, Pass { update: number, micro_batch: at as u64, target_count });
    }
    training.update(lr, false)
}

fn logits(model: &DistilBertForSequenceClassification, batch: &Batch) -> Vec<f32> {
    model.forward(batch, &Noise::off()).into_data().iter::<f32>().collect()
}

fn assert_close(ours: &[f32], theirs: &[f32], tolerance: f32, what: &str) {
    assert_eq!(ours.len(), theirs.len(), "{what}");
    for (at, (a, b)) in ours.iter().zip(theirs).enumerate() {
        assert!((a - b).abs() <= tolerance, "{what}[{at}]: {a} and {b}");
    }
}

#[test]
fn parameters_are_those_of_the_ledger_by_name_shape_and_order() {
    for preset in ["distilbert-nano", "llama-nano"] {
        let layers = Layers::new().with_assignment(&format!("model.preset={preset}")).unwrap();
        let config = layers.resolve().unwrap().config;
        let sorted = |mut all: Vec<(String, Vec<usize>)>| {
            all.sort();
            all
        };
        let ours = build(&config).parameters();
        let ledger: Vec<_> =
            ledger::parameters(&config.model).into_iter().map(|p| (p.name, p.shape)).collect();
        if preset == "distilbert-nano" {
            assert_eq!(ours, ledger);
        }
        assert_eq!(sorted(ours), sorted(ledger), "{preset}");
    }
}

#[test]
fn one_batch_is_learnt_by_heart() {
    let config = config(&NO_DROPOUT);
    let mut training = build(&config);
    let batch = batch(&ROWS);
    let losses: Vec<f64> = (1..=150)
        .map(|number| update(&mut *training, number, std::slice::from_ref(&batch), 3e-3).loss)
        .collect();
    assert!((losses[0] - 2f64.ln()).abs() < 0.1, "an untrained model knows nothing: {}", losses[0]);
    assert!(losses[149] < 0.05, "loss {} after 150 updates on one batch", losses[149]);
    let found = training.evaluate(&mut std::iter::once(batch));
    assert_eq!(
        (found.targets, found.accuracy, found.f1, found.f1_macro),
        (4, Some(1.0), Some(1.0), Some(1.0))
    );
    assert!((found.loss - losses[149]).abs() < 0.05, "{found:?}");
}

#[test]
fn micro_batches_add_up_to_the_batch() {
    let config = config(&NO_DROPOUT);
    let whole = vec![batch(&ROWS)];
    // Each micro-batch is padded to its own longest row.
    let parts = [vec![batch(&ROWS[..2]), batch(&ROWS[2..])], ROWS.iter().map(|&row| batch(&[row])).collect()];
    let trace = |batches: &[Batch]| -> Vec<Outcome> {
        let mut training = build(&config);
        (1..=3).map(|number| update(&mut *training, number, batches, 1e-3)).collect()
    };
    let expected = trace(&whole);
    for parts in parts {
        for (a, b) in expected.iter().zip(trace(&parts)) {
            assert!((a.loss - b.loss).abs() <= 1e-5, "loss {} and {}", a.loss, b.loss);
            assert!((a.grad_norm - b.grad_norm).abs() <= 1e-5, "norm {} and {}", a.grad_norm, b.grad_norm);
        }
    }
}

#[test]
fn dropout_repeats_with_its_seed_and_changes_with_it_and_with_the_micro_batch() {
    let trace = |settings: &[&str], batches: &[Batch]| -> Vec<Outcome> {
        let config = config(settings);
        let mut training = build(&config);
        (1..=4).map(|number| update(&mut *training, number, batches, 1e-3)).collect()
    };
    let halves = [batch(&ROWS[..2]), batch(&ROWS[2..])];
    let first = trace(&["train.seed=3"], &halves);
    assert_eq!(first, trace(&["train.seed=3"], &halves));
    assert_ne!(first, trace(&["train.seed=4"], &halves));
    assert_ne!(first, trace(&[&["train.seed=3"][..], &NO_DROPOUT].concat(), &halves));

    // The weights stay as they are, so that only what is dropped can differ.
    let config = config(&[]);
    let mut training = build(&config);
    let same = batch(&ROWS[..1]);
    let alone: Vec<f64> =
        (1..=3).map(|number| update(&mut *training, number, std::slice::from_ref(&same), 0.0).loss).collect();
    assert!(alone[0] != alone[1] && alone[1] != alone[2], "every update drops something else: {alone:?}");
    let empty = batch(&ROWS[1..2]);
    let target_count = 1;
    let second = |training: &mut dyn Training, micro_batch| {
        training.micro_batch(&empty, Pass { update: 9, micro_batch, target_count });
        training.update(0.0, false).loss
    };
    assert_ne!(second(&mut *training, 0), second(&mut *training, 1), "and so does every micro-batch");
}

#[test]
fn padding_does_not_change_what_is_found_for_a_row() {
    // The reference's weights are large enough for every token to matter.
    let (_, model) = reference(&Device::flex());
    let rows: [(&[i32], i32); 3] =
        [(&[2, 17, 31, 3, 8, 45, 3], 0), (&[2, 40, 3], 0), (&[2, 17, 32, 3, 8, 45, 3], 0)];
    let together = logits(&model, &filled(&rows, 11));
    let mut other = filled(&rows, 11);
    for (row, length) in other.lengths.iter().enumerate() {
        other.inputs[row * 11 + length..(row + 1) * 11].fill(42);
    }
    assert_eq!(logits(&model, &other), together, "what stands in a padded place does not matter");
    for (row, in_batch) in rows.iter().zip(together.chunks(3)) {
        assert_close(&logits(&model, &batch(&[*row])), in_batch, 1e-5, "logits");
    }
    assert!((together[0] - together[6]).abs() > 1e-2, "one token makes a difference: {together:?}");
}

#[test]
fn the_class_found_is_that_of_the_largest_logit() {
    let config = config(&["model.num_labels=3"]);
    let model = DistilBertForSequenceClassification::init(&config, &Device::flex());
    let batch = batch(&ROWS);
    let (loss, found) = model.evaluate(&batch);
    let logits = logits(&model, &batch);
    let expected: Vec<u32> = logits
        .chunks(3)
        .map(|row| (0..3).max_by(|a, b| row[*a].total_cmp(&row[*b])).unwrap() as u32)
        .collect();
    assert_eq!((found, loss.targets), (expected, 4));
}

#[test]
fn a_loss_or_gradient_that_is_not_finite_reaches_neither_weights_nor_state() {
    let config = config(&["clip.max_norm=0"]);
    let batch = batch(&ROWS);
    let mut training = build(&config);
    assert!(!update(&mut *training, 1, std::slice::from_ref(&batch), 1e-3).skipped);
    // Weights this large are finite, but what they multiply to is not.
    assert!(!update(&mut *training, 2, std::slice::from_ref(&batch), 1e30).skipped);
    let before = (training.weights(), training.state(&[]));
    assert!(before.0.iter().all(|tensor| tensor.values.iter().all(|value| value.is_finite())));
    for number in 3..5 {
        let outcome = update(&mut *training, number, std::slice::from_ref(&batch), 1e-3);
        assert!(
            outcome.skipped && !(outcome.loss.is_finite() && outcome.grad_norm.is_finite()),
            "{outcome:?}"
        );
    }
    assert_eq!((training.weights(), training.state(&[])), before);
}

#[test]
fn a_window_without_targets_says_so_and_changes_nothing() {
    let config = config(&[]);
    let mut training = build(&config);
    let mut nothing = batch(&ROWS);
    nothing.targets.fill(tui_train::data::IGNORE);
    nothing.target_count = 0;
    let before = training.weights();
    let outcome = update(&mut *training, 1, &[nothing], 1e-3);
    assert!(outcome.empty && !outcome.skipped && outcome.loss.is_nan(), "{outcome:?}");
    assert_eq!(training.weights(), before);
    let outcome = update(&mut *training, 1, &[batch(&ROWS)], 1e-3);
    assert!(!outcome.empty && outcome.loss.is_finite(), "{outcome:?}");
}

/// Puts stored values into a model, by name.
struct Load<'a> {
    path: Vec<String>,
    from: &'a SafeTensors<'a>,
}

impl ModuleMapper for Load<'_> {
    fn enter_module(&mut self, name: &str, _: &str) {
        self.path.push(name.to_owned());
    }

    fn exit_module(&mut self, _: &str, _: &str) {
        self.path.pop();
    }

    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let (id, tensor, mapper) = param.consume();
        let values = floats(self.from, &self.path.join("."));
        let device = tensor.device().inner();
        let loaded = Tensor::from_data(TensorData::new(values, tensor.dims()), &device);
        let loaded =
            if tensor.is_require_grad() { Tensor::from_inner(loaded).require_grad() } else { loaded };
        Param::from_mapped_value(id, loaded, mapper)
    }
}

fn floats(file: &SafeTensors<'_>, name: &str) -> Vec<f32> {
    let data = file.tensor(name).unwrap_or_else(|error| panic!("{name}: {error}"));
    data.data().chunks_exact(4).map(|bytes| f32::from_le_bytes(bytes.try_into().unwrap())).collect()
}

fn integers(file: &SafeTensors<'_>, name: &str) -> Vec<i64> {
    let data = file.tensor(name).unwrap();
    data.data().chunks_exact(8).map(|bytes| i64::from_le_bytes(bytes.try_into().unwrap())).collect()
}

fn fixture(name: &str) -> Vec<u8> {
    std::fs::read(format!("{}/tests/fixtures/parity/distilbert/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

/// The reference's model, on a device with or without a tape.
fn reference(device: &Device) -> (Config, DistilBertForSequenceClassification) {
    // As in its config.json.
    let shape = [
        "model.preset=distilbert-nano",
        "data.tokenizer=some.json",
        "train.seq_len=12",
        "model.vocab_size=48",
        "model.hidden_size=32",
        "model.intermediate_size=64",
        "model.max_position_embeddings=16",
        "model.num_labels=3",
    ];
    let layers = Layers::new().with_assignments(shape).unwrap().with_assignments(NO_DROPOUT).unwrap();
    let config = layers.resolve().unwrap().config;
    let file = fixture("model.safetensors");
    let from = &SafeTensors::deserialize(&file).unwrap();
    let model = DistilBertForSequenceClassification::init(&config, device);
    (config, model.map(&mut Load { path: Vec::new(), from }))
}

#[test]
fn logits_loss_and_gradients_are_the_references() {
    let (config, model) = reference(&Device::flex().autodiff());
    let expected = fixture("expected.safetensors");
    let expected = SafeTensors::deserialize(&expected).unwrap();
    let ids = integers(&expected, "input_ids");
    let narrow = |values: Vec<i64>| values.into_iter().map(|value| value as i32).collect::<Vec<_>>();
    let batch = Batch {
        rows: 3,
        seq_len: ids.len() / 3,
        inputs: narrow(ids),
        targets: narrow(integers(&expected, "targets")),
        lengths: integers(&expected, "lengths").into_iter().map(|length| length as usize).collect(),
        target_count: 3,
    };
    assert_close(&logits(&model, &batch), &floats(&expected, "logits"), 1e-5, "logits");
    let loss = model.loss(&batch, &Noise::of(1, 1, 0));
    let sum = loss.sum.clone().into_data().iter::<f32>().collect::<Vec<_>>();
    assert_close(&sum, &floats(&expected, "loss_sum"), 1e-5, "loss");
    let mut tape = loss.sum.div_scalar(loss.targets as f64).backward();
    let mut gradients = Gradients::new();
    gradients.add(&model, &mut tape);
    let ours: BTreeMap<String, Vec<f32>> = gradients
        .iter()
        .map(|(name, gradient)| (name.to_owned(), gradient.to_data().iter::<f32>().collect()))
        .collect();
    let names: Vec<String> = ledger::parameters(&config.model).into_iter().map(|p| p.name).collect();
    assert_eq!(ours.len(), names.len());
    for name in names {
        let theirs = floats(&expected, &format!("grad.{name}"));
        let largest = theirs.iter().fold(0f32, |most, value| most.max(value.abs()));
        assert_close(&ours[&name], &theirs, 1e-5 * largest.max(1.0), &name);
    }
}
