//! What somebody brings along to have their own model trained: the one trait to implement.

use burn::{
    module::Module,
    tensor::{Device, Tensor},
};

use crate::config::{fields::Field, own::Settings};

/// Which of a task's examples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Part {
    /// Those that are trained on.
    Train,
    /// Those that the validation loss is taken over; there may be none.
    HeldOut,
}

/// A model and its data. The type that implements it holds the data, and is opened once in a run's process; the model is
/// any Burn module.
///
/// Parameters are called after the fields that hold them, joined by dots (`layers.0.weight`), and keep the shape that the
/// module gives them. Optimizer state, checkpoints, exports and screens all go by these names.
///
/// A run repeats bit for bit, and goes on so after a stop, when `batch` is a function of its arguments: examples are drawn
/// by number in an order that `train.seed` decides, and Burn's generator on the device, which fresh weights and dropout
/// draw from, is seeded before the model is made and before every micro-batch.
pub trait Task: Send + Sync + Sized + 'static {
    /// What it is called, in commands and records: letters, digits, `-`, `_` and `.`.
    const NAME: &'static str;
    /// Settings of its own, each called `task.SOMETHING`: set like any other, recorded with the run.
    const SETTINGS: &'static [Field] = &[];
    /// What its runs start from instead of the defaults, in TOML; a comment on the first line says what it is.
    const DEFAULTS: &'static str = "";
    /// Classes that it tells apart; 0 where it tells none, and [`Task::classify`] is not asked.
    const CLASSES: usize = 0;

    /// The model.
    type Model: Module + 'static;
    /// Some examples, on the host: made by a thread that runs ahead of training.
    type Batch: Send + Sync + 'static;

    /// Opens the data.
    ///
    /// # Errors
    /// Whatever is wrong with it, in a sentence that a person can act on.
    fn open(settings: Settings<'_>) -> anyhow::Result<Self>;

    /// How many examples there are.
    fn examples(&self, part: Part) -> u64;

    /// These examples in this order, each number being below [`Task::examples`]. The last batch of an epoch or of a
    /// validation may be smaller than `train.micro_batch`.
    fn batch(&self, part: Part, examples: &[u64]) -> Self::Batch;

    /// What the loss of a batch is a mean over: its examples, unless some of them have more targets than one, or none.
    fn targets(batch: &Self::Batch, examples: u64) -> u64 {
        let _ = batch;
        examples
    }

    /// A model with fresh weights. It is asked for its shapes alone, too, before there is a run.
    ///
    /// # Errors
    /// Settings that do not go together.
    fn model(settings: Settings<'_>, device: &Device) -> anyhow::Result<Self::Model>;

    /// The loss of a batch summed over its targets, or that of each target: whatever it holds is added up. The driver
    /// divides by the targets of the whole window, so that accumulation changes nothing.
    fn loss(model: &Self::Model, batch: &Self::Batch, device: &Device) -> Tensor<1>;

    /// The class of each row, and the class that the model finds for it: accuracy and F1 of a validation come from them.
    fn classify(model: &Self::Model, batch: &Self::Batch, device: &Device) -> Vec<(u32, u32)> {
        let _ = (model, batch, device);
        Vec::new()
    }
}
