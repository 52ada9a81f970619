//! The gradient of a window of unequal micro-batches against PyTorch's gradient of one big batch.

use burn::tensor::{Tensor, TensorData};
use tui_train::{data::IGNORE, model::loss};

use super::{number, numbers, read};

/// Absolute, on a gradient whose greatest element is 0.138: two orders of f32 sums.
const TOLERANCE: f64 = 1e-7;

#[test]
fn a_window_is_divided_by_its_target_count() {
    let document = read("grad_accumulation.json");
    let device = crate::support::device().autodiff();
    let weight: Vec<f32> = numbers(&document["W0"]["data"]).into_iter().map(|value| value as f32).collect();
    let weight = Tensor::<2>::from_data(TensorData::new(weight, [5, 3]), &device).require_grad();
    let window = &document["full_window"];
    let micro_batches = 4;
    let (mut loss_sum, mut gradient, mut tokens) = (0.0, vec![0.0; 15], 0);
    for micro in 0..micro_batches {
        let rows = |value: &serde_json::Value| -> Vec<f64> {
            value.as_array().unwrap().iter().flat_map(numbers).collect()
        };
        let inputs: Vec<f32> = rows(&document["x"][micro]).into_iter().map(|value| value as f32).collect();
        let targets: Vec<i32> = rows(&document["y"][micro])
            .into_iter()
            .map(|id| if id == 0.0 { IGNORE } else { id as i32 })
            .collect();
        tokens += targets.iter().filter(|&&target| target != IGNORE).count();
        let x = Tensor::<2>::from_data(TensorData::new(inputs, [targets.len(), 3]), &device);
        let logits = x.matmul(weight.clone().transpose());
        let sum = loss::cross_entropy_sum(logits, &targets, &crate::support::device());
        loss_sum += f64::from(sum.clone().into_scalar::<f32>());
        let tape = sum.backward();
        let part = weight.grad(&tape).unwrap().into_data();
        for (sum, part) in gradient.iter_mut().zip(part.iter::<f32>()) {
            *sum += f64::from(part);
        }
    }
    assert_eq!(tokens as f64, number(&window["tokens"]));
    let expected = &window["one_big_batch_mean"];
    let tokens = tokens as f64;
    assert!((loss_sum / tokens - number(&expected["loss"])).abs() < 1e-6);
    for (ours, expected) in gradient.iter().zip(numbers(&expected["grad"])) {
        assert!((ours / tokens - expected).abs() < TOLERANCE, "{ours} / {tokens}, expected {expected}");
    }
}
