//! The driver: walks the model, updates each parameter, keeps its state under its name.

use std::collections::BTreeMap;

use burn::{
    module::{Module, ModuleMapper, Param},
    tensor::{Device, Tensor},
};

use super::{
    Entry, Figure, Gradients, Kept, NoDecay, Optimizer, OptimizerState, StateError, Step, Values, stats,
};
use crate::backend::param::replaced;

/// An optimizer with the state of every parameter, whatever the rule.
pub trait ParameterUpdates: Send {
    /// Updates one parameter, flat. With `measure`, figures of the update come along.
    fn update(&mut self, target: Target<'_>, param: Tensor<1>, grad: Tensor<1>, measure: bool) -> Updated;

    /// The names that have state, sorted.
    fn names(&self) -> Vec<String>;

    /// Shape and number of updates of a parameter that has been updated.
    fn slot(&self, name: &str) -> Option<(&[usize], u64)>;

    /// The state of one parameter; handles, no copies.
    fn entries(&self, name: &str) -> Vec<Entry>;

    /// State that all parameters share, once there is any that needs it.
    fn shared(&self) -> Vec<Entry>;

    /// Puts back the state of one parameter, as a checkpoint holds it.
    ///
    /// # Errors
    /// The values are not what this optimizer keeps with its settings.
    fn restore(
        &mut self,
        name: &str,
        shape: &[usize],
        updates: u64,
        values: Values,
        device: &Device,
    ) -> Result<(), StateError>;
}

/// The parameter to update, and at what rate.
#[derive(Debug, Clone, Copy)]
pub struct Target<'a> {
    /// Hugging Face's name.
    pub name: &'a str,
    /// PyTorch's shape.
    pub shape: &'a [usize],
    pub lr: f64,
}

/// An updated parameter, flat.
#[derive(Debug)]
pub struct Updated {
    pub param: Tensor<1>,
    pub figures: Vec<Figure>,
}

/// One rule and its typed state by parameter name.
#[derive(Debug)]
pub struct Driver<O: Optimizer> {
    rule: O,
    no_decay: NoDecay,
    slots: BTreeMap<String, Slot<O::State>>,
}

#[derive(Debug)]
struct Slot<S> {
    shape: Vec<usize>,
    decay: bool,
    updates: u64,
    state: S,
}

impl<O: Optimizer> Driver<O> {
    /// No parameter has state before its first update.
    pub const fn new(rule: O, no_decay: NoDecay) -> Self {
        Self { rule, no_decay, slots: BTreeMap::new() }
    }
}

impl<O: Optimizer> ParameterUpdates for Driver<O> {
    fn update(&mut self, target: Target<'_>, param: Tensor<1>, grad: Tensor<1>, measure: bool) -> Updated {
        let Target { name, shape, lr } = target;
        let (decay, updates, state) = match self.slots.remove(name) {
            Some(slot) => (slot.decay, slot.updates, Some(slot.state)),
            None => (self.no_decay.decays(name), 0, None),
        };
        let step = Step { name, shape, lr, decay };
        // Copies are handles; but a rule cannot work in place on what is held twice, so they are made only to measure.
        let measured = measure.then(|| (grad.clone(), state.clone()));
        let (param, state) = self.rule.step(step, param, grad, state);
        let figures = measured
            .map_or_else(Vec::new, |(grad, before)| self.rule.figures(step, &grad, before.as_ref(), &state));
        let slot = Slot { shape: shape.to_vec(), decay, updates: updates + 1, state };
        self.slots.insert(name.to_owned(), slot);
        Updated { param, figures }
    }

    fn names(&self) -> Vec<String> {
        self.slots.keys().cloned().collect()
    }

    fn slot(&self, name: &str) -> Option<(&[usize], u64)> {
        self.slots.get(name).map(|slot| (slot.shape.as_slice(), slot.updates))
    }

    fn entries(&self, name: &str) -> Vec<Entry> {
        self.slots.get(name).map(|slot| slot.state.entries(&slot.shape)).unwrap_or_default()
    }

    fn shared(&self) -> Vec<Entry> {
        let needed = self.slots.values().any(|slot| slot.state.needs_shared());
        if needed { self.rule.shared() } else { Vec::new() }
    }

    fn restore(
        &mut self,
        name: &str,
        shape: &[usize],
        updates: u64,
        values: Values,
        device: &Device,
    ) -> Result<(), StateError> {
        let mut kept = Kept::new(shape, values, device);
        let state = self.rule.restore(&mut kept)?;
        kept.finish()?;
        let decay = self.no_decay.decays(name);
        self.slots.insert(name.to_owned(), Slot { shape: shape.to_vec(), decay, updates, state });
        Ok(())
    }
}

