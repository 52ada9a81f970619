//! Initial weights, drawn on the host: the same on every device, whatever the order in which they are made.

use burn::{
    module::Param,
    tensor::{Device, Tensor, TensorData},
};
use rand_distr::{Distribution, Normal};

use crate::data::random;

/// Standard deviation of linear and embedding weights, `initializer_range` of Hugging Face's configurations.
pub const INITIALIZER_RANGE: f32 = 0.02;

/// Makes parameters under a path; each draws from a generator of its own, keyed by its full name.
#[derive(Debug, Clone)]
pub struct Init<'a> {
    seed: u64,
    device: &'a Device,
    path: String,
}

impl<'a> Init<'a> {
    /// At the root of a model.
    pub fn new(seed: u64, device: &'a Device) -> Self {
        Self { seed, device, path: String::new() }
    }

    /// One step down: `model`, `layers.0`.
    pub fn at(&self, name: impl std::fmt::Display) -> Self {
        let path = if self.path.is_empty() { name.to_string() } else { format!("{}.{name}", self.path) };
        Self { path, ..self.clone() }
    }

    /// `weight` drawn from N(0, [`INITIALIZER_RANGE`]^2).
    pub fn normal<const D: usize>(&self, shape: [usize; D]) -> Param<Tensor<D>> {
        let mut generator =
            random::generator(self.seed, "weights", random::hash(&format!("{}.weight", self.path)));
        let count = shape.iter().product();
        let values: Vec<f32> = match Normal::new(0.0, INITIALIZER_RANGE) {
            Ok(normal) => normal.sample_iter(&mut generator).take(count).collect(),
            Err(_) => vec![0.0; count],
        };
        Param::from_data(TensorData::new(values, shape), self.device)
    }

    /// `weight` of ones.
    pub fn ones(&self, length: usize) -> Param<Tensor<1>> {
        self.filled(1.0, length)
    }

    /// `bias` of zeros.
    pub fn zeros(&self, length: usize) -> Param<Tensor<1>> {
        self.filled(0.0, length)
    }

    fn filled(&self, value: f32, length: usize) -> Param<Tensor<1>> {
        Param::from_data(TensorData::new(vec![value; length], [length]), self.device)
    }
}
