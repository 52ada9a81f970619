//! Cross-entropy summed over target tokens.

use burn::tensor::{Device, Int, Tensor, TensorData};

use crate::data::IGNORE;

/// `sum over targets of -log softmax(logits)[target]`, `[1]`, in nats. Logits are `[n, v]`; targets equal to
/// [`IGNORE`] add nothing to the value and nothing to the gradient.
pub fn cross_entropy_sum(logits_nv: Tensor<2>, targets: &[i32], device: &Device) -> Tensor<1> {
    let count = targets.len();
    let ids: Vec<i64> = targets.iter().map(|&target| i64::from(target.max(0))).collect();
    let ids_n1 = Tensor::<2, Int>::from_data(TensorData::new(ids, [count, 1]), device);
    // log-sum-exp about the largest logit; the shift has no gradient, as it cancels.
    let largest_n1 = logits_nv.clone().detach().max_dim(1);
    let shifted_nv = logits_nv - largest_n1;
    let picked_n1 = shifted_nv.clone().gather(1, ids_n1);
    let nll_n1 = shifted_nv.exp().sum_dim(1).log() - picked_n1;
    if targets.iter().all(|&target| target != IGNORE) {
        return nll_n1.sum();
    }
    let counts: Vec<f32> = targets.iter().map(|&target| if target == IGNORE { 0.0 } else { 1.0 }).collect();
    (nll_n1 * Tensor::from_data(TensorData::new(counts, [count, 1]), device)).sum()
}
