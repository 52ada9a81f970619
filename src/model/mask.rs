//! Attention masks as numbers added to the scores: 0 where a query may look, a large negative number where not.

use burn::tensor::{Device, Tensor, TensorData};

/// Added to a masked score. Its exponential is zero in f32, and a row that is masked throughout stays finite.
const MASKED: f32 = -1e30;

/// A causal mask `[t, t]`: query `i` sees keys `0..=i`.
pub fn causal(time: usize, device: &Device) -> Tensor<2> {
    let values: Vec<f32> =
        (0..time * time).map(|at| if at % time > at / time { MASKED } else { 0.0 }).collect();
    Tensor::from_data(TensorData::new(values, [time, time]), device)
}

/// A padding mask `[b, t]` over keys: row `b` has `lengths[b]` real tokens, the rest is padding.
pub fn padding(lengths: &[usize], time: usize, device: &Device) -> Tensor<2> {
    let values: Vec<f32> = lengths
        .iter()
        .flat_map(|&length| (0..time).map(move |at| if at < length { 0.0 } else { MASKED }))
        .collect();
    Tensor::from_data(TensorData::new(values, [lengths.len(), time]), device)
}
