//! What a window is divided by: its own targets, however they are spread over micro-batches. And what rate its update
//! uses at the edges of a schedule.

use tui_train::{
    config::{Config, Layers, ScheduleConfig, ScheduleName, schedule},
    data::{Batch, Cursor, Dataset, IGNORE, Pass, Windows, total_updates},
    worker::{
        check::{self, Accumulated},
        trainer::{self, Training},
    },
};

/// Of the largest element of the gradient: what sums in another order may be apart.
const ROUNDING: f64 = 1e-5;

fn config(settings: &[&str]) -> Config {
    let small = ["train.seq_len=32", "model.num_hidden_layers=1", "data.validation_fraction=0"];
    let layers = Layers::new().with_assignments(small).unwrap().with_assignments(settings).unwrap();
    layers.resolve().unwrap().config
}

/// A text of four full sequences of 32 targets and one of 10, in a file of its own.
fn five_sequences() -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("text.txt");
    // The separator behind the document is the last target.
    let text: String = (0..4 * 32 + 10).map(|place| char::from(b'A' + (place * 7 % 53) as u8)).collect();
    std::fs::write(&path, text).unwrap();
    let setting = format!("data.path={}", path.display());
    (folder, setting)
}

fn build(config: &Config) -> Box<dyn Training> {
    trainer::build(config, &crate::support::device()).unwrap()
}

/// The gradient of these micro-batches, each divided by what the function says.
fn gradient(training: &mut dyn Training, batches: &[Batch], divisor: impl Fn(&Batch) -> u64) -> Accumulated {
    training.discard_window();
    for (at, batch) in batches.iter().enumerate() {
        let pass = Pass { update: 1, micro_batch: at as u64, target_count: divisor(batch) };
        training.micro_batch(batch, pass);
    }
    training.accumulated()
}

fn targets(batches: &[Batch]) -> u64 {
    batches.iter().map(|batch| batch.target_count).sum()
}

/// The largest difference as a share of the largest element.
fn apart(ours: &Accumulated, theirs: &Accumulated) -> f64 {
    assert_eq!(ours.gradients.len(), theirs.gradients.len());
    let (mut difference, mut size) = (0.0_f64, 0.0_f64);
    for ((name, ours), (other, theirs)) in ours.gradients.iter().zip(&theirs.gradients) {
        assert_eq!((name, ours.len()), (other, theirs.len()));
        for (a, b) in ours.iter().zip(theirs) {
            difference = difference.max(f64::from((a - b).abs()));
            size = size.max(f64::from(a.abs()));
            assert!(a.is_finite() && b.is_finite(), "{name}");
        }
    }
    assert!(size > 0.0, "there is a gradient");
    difference / size
}

/// The batch with only so many targets left in each row; the rest is padding.
fn shortened(mut batch: Batch, lengths: &[usize]) -> Batch {
    for (row, &length) in lengths.iter().enumerate() {
        for at in row * batch.seq_len + length..(row + 1) * batch.seq_len {
            (batch.inputs[at], batch.targets[at]) = (0, IGNORE);
        }
    }
    batch.lengths = lengths.to_vec();
    batch.target_count = lengths.iter().sum::<usize>() as u64;
    batch
}

/// All rows in one batch.
fn joined(batches: &[Batch]) -> Batch {
    let mut all = batches[0].clone();
    for batch in &batches[1..] {
        all.rows += batch.rows;
        all.inputs.extend(&batch.inputs);
        all.targets.extend(&batch.targets);
        all.lengths.extend(&batch.lengths);
        all.target_count += batch.target_count;
    }
    all
}

#[test]
fn micro_batches_weigh_as_much_as_they_have_targets() {
    let config = config(&[]);
    let dataset = Dataset::open(&config).unwrap();
    let batches = [
        shortened(dataset.batch(&[0]), &[2]),
        shortened(dataset.batch(&[1, 2]), &[32, 9]),
        shortened(dataset.batch(&[3, 4, 5]), &[1, 17, 30]),
        dataset.batch(&[6]),
    ];
    let mut training = build(&config);
    let total = targets(&batches);
    assert_eq!(total, 2 + 41 + 48 + 32);
    let parts = gradient(&mut *training, &batches, |_| total);
    let whole = gradient(&mut *training, &[joined(&batches)], |batch| batch.target_count);
    assert!(apart(&whole, &parts) < ROUNDING, "{}", apart(&whole, &parts));
    assert!((whole.loss - parts.loss).abs() < 1e-5, "{} and {}", whole.loss, parts.loss);
    assert!((whole.grad_norm - parts.grad_norm).abs() < 1e-5 * whole.grad_norm);
    // Each divided by its own targets, and then averaged, is another gradient altogether.
    let naive = gradient(&mut *training, &batches, |batch| batch.target_count * 4);
    assert!(apart(&whole, &naive) > 0.05, "{}", apart(&whole, &naive));
}

#[test]
fn micro_batches_of_padding_contribute_nothing() {
    let config = config(&[]);
    let dataset = Dataset::open(&config).unwrap();
    let empty = shortened(dataset.batch(&[7, 8]), &[0, 0]);
    let real = [shortened(dataset.batch(&[0]), &[20]), dataset.batch(&[1])];
    let mixed = [empty.clone(), real[0].clone(), empty.clone(), real[1].clone(), empty.clone()];
    let mut training = build(&config);
    let total = targets(&real);
    assert_eq!(targets(&mixed), total);
    let without = gradient(&mut *training, &real, |_| total);
    assert_eq!(gradient(&mut *training, &mixed, |_| total), without);
    // The same rows inside a batch that has targets.
    let inside = gradient(&mut *training, &[joined(&mixed)], |_| total);
    assert!(apart(&without, &inside) < ROUNDING, "{}", apart(&without, &inside));

    // A window of padding alone is no update.
    let weights = training.weights();
    let nothing = gradient(&mut *training, &[empty.clone(), empty], |_| 0);
    assert!(nothing.loss.is_nan() && nothing.gradients.is_empty());
    let outcome = training.update(1e-3, false);
    assert!(outcome.empty && !outcome.skipped, "nothing to learn is not a mistake: {outcome:?}");
    assert_eq!(training.weights(), weights);
}

