//! The optimizer's kernels.

use std::sync::Arc;

use burn::{backend::LibTorch, tensor::Tensor};
use burn_tch::TchTensor;

use super::shim;
use crate::backend::ops::{AdamWScalars, AdamWTensors};

/// A tensor that may be written to: its own memory, or a copy when somebody else holds it, too.
fn writable(tensor: &mut Tensor<1>) -> Option<TchTensor> {
    let mut raw = tensor.clone().try_into_primitive::<LibTorch>().ok()?;
    // The tensor itself and the handle just taken.
    if Arc::strong_count(raw.storage.buffer_ref()) > 2 || !raw.tensor.is_contiguous() {
        *tensor = Tensor::from_primitive::<LibTorch>(TchTensor::new(raw.tensor.contiguous().copy()));
        raw = tensor.clone().try_into_primitive::<LibTorch>().ok()?;
    }
    Some(raw)
}

pub(in crate::backend) fn adamw(tensors: AdamWTensors<'_>, scalars: AdamWScalars) -> bool {
    let Ok(grad) = tensors.grad.clone().try_into_primitive::<LibTorch>() else { return false };
    let max = tensors.max_exp_avg_sq.map(writable);
    let (Some(param), Some(exp_avg), Some(exp_avg_sq)) =
        (writable(tensors.param), writable(tensors.exp_avg), writable(tensors.exp_avg_sq))
    else {
        return false;
    };
    let done = shim::fused_adamw(
        &param.tensor,
        &grad.tensor,
        [&exp_avg.tensor, &exp_avg_sq.tensor],
        max.as_ref().and_then(|max| max.as_ref()).map(|max| &max.tensor),
        scalars,
    );
    if let Err(error) = done {
        // As every failure of Burn's libtorch backend; the worker catches it.
        std::panic::panic_any(error.to_string());
    }
    true
}

pub(in crate::backend) fn global_norm(tensors: &[&Tensor<1>]) -> Option<f64> {
    let raw: Vec<TchTensor> = tensors
        .iter()
        .map(|tensor| (*tensor).clone().try_into_primitive::<LibTorch>().ok())
        .collect::<Option<_>>()?;
    if raw.is_empty() {
        return None;
    }
    let list: Vec<&tch::Tensor> = raw.iter().map(|raw| &raw.tensor).collect();
    match shim::global_norm(&list) {
        Ok(norm) => Some(norm.double_value(&[])),
        Err(error) => std::panic::panic_any(error.to_string()),
    }
}
