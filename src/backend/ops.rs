//! The hot operations of the models: each has a plain body for every device, and on libtorch runs as one node of the
//! tape, where Burn would record every step of it.
//!
//! Passes may compute in bf16: then what comes in and goes out is bf16, and softmax, norms and the loss compute in f32.
//! The parameters of norms are f32 in either case.
//!
//! Suffixes of tensor names are those of `model`.

use burn::tensor::{DType, Device, Int, Tensor, TensorData, activation, module};

use super::bytes::DeviceBytes;
#[cfg(feature = "libtorch")]
use super::libtorch::ops as fused;

/// What is added to the attention scores: 0 where a query may look, a large negative number where not.
#[derive(Debug, Clone)]
pub struct AttentionMask {
    /// Broadcasts over batch and heads; `None` where every query sees every key.
    pub additive_bkgtt: Option<Tensor<5>>,
    /// Exactly the causal mask: a kernel may use its own.
    pub causal: bool,
}

/// `softmax(q k^T / sqrt(e) + mask) v`, `[b, t, h e]`, of `q` `[b, t, h, e]` and `k`, `v` `[b, t, k, e]`: `h / k` query
/// heads share one key and value head. There may be more keys than queries, when some places were seen before.
pub fn attention(q_bthe: Tensor<4>, k_btke: Tensor<4>, v_btke: Tensor<4>, mask: &AttentionMask) -> Tensor<3> {
    #[cfg(feature = "libtorch")]
    if let Some(mixed) = fused::attention(&q_bthe, &k_btke, &v_btke, mask) {
        return mixed;
    }
    let [rows, time, heads, head] = q_bthe.dims();
    let [_, keys, shared, _] = k_btke.dims();
    let group = heads / shared;
    // Grouped by broadcasting rather than by copying.
    let q_bthe = q_bthe.mul_scalar(1.0 / (head as f64).sqrt());
    let q_bkgte = q_bthe.reshape([rows, time, shared, group, head]).permute([0, 2, 3, 1, 4]);
    let k_bkget = k_btke.permute([0, 2, 3, 1]).reshape([rows, shared, 1, head, keys]);
    let v_bkgte = v_btke.permute([0, 2, 1, 3]).reshape([rows, shared, 1, keys, head]);
    let dtype = q_bkgte.dtype();
    let mut scores_bkgtt = q_bkgte.matmul(k_bkget).cast(DType::F32);
    if let Some(additive_bkgtt) = &mask.additive_bkgtt {
        scores_bkgtt = scores_bkgtt + additive_bkgtt.clone();
    }
    let mixed_bkgte = activation::softmax(scores_bkgtt, 4).cast(dtype).matmul(v_bkgte);
    mixed_bkgte.permute([0, 3, 1, 2, 4]).reshape([rows, time, heads * head])
}

/// `x / sqrt(mean(x^2) + eps) * weight` over the last axis.
pub fn rms_norm(x_btd: Tensor<3>, weight_d: Tensor<1>, eps: f64) -> Tensor<3> {
    #[cfg(feature = "libtorch")]
    if let Some(normed) = fused::rms_norm(&x_btd, &weight_d, eps) {
        return normed;
    }
    let dtype = x_btd.dtype();
    let x_btd = x_btd.cast(DType::F32);
    let mean_bt1 = x_btd.clone().square().mean_dim(2);
    (x_btd * mean_bt1.add_scalar(eps).sqrt().recip() * weight_d.unsqueeze::<3>()).cast(dtype)
}

/// `(x - mean) / sqrt(var + eps) * weight + bias` over the last axis; the variance is that of all values, not of a sample.
pub fn layer_norm(x_btd: Tensor<3>, weight_d: Tensor<1>, bias_d: Tensor<1>, eps: f64) -> Tensor<3> {
    #[cfg(feature = "libtorch")]
    if let Some(normed) = fused::layer_norm(&x_btd, &weight_d, &bias_d, eps) {
        return normed;
    }
    let dtype = x_btd.dtype();
    module::layer_norm(x_btd.cast(DType::F32), weight_d, Some(bias_d), eps).cast(dtype)
}

/// Softmax over the last axis.
pub fn softmax<const D: usize>(scores: Tensor<D>) -> Tensor<D> {
    #[cfg(feature = "libtorch")]
    if let Some(shares) = fused::softmax(&scores) {
        return shares;
    }
    let dtype = scores.dtype();
    activation::softmax(scores.cast(DType::F32), D - 1).cast(dtype)
}

/// `x Phi(x)`, exactly and not by a hyperbolic tangent.
pub fn gelu<const D: usize>(x: Tensor<D>) -> Tensor<D> {
    #[cfg(feature = "libtorch")]
    if let Some(y) = fused::gelu(&x) {
        return y;
    }
    activation::gelu(x)
}

