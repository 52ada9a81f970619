//! Properties of accumulation, of repetition, and of learning at all.

use tui_train::{
    config::{Config, Layers, OptimizerName, schedule},
    data::{Cursor, Dataset, Pass, Windows},
    ledger,
    optim::Entry,
    worker::trainer::{self, Outcome, Training},
};

/// The demo with these settings on top, small enough for a test.
pub(super) fn config(settings: &[&str]) -> Config {
    let small =
        ["train.seq_len=32", "train.micro_batch=4", "train.max_updates=40", "model.num_hidden_layers=1"];
    let layers = Layers::new().with_assignments(small).unwrap().with_assignments(settings).unwrap();
    layers.resolve().unwrap().config
}

fn device() -> burn::tensor::Device {
    crate::support::device()
}

/// Trains and returns each update's outcome.
fn train(config: &Config, updates: u64) -> (Vec<Outcome>, Box<dyn Training>) {
    train_on(config, updates, &device())
}

pub(super) fn train_on(
    config: &Config,
    updates: u64,
    device: &burn::tensor::Device,
) -> (Vec<Outcome>, Box<dyn Training>) {
    let dataset = Dataset::open(config).unwrap();
    let mut windows = Windows::new(dataset, config, Cursor::default()).unwrap();
    let mut training = trainer::build(config, device).unwrap();
    let outcomes = (1..=updates)
        .map(|update| {
            let window = windows.next_window().unwrap();
            for (batch, pass) in window.passes(update) {
                training.micro_batch(batch, pass);
            }
            training.update(schedule::of(config, 40, update), true)
        })
        .collect();
    (outcomes, training)
}

