//! Cross-entropy summed over target tokens.

use burn::tensor::{Device, Tensor};

use crate::{backend::ops, data::IGNORE};

/// `sum over targets of -log softmax(logits)[target]`, `[1]`, in nats. Logits are `[n, v]`; targets equal to
/// [`IGNORE`] add nothing to the value and nothing to the gradient.
pub fn cross_entropy_sum(logits_nv: Tensor<2>, targets: &[i32], device: &Device) -> Tensor<1> {
    ops::cross_entropy_sum(logits_nv, targets, IGNORE, device)
}
