//! The layers that models are made of.

use burn::{
    module::{Module, Param},
    tensor::{Int, Tensor, module},
};

use super::init::Init;

/// `torch.nn.Linear` without bias: `y = x W^T`, weight `[out, in]`.
#[derive(Module, Debug)]
pub struct Linear {
    weight: Param<Tensor<2>>,
}

impl Linear {
    /// Weights from N(0, 0.02^2).
    pub fn new(init: &Init, inputs: usize, outputs: usize) -> Self {
        Self { weight: init.normal([outputs, inputs]) }
    }

    /// `[b, t, in]` to `[b, t, out]`.
    pub fn forward(&self, x_bti: Tensor<3>) -> Tensor<3> {
        module::linear(x_bti, self.weight.val().transpose(), None)
    }
}

/// `torch.nn.Embedding`, weight `[vocabulary, width]`.
#[derive(Module, Debug)]
pub struct Embedding {
    weight: Param<Tensor<2>>,
}

impl Embedding {
    /// Weights from N(0, 0.02^2).
    pub fn new(init: &Init, rows: usize, width: usize) -> Self {
        Self { weight: init.normal([rows, width]) }
    }

    /// `[b, t]` ids to `[b, t, d]`.
    pub fn forward(&self, ids_bt: Tensor<2, Int>) -> Tensor<3> {
        module::embedding(self.weight.val(), ids_bt)
    }

    /// The embedding as the output head of a model with tied weights: `[b, t, d]` to `[b, t, v]`.
    pub fn as_head(&self, x_btd: Tensor<3>) -> Tensor<3> {
        module::linear(x_btd, self.weight.val().transpose(), None)
    }
}

/// Root mean square normalisation (Zhang and Sennrich 2019, arXiv 1910.07467), weight `[d]`.
#[derive(Module, Debug)]
pub struct RmsNorm {
    weight: Param<Tensor<1>>,
    #[module(skip)]
    eps: f64,
}

impl RmsNorm {
    /// Weights of one.
    pub fn new(init: &Init, width: usize, eps: f64) -> Self {
        Self { weight: init.ones(width), eps }
    }

    /// `x / sqrt(mean(x^2) + eps) * weight` over the last axis.
    pub fn forward(&self, x_btd: Tensor<3>) -> Tensor<3> {
        let mean_bt1 = x_btd.clone().square().mean_dim(2);
        x_btd * mean_bt1.add_scalar(self.eps).sqrt().recip() * self.weight.val().unsqueeze::<3>()
    }
}
