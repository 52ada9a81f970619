//! `torch.optim.AdamW` (Loshchilov and Hutter 2019, arXiv 1711.05101).
//!
//! ```text
//! p <- p (1 - lr wd)
//! m <- m + (1 - beta1) (g - m)           exp_avg
//! v <- beta2 v + (1 - beta2) g^2         exp_avg_sq
//! p <- p - lr/(1 - beta1^t) m / (sqrt(v)/sqrt(1 - beta2^t) + eps)
//! ```
//! With `amsgrad` the root is of the largest `v` so far (`max_exp_avg_sq`). Scalars are f64, as in PyTorch. State has
//! the parameter's type; the arithmetic is f32 and rounds what is kept, as PyTorch's fused kernel does, or rounds after
//! every operation, as its loop over single tensors does. In f32 that is the same.

use burn::tensor::{DType, Tensor};

use super::{
    Entry, Figure, Kept, Optimizer, OptimizerState, StateError, Step,
    common::{average, decay, untouched},
};
use crate::{
    backend::ops::{self, AdamWScalars, AdamWTensors},
    config::AdamWConfig,
};

/// The rule.
#[derive(Debug, Clone)]
pub struct AdamW {
    betas: [f64; 2],
    eps: f64,
    weight_decay: f64,
    amsgrad: bool,
    rounds_each_operation: bool,
}

/// State of one parameter; all tensors have its shape.
#[derive(Debug, Clone)]
pub struct AdamWState {
    step: u64,
    exp_avg: Tensor<1>,
    exp_avg_sq: Tensor<1>,
    max_exp_avg_sq: Option<Tensor<1>>,
}

impl AdamWState {
    /// `exp_avg_sq`, `[n]`.
    pub const fn second_moment(&self) -> &Tensor<1> {
        &self.exp_avg_sq
    }
}

impl AdamW {
    /// With these settings; the rate comes with each step.
    pub const fn new(config: &AdamWConfig) -> Self {
        Self {
            betas: config.betas,
            eps: config.eps,
            weight_decay: config.weight_decay,
            amsgrad: config.amsgrad,
            rounds_each_operation: false,
        }
    }

    /// Rounds to the parameter's type after every operation, as PyTorch does with `fused=False`.
    #[must_use]
    pub const fn rounding_each_operation(mut self) -> Self {
        self.rounds_each_operation = true;
        self
    }

    /// The update as a chain of operations, where no kernel does it in one.
    fn composed(
        &self,
        scalars: AdamWScalars,
        param: Tensor<1>,
        grad: Tensor<1>,
        state: AdamWState,
    ) -> (Tensor<1>, AdamWState) {
        let AdamWScalars { step: count, lr, betas: [beta1, beta2], weight_decay, eps } = scalars;
        let dtype = param.dtype();
        let correction = |beta: f64| 1.0 - beta.powf(count as f64);
        let open = |tensor: Tensor<1>| tensor.cast(DType::F32);
        let close = |tensor: &Tensor<1>| tensor.clone().cast(dtype);
        let round = |tensor: Tensor<1>| {
            if self.rounds_each_operation { tensor.cast(dtype).cast(DType::F32) } else { tensor }
        };

        let grad = open(grad);
        let decayed = round(decay(open(param), lr * weight_decay));
        let exp_avg = round(average(open(state.exp_avg), grad.clone(), beta1));
        let old = round(open(state.exp_avg_sq).mul_scalar(beta2));
        let exp_avg_sq = round(old + grad.square().mul_scalar(1.0 - beta2));
        let max_exp_avg_sq = state.max_exp_avg_sq.map(|largest| open(largest).max_pair(exp_avg_sq.clone()));
        let second = max_exp_avg_sq.as_ref().unwrap_or(&exp_avg_sq).clone();
        let root = round(round(second.sqrt()).div_scalar(correction(beta2).sqrt()));
        let root = round(root.add_scalar(eps));
        let update = exp_avg.clone().mul_scalar(lr / correction(beta1)) / root;
        let state = AdamWState {
            step: count,
            exp_avg: close(&exp_avg),
            exp_avg_sq: close(&exp_avg_sq),
            max_exp_avg_sq: max_exp_avg_sq.as_ref().map(close),
        };
        ((decayed - update).cast(dtype), state)
    }
}

impl Optimizer for AdamW {
    type State = AdamWState;

    fn step(
        &self,
        step: Step<'_>,
        param: Tensor<1>,
        grad: Tensor<1>,
        state: Option<AdamWState>,
    ) -> (Tensor<1>, AdamWState) {
        let mut state = state.unwrap_or_else(|| AdamWState {
            step: 0,
            exp_avg: grad.zeros_like(),
            exp_avg_sq: grad.zeros_like(),
            max_exp_avg_sq: self.amsgrad.then(|| grad.zeros_like()),
        });
        state.step += 1;
        let weight_decay = step.weight_decay(self.weight_decay);
        let AdamWState { step: count, exp_avg, exp_avg_sq, max_exp_avg_sq } = &mut state;
        let scalars =
            AdamWScalars { step: *count, lr: step.lr, betas: self.betas, weight_decay, eps: self.eps };
        let mut param = param;
        let tensors = AdamWTensors {
            param: &mut param,
            grad: &grad,
            exp_avg,
            exp_avg_sq,
            max_exp_avg_sq: max_exp_avg_sq.as_mut(),
        };
        if !self.rounds_each_operation && ops::adamw_in_place(tensors, scalars) {
            return (param, state);
        }
        self.composed(scalars, param, grad, state)
    }

    fn restore(&self, kept: &mut Kept<'_>) -> Result<AdamWState, StateError> {
        let shape = kept.shape;
        Ok(AdamWState {
            step: kept.number("step")? as u64,
            exp_avg: kept.tensor("exp_avg", shape)?,
            exp_avg_sq: kept.tensor("exp_avg_sq", shape)?,
            max_exp_avg_sq: self.amsgrad.then(|| kept.tensor("max_exp_avg_sq", shape)).transpose()?,
        })
    }

    fn figures(
        &self,
        step: Step<'_>,
        _: &Tensor<1>,
        _: Option<&AdamWState>,
        after: &AdamWState,
    ) -> Vec<Figure> {
        untouched(step.shape, &after.exp_avg_sq).into_iter().collect()
    }
}

impl OptimizerState for AdamWState {
    fn entries(&self, shape: &[usize]) -> Vec<Entry> {
        let mut entries = vec![
            Entry::number("step", self.step as f64),
            Entry::tensor("exp_avg", &self.exp_avg, shape),
            Entry::tensor("exp_avg_sq", &self.exp_avg_sq, shape),
        ];
        entries.extend(self.max_exp_avg_sq.as_ref().map(|max| Entry::tensor("max_exp_avg_sq", max, shape)));
        entries
    }
}
