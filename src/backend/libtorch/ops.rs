//! libtorch's own kernels for the operations of [`crate::backend::ops`]; `None` when the tensors live elsewhere.

use burn::tensor::Tensor;
use tch::Kind;

use super::node::{Raw, node};
use crate::backend::ops::AttentionMask;

/// `scaled_dot_product_attention`, which chooses its kernel by itself.
pub(in crate::backend) fn attention(
    q_bthe: &Tensor<4>,
    k_btke: &Tensor<4>,
    v_btke: &Tensor<4>,
    mask: &AttentionMask,
) -> Option<Tensor<3>> {
    let [rows, time, heads, head] = q_bthe.dims().map(|length| length as i64);
    let grouped = k_btke.dims()[2] as i64 != heads;
    let additive = match mask.additive_bkgtt.as_ref().filter(|_| !mask.causal) {
        None => None,
        Some(additive) => match Raw::of(additive)? {
            Raw::Plain(additive) => Some(additive.tensor.squeeze_dim(2)),
            Raw::Tracked(_) => return None,
        },
    };
    let causal = mask.causal;
    node([Raw::of(q_bthe), Raw::of(k_btke), Raw::of(v_btke)], |[q, k, v]| {
        let (q, k, v) = (q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2));
        let additive = additive.as_ref().map(|additive| additive.to_kind(q.kind()));
        let mixed = tch::Tensor::scaled_dot_product_attention(
            &q,
            &k,
            &v,
            additive.as_ref(),
            0.0,
            causal,
            None,
            grouped,
        );
        mixed.transpose(1, 2).reshape([rows, time, heads * head])
    })
}

pub(in crate::backend) fn rms_norm(x_btd: &Tensor<3>, weight_d: &Tensor<1>, eps: f64) -> Option<Tensor<3>> {
    let width = x_btd.dims()[2] as i64;
    node([Raw::of(x_btd), Raw::of(weight_d)], |[x, weight]| {
        x.to_kind(Kind::Float).rms_norm([width], Some(weight), eps).to_kind(x.kind())
    })
}

pub(in crate::backend) fn layer_norm(
    x_btd: &Tensor<3>,
    weight_d: &Tensor<1>,
    bias_d: &Tensor<1>,
    eps: f64,
) -> Option<Tensor<3>> {
    let width = x_btd.dims()[2] as i64;
    node([Raw::of(x_btd), Raw::of(weight_d), Raw::of(bias_d)], |[x, weight, bias]| {
        x.to_kind(Kind::Float).layer_norm([width], Some(weight), Some(bias), eps, true).to_kind(x.kind())
    })
}

pub(in crate::backend) fn softmax<const D: usize>(scores: &Tensor<D>) -> Option<Tensor<D>> {
    node([Raw::of(scores)], |[scores]| scores.softmax(-1, scores.kind()))
}

pub(in crate::backend) fn gelu<const D: usize>(x: &Tensor<D>) -> Option<Tensor<D>> {
    node([Raw::of(x)], |[x]| x.gelu("none"))
}

pub(in crate::backend) fn rotary(
    x_bthe: &Tensor<4>,
    cos_te: &Tensor<2>,
    sin_te: &Tensor<2>,
) -> Option<Tensor<4>> {
    let [_, time, _, width] = x_bthe.dims().map(|length| length as i64);
    let half = width / 2;
    let table = |table: &Tensor<2>| match Raw::of(table)? {
        Raw::Plain(table) => Some(table.tensor.narrow(0, 0, time).reshape([1, time, 1, half])),
        Raw::Tracked(_) => None,
    };
    let (cos, sin) = (table(cos_te)?, table(sin_te)?);
    node([Raw::of(x_bthe)], |[x]| {
        let (cos, sin) = (cos.to_kind(x.kind()), sin.to_kind(x.kind()));
        let (first, second) = (x.narrow(3, 0, half), x.narrow(3, half, half));
        tch::Tensor::cat(&[&first * &cos - &second * &sin, &second * &cos + &first * &sin], 3)
    })
}

pub(in crate::backend) fn swiglu(gate_btf: &Tensor<3>, up_btf: &Tensor<3>) -> Option<Tensor<3>> {
    node([Raw::of(gate_btf), Raw::of(up_btf)], |[gate, up]| gate.silu() * up)
}
