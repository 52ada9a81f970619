//! How long one update of the demo takes, by optimizer; and what a checkpoint costs training.
//!
//! `cargo bench --bench training`

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use tui_train::{
    backend::devices,
    config::{DeviceName, Layers, OptimizerName},
    data::{Cursor, Dataset, Pass, Windows},
    run::{Home, RunDir, checkpoint::Progress},
    worker::{
        checkpoint::{Position, Snapshot},
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
    let layers = Layers::new().with_assignment("model.preset=llama-tiny");
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
    let weights: Vec<Vec<f32>> = training.weights().into_iter().map(|tensor| tensor.values).collect();
    let mut group = criterion.benchmark_group("checkpoint of llama-tiny");
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

criterion_group!(benches, updates, checkpoint);
criterion_main!(benches);
