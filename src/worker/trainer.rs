//! Training without a loop: forward, backward and accumulate a micro-batch; clip and update; evaluate.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use burn::{
    module::Module,
    tensor::{DType, Device, Tensor},
};

use super::{
    check::Accumulated,
    learner::{Evaluated, Learner},
    metrics::Confusion,
    own, weights, writing,
};
use crate::{
    backend::devices,
    config::{Arch, Config, OptimizerName, Precision, validate},
    data::{Batch, Pass},
    ledger::Flops,
    model::{Noise, Seen, distilbert::DistilBertForSequenceClassification, llama::Llama, working_copy},
    optim::{self, Gradients, ParameterUpdates, clip, driver, look, stats},
    protocol::{StateDetail, StateTensor, TensorState, UpdateLook},
    run::weights::{WeightsError, plan},
};

/// A model under training, whatever its architecture.
pub trait Training {
    /// Forward, backward, accumulate. The loss is divided by the targets of the whole window, so that the
    /// accumulated gradient is that of the window as one batch.
    fn micro_batch(&mut self, batch: &Batch, pass: Pass) -> PassTimes;

    /// Clips and applies what has been accumulated, unless it is not finite. What it does to the parameter that was
    /// opened last is measured, to all of them if `measure`.
    fn update(&mut self, lr: f64, measure: bool) -> Outcome;

    /// Drops what has been accumulated since the last update.
    fn discard_window(&mut self);

    /// Loss over the batches, without dropout and without a tape; of a classification how many classes were found, too.
    fn evaluate(&self, batches: &mut dyn Iterator<Item = Batch>) -> Evaluation;

    /// Operations of the passes, by which speed is told; nothing of a model whose shapes are not known.
    fn flops(&self) -> Option<Flops> {
        None
    }

    /// The ids that go on with a text; nothing of a model that writes none.
    fn write_text(&self, _: &writing::Request) -> Option<Vec<Vec<i32>>> {
        None
    }

    /// Names and shapes of all parameters, in the model's order.
    fn parameters(&self) -> Vec<(String, Vec<usize>)>;

    /// Bytes of the parameters, and of their copy where the passes see one.
    fn parameter_bytes(&self) -> u64;

    /// Parameters, read to the host.
    fn weights(&self) -> Vec<weights::HostTensor>;

    /// The optimizer with its state.
    fn optimizer(&self) -> &dyn ParameterUpdates;

    /// The same, to put state back.
    fn optimizer_mut(&mut self) -> &mut dyn ParameterUpdates;

    /// Bytes of the accumulated gradients now.
    fn gradient_bytes(&self) -> u64;

    /// What has been accumulated since the last update, read to the host.
    fn accumulated(&self) -> Accumulated;

    /// State of these parameters with statistics; of all when no name is given.
    fn state(&self, names: &[String]) -> Vec<TensorState>;

    /// State that all parameters share, by name.
    fn shared_state(&self) -> BTreeMap<String, StateTensor>;

    /// One parameter opened. The next update is looked into for it: what that tells comes with a later question.
    fn open(&mut self, name: &str, width: usize) -> Option<StateDetail>;
}

/// Seconds of one micro-batch.
#[derive(Debug, Clone, Copy, Default)]
pub struct PassTimes {
    pub forward: Duration,
    pub backward: Duration,
}

/// What an update did.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Outcome {
    /// Nats a target over the window; NaN when there was no target.
    pub loss: f64,
    /// Before clipping.
    pub grad_norm: f64,
    /// Loss or gradient were not finite: nothing was changed.
    pub skipped: bool,
    /// The window had no target: there was nothing to learn, and nothing was changed.
    pub empty: bool,
}