/// Turns the pairs `(i, i + e/2)` of `[b, t, h, e]` by the angles whose cosines and sines are `[t, e/2]`.
pub fn rotary(x_bthe: Tensor<4>, cos_te: &Tensor<2>, sin_te: &Tensor<2>) -> Tensor<4> {
    #[cfg(feature = "libtorch")]
    if let Some(turned) = fused::rotary(&x_bthe, cos_te, sin_te) {
        return turned;
    }
    let [_, time, _, width] = x_bthe.dims();
    let half = width / 2;
    let dtype = x_bthe.dtype();
    let table = |table: &Tensor<2>| table.clone().narrow(0, 0, time).reshape([1, time, 1, half]).cast(dtype);
    let (cos, sin) = (table(cos_te), table(sin_te));
    let first = x_bthe.clone().narrow(3, 0, half);
    let second = x_bthe.narrow(3, half, half);
    let turned = [first.clone() * cos.clone() - second.clone() * sin.clone(), second * cos + first * sin];
    Tensor::cat(turned.to_vec(), 3)
}

/// `silu(gate) * up`.
pub fn swiglu(gate_btf: Tensor<3>, up_btf: Tensor<3>) -> Tensor<3> {
    #[cfg(feature = "libtorch")]
    if let Some(product) = fused::swiglu(&gate_btf, &up_btf) {
        return product;
    }
    activation::silu(gate_btf) * up_btf
}

/// `sum over targets of -log softmax(logits)[target]`, `[1]`, in nats. Logits are `[n, v]`; targets equal to `ignore` add
/// nothing to the value and nothing to the gradient.
pub fn cross_entropy_sum(logits_nv: Tensor<2>, targets: &[i32], ignore: i32, device: &Device) -> Tensor<1> {
    #[cfg(feature = "libtorch")]
    if let Some(sum) = super::libtorch::cross_entropy::sum(&logits_nv, targets, ignore) {
        return sum;
    }
    let logits_nv = logits_nv.cast(DType::F32);
    let count = targets.len();
    let ids: Vec<i64> = targets.iter().map(|&target| i64::from(target.max(0))).collect();
    let ids_n1 = Tensor::<2, Int>::from_data(TensorData::new(ids, [count, 1]), device);
    // log-sum-exp about the largest logit; the shift has no gradient, as it cancels.
    let largest_n1 = logits_nv.clone().detach().max_dim(1);
    let shifted_nv = logits_nv - largest_n1;
    let picked_n1 = shifted_nv.clone().gather(1, ids_n1);
    let nll_n1 = shifted_nv.exp().sum_dim(1).log() - picked_n1;
    if targets.iter().all(|&target| target != ignore) {
        return nll_n1.sum();
    }
    let counts: Vec<f32> = targets.iter().map(|&target| if target == ignore { 0.0 } else { 1.0 }).collect();
    (nll_n1 * Tensor::from_data(TensorData::new(counts, [count, 1]), device)).sum()
}

/// The scalars of one AdamW update.
#[derive(Debug, Clone, Copy)]
pub struct AdamWScalars {
    /// Updates of this parameter, this one included.
    pub step: u64,
    pub lr: f64,
    pub betas: [f64; 2],
    pub weight_decay: f64,
    pub eps: f64,
}

/// The tensors of one AdamW update, all `[n]` and of one type.
#[derive(Debug)]
pub struct AdamWTensors<'a> {
    pub param: &'a mut Tensor<1>,
    pub grad: &'a Tensor<1>,
    pub exp_avg: &'a mut Tensor<1>,
    pub exp_avg_sq: &'a mut Tensor<1>,
    pub max_exp_avg_sq: Option<&'a mut Tensor<1>>,
}

/// One kernel for the whole update, in place, where the device has one; false, and nothing done, where it has not.
pub fn adamw_in_place(tensors: AdamWTensors<'_>, scalars: AdamWScalars) -> bool {
    #[cfg(feature = "libtorch")]
    return super::libtorch::optim::adamw(tensors, scalars);
    #[cfg(not(feature = "libtorch"))]
    {
        let _ = (tensors, scalars);
        false
    }
}

/// The scalars of one update by Adafactor.
#[derive(Debug, Clone, Copy)]
pub struct AdafactorScalars {
    /// Matrices, and rows and columns of each.
    pub axes: [usize; 3],
    /// What is kept of the old means: 0 at the first update.
    pub decay: f64,
    pub eps: [f64; 2],
    /// Before it is scaled by the parameter.
    pub rate: f64,
    pub scale_parameter: bool,
    pub clip_threshold: f64,
    pub weight_decay: f64,
}

