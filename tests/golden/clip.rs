//! Global-norm clipping and accumulation against PyTorch.

use burn::tensor::{Tensor, TensorData};
use tui_train::optim::{Gradients, clip};

use super::{number, numbers, read};

/// Relative: the reference sums in f32, we sum partial sums in f64.
const TOLERANCE: f64 = 1e-6;

#[test]
fn clips_by_the_global_norm_as_pytorch_does() {
    for case in read("grad_clip.json")["cases"].as_array().unwrap() {
        let name = case["name"].as_str().unwrap();
        let mut gradients = Gradients::new();
        for (parameter, values) in case["grads"].as_object().unwrap() {
            let values: Vec<f32> = numbers(values).into_iter().map(|value| value as f32).collect();
            let count = values.len();
            gradients.insert(
                parameter,
                Tensor::from_data(TensorData::new(values, [count]), &crate::support::device()),
            );
        }
        let norm = clip::global_norm(&gradients);
        let expected = number(&case["torch_total_norm"]);
        if !expected.is_finite() {
            assert!(!norm.is_finite(), "{name}: {norm} should not be finite, so that the update is skipped");
            continue;
        }
        assert!(
            (norm - expected).abs() <= TOLERANCE * expected.max(1e-30),
            "{name}: norm {norm}, expected {expected}"
        );
        let max_norm = number(&case["max_norm"]);
        if max_norm == 0.0 {
            assert_eq!(clip::coefficient(norm, 0.0), 1.0, "{name}: here 0 switches clipping off");
            continue;
        }
        gradients.scale(clip::coefficient(norm, max_norm));
        for (parameter, clipped) in case["torch_clipped_global"].as_object().unwrap() {
            let ours = gradients.take(parameter).unwrap().into_data();
            for (ours, expected) in ours.iter::<f32>().map(f64::from).zip(numbers(clipped)) {
                let close =
                    (ours - expected).abs() <= TOLERANCE * expected.abs().max(f64::from(f32::MIN_POSITIVE));
                assert!(close, "{name}, {parameter}: {ours:e}, expected {expected:e}");
            }
        }
    }
}
