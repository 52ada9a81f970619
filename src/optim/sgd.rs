//! `torch.optim.SGD`.
//!
//! ```text
//! g <- g + wd p
//! b <- g                                 at the first update: dampening does not apply
//! b <- mu b + (1 - dampening) g          later: momentum_buffer
//! p <- p - lr (nesterov ? g + mu b : b)
//! ```

use burn::tensor::Tensor;

use super::{Entry, Figure, Kept, Optimizer, OptimizerState, StateError, Step, common};
use crate::config::SgdConfig;

/// The rule.
#[derive(Debug, Clone)]
pub struct Sgd {
    momentum: f64,
    dampening: f64,
    weight_decay: f64,
    nesterov: bool,
}

/// State of one parameter: nothing without momentum.
#[derive(Debug, Clone)]
pub struct SgdState {
    momentum_buffer: Option<Tensor<1>>,
}

impl Sgd {
    /// With these settings; the rate comes with each step.
    pub fn new(config: &SgdConfig) -> Self {
        Self {
            momentum: config.momentum,
            dampening: config.dampening,
            weight_decay: config.weight_decay,
            nesterov: config.nesterov,
        }
    }
}

impl Optimizer for Sgd {
    type State = SgdState;

    fn step(
        &self,
        step: Step<'_>,
        param: Tensor<1>,
        grad: Tensor<1>,
        state: Option<SgdState>,
    ) -> (Tensor<1>, SgdState) {
        let decay = step.weight_decay(self.weight_decay);
        let grad = if decay == 0.0 { grad } else { grad + param.clone().mul_scalar(decay) };
        if self.momentum == 0.0 {
            return (param - grad.mul_scalar(step.lr), SgdState { momentum_buffer: None });
        }
        let buffer = match state.and_then(|state| state.momentum_buffer) {
            Some(buffer) => buffer.mul_scalar(self.momentum) + grad.clone().mul_scalar(1.0 - self.dampening),
            None => grad.clone(),
        };
        let update =
            if self.nesterov { grad + buffer.clone().mul_scalar(self.momentum) } else { buffer.clone() };
        (param - update.mul_scalar(step.lr), SgdState { momentum_buffer: Some(buffer) })
    }

    fn restore(&self, kept: &mut Kept<'_>) -> Result<SgdState, StateError> {
        let kept_one = (self.momentum != 0.0).then(|| kept.tensor("momentum_buffer", kept.shape));
        Ok(SgdState { momentum_buffer: kept_one.transpose()? })
    }

    fn figures(&self, step: Step<'_>, _: &Tensor<1>, _: Option<&SgdState>, after: &SgdState) -> Vec<Figure> {
        // The decay goes through the buffer, which then says nothing of the gradient.
        let buffer = after.momentum_buffer.as_ref().filter(|_| step.weight_decay(self.weight_decay) == 0.0);
        buffer.and_then(|buffer| common::untouched(step.shape, buffer)).into_iter().collect()
    }
}

impl OptimizerState for SgdState {
    fn entries(&self, shape: &[usize]) -> Vec<Entry> {
        let buffer = self.momentum_buffer.as_ref();
        buffer.map(|buffer| Entry::tensor("momentum_buffer", buffer, shape)).into_iter().collect()
    }
}
