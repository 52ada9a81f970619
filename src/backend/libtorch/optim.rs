//! The optimizer's kernels.
#![allow(unsafe_code)]

use std::sync::Arc;

use burn::{backend::LibTorch, tensor::Tensor};
use burn_tch::TchTensor;

use super::shim;
use crate::backend::ops::{AdafactorScalars, AdafactorTensors, AdamWScalars, AdamWTensors};

/// A tensor that may be written to: its own memory, or a copy when somebody else holds it, too.
pub(super) fn writable(tensor: &mut Tensor<1>) -> Option<TchTensor> {
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
    or_panic(done);
    true
}

/// As every failure of Burn's libtorch backend: the worker catches it.
fn or_panic<T>(done: Result<T, shim::ShimError>) -> T {
    done.unwrap_or_else(|error| std::panic::panic_any(error.to_string()))
}

/// `None`, and nothing done, where the tensors are not f32 in host memory.
pub(in crate::backend) fn adafactor(tensors: AdafactorTensors<'_>, scalars: AdafactorScalars) -> Option<f64> {
    let grad = tensors.grad.clone().try_into_primitive::<LibTorch>().ok()?.tensor;
    if grad.device() != tch::Device::Cpu || grad.kind() != tch::Kind::Float {
        return None;
    }
    let param = writable(tensors.param).filter(|param| param.tensor.kind() == tch::Kind::Float)?;
    let (row, col) = (writable(tensors.row)?, writable(tensors.col)?);
    Some(or_panic(shim::adafactor(&param.tensor, &grad.contiguous(), [&row.tensor, &col.tensor], scalars)))
}

pub(in crate::backend) fn global_norm(tensors: &[&Tensor<1>]) -> Option<f64> {
    let raw: Vec<TchTensor> = tensors
        .iter()
        .map(|tensor| (*tensor).clone().try_into_primitive::<LibTorch>().ok())
        .collect::<Option<_>>()?;
    if raw.is_empty() {
        return None;
    }
    Some(or_panic(shim::global_norm(&list(&raw))).double_value(&[]))
}

pub(in crate::backend) fn add_in_place(pairs: &mut [(&mut Tensor<1>, &Tensor<1>)]) -> bool {
    let raw = |tensor: &Tensor<1>| tensor.clone().try_into_primitive::<LibTorch>().ok();
    let Some(values) = pairs.iter().map(|(_, value)| raw(value)).collect::<Option<Vec<TchTensor>>>() else {
        return false;
    };
    let Some(sums) = pairs.iter_mut().map(|(sum, _)| writable(sum)).collect::<Option<Vec<TchTensor>>>()
    else {
        return false;
    };
    or_panic(shim::add(&list(&sums), &list(&values)));
    true
}

pub(in crate::backend) fn scale_in_place(tensors: &mut [&mut Tensor<1>], factor: f64) -> bool {
    let Some(raw) = tensors.iter_mut().map(|tensor| writable(tensor)).collect::<Option<Vec<TchTensor>>>()
    else {
        return false;
    };
    or_panic(shim::scale(&list(&raw), factor));
    true
}

fn list(raw: &[TchTensor]) -> Vec<&tch::Tensor> {
    raw.iter().map(|raw| &raw.tensor).collect()
}

/// Lets a function work in the parameter's own memory, where that and the gradient's are the host's; false where not.
pub(in crate::backend) fn on_host(
    param: &mut Tensor<1>,
    grad: &Tensor<1>,
    work: impl FnOnce(&mut [f32], &[f32]),
) -> bool {
    let Ok(grad) = grad.clone().try_into_primitive::<LibTorch>() else { return false };
    let on_host =
        |tensor: &tch::Tensor| tensor.device() == tch::Device::Cpu && tensor.kind() == tch::Kind::Float;
    if !on_host(&grad.tensor) {
        return false;
    }
    let Some(param) = writable(param).filter(|param| on_host(&param.tensor)) else { return false };
    let grad = grad.tensor.contiguous();
    let count = param.tensor.numel();
    if grad.numel() != count {
        return false;
    }
    // SAFETY: both are contiguous f32 in host memory and hold so many; nobody else holds the parameter's, and the
    // gradient's lives as long as its tensor.
    let (param, grad) = unsafe {
        (
            std::slice::from_raw_parts_mut(param.tensor.data_ptr().cast::<f32>(), count),
            std::slice::from_raw_parts(grad.data_ptr().cast::<f32>().cast_const(), count),
        )
    };
    work(param, grad);
    true
}