/// What a model makes of the held-out data.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Evaluation {
    /// Nats a target; NaN without any.
    pub loss: f64,
    /// Targets it was taken over: tokens of a language model, rows of a classification.
    pub targets: u64,
    /// Of a classification with rows, as are the next two: see [`super::metrics`].
    pub accuracy: Option<f64>,
    pub f1: Option<f64>,
    pub f1_macro: Option<f64>,
}

/// Builds the model and the optimizer that the configuration names.
///
/// # Errors
/// There is no such model to train, or `model.weights` cannot be loaded.
pub fn build(config: &Config, device: &Device) -> anyhow::Result<Box<dyn Training>> {
    validate::trainable(config)?;
    devices::use_tf32(config.train.tf32);
    match config.model.arch {
        Arch::Llama => Trainer::<Llama>::build(config, device),
        Arch::DistilBert => Trainer::<DistilBertForSequenceClassification>::build(config, device),
        Arch::Own => own::build(config, device),
        Arch::Gpt2 | Arch::Loop => Err(validate::only_planned(config).into()),
    }
}

/// One model under training.
#[allow(missing_debug_implementations)]
pub struct Trainer<L: Learner> {
    /// The parameters, f32. Taken out only while the optimizer walks it.
    model: Option<L::Model>,
    /// What the passes see instead, where they compute in bf16.
    working_copy: Option<L::Model>,
    precision: Precision,
    optimizer: Box<dyn ParameterUpdates>,
    gradients: Gradients,
    /// Sum of the window's losses, each divided by the window's targets; on the device.
    loss: Option<Tensor<1>>,
    max_norm: f64,
    seed: u64,
    flops: Option<Flops>,
    /// Classes of a classification.
    classes: Option<usize>,
    /// The update whose passes were made last.
    passed: u64,
    /// How far each parameter moved at the last update at which it was measured, with its rule's figures.
    measured: BTreeMap<String, (u64, driver::Measured)>,
    /// The parameter that the next update is looked into for, and how wide its maps are to be.
    watched: Option<(String, usize)>,
    /// What the last update told that was looked into, and of which parameter.
    look: Option<(String, Box<UpdateLook>)>,
}

impl<L: Learner> Trainer<L> {
    pub(super) fn build(config: &Config, device: &Device) -> anyhow::Result<Box<dyn Training>> {
        let mut trainer = Self::new(config, device)?.with_weights(config)?;
        trainer.copy();
        if config.optimizer.name == OptimizerName::Muon {
            optim::muon::check(&trainer.parameters())?;
        }
        Ok(Box::new(trainer))
    }

    /// Fresh weights on the device, no optimizer state.
    ///
    /// # Errors
    /// The settings do not make a model.
    pub fn new(config: &Config, device: &Device) -> anyhow::Result<Self> {
        Ok(Self {
            model: Some(L::init(config, &device.clone().autodiff())?),
            working_copy: None,
            precision: config.train.precision,
            optimizer: optim::build(&config.optimizer),
            gradients: Gradients::new(),
            loss: None,
            max_norm: config.clip.max_norm,
            seed: config.train.seed,
            flops: L::flops(config),
            classes: L::classes(config),
            passed: 0,
            measured: BTreeMap::new(),
            watched: None,
            look: None,
        })
    }

    /// The weights that `model.weights` names, if it names any.
    fn with_weights(mut self, config: &Config) -> Result<Self, WeightsError> {
        if let Some(plan) = plan(&config.model)?
            && let Some(model) = self.model.take()
        {
            self.model = Some(weights::load(model, &plan)?);
        }
        Ok(self)
    }

    /// Brings what the passes see to what the parameters are now.
    fn copy(&mut self) {
        if self.precision == Precision::Bf16 {
            self.working_copy = self.model.clone().map(working_copy::bf16);
        }
    }