/// The tensors of one update by Adafactor, flat and f32: the parameter and its gradient, means of rows and of columns.
#[derive(Debug)]
pub struct AdafactorTensors<'a> {
    pub param: &'a mut Tensor<1>,
    pub grad: &'a Tensor<1>,
    pub row: &'a mut Tensor<1>,
    pub col: &'a mut Tensor<1>,
}

/// The whole update in few passes over the memory of the parameter, where the device has that; returns the root mean square
/// of the parameter before. `None`, and nothing done, where it has not.
pub fn adafactor_in_place(tensors: AdafactorTensors<'_>, scalars: AdafactorScalars) -> Option<f64> {
    #[cfg(feature = "libtorch")]
    return super::libtorch::optim::adafactor(tensors, scalars);
    #[cfg(not(feature = "libtorch"))]
    {
        let _ = (tensors, scalars);
        None
    }
}

/// The scalars of one update of 8-bit AdamW, in f32 as its kernel has them.
#[derive(Debug, Clone, Copy)]
pub struct EightBitScalars {
    pub beta1: f32,
    pub beta2: f32,
    pub step_size: f32,
    pub eps: f32,
    /// What is left of a parameter.
    pub decay: f32,
}

/// One moment as codes on the device.
#[derive(Debug, Clone)]
pub struct DeviceMoment {
    pub codes: DeviceBytes,
    /// The largest absolute value of each block.
    pub absmax: Tensor<1>,
}

/// What codes stand for, of the moment with a sign and of the one without: `[256]` values and the `[255]` midpoints.
#[derive(Debug, Clone)]
pub struct DeviceMaps {
    pub values: [Tensor<1>; 2],
    pub midpoints: [Tensor<1>; 2],
}

/// Whether codes belong into the device's memory: it has some of its own, and kernels for them.
pub fn keeps_bytes(device: &Device) -> bool {
    #[cfg(feature = "libtorch")]
    return super::libtorch::has_own_memory(device);
    #[cfg(not(feature = "libtorch"))]
    {
        let _ = device;
        false
    }
}

/// One update of 8-bit AdamW with its moments on the device, in the parameter's memory; false, and nothing done, where the
/// device has no such kernel.
pub fn adamw8bit_in_place(
    param: &mut Tensor<1>,
    grad: &Tensor<1>,
    moments: [&mut DeviceMoment; 2],
    maps: &DeviceMaps,
    scalars: EightBitScalars,
    blocksize: usize,
) -> bool {
    #[cfg(feature = "libtorch")]
    return super::libtorch::eight_bit::step(param, grad, moments, maps, scalars, blocksize).is_some();
    #[cfg(not(feature = "libtorch"))]
    {
        let _ = (param, grad, moments, maps, scalars, blocksize);
        false
    }
}

/// Lets a function work in the parameter's own memory; false, and nothing done, where the host cannot reach it.
pub fn in_host_memory(
    param: &mut Tensor<1>,
    grad: &Tensor<1>,
    work: impl FnOnce(&mut [f32], &[f32]),
) -> bool {
    #[cfg(feature = "libtorch")]
    return super::libtorch::optim::on_host(param, grad, work);
    #[cfg(not(feature = "libtorch"))]
    {
        let _ = (param, grad, work);
        false
    }
}

/// Adds each value to its sum in one call for all, in the sums' own memory; a value may be of a shorter type than its sum.
/// False, and nothing done, where the device has no such call.
pub fn add_in_place(pairs: &mut [(&mut Tensor<1>, &Tensor<1>)]) -> bool {
    #[cfg(feature = "libtorch")]
    return super::libtorch::optim::add_in_place(pairs);
    #[cfg(not(feature = "libtorch"))]
    {
        let _ = pairs;
        false
    }
}

/// Multiplies all tensors in one call, in their own memory; false, and nothing done, where the device has no such call.
pub fn scale_in_place(tensors: &mut [&mut Tensor<1>], factor: f64) -> bool {
    #[cfg(feature = "libtorch")]
    return super::libtorch::optim::scale_in_place(tensors, factor);
    #[cfg(not(feature = "libtorch"))]
    {
        let _ = (tensors, factor);
        false
    }
}

/// The L2 norm over all tensors together by the device's own kernels; `None` where it has none.
pub fn global_norm(tensors: &[&Tensor<1>]) -> Option<f64> {
    #[cfg(feature = "libtorch")]
    return super::libtorch::optim::global_norm(tensors);
    #[cfg(not(feature = "libtorch"))]
    {
        let _ = tensors;
        None
    }
}
