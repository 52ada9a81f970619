//! The update of 8-bit AdamW where its moments live: bytes on the device, a few million elements at a time, so that what is
//! in flight stays small beside the parameter.

use burn::{backend::LibTorch, tensor::Tensor};
use burn_tch::TchTensor;
use tch::Kind;

use super::optim::writable;
use crate::backend::ops::{DeviceMaps, DeviceMoment, EightBitScalars};

/// Elements that are worked on at once, about 16 MiB a temporary.
const AT_ONCE: i64 = 1 << 22;

/// Works in the parameter's memory. `None` when the tensors live elsewhere.
pub(in crate::backend) fn step(
    param: &mut Tensor<1>,
    grad: &Tensor<1>,
    [first, second]: [&mut DeviceMoment; 2],
    maps: &DeviceMaps,
    scalars: EightBitScalars,
    blocksize: usize,
) -> Option<()> {
    let grad = grad.clone().try_into_primitive::<LibTorch>().ok()?.tensor.contiguous();
    let maps = Maps { signed: Map::of(maps, 0)?, unsigned: Map::of(maps, 1)? };
    let (absmax1, absmax2) = (writable(&mut first.absmax)?, writable(&mut second.absmax)?);
    let (codes1, codes2) = (first.codes.bytes.writable(), second.codes.bytes.writable());
    let param = writable(param)?;
    let (count, width) = (param.tensor.numel() as i64, blocksize as i64);
    let whole = count / width;
    let step = (AT_ONCE / width).max(1);
    let blocks = (0..whole).step_by(step as usize).map(|start| (start, step.min(whole - start), width));
    // The last block may be short.
    let rest = (whole * width < count).then_some((whole, 1, count - whole * width));
    tch::no_grad(|| {
        for (start, rows, width) in blocks.chain(rest) {
            let part = |tensor: &tch::Tensor| {
                tensor.narrow(0, start * blocksize as i64, rows * width).view([rows, width])
            };
            let scale = |tensor: &tch::Tensor| tensor.narrow(0, start, rows).unsqueeze(1);
            let blocks = Blocks {
                param: part(&param.tensor),
                grad: part(&grad),
                codes: [part(codes1), part(codes2)],
                absmax: [scale(&absmax1.tensor), scale(&absmax2.tensor)],
            };
            blocks.update(&maps, scalars);
        }
    });
    Some(())
}

struct Map {
    values: tch::Tensor,
    midpoints: tch::Tensor,
}

impl Map {
    fn of(maps: &DeviceMaps, which: usize) -> Option<Self> {
        let raw = |tensor: &Tensor<1>| {
            tensor.clone().try_into_primitive::<LibTorch>().ok().map(|raw: TchTensor| raw.tensor)
        };
        Some(Self { values: raw(&maps.values[which])?, midpoints: raw(&maps.midpoints[which])? })
    }

    /// What codes stand for, of their shape.
    fn value(&self, codes: &tch::Tensor) -> tch::Tensor {
        self.values.index_select(0, &codes.to_kind(Kind::Int).view([-1])).view_as(codes)
    }

    /// The code of the nearest value: how many midpoints lie below.
    fn nearest(&self, shares: &tch::Tensor) -> tch::Tensor {
        shares.bucketize(&self.midpoints, true, false)
    }
}

struct Maps {
    signed: Map,
    unsigned: Map,
}

/// Whole blocks, `[rows, width]`, as views of what they are part of; `absmax` `[rows, 1]`.
struct Blocks {
    param: tch::Tensor,
    grad: tch::Tensor,
    codes: [tch::Tensor; 2],
    absmax: [tch::Tensor; 2],
}

impl Blocks {
    /// The arithmetic of [`crate::optim::adamw8bit`], operation by operation.
    fn update(mut self, maps: &Maps, scalars: EightBitScalars) {
        let EightBitScalars { beta1, beta2, step_size, eps, decay } = scalars;
        let average = |old: tch::Tensor, beta: f32, new: tch::Tensor| {
            old * f64::from(beta) + new * f64::from(1.0 - beta)
        };
        let m =
            average(maps.signed.value(&self.codes[0]) * &self.absmax[0], beta1, self.grad.shallow_clone());
        let fresh = (&self.grad * f64::from(1.0 - beta2)) * &self.grad;
        let v = maps.unsigned.value(&self.codes[1]) * &self.absmax[1] * f64::from(beta2) + fresh;
        let updated =
            (&self.param - (&m / (v.sqrt() + f64::from(eps))) * f64::from(step_size)) * f64::from(decay);
        // A gradient that is not finite leaves its parameter alone and takes its moments back to zero.
        let finite = self.grad.isfinite();
        self.param.copy_(&updated.where_self(&finite, &self.param));
        drop(updated);
        let zero = m.zeros_like();
        let (m, v) = (m.where_self(&finite, &zero), v.where_self(&finite, &zero));
        drop((zero, finite));
        let m = normalize(m, &mut self.absmax[0]);
        let codes = maps.signed.nearest(&m);
        self.codes[0].copy_(&of_sign(&maps.signed, codes, &m));
        drop(m);
        let v = normalize(v, &mut self.absmax[1]);
        self.codes[1].copy_(&maps.unsigned.nearest(&v));
    }
}

/// Divides each block by its largest absolute value and keeps that.
fn normalize(moment: tch::Tensor, absmax: &mut tch::Tensor) -> tch::Tensor {
    let largest = moment.abs().amax([1_i64], true);
    absmax.copy_(&largest);
    // A block of zeros has no scale: any code stands for zero.
    let divisor = largest.ones_like().where_self(&largest.le(0.0), &largest);
    moment / divisor
}

/// The nearest code that does not have the other sign.
fn of_sign(map: &Map, codes: tch::Tensor, shares: &tch::Tensor) -> tch::Tensor {
    let (code, share) = (map.value(&codes).signbit().to_kind(Kind::Int), shares.signbit().to_kind(Kind::Int));
    // One on where only the code is negative, one back where only the share is.
    codes + code - share
}
