//! The seam between the trainer and a model: those of this program, and that of a task of its own.

use burn::{
    module::Module,
    tensor::{Device, Tensor},
};

use crate::{
    config::{Config, Task},
    data::Batch,
    ledger::Flops,
    model::{Noise, Seen, SummedLoss, TrainModel},
};

/// A model as the trainer needs it: those of this program, and that of a task of its own.
pub trait Learner: 'static {
    type Model: Module + 'static;

    /// Fresh weights for this configuration.
    ///
    /// # Errors
    /// The settings do not make a model.
    fn init(config: &Config, device: &Device) -> anyhow::Result<Self::Model>;

    /// See [`TrainModel::loss`].
    fn loss(model: &Self::Model, batch: &Batch, noise: &Noise) -> SummedLoss;

    /// See [`TrainModel::evaluate`].
    fn evaluate(model: &Self::Model, batch: &Batch) -> Evaluated;

    /// Classes of a classification.
    fn classes(config: &Config) -> Option<usize>;

    /// See [`TrainModel::flops`].
    fn flops(_: &Config) -> Option<Flops> {
        None
    }

    /// See [`TrainModel::next_token`].
    fn next_token(_: &Self::Model, _: &Batch, _: &mut Seen) -> Option<Tensor<2>> {
        None
    }
}

/// What a model makes of one held-out batch.
#[derive(Debug)]
pub struct Evaluated {
    pub loss: SummedLoss,
    /// Of a classification: the class of each row, and the one that was found.
    pub labels: Vec<i32>,
    pub found: Vec<u32>,
}

impl<M: TrainModel> Learner for M {
    type Model = M;

    fn init(config: &Config, device: &Device) -> anyhow::Result<M> {
        Ok(M::init(config, device))
    }

    fn loss(model: &M, batch: &Batch, noise: &Noise) -> SummedLoss {
        model.loss(batch, noise)
    }

    fn evaluate(model: &M, batch: &Batch) -> Evaluated {
        let (loss, found) = model.evaluate(batch);
        Evaluated { loss, labels: if found.is_empty() { Vec::new() } else { batch.targets.clone() }, found }
    }

    fn classes(config: &Config) -> Option<usize> {
        (config.model.arch.task() == Task::Classification).then_some(config.model.num_labels)
    }

    fn flops(config: &Config) -> Option<Flops> {
        M::flops(config)
    }

    fn next_token(model: &M, batch: &Batch, seen: &mut Seen) -> Option<Tensor<2>> {
        model.next_token(batch, seen)
    }
}
