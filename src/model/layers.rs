//! The layers that models are made of.

use burn::{
    module::{Module, Param},
    tensor::{Int, Tensor, module},
};

use super::init::Init;
use crate::backend::ops;

/// `x W^T + b` as one product of matrices, all axes but the last being rows. Left to itself, Burn makes a product for each
/// row of the batch where their length suits it: that keeps a transposed copy of the weight for the backward pass, and
/// one gradient of the weight a row to be added up.
fn linear<const D: usize>(x: Tensor<D>, weight_oi: Tensor<2>, bias_o: Option<Tensor<1>>) -> Tensor<D> {
    let mut shape = x.dims();
    let [outputs, inputs] = weight_oi.dims();
    let rows = shape[..D - 1].iter().product();
    let y_no = module::linear::<2>(x.reshape([rows, inputs]), weight_oi.transpose(), bias_o);
    shape[D - 1] = outputs;
    y_no.reshape(shape)
}

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
        linear(x_bti, self.weight.val(), None)
    }
}

/// `torch.nn.Linear` with bias: `y = x W^T + b`, weight `[out, in]`, bias `[out]`.
#[derive(Module, Debug)]
pub struct BiasedLinear {
    weight: Param<Tensor<2>>,
    bias: Param<Tensor<1>>,
}

impl BiasedLinear {
    /// Weights from N(0, 0.02^2), biases of zero.
    pub fn new(init: &Init, inputs: usize, outputs: usize) -> Self {
        Self { weight: init.normal([outputs, inputs]), bias: init.zeros(outputs) }
    }

    /// `[.., in]` to `[.., out]`.
    pub fn forward<const D: usize>(&self, x: Tensor<D>) -> Tensor<D> {
        linear(x, self.weight.val(), Some(self.bias.val()))
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

    /// The first rows as they are, for positions: `[1, t, d]`. There must be as many.
    pub fn first(&self, time: usize) -> Tensor<3> {
        self.weight.val().narrow(0, 0, time).unsqueeze::<3>()
    }

    /// The embedding as the output head of a model with tied weights: `[b, t, d]` to `[b, t, v]`.
    pub fn as_head(&self, x_btd: Tensor<3>) -> Tensor<3> {
        linear(x_btd, self.weight.val(), None)
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
        ops::rms_norm(x_btd, self.weight.val(), self.eps)
    }
}

/// `torch.nn.LayerNorm` (Ba et al. 2016, arXiv 1607.06450), weight and bias `[d]`.
#[derive(Module, Debug)]
pub struct LayerNorm {
    weight: Param<Tensor<1>>,
    bias: Param<Tensor<1>>,
    #[module(skip)]
    eps: f64,
}

impl LayerNorm {
    /// Weights of one, biases of zero.
    pub fn new(init: &Init, width: usize, eps: f64) -> Self {
        Self { weight: init.ones(width), bias: init.zeros(width), eps }
    }

    /// `(x - mean) / sqrt(var + eps) * weight + bias` over the last axis; the variance is that of all values, not of a sample.
    pub fn forward(&self, x_btd: Tensor<3>) -> Tensor<3> {
        ops::layer_norm(x_btd, self.weight.val(), self.bias.val(), self.eps)
    }
}