    fn tensor_state(
        &self,
        name: &str,
        shape: &[usize],
        described: Vec<(String, StateTensor)>,
    ) -> TensorState {
        let measured = self.measured.get(name);
        TensorState {
            name: name.to_owned(),
            shape: shape.to_vec(),
            step: self.optimizer.slot(name).map_or(0, |(_, updates)| updates),
            update_ratio: measured.map(|(_, measured)| measured.update_ratio),
            measured_at: measured.map(|(update, _)| *update),
            figures: measured.map(|(_, measured)| measured.figures.clone()).unwrap_or_default(),
            state: described.into_iter().collect(),
        }
    }
}

impl<L: Learner> Training for Trainer<L> {
    fn micro_batch(&mut self, batch: &Batch, pass: Pass) -> PassTimes {
        let Some(model) = self.working_copy.as_ref().or(self.model.as_ref()) else {
            return PassTimes::default();
        };
        if batch.target_count == 0 || pass.target_count == 0 {
            return PassTimes::default();
        }
        self.passed = pass.update;
        let start = Instant::now();
        let noise = Noise::of(self.seed, pass.update, pass.micro_batch);
        let loss = L::loss(model, batch, &noise).sum.div_scalar(pass.target_count as f64);
        let value = loss.clone().inner();
        let forward = start.elapsed();
        let mut tape = loss.backward();
        self.gradients.add(model, &mut tape);
        self.loss = Some(match self.loss.take() {
            Some(sum) => sum + value,
            None => value,
        });
        PassTimes { forward, backward: start.elapsed() - forward }
    }

    fn update(&mut self, lr: f64, measure: bool) -> Outcome {
        let mut gradients = std::mem::take(&mut self.gradients);
        let Some(loss) = self.loss.take() else {
            return Outcome { loss: f64::NAN, grad_norm: 0.0, skipped: false, empty: true };
        };
        let loss = f64::from(loss.into_scalar::<f32>());
        let grad_norm = clip::global_norm(&gradients);
        let skipped = !loss.is_finite() || !grad_norm.is_finite();
        if !skipped && let Some(model) = self.model.take() {
            // Of no use any more: given up before the optimizer asks for memory.
            self.working_copy = None;
            gradients.scale(clip::coefficient(grad_norm, self.max_norm));
            let apply = driver::Apply { lr, measure };
            let watched = self.watched.take();
            let name = watched.as_ref().map(|(name, _)| name.as_str());
            let optimizer = &mut *self.optimizer;
            let (model, measured, looked) = driver::apply_looking(optimizer, model, gradients, apply, name);
            self.model = Some(model);
            if let (Some((name, width)), Some(looked)) = (watched, looked) {
                // Reduced at once: nothing of the parameter's size outlives the update.
                let step = self.optimizer.slot(&name).map_or(0, |(_, updates)| updates);
                let look = look::reduce(&looked, &self.optimizer.entries(&name), step, width);
                self.look = Some((name, Box::new(look)));
            }
            // Where not all were measured the one that is looked into was.
            if measure {
                self.measured.clear();
            }
            let update = self.passed;
            self.measured.extend(measured.into_iter().map(|(name, measured)| (name, (update, measured))));
            self.copy();
        }
        Outcome { loss, grad_norm, skipped, empty: false }
    }

    fn discard_window(&mut self) {
        self.gradients = Gradients::new();
        self.loss = None;
    }

    fn evaluate(&self, batches: &mut dyn Iterator<Item = Batch>) -> Evaluation {
        let (mut sum, mut targets, mut confusion) = (0.0, 0, Confusion::default());
        if let Some(model) = self.working_copy.as_ref().or(self.model.as_ref()).map(Module::valid) {
            for batch in batches {
                let Evaluated { loss, labels, found } = L::evaluate(&model, &batch);
                sum += f64::from(loss.sum.into_scalar::<f32>());
                targets += loss.targets;
                confusion.add(&labels, &found);
            }
        }
        let scores = self.classes.and_then(|classes| confusion.scores(classes));
        Evaluation {
            loss: sum / targets as f64,
            targets,
            accuracy: scores.map(|scores| scores.accuracy),
            f1: scores.map(|scores| scores.f1),
            f1_macro: scores.map(|scores| scores.f1_macro),
        }
    }

