//! The optimizer phase alone on `llama-tiny`: our driver and Burn's, side by side.
//!
//! `cargo bench --bench optimizers`

use std::hint::black_box;

use burn::{
    module::{Module, ModuleVisitor, Param},
    optim::{AdafactorConfig, AdamWConfig, GradientsParams, ModuleOptimizer},
    tensor::{Device, Tensor},
};
use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use tui_train::{
    config::{Config, Layers, OptimizerName},
    model::{TrainModel, llama::Llama},
    optim::{self, Gradients, driver},
};

fn config(name: OptimizerName) -> Config {
    let settings = ["model.preset=llama-tiny".to_owned(), format!("optimizer.name={name}")];
    let layers = Layers::new().with_assignments(settings).and_then(|layers| layers.resolve());
    layers.expect("the preset resolves").config
}

/// A gradient for every parameter, in memory of its own.
#[derive(Default)]
struct Fresh {
    path: Vec<String>,
    ours: Gradients,
    theirs: GradientsParams,
}

impl ModuleVisitor for Fresh {
    fn enter_module(&mut self, name: &str, _: &str) {
        self.path.push(name.to_owned());
    }

    fn exit_module(&mut self, _: &str, _: &str) {
        self.path.pop();
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let gradient = || param.val().inner().mul_scalar(0.01);
        let count = gradient().shape().num_elements();
        self.ours.insert(&self.path.join("."), gradient().reshape([count]));
        self.theirs.register(param.id, gradient());
    }
}

fn fresh(model: &Llama) -> Fresh {
    let mut fresh = Fresh::default();
    model.visit(&mut fresh);
    fresh
}

fn ours(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("optimizer phase of llama-tiny, ours");
    for name in OptimizerName::ALL {
        let config = config(name);
        let mut model = Some(Llama::init(&config, &Device::flex().autodiff()));
        let mut optimizer = optim::build(&config.optimizer);
        group.bench_function(BenchmarkId::from_parameter(name), |bencher| {
            bencher.iter_custom(|times| {
                (0..times)
                    .map(|_| {
                        let before = model.take().expect("put back below");
                        let gradients = fresh(&before).ours;
                        let apply = driver::Apply { lr: 1e-3, measure: false };
                        let start = std::time::Instant::now();
                        let (after, _) = driver::apply(&mut *optimizer, before, gradients, apply);
                        model = Some(black_box(after));
                        start.elapsed()
                    })
                    .sum()
            });
        });
    }
    group.finish();
}

fn theirs(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("optimizer phase of llama-tiny, Burn's ModuleOptimizer");
    let optimizers: [(&str, ModuleOptimizer); 2] = [
        ("adamw", AdamWConfig::new().with_epsilon(1e-8).with_weight_decay(1e-2).init()),
        ("adafactor", AdafactorConfig::new().init()),
    ];
    for (name, mut optimizer) in optimizers {
        let mut model = Some(Llama::init(&config(OptimizerName::AdamW), &Device::flex().autodiff()));
        group.bench_function(BenchmarkId::from_parameter(name), |bencher| {
            bencher.iter_custom(|times| {
                (0..times)
                    .map(|_| {
                        let before = model.take().expect("put back below");
                        let gradients = fresh(&before).theirs;
                        let start = std::time::Instant::now();
                        model = Some(black_box(optimizer.step(1e-3, before, gradients)));
                        start.elapsed()
                    })
                    .sum()
            });
        });
    }
    group.finish();
}

criterion_group!(benches, ours, theirs);
criterion_main!(benches);
