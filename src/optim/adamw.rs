//! `torch.optim.AdamW` (Loshchilov and Hutter 2019, arXiv 1711.05101).
//!
//! ```text
//! p <- p (1 - lr wd)
//! m <- m + (1 - beta1) (g - m)           exp_avg
//! v <- beta2 v + (1 - beta2) g^2         exp_avg_sq
//! p <- p - lr/(1 - beta1^t) m / (sqrt(v)/sqrt(1 - beta2^t) + eps)
//! ```
//! With `amsgrad` the root is of the largest `v` so far (`max_exp_avg_sq`). Scalars are f64, as in PyTorch.

use burn::tensor::Tensor;

use super::{Entry, Optimizer, OptimizerState, StateError, Step, state::Taker};
use crate::config::AdamWConfig;

/// The rule.
#[derive(Debug, Clone)]
pub struct AdamW {
    betas: [f64; 2],
    eps: f64,
    weight_decay: f64,
    amsgrad: bool,
}

/// State of one parameter; all tensors have its shape.
#[derive(Debug, Clone)]
pub struct AdamWState {
    step: u64,
    exp_avg: Tensor<1>,
    exp_avg_sq: Tensor<1>,
    max_exp_avg_sq: Option<Tensor<1>>,
}

impl AdamW {
    /// With these settings; the rate comes with each step.
    pub fn new(config: &AdamWConfig) -> Self {
        Self {
            betas: config.betas,
            eps: config.eps,
            weight_decay: config.weight_decay,
            amsgrad: config.amsgrad,
        }
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
        let [beta1, beta2] = self.betas;
        let state = state.unwrap_or_else(|| AdamWState {
            step: 0,
            exp_avg: grad.zeros_like(),
            exp_avg_sq: grad.zeros_like(),
            max_exp_avg_sq: self.amsgrad.then(|| grad.zeros_like()),
        });
        let count = state.step + 1;
        let correction = |beta: f64| 1.0 - beta.powf(count as f64);

        let exp_avg = state.exp_avg.mul_scalar(beta1) + grad.clone().mul_scalar(1.0 - beta1);
        let exp_avg_sq = state.exp_avg_sq.mul_scalar(beta2) + grad.square().mul_scalar(1.0 - beta2);
        let max_exp_avg_sq = state.max_exp_avg_sq.map(|largest| largest.max_pair(exp_avg_sq.clone()));
        let second = max_exp_avg_sq.as_ref().unwrap_or(&exp_avg_sq).clone();
        let root = second.sqrt().div_scalar(correction(beta2).sqrt()).add_scalar(self.eps);
        let update = exp_avg.clone().mul_scalar(step.lr / correction(beta1)) / root;
        let decayed = if self.weight_decay == 0.0 {
            param
        } else {
            param.mul_scalar(1.0 - step.lr * self.weight_decay)
        };
        (decayed - update, AdamWState { step: count, exp_avg, exp_avg_sq, max_exp_avg_sq })
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

    fn from_entries(entries: Vec<Entry>) -> Result<Self, StateError> {
        let mut entries = Taker(entries);
        Ok(Self {
            step: entries.number("step")? as u64,
            exp_avg: entries.tensor("exp_avg")?,
            exp_avg_sq: entries.tensor("exp_avg_sq")?,
            max_exp_avg_sq: entries.optional("max_exp_avg_sq"),
        })
    }
}
