//! How long one update of the demo takes, by optimizer.
//!
//! `cargo bench --bench training`

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use tui_train::{
    backend::devices,
    config::{DeviceName, Layers, OptimizerName},
    data::{Cursor, Dataset, Windows},
    worker::trainer,
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

criterion_group!(benches, updates);
criterion_main!(benches);
