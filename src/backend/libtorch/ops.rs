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
    let additive = if mask.causal {
        None
    } else {
        match Raw::of(&mask.additive_bkgtt)? {
            Raw::Plain(mask) => Some(mask.tensor.squeeze_dim(2)),
            Raw::Tracked(_) => return None,
        }
    };
    node([Raw::of(q_bthe), Raw::of(k_btke), Raw::of(v_btke)], |[q, k, v]| {
        let (q, k, v) = (q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2));
        let causal = additive.is_none();
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
    node([Raw::of(x_btd), Raw::of(weight_d)], |[x, weight]| x.rms_norm([width], Some(weight), eps))
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
        let (first, second) = (x.narrow(3, 0, half), x.narrow(3, half, half));
        tch::Tensor::cat(&[&first * &cos - &second * &sin, &second * &cos + &first * &sin], 3)
    })
}

pub(in crate::backend) fn swiglu(gate_btf: &Tensor<3>, up_btf: &Tensor<3>) -> Option<Tensor<3>> {
    node([Raw::of(gate_btf), Raw::of(up_btf)], |[gate, up]| gate.silu() * up)
}

pub(in crate::backend) fn cross_entropy_sum(
    logits_nv: &Tensor<2>,
    targets: &[i32],
    ignore: i32,
) -> Option<Tensor<1>> {
    let ids: Vec<i64> = targets.iter().map(|&target| i64::from(target)).collect();
    node([Raw::of(logits_nv)], |[logits]| {
        let ids = tch::Tensor::from_slice(&ids).to_device(logits.device());
        let sum = logits.to_kind(Kind::Float).cross_entropy_loss(
            &ids,
            None::<&tch::Tensor>,
            tch::Reduction::Sum,
            i64::from(ignore),
            0.0,
        );
        sum.reshape([1])
    })
}
