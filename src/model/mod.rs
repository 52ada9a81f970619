//! Models under Hugging Face's parameter names.
//!
//! Adding a model means adding one file that implements [`TrainModel`]. Field names of its modules are the
//! parts of Hugging Face's parameter names, and weights have PyTorch's shapes (`[out, in]`), so that no name or
//! shape is ever translated: what the driver, the checkpoint and the screen see is the field's own.
//!
//! Tensor names carry shape suffixes: `b` batch, `t` time, `d` width, `h` query heads, `k` key-value heads,
//! `g` query heads a key-value head, `e` head width, `v` vocabulary, `c` classes.

pub mod distilbert;
pub mod init;
pub mod layers;
pub mod llama;
pub mod loss;
pub mod mask;
pub mod noise;
pub mod rotary;
pub mod seen;
pub mod task;
pub mod working_copy;

use burn::{
    module::Module,
    tensor::{Device, Tensor},
};

use crate::{config::Config, data::batch::Batch, ledger::Flops};

pub use noise::Noise;
pub use seen::Seen;

/// Cross-entropy summed over the targets of a batch, and how many there were.
#[derive(Debug)]
pub struct SummedLoss {
    /// `[1]`, in nats, on the tape.
    pub sum: Tensor<1>,
    pub targets: u64,
}

/// What the engine needs of a model: batch in, summed loss and count out, parameters by name.
pub trait TrainModel: Module + 'static {
    /// Fresh weights for this configuration, drawn on the host from `train.seed`.
    fn init(config: &Config, device: &Device) -> Self;

    /// The loss of one micro-batch, padding ignored. `noise` says what dropout drops.
    fn loss(&self, batch: &Batch, noise: &Noise) -> SummedLoss;

    /// The loss without dropout, and of a classification the class found for each row.
    fn evaluate(&self, batch: &Batch) -> (SummedLoss, Vec<u32>) {
        (self.loss(batch, &Noise::off()), Vec::new())
    }

    /// Operations of its passes, where they can be counted from the configuration.
    fn flops(_: &Config) -> Option<Flops> {
        None
    }

    /// Logits `[b, v]` of the token after each row, all of which are full and go on behind what was seen of them; nothing
    /// of a model that writes no text.
    fn next_token(&self, _: &Batch, _: &mut Seen) -> Option<Tensor<2>> {
        None
    }
}
