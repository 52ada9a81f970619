//! What several rules share.

use burn::tensor::{DType, Tensor};

use super::Figure;
use crate::protocol::state::figures::ROWS_NEVER_TOUCHED;

/// `beta old + (1 - beta) new`, as PyTorch's `lerp` computes it: to the bit where the result is rounded to bf16.
pub(super) fn average(old: Tensor<1>, new: Tensor<1>, beta: f64) -> Tensor<1> {
    let step = (new - old.clone()).mul_scalar(1.0 - beta);
    old + step
}

/// `p (1 - by)`.
pub(super) fn decay(param: Tensor<1>, by: f64) -> Tensor<1> {
    if by == 0.0 { param } else { param.mul_scalar(1.0 - by) }
}

/// How many rows of a matrix hold nothing but zeros: no gradient has reached them.
pub(super) fn untouched(shape: &[usize], moment: &Tensor<1>) -> Option<Figure> {
    let [.., columns] = *shape else { return None };
    let count = moment.dims()[0];
    if shape.len() < 2 || count == 0 {
        return None;
    }
    let largest = moment.clone().abs().reshape([count / columns, columns]).max_dim(1);
    Some((ROWS_NEVER_TOUCHED, largest.equal_elem(0.0).int().sum().float().cast(DType::F32)))
}
