//! Rotary position embedding (Su et al. 2021, arXiv 2104.09864) in Hugging Face's rotate-half form: element `i` is
//! paired with element `i + e/2`, not with its neighbour.

use burn::tensor::{Device, Tensor, TensorData};

use crate::backend::ops;

/// Cached cosines and sines, `[t, e/2]` each.
#[derive(Debug, Clone)]
pub struct Rotary {
    cos_te: Tensor<2>,
    sin_te: Tensor<2>,
}

impl Rotary {
    /// Tables for positions `0..positions`; angle `position * theta^(-2i/e)`.
    pub fn new(positions: usize, head_dim: usize, theta: f64, device: &Device) -> Self {
        let half = head_dim / 2;
        let angles: Vec<f64> = (0..positions)
            .flat_map(|position| {
                (0..half).map(move |i| position as f64 * theta.powf(-2.0 * i as f64 / head_dim as f64))
            })
            .collect();
        let table = |of: fn(f64) -> f64| {
            let values: Vec<f32> = angles.iter().map(|&angle| of(angle) as f32).collect();
            Tensor::from_data(TensorData::new(values, [positions, half]), device)
        };
        Self { cos_te: table(f64::cos), sin_te: table(f64::sin) }
    }

    /// The tables of the places behind the first ones.
    pub fn behind(&self, places: usize) -> Self {
        let left = self.cos_te.dims()[0] - places;
        let rest = |table: &Tensor<2>| table.clone().narrow(0, places, left);
        Self { cos_te: rest(&self.cos_te), sin_te: rest(&self.sin_te) }
    }

    /// Turns `[b, t, h, e]` by its positions.
    pub fn apply(&self, x_bthe: Tensor<4>) -> Tensor<4> {
        ops::rotary(x_bthe, &self.cos_te, &self.sin_te)
    }
}
