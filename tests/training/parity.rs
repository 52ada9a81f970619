//! Whole training on libtorch against the same training on flex: initial weights, data order and dropout come from the
//! host, so losses, gradient norms and weights must follow each other.

use tui_train::config::OptimizerName;

use super::properties::{config, train_on};

const UPDATES: u64 = 8;

#[test]
fn losses_norms_and_weights_are_those_of_flex() {
    let flex = tui_train::backend::devices::open("flex".parse().unwrap()).unwrap().device;
    let here = crate::support::device();
    for model in ["model.preset=llama-nano", "model.preset=distilbert-nano"] {
        for name in OptimizerName::ALL {
            let config = config(&[
                model,
                "model.num_hidden_layers=2",
                "train.micro_batch=4",
                "train.accumulate=2",
                "schedule.warmup_updates=2",
                "train.max_updates=40",
                &format!("optimizer.name={name}"),
            ]);
            let start = train_on(&config, 0, &flex).1.weights();
            let (expected, ours) = (train_on(&config, UPDATES, &flex), train_on(&config, UPDATES, &here));
            for (update, (a, b)) in expected.0.iter().zip(&ours.0).enumerate() {
                // The first pass differs by the rounding of f32 sums alone. After it an element whose gradient is all
                // rounding may move either way by a whole rate where the optimizer divides by the gradient's size.
                let (loss_bound, norm_bound) = if update == 0 { (1e-5, 1e-4) } else { (1e-3, 2e-2) };
                let (loss, norm) =
                    ((a.loss - b.loss).abs() / a.loss, (a.grad_norm / b.grad_norm - 1.0).abs());
                assert!(
                    loss < loss_bound && norm < norm_bound,
                    "{model} {name} update {update}: {a:?} {b:?}"
                );
            }
            let (mut moved, mut apart) = (0.0, 0.0);
            for ((before, a), b) in start.iter().zip(expected.1.weights()).zip(ours.1.weights()) {
                assert_eq!((&before.name, &a.name), (&a.name, &b.name));
                // The same number added to every key changes no attention: that gradient is all rounding.
                if a.name.ends_with("k_lin.bias") {
                    continue;
                }
                let squared = |one: &[f32], other: &[f32]| -> f64 {
                    one.iter().zip(other).map(|(x, y)| f64::from(x - y).powi(2)).sum()
                };
                moved += squared(before.values(), a.values());
                apart += squared(a.values(), b.values());
            }
            assert!(moved > 0.0 && apart.sqrt() < 0.05 * moved.sqrt(), "{model} {name}: {apart} of {moved}");
        }
    }
}
