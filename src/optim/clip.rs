//! Clipping by the global norm: `torch.nn.utils.clip_grad_norm_`.

use burn::tensor::{DType, Tensor, Transaction};

use super::{Gradients, sums::CHUNK};
use crate::backend::ops;

/// The L2 norm over all gradients together, read to the host once. Not finite when a gradient is not, or when a
/// square overflows f32, as in PyTorch: such an update is to be skipped.
pub fn global_norm(gradients: &Gradients) -> f64 {
    let all: Vec<&Tensor<1>> = gradients.iter().map(|(_, gradient)| gradient).collect();
    if let Some(norm) = ops::global_norm(&all) {
        return norm;
    }
    let parts: Vec<Tensor<1>> =
        gradients.iter().flat_map(|(_, gradient)| sums_of_squares(gradient)).collect();
    if parts.is_empty() {
        return 0.0;
    }
    let all = Transaction::default().register(Tensor::cat(parts, 0)).execute();
    all.iter().flat_map(|data| data.iter::<f32>()).map(f64::from).sum::<f64>().sqrt()
}

/// `min(1, max_norm / (norm + 1e-6))`; 1 when `max_norm` is 0, which switches clipping off.
pub fn coefficient(norm: f64, max_norm: f64) -> f64 {
    if max_norm == 0.0 { 1.0 } else { f64::min(1.0, max_norm / (norm + 1e-6)) }
}

/// In pieces of a fixed size, so that the norm repeats bit for bit whatever the device does with large sums.
fn sums_of_squares(gradient: &Tensor<1>) -> Vec<Tensor<1>> {
    let count = gradient.dims()[0];
    let squares = gradient.clone().cast(DType::F32).square();
    (0..count)
        .step_by(CHUNK)
        .map(|start| squares.clone().narrow(0, start, CHUNK.min(count - start)).sum())
        .collect()
}