    fn flops(&self) -> Option<Flops> {
        self.flops
    }

    fn write_text(&self, request: &writing::Request) -> Option<Vec<Vec<i32>>> {
        let model = self.working_copy.as_ref().or(self.model.as_ref()).map(Module::valid)?;
        let mut seen = Seen::default();
        writing::write(request, |batch| {
            let logits_bv = L::next_token(&model, batch, &mut seen)?.cast(DType::F32);
            Some(logits_bv.into_data().iter::<f32>().collect())
        })
    }

    fn parameters(&self) -> Vec<(String, Vec<usize>)> {
        self.model.as_ref().map(weights::shapes).unwrap_or_default()
    }

    fn parameter_bytes(&self) -> u64 {
        let mut all: BTreeMap<_, u64> = BTreeMap::new();
        for model in [&self.model, &self.working_copy].into_iter().flatten() {
            // A norm's parameter is one and the same in both.
            all.extend(weights::bytes(model));
        }
        all.into_values().sum()
    }

    fn weights(&self) -> Vec<weights::HostTensor> {
        self.model.as_ref().map(weights::read).unwrap_or_default()
    }

    fn optimizer(&self) -> &dyn ParameterUpdates {
        &*self.optimizer
    }

    fn optimizer_mut(&mut self) -> &mut dyn ParameterUpdates {
        &mut *self.optimizer
    }

    fn gradient_bytes(&self) -> u64 {
        self.gradients.bytes()
    }

    fn accumulated(&self) -> Accumulated {
        let read = |values: &Tensor<1>| values.clone().cast(DType::F32).into_data().iter::<f32>().collect();
        Accumulated {
            loss: self.loss.clone().map_or(f64::NAN, |loss| f64::from(loss.into_scalar::<f32>())),
            grad_norm: clip::global_norm(&self.gradients),
            gradients: self.gradients.iter().map(|(name, values)| (name.to_owned(), read(values))).collect(),
        }
    }

    fn state(&self, names: &[String]) -> Vec<TensorState> {
        let wanted: Vec<(String, Vec<usize>)> = self
            .parameters()
            .into_iter()
            .filter(|(name, _)| names.is_empty() || names.contains(name))
            .collect();
        // One reduction and one read for all tensors together.
        let entries: Vec<_> = wanted.iter().map(|(name, _)| self.optimizer.entries(name)).collect();
        let mut described = stats::describe(&entries.concat()).into_iter();
        wanted
            .iter()
            .zip(&entries)
            .map(|((name, shape), entries)| {
                let state =
                    entries.iter().map(|entry| entry.name.to_owned()).zip(described.by_ref()).collect();
                self.tensor_state(name, shape, state)
            })
            .collect()
    }

    fn shared_state(&self) -> BTreeMap<String, StateTensor> {
        let entries = self.optimizer.shared();
        entries.iter().map(|entry| entry.name.to_owned()).zip(stats::describe(&entries)).collect()
    }

    fn open(&mut self, name: &str, width: usize) -> Option<StateDetail> {
        let (name, shape) = self.parameters().into_iter().find(|(known, _)| known == name)?;
        let entries = self.optimizer.entries(&name);
        let state =
            entries.iter().map(|entry| entry.name.to_owned()).zip(stats::describe(&entries)).collect();
        self.watched = Some((name.clone(), width));
        let look = self.look.as_ref().filter(|(of, _)| *of == name).map(|(_, look)| look.clone());
        Some(StateDetail {
            update: 0,
            tensor: self.tensor_state(&name, &shape, state),
            strips: stats::strips(&entries, width),
            reconstructed: stats::reconstructed(&entries, width),
            histograms: look::histograms(&entries),
            codes: look::codes(&entries),
            look,
        })
    }
}