#[test]
fn the_short_last_window_of_an_epoch_is_divided_by_what_it_holds() {
    let (_folder, path) = five_sequences();
    let config = config(&[
        &path,
        "train.epochs=2",
        "train.micro_batch=2",
        "train.accumulate=2",
        "data.shuffle=false",
        "schedule.warmup_updates=0",
    ]);
    let dataset = Dataset::open(&config).unwrap();
    assert_eq!((dataset.train_sequences(), total_updates(&config, &dataset)), (5, 4));
    let windows: Vec<_> = Windows::new(dataset.clone(), &config, Cursor::default()).unwrap().collect();
    let counts: Vec<u64> = windows.iter().map(|window| window.target_count).collect();
    assert_eq!(counts, [128, 10, 128, 10]);
    let mut training = build(&config);
    for (batch, pass) in windows[1].passes(2) {
        training.micro_batch(batch, pass);
    }
    let window = training.accumulated();
    let alone = gradient(&mut *training, &[dataset.batch(&[4])], |batch| batch.target_count);
    assert_eq!(window, alone);
    assert!(window.loss > 3.0, "a mean over 10 targets, not over 128: {}", window.loss);
}

#[test]
fn more_micro_batches_than_an_epoch_has_make_one_update_of_it() {
    let (_folder, path) = five_sequences();
    let config = config(&[
        &path,
        "train.epochs=3",
        "train.micro_batch=2",
        "train.accumulate=100",
        "schedule.warmup_updates=0",
    ]);
    let dataset = Dataset::open(&config).unwrap();
    assert_eq!(total_updates(&config, &dataset), 3);
    let windows: Vec<_> = Windows::new(dataset.clone(), &config, Cursor::default()).unwrap().collect();
    let shapes: Vec<Vec<usize>> =
        windows.iter().map(|window| window.micro_batches.iter().map(|batch| batch.rows).collect()).collect();
    assert_eq!(shapes, vec![vec![2, 2, 1]; 3]);
    let mut training = build(&config);
    let window = &windows[2];
    let parts = gradient(&mut *training, &window.micro_batches, |_| window.target_count);
    let epoch = gradient(&mut *training, &[dataset.batch(&[0, 1, 2, 3, 4])], |batch| batch.target_count);
    assert_eq!(window.target_count, 138);
    assert!(apart(&epoch, &parts) < ROUNDING, "{}", apart(&epoch, &parts));
}

#[test]
fn the_check_holds_and_shows_what_a_mean_of_means_would_do() {
    let equal = check::accumulation(&config(&["train.micro_batch=4", "train.accumulate=2"])).unwrap();
    assert!(equal.holds && !equal.naive_differs(), "{equal:?}");
    assert_eq!((equal.rows, equal.targets), (8, 8 * 32));
    // The window of a short epoch has a sequence of 10 targets among those of 32.
    let (_folder, path) = five_sequences();
    let settings = [&path, "train.epochs=1", "schedule.warmup_updates=0"];
    let unequal = check::accumulation(&config(&settings)).unwrap();
    assert!(unequal.holds && unequal.naive_differs(), "{unequal:?}");
    assert_eq!((unequal.rows, unequal.targets), (5, 138));
    assert!(unequal.naive_largest_difference > 0.01 * unequal.largest_gradient, "{unequal:?}");
    assert!(unequal.worst.windows(2).all(|pair| pair[0].difference >= pair[1].difference));
    assert_eq!(unequal.worst[0].difference, unequal.largest_difference);
}

#[test]
fn a_run_of_one_update_uses_the_base_rate() {
    for name in [ScheduleName::Cosine, ScheduleName::Linear, ScheduleName::Constant] {
        let once = ScheduleConfig { name, warmup_updates: 0, start_factor: 0.0, min_lr: 0.0 };
        assert_eq!(schedule::rate(&once, 3e-3, 1, 1), 3e-3);
    }
    let resolved = |settings: &[&str]| Layers::new().with_assignments(settings).unwrap().resolve();
    let one = resolved(&["train.max_updates=1", "schedule.warmup_updates=0"]).unwrap().config;
    assert_eq!(schedule::of(&one, 1, 1), one.optimizer.lr());
    let told = resolved(&["train.max_updates=1", "schedule.warmup_updates=1"]).unwrap_err().to_string();
    assert!(told.contains("schedule.warmup_updates = 1"), "{told}");
}

#[test]
fn a_warm_up_of_all_but_one_update_reaches_the_rate_and_past_the_end_is_the_least() {
    for name in [ScheduleName::Cosine, ScheduleName::Linear] {
        let schedule = ScheduleConfig { name, warmup_updates: 4, start_factor: 0.0, min_lr: 1e-4 };
        for (update, expected) in (1..).zip([0.0, 2.5e-3, 5e-3, 7.5e-3, 1e-2, 1e-4, 1e-4]) {
            let rate = schedule::rate(&schedule, 1e-2, 5, update);
            assert!((rate - expected).abs() < 1e-15, "{name:?}, update {update}: {rate}");
        }
    }
}