#[test]
fn one_by_eight_equals_four_by_two() {
    let traces: Vec<Vec<Outcome>> = [(8, 1), (4, 2), (1, 8)]
        .into_iter()
        .map(|(micro, accumulate)| {
            let sizes = [format!("train.micro_batch={micro}"), format!("train.accumulate={accumulate}")];
            train(&config(&[&sizes[0], &sizes[1]]), 4).0
        })
        .collect();
    for other in &traces[1..] {
        for (a, b) in traces[0].iter().zip(other) {
            assert!((a.loss - b.loss).abs() <= 1e-5, "loss {} and {}", a.loss, b.loss);
            assert!((a.grad_norm - b.grad_norm).abs() <= 1e-5, "norm {} and {}", a.grad_norm, b.grad_norm);
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_trace_and_another_seed_another() {
    let trace = |seed: &str| train(&config(&[seed]), 5).0;
    assert_eq!(trace("train.seed=3"), trace("train.seed=3"));
    assert_ne!(trace("train.seed=3"), trace("train.seed=4"));
}

#[test]
fn the_update_after_a_parameter_was_opened_is_measured_for_it_alone_and_is_no_other() {
    let config = config(&["optimizer.name=adamw8bit"]);
    let trained = |opens: bool| {
        let mut windows = Windows::new(Dataset::open(&config).unwrap(), &config, Cursor::default()).unwrap();
        let mut training = trainer::build(&config, &device()).unwrap();
        let name = training.parameters()[1].0.clone();
        let mut update = |training: &mut dyn Training, update, measure: bool| {
            let window = windows.next_window().unwrap();
            for (batch, pass) in window.passes(update) {
                training.micro_batch(batch, pass);
            }
            training.update(1e-3, measure).loss
        };
        let mut losses = vec![update(&mut *training, 1, false)];
        if opens {
            training.open(&name, 8).unwrap();
        }
        losses.extend([2, 3].map(|at| update(&mut *training, at, false)));
        let all = training.state(&[]);
        let last = update(&mut *training, 4, true);
        losses.push(last);
        (losses, name, all, training.state(&[]))
    };
    let (losses, name, all, then) = trained(true);
    assert_eq!(losses, trained(false).0, "looking changes nothing");
    for tensor in &all {
        let wanted = (tensor.name == name).then_some(2);
        assert_eq!((tensor.measured_at, tensor.update_ratio.is_some()), (wanted, wanted.is_some()));
    }
    assert!(then.iter().all(|tensor| tensor.measured_at == Some(4)));
}

#[test]
fn every_optimizer_overfits_one_batch() {
    for settings in [
        &["optimizer.name=adamw", "optimizer.lr=1e-2"][..],
        &["optimizer.name=adafactor", "optimizer.lr=2e-2"],
        &["optimizer.name=sgd", "optimizer.lr=0.3", "optimizer.momentum=0.9"],
        &["optimizer.name=adamw8bit", "optimizer.lr=1e-2"],
        &["optimizer.name=lion", "optimizer.lr=1e-3"],
        &["optimizer.name=muon", "optimizer.lr=2e-2", "optimizer.muon.adamw_lr=1e-2"],
    ] {
        let config = config(settings);
        let dataset = Dataset::open(&config).unwrap();
        let batch = dataset.batch(&[0, 1]);
        let mut training = trainer::build(&config, &device()).unwrap();
        let losses: Vec<f64> = (0..400)
            .map(|_| {
                training.micro_batch(&batch, Pass::alone(1, &batch));
                training.update(config.optimizer.lr(), false).loss
            })
            .collect();
        let least = losses.iter().copied().fold(f64::INFINITY, f64::min);
        assert!(losses[0] > 5.0, "{settings:?}: an untrained model knows nothing, loss {}", losses[0]);
        assert!(least < 0.5, "{settings:?}: loss {least} at best in 400 updates on one batch");
    }
}

#[test]
fn the_ledger_is_what_is_counted_from_the_tensors() {
    for name in OptimizerName::ALL {
        let config = config(&[&format!("optimizer.name={name}")]);
        let (_, mut training) = train(&config, 2);
        let ledger = ledger::ledger(&config);
        let shapes: Vec<(String, Vec<usize>)> =
            ledger::parameters(&config.model).into_iter().map(|p| (p.name, p.shape)).collect();
        let mut ours = training.parameters();
        ours.sort();
        let mut expected = shapes;
        expected.sort();
        assert_eq!(ours, expected, "names and shapes of the parameters");

        let optimizer = training.optimizer();
        let own = optimizer.names().into_iter().flat_map(|name| optimizer.entries(&name));
        let entries: Vec<Entry> = own.chain(optimizer.shared()).collect();
        assert_eq!(entries.iter().map(Entry::elements).sum::<u64>(), ledger.state_elements, "{name}");
        assert_eq!(entries.iter().map(Entry::bytes).sum::<u64>(), ledger.state_bytes, "{name}");

        let batch = Dataset::open(&config).unwrap().batch(&[0]);
        training.micro_batch(&batch, Pass::alone(1, &batch));
        assert_eq!(training.gradient_bytes(), ledger.gradient_bytes, "{name}");
    }
}

#[test]
fn a_window_that_is_not_finite_changes_nothing() {
    let config = config(&["clip.max_norm=0"]);
    let (_, mut training) = train(&config, 2);
    let batch = Dataset::open(&config).unwrap().batch(&[0]);
    // Weights this large are finite, but their squares are not.
    training.micro_batch(&batch, Pass::alone(1, &batch));
    assert!(!training.update(1e30, false).skipped);
    let (weights, state) = (training.weights(), training.state(&[]));
    assert!(weights.iter().all(|tensor| tensor.values().iter().all(|value| value.is_finite())));

    training.micro_batch(&batch, Pass::alone(1, &batch));
    let outcome = training.update(1e-3, false);
    assert!(outcome.skipped, "{outcome:?}");
    assert!(!outcome.loss.is_finite() || !outcome.grad_norm.is_finite(), "{outcome:?}");
    assert_eq!(training.weights(), weights);
    assert_eq!(training.state(&[]), state);
}

#[test]
fn padding_changes_neither_loss_nor_gradient() {
    let config = config(&[]);
    let dataset = Dataset::open(&config).unwrap();
    let full = dataset.batch(&[0]);
    let mut short = full.clone();
    // The second half of the row is padding: what stands there must not matter.
    let keep = full.seq_len / 2;
    short.lengths[0] = keep;
    short.target_count = keep as u64;
    for at in keep..full.seq_len {
        short.targets[at] = tui_train::data::IGNORE;
    }
    let mut other = short.clone();
    for at in keep..full.seq_len {
        other.inputs[at] = (other.inputs[at] + 7) % 256;
    }
    let outcome = |batch: &tui_train::data::Batch| {
        let mut training = trainer::build(&config, &device()).unwrap();
        training.micro_batch(batch, Pass::alone(1, batch));
        training.update(0.0, false)
    };
    assert_eq!(outcome(&short), outcome(&other));
}

#[test]
fn passes_in_bf16_learn_what_passes_in_f32_learn() {
    for model in [&["train.micro_batch=4"][..], &["model.preset=distilbert-nano", "train.micro_batch=4"]] {
        for accumulate in ["train.accumulate=1", "train.accumulate=2"] {
            let with =
                |precision| config(&[model, &[accumulate, "schedule.warmup_updates=0", precision]].concat());
            let (exact, _) = train(&with("train.precision=f32"), 20);
            let short = with("train.precision=bf16");
            let (rounded, training) = train(&short, 20);
            let learnt = exact.iter().any(|outcome| (outcome.loss - exact[0].loss).abs() > 0.02);
            assert!(learnt, "the parameters move: {exact:?}");
            for (update, (a, b)) in exact.iter().zip(&rounded).enumerate() {
                // bf16 has 8 bits: each rounding is off by 2^-9 at most, their mean over a batch by far less.
                let (loss, norm) =
                    ((a.loss - b.loss).abs() / a.loss, (a.grad_norm / b.grad_norm - 1.0).abs());
                let norm_bound = if update == 0 { 0.02 } else { 0.25 };
                assert!(loss < 0.01 && norm < norm_bound, "{model:?} update {update}: {a:?} and {b:?}");
            }
            assert_ne!(exact[0].loss.to_bits(), rounded[0].loss.to_bits(), "the passes are not f32");
            // Twenty updates of 1e-3 move a weight of 0.02 by far more than bf16 could show: the sum is kept in f32.
            assert_eq!(training.parameter_bytes(), ledger::ledger(&short).parameter_bytes);
            assert_eq!(training.state(&[])[0].state["exp_avg"].dtype, "f32");
        }
    }
}