/// What an update is to do besides updating.
#[derive(Debug, Clone, Copy)]
pub struct Apply {
    pub lr: f64,
    /// Measure how far each parameter moves, relative to its size.
    pub measure: bool,
}

/// What was measured of one parameter's update.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Measured {
    /// RMS of the update over RMS of the parameter before it.
    pub update_ratio: f64,
    /// The rule's own figures.
    pub figures: BTreeMap<String, f64>,
}

/// Updates every parameter that has a gradient and returns the model; with `measure`, what was measured by name.
pub fn apply<M: Module>(
    optimizer: &mut dyn ParameterUpdates,
    model: M,
    gradients: Gradients,
    apply: Apply,
) -> (M, BTreeMap<String, Measured>) {
    let (model, measured, _) = apply_looking(optimizer, model, gradients, apply, None);
    (model, measured)
}

/// The gradient that one parameter's rule took and what it added to the parameter, flat, on the device.
#[derive(Debug, Clone)]
pub struct Looked {
    pub shape: Vec<usize>,
    pub gradient: Tensor<1>,
    pub change: Tensor<1>,
}

/// As [`apply()`], and measures and keeps what it did to the parameter of that name.
pub fn apply_looking<M: Module>(
    optimizer: &mut dyn ParameterUpdates,
    model: M,
    gradients: Gradients,
    apply: Apply,
    look: Option<&str>,
) -> (M, BTreeMap<String, Measured>, Option<Looked>) {
    let scalars = Vec::new();
    let mut walk = Walk { path: Vec::new(), optimizer, gradients, apply, scalars, look, looked: None };
    let model = model.map(&mut walk);
    let looked = walk.looked;
    let (names, scalars): (Vec<_>, Vec<_>) =
        walk.scalars.into_iter().map(|(name, figure, scalar)| ((name, figure), scalar)).unzip();
    let mut measured: BTreeMap<String, Measured> = BTreeMap::new();
    for ((name, figure), value) in names.into_iter().zip(stats::read_scalars(scalars)) {
        let of = measured.entry(name).or_default();
        match figure {
            Some(figure) => drop(of.figures.insert(figure.to_owned(), value)),
            None => of.update_ratio = value,
        }
    }
    (model, measured, looked)
}

struct Walk<'a> {
    path: Vec<String>,
    optimizer: &'a mut dyn ParameterUpdates,
    gradients: Gradients,
    apply: Apply,
    /// Parameter, figure (`None`: the update ratio) and value, still on the device.
    scalars: Vec<(String, Option<&'static str>, Tensor<1>)>,
    /// The parameter to look into.
    look: Option<&'a str>,
    looked: Option<Looked>,
}

impl Walk<'_> {
    /// One parameter after its update; what is to be measured or looked into is kept on the way.
    fn updated<const D: usize>(&mut self, name: &str, tensor: Tensor<D>, grad: Tensor<1>) -> Tensor<D> {
        let shape = tensor.dims();
        let old = tensor.reshape([shape.iter().product::<usize>()]);
        let look = self.look == Some(name);
        // What is looked into is looked into altogether.
        let measure = self.apply.measure || look;
        let before = measure.then(|| old.clone());
        let gradient = look.then(|| grad.clone());
        let target = Target { name, shape: &shape, lr: self.apply.lr };
        let Updated { param: new, figures } = self.optimizer.update(target, old, grad, measure);
        if let Some(before) = before {
            let change = new.clone() - before.clone();
            let ratio = stats::ratio_of_rms(&change, &before);
            self.scalars.push((name.to_owned(), None, ratio));
            let figures = figures.into_iter();
            self.scalars.extend(figures.map(|(figure, value)| (name.to_owned(), Some(figure), value)));
            if let Some(gradient) = gradient {
                self.looked = Some(Looked { shape: shape.to_vec(), gradient, change });
            }
        }
        new.reshape(shape)
    }
}

impl ModuleMapper for Walk<'_> {
    fn enter_module(&mut self, name: &str, _: &str) {
        self.path.push(name.to_owned());
    }

    fn exit_module(&mut self, _: &str, _: &str) {
        self.path.pop();
    }

    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let name = self.path.join(".");
        let Some(grad) = self.gradients.take(&name) else { return param };
        replaced(param, |tensor| self.updated(&name, tensor, grad))
    }
}
