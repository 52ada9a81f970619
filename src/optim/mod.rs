//! Optimizers: one driver, one file an optimizer, typed state under the parameter's name.
//!
//! Every rule works on flat tensors `[n]` with the parameter's shape beside them: an element-wise rule does not care
//! about axes, and one that does (Adafactor) reshapes to what it needs. So there is one code path for all ranks.

pub mod adafactor;
pub mod adamw;
pub mod adamw8bit;
pub mod clip;
mod common;
pub mod convert;
pub mod driver;
pub mod gradients;
pub mod kept;
pub mod lion;
pub mod look;
pub mod muon;
pub mod no_decay;
pub mod quantize;
pub mod sgd;
pub mod state;
pub mod stats;
pub mod sums;

use burn::tensor::Tensor;

use crate::config::{OptimizerConfig, OptimizerName};

pub use driver::{Driver, ParameterUpdates, Updated};
pub use gradients::Gradients;
pub use kept::{Kept, StateError, Stored, Values};
pub use no_decay::NoDecay;
pub use state::{Bytes, Codes, Entry, Scales, Value};

/// What a rule knows about the update besides the tensors.
#[derive(Debug, Clone, Copy)]
pub struct Step<'a> {
    /// Hugging Face's name of the parameter.
    pub name: &'a str,
    /// PyTorch's shape of the parameter.
    pub shape: &'a [usize],
    /// The scheduled rate; Adafactor with `relative_step` does not use it.
    pub lr: f64,
    /// Whether weight decay applies: not to norms and biases, unless `optimizer.no_decay` says so.
    pub decay: bool,
}

impl Step<'_> {
    /// The decay that applies to this parameter.
    pub const fn weight_decay(&self, configured: f64) -> f64 {
        if self.decay { configured } else { 0.0 }
    }
}

/// A figure of one update: its name in [`crate::protocol::state::figures`] and its value `[1]`, on the device.
pub type Figure = (&'static str, Tensor<1>);

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

    /// What there is to say about an update that has just been made, `before` and `after` being the state around it.
    fn figures(
        &self,
        step: Step<'_>,
        grad: &Tensor<1>,
        before: Option<&Self::State>,
        after: &Self::State,
    ) -> Vec<Figure>;

    /// The state of one parameter from what a checkpoint holds of it: the inverse of [`OptimizerState::entries`].
    ///
    /// # Errors
    /// Names the value that is missing or cannot be what it is.
    fn restore(&self, kept: &mut Kept<'_>) -> Result<Self::State, StateError>;

    /// State that all parameters share and that is there once, when any of theirs needs it.
    fn shared(&self) -> Vec<Entry> {
        Vec::new()
    }
}

/// State that can be looked into, written and read back under PyTorch's names.
pub trait OptimizerState: Sized + Clone + Send + 'static {
    /// Every state value, in PyTorch's order. `shape` is the parameter's.
    fn entries(&self, shape: &[usize]) -> Vec<Entry>;

    /// Whether this state means nothing without [`Optimizer::shared`].
    fn needs_shared(&self) -> bool {
        false
    }
}

/// The optimizer that the configuration names.
pub fn build(config: &OptimizerConfig) -> Box<dyn ParameterUpdates> {
    match config.name {
        OptimizerName::AdamW => driver(config, adamw::AdamW::new(&config.adamw)),
        OptimizerName::AdamW8bit => driver(config, adamw8bit::AdamW8bit::new(&config.adamw8bit)),
        OptimizerName::Adafactor => driver(config, adafactor::Adafactor::new(&config.adafactor)),
        // `own` is what a loop of its own has: no configuration of this program that can be trained has it.
        OptimizerName::Sgd | OptimizerName::Own => driver(config, sgd::Sgd::new(&config.sgd)),
        OptimizerName::Lion => driver(config, lion::Lion::new(&config.lion)),
        OptimizerName::Muon => driver(config, muon::Muon::new(&config.muon)),
    }
}

fn driver<O: Optimizer>(config: &OptimizerConfig, rule: O) -> Box<dyn ParameterUpdates> {
    Box::new(Driver::new(rule, NoDecay::new(&config.no_decay)))
}
