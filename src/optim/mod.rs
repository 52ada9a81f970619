//! Optimizers: one driver, one file an optimizer, typed state under the parameter's name.
//!
//! Every rule works on flat tensors `[n]` with the parameter's shape beside them: an element-wise rule does not care
//! about axes, and one that does (Adafactor) reshapes to what it needs. So there is one code path for all ranks.

pub mod adafactor;
pub mod adamw;
pub mod clip;
pub mod driver;
pub mod gradients;
pub mod sgd;
pub mod state;
pub mod stats;

use burn::tensor::Tensor;

use crate::config::{OptimizerConfig, OptimizerName};

pub use driver::{Driver, ParameterUpdates};
pub use gradients::Gradients;
pub use state::{Entry, StateError, Value};

/// What a rule knows about the update besides the tensors.
#[derive(Debug, Clone, Copy)]
pub struct Step<'a> {
    /// PyTorch's shape of the parameter.
    pub shape: &'a [usize],
    /// The scheduled rate; Adafactor with `relative_step` does not use it.
    pub lr: f64,
}

/// An update rule: parameter and gradient in, new parameter and new state out.
pub trait Optimizer: Send + 'static {
    /// What is kept for one parameter between updates.
    type State: OptimizerState;

    /// One update of one parameter; `param` and `grad` are flat `[n]`. `state` is `None` before the first.
    fn step(
        &self,
        step: Step<'_>,
        param: Tensor<1>,
        grad: Tensor<1>,
        state: Option<Self::State>,
    ) -> (Tensor<1>, Self::State);
}

/// State that can be looked into, written and read back under PyTorch's names.
pub trait OptimizerState: Sized + Send + 'static {
    /// Every state value, in PyTorch's order. `shape` is the parameter's.
    fn entries(&self, shape: &[usize]) -> Vec<Entry>;

    /// The inverse of [`OptimizerState::entries`].
    ///
    /// # Errors
    /// Names the value that is missing.
    fn from_entries(entries: Vec<Entry>) -> Result<Self, StateError>;
}

/// The optimizer that the configuration names.
pub fn build(config: &OptimizerConfig) -> Box<dyn ParameterUpdates> {
    match config.name {
        OptimizerName::AdamW => Box::new(Driver::new(adamw::AdamW::new(&config.adamw))),
        OptimizerName::Adafactor => Box::new(Driver::new(adafactor::Adafactor::new(&config.adafactor))),
        OptimizerName::Sgd => Box::new(Driver::new(sgd::Sgd::new(&config.sgd))),
    }
}
