//! Lion (Chen et al. 2023, arXiv 2302.06675), as `bitsandbytes.optim.Lion` has it.
//!
//! ```text
//! p <- p (1 - lr wd)
//! p <- p - lr sign(beta1 m + (1 - beta1) g)      sign(0) = 0
//! m <- beta2 m + (1 - beta2) g                   exp_avg
//! ```

use burn::tensor::Tensor;

use super::{Entry, Figure, Kept, Optimizer, OptimizerState, StateError, Step, common};
use crate::config::LionConfig;

/// The rule.
#[derive(Debug, Clone)]
pub struct Lion(LionConfig);

/// State of one parameter, of its shape.
#[derive(Debug, Clone)]
pub struct LionState {
    exp_avg: Tensor<1>,
}

impl Lion {
    /// With these settings; the rate comes with each step.
    pub fn new(config: &LionConfig) -> Self {
        Self(config.clone())
    }
}

impl Optimizer for Lion {
    type State = LionState;

    fn step(
        &self,
        step: Step<'_>,
        param: Tensor<1>,
        grad: Tensor<1>,
        state: Option<LionState>,
    ) -> (Tensor<1>, LionState) {
        let [beta1, beta2] = self.0.betas;
        let old = state.map_or_else(|| grad.zeros_like(), |state| state.exp_avg);
        let direction = common::average(old.clone(), grad.clone(), beta1).sign();
        let param = common::decay(param, step.lr * step.weight_decay(self.0.weight_decay));
        (param - direction.mul_scalar(step.lr), LionState { exp_avg: common::average(old, grad, beta2) })
    }

    fn restore(&self, kept: &mut Kept<'_>) -> Result<LionState, StateError> {
        Ok(LionState { exp_avg: kept.tensor("exp_avg", kept.shape)? })
    }

    fn figures(
        &self,
        step: Step<'_>,
        _: &Tensor<1>,
        _: Option<&LionState>,
        after: &LionState,
    ) -> Vec<Figure> {
        common::untouched(step.shape, &after.exp_avg).into_iter().collect()
    }
}

impl OptimizerState for LionState {
    fn entries(&self, shape: &[usize]) -> Vec<Entry> {
        vec![Entry::tensor("exp_avg", &self.exp_avg, shape)]
    }
}
