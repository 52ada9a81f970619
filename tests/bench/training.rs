//! How long one update of the demo takes, by optimizer; what a checkpoint costs training; and what its events cost.
//!
//! `cargo bench --bench training`; `BENCH_PRESET=llama-160m cargo bench --bench training -- checkpoint` takes the
//! checkpoint of another preset, here with some 6 GiB of memory.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use tui_train::{
    backend::devices,
    config::{DeviceName, Layers, OptimizerName},
    data::{Cursor, Dataset, Pass, Windows},
    ledger,
    protocol::{DataReport, Event, Header, SCHEMA, Update},
    run::{Home, RunDir, checkpoint::Progress},
    worker::{
        checkpoint::{Position, Snapshot},
        event_log::EventLog,
        trainer,
    },
};

fn updates(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("update of llama-nano");
    for name in OptimizerName::ALL {
        let layers = Layers::new().with_assignment(&format!("optimizer.name={name}"));
        let config = layers.and_then(|layers| layers.resolve()).expect("the demo resolves").config;
        let device = devices::open(DeviceName::Flex).expect("flex is always there");
        let dataset = Dataset::open(&config).expect("the stories are built in");
        let mut windows = Windows::new(dataset, &config, Cursor::default()).expect("from the start");
        let mut training = trainer::build(&config, &device.device).expect("llama is there");
        let tokens = config.train.effective_batch() * config.train.seq_len;
        group.throughput(Throughput::Elements(tokens as u64));
        group.bench_function(BenchmarkId::from_parameter(name), |bencher| {
            bencher.iter(|| {
                let window = windows.next_window().expect("the stream has no end");
                for (batch, pass) in window.passes(1) {
                    training.micro_batch(batch, pass);
                }
                training.update(config.optimizer.lr(), false)
            });
        });
    }
    group.finish();
}

/// Training waits for the first; the last is done beside it.
fn checkpoint(criterion: &mut Criterion) {
    let preset = std::env::var("BENCH_PRESET").unwrap_or_else(|_| "llama-tiny".to_owned());
    // What is trained once beforehand makes the optimizer's state, whatever the batch.
    let preset_key = format!("model.preset={preset}");
    let settings = [&*preset_key, "train.micro_batch=1", "train.seq_len=16", "train.device=flex"];
    let layers = Layers::new().with_assignments(settings);
    let resolved = layers.and_then(|layers| layers.resolve()).expect("a preset resolves");
    let config = &resolved.config;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let run = RunDir::create(&Home::at(folder.path()), "bench", &resolved).expect("it can be written");
    let device = devices::open(DeviceName::Flex).expect("flex is always there");
    let batch = Dataset::open(config).expect("the stories are built in").batch(&[0]);
    let mut training = trainer::build(config, &device.device).expect("llama is there");
    training.micro_batch(&batch, Pass::alone(1, &batch));
    training.update(config.optimizer.lr(), false);
    let position =
        Position { update: 1, tokens: 1, config, cursor: Cursor::default(), progress: Progress::default() };
    let take = || Snapshot::take(&run, &*training, position).expect("nothing is written yet");
    let weights: Vec<Vec<f32>> =
        training.weights().into_iter().map(|tensor| tensor.values().to_vec()).collect();
    let mut group = criterion.benchmark_group(format!("checkpoint of {preset}"));
    group.sample_size(10);
    group.bench_function("taken", |bencher| bencher.iter_with_large_drop(take));
    // Weights and both moments.
    group.bench_function("a copy of as many bytes", |bencher| {
        bencher.iter_with_large_drop(|| [weights.clone(), weights.clone(), weights.clone()]);
    });
    group.bench_function("written", |bencher| {
        bencher.iter_batched(take, |snapshot| snapshot.write(&run), BatchSize::PerIteration);
    });
    group.finish();
}

/// Updates that are sent before the writer is let to come to its end: fewer than may wait for it.
const AT_ONCE: u64 = 1000;

fn update(update: u64) -> Event {
    Event::Update(Update {
        update,
        time: update as f64 / 1000.0,
        tokens: 512 * update,
        micro_batches: 1,
        loss: 2.0 + 1.0 / (update as f64 + 1.0),
        learning_rate: 3e-4 / (1.0 + update as f64),
        grad_norm: 0.5 + 1.0 / (update as f64 + 3.0),
        tokens_per_second: 512_345.678,
        flops_per_second: None,
        mfu: None,
        skipped: false,
    })
}

/// The time of the engine, which waits for the first, and of the thread beside it, which does the second. At 1000 updates a
/// second one hundredth of an update is 10 us.
fn events(criterion: &mut Criterion) {
    let resolved = Layers::new().resolve().expect("the demo resolves");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let home = Home::at(folder.path());
    let header = |run: &RunDir| Header {
        schema: SCHEMA,
        run: run.id().to_owned(),
        name: "bench".to_owned(),
        started: String::new(),
        config: resolved.config.clone(),
        explicit: BTreeMap::new(),
        device: "flex".to_owned(),
        threads: 1,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        git: None,
        hardware: BTreeMap::new(),
        total_updates: 1_000_000,
        data: DataReport::default(),
        ledger: ledger::ledger(&resolved.config),
        notes: Vec::new(),
        forked_from: None,
        matmul_peak: None,
    };
    let mut group = criterion.benchmark_group("event of an update");
    group.throughput(Throughput::Elements(1));
    // Sends so many in batches, and returns what was spent on sending and what until all was written.
    let spent = |count: u64| {
        let (mut sending, mut written, mut left) = (Duration::ZERO, Duration::ZERO, count);
        while left > 0 {
            let now = left.min(AT_ONCE);
            let run = RunDir::create(&home, "bench", &resolved).expect("it can be written");
            let log = EventLog::start(&run, &header(&run), Arc::default()).expect("it can be written");
            let events = log.sender().expect("it has just begun");
            let batch: Vec<Event> = (1..=now).map(update).collect();
            let begun = Instant::now();
            for event in batch {
                events.send(event).expect("the writer is there");
            }
            sending += begun.elapsed();
            drop(events);
            let (_, _, all) = log.finish().expect("the writer comes to its end");
            all.expect("it was written");
            written += begun.elapsed();
            std::fs::remove_dir_all(run.path()).expect("it is ours");
            left -= now;
        }
        (sending, written)
    };
    group.bench_function("sent by the engine", |bencher| bencher.iter_custom(|count| spent(count).0));
    group.bench_function("written beside it", |bencher| bencher.iter_custom(|count| spent(count).1));
    group.finish();
}

criterion_group!(benches, updates, checkpoint, events);
criterion_main!(benches);
