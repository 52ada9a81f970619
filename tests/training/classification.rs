//! Properties of a classification.

use tui_train::{
    config::{Config, Layers},
    data::{Batch, Pass},
    ledger,
    model::{Noise, TrainModel, distilbert::DistilBertForSequenceClassification},
    run::weights::plan,
    worker::{
        trainer::{self, Outcome, Training},
        weights,
    },
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
        own: None,
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
    trainer::build(config, &crate::support::device()).unwrap()
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
    // Weights that are large enough for every token to matter.
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/parity/distilbert");
    let stored = format!("model.weights={folder}");
    let shape = [
        "data.tokenizer=some.json",
        "train.seq_len=12",
        "model.vocab_size=48",
        "model.intermediate_size=64",
        "model.max_position_embeddings=16",
        "model.num_labels=3",
        &stored,
    ];
    let config = config(&shape);
    let model = DistilBertForSequenceClassification::init(&config, &crate::support::device());
    let model = weights::load(model, &plan(&config.model).unwrap().unwrap()).unwrap();
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
    let model = DistilBertForSequenceClassification::init(&config, &crate::support::device());
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
    assert!(before.0.iter().all(|tensor| tensor.values().iter().all(|value| value.is_finite())));
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

#[test]
fn the_estimate_of_activations_is_near_what_is_measured() {
    if crate::support::device_name() != "flex" {
        println!("not run: the allocator that is measured is the one of flex");
        return;
    }
    let sandbox = crate::support::Sandbox::new();
    // Rows longer than 48 are cut, so that every batch is as long as is counted. Weights and state are small here.
    let bert = ["model.preset=distilbert-nano", "train.seq_len=48", "train.micro_batch=96"];
    let llama = ["model.preset=llama-nano", "train.seq_len=48", "train.micro_batch=96"];
    for (settings, more) in [
        (bert, &["model.num_hidden_layers=3"][..]),
        (bert, &["model.intermediate_size=512", "model.hidden_size=32"]),
        (bert, &NO_DROPOUT),
        (bert, &["model.hidden_size=32", "model.num_attention_heads=16"]),
        (llama, &["model.num_hidden_layers=3"]),
        (llama, &["model.num_attention_heads=16", "model.num_key_value_heads=4"]),
    ] {
        let mut arguments = vec!["bench", "--json", "--updates", "1", "--set", "optimizer.name=adafactor"];
        settings.iter().chain(more).for_each(|setting| arguments.extend(["--set", setting]));
        let report = sandbox.json(&arguments);
        let bytes = |pointer: &str| report.pointer(pointer).and_then(|value| value.as_f64()).unwrap();
        let measured = bytes("/peak_bytes/allocator") - bytes("/peak_bytes/before_training");
        let counted = bytes("/ledger_bytes_estimated");
        let ratio = measured / counted;
        assert!((0.9..1.1).contains(&ratio), "{settings:?} {more:?}: {measured} measured, {counted} counted");
    }
}

#[test]
fn a_run_tells_accuracy_and_f1_after_every_epoch_and_ends_with_them() {
    let sandbox = crate::support::Sandbox::new();
    let settings = [
        "model.preset=distilbert-nano",
        "model.hidden_size=16",
        "model.intermediate_size=16",
        "model.num_hidden_layers=1",
        "train.seq_len=32",
        "train.micro_batch=64",
        "train.epochs=2",
        "schedule.warmup_updates=2",
    ];
    let mut arguments = vec!["run", "--headless", "--name", "pairs"];
    settings.iter().for_each(|setting| arguments.extend(["--set", setting]));
    let output = sandbox.run(&arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));

    let run = &sandbox.runs()[0];
    let events = crate::support::events(&std::fs::read(run.join("events.jsonl")).unwrap());
    let header = &events[0];
    let validations: Vec<_> = events.iter().filter(|event| event["type"] == "validation").collect();
    let updates: Vec<u64> = validations.iter().map(|event| event["update"].as_u64().unwrap()).collect();
    let total = header["total_updates"].as_u64().unwrap();
    assert_eq!(updates, [total / 2, total]);
    for validation in &validations {
        assert_eq!(
            validation["tokens"], header["data"]["validation_sequences"],
            "all rows that are held out"
        );
        for name in ["val/accuracy", "val/f1", "val/f1_macro"] {
            assert!((0.0..=1.0).contains(&validation[name].as_f64().unwrap()), "{name}: {validation}");
        }
    }

    let shown = sandbox.json(&["show", "pairs", "--json"]);
    let page = std::fs::read_to_string(run.join("summary.md")).unwrap();
    let printed = String::from_utf8(sandbox.run(&["show", "pairs"]).stdout).unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let mut last: Vec<String> = Vec::new();
    for (name, measured) in
        [("eval_accuracy", "val/accuracy"), ("eval_f1", "val/f1"), ("eval_f1_macro", "val/f1_macro")]
    {
        assert_eq!(shown[name], validations[1][measured], "{name}");
        last.push(format!("{name} {:.4}", shown[name].as_f64().unwrap()));
        assert!(page.contains(name) && printed.contains(name), "{name}: {page} {printed}");
    }
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[lines.len() - 4..lines.len() - 1], last);
    let told: Vec<_> = lines.iter().filter(|line| line.starts_with("validation at")).collect();
    assert_eq!(told.len(), 2);
    assert!(told.iter().all(|line| line.contains(" rows, accuracy ") && line.contains(", F1 ")), "{told:?}");
}
