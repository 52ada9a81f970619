//! The driver: walks the model, updates each parameter, keeps its state under its name.

use std::collections::BTreeMap;

use burn::{
    module::{Module, ModuleMapper, Param},
    tensor::Tensor,
};

use super::{Entry, Gradients, Optimizer, OptimizerState, StateError, Step, stats};

/// An optimizer with the state of every parameter, whatever the rule.
pub trait ParameterUpdates: Send {
    /// Updates one parameter, flat.
    fn update(
        &mut self,
        name: &str,
        shape: &[usize],
        lr: f64,
        param: Tensor<1>,
        grad: Tensor<1>,
    ) -> Tensor<1>;

    /// The names that have state, sorted.
    fn names(&self) -> Vec<String>;

    /// Shape and number of updates of a parameter that has been updated.
    fn slot(&self, name: &str) -> Option<(&[usize], u64)>;

    /// The state of one parameter; handles, no copies.
    fn entries(&self, name: &str) -> Vec<Entry>;

    /// Puts back the state of one parameter.
    ///
    /// # Errors
    /// The entries are not this optimizer's.
    fn restore(
        &mut self,
        name: &str,
        shape: &[usize],
        updates: u64,
        entries: Vec<Entry>,
    ) -> Result<(), StateError>;
}

/// One rule and its typed state by parameter name.
#[derive(Debug)]
pub struct Driver<O: Optimizer> {
    rule: O,
    slots: BTreeMap<String, Slot<O::State>>,
}

#[derive(Debug)]
struct Slot<S> {
    shape: Vec<usize>,
    updates: u64,
    state: S,
}

impl<O: Optimizer> Driver<O> {
    /// No parameter has state before its first update.
    pub const fn new(rule: O) -> Self {
        Self { rule, slots: BTreeMap::new() }
    }
}

impl<O: Optimizer> ParameterUpdates for Driver<O> {
    fn update(
        &mut self,
        name: &str,
        shape: &[usize],
        lr: f64,
        param: Tensor<1>,
        grad: Tensor<1>,
    ) -> Tensor<1> {
        let (updates, state) = match self.slots.remove(name) {
            Some(slot) => (slot.updates, Some(slot.state)),
            None => (0, None),
        };
        let (param, state) = self.rule.step(Step { shape, lr }, param, grad, state);
        self.slots.insert(name.to_owned(), Slot { shape: shape.to_vec(), updates: updates + 1, state });
        param
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

    fn restore(
        &mut self,
        name: &str,
        shape: &[usize],
        updates: u64,
        entries: Vec<Entry>,
    ) -> Result<(), StateError> {
        let state = O::State::from_entries(entries)?;
        self.slots.insert(name.to_owned(), Slot { shape: shape.to_vec(), updates, state });
        Ok(())
    }
}

/// What an update is to do besides updating.
#[derive(Debug, Clone, Copy)]
pub struct Apply {
    pub lr: f64,
    /// Multiplied into every gradient: the clip coefficient.
    pub scale: f64,
    /// Measure how far each parameter moves, relative to its size.
    pub measure: bool,
}

/// Updates every parameter that has a gradient and returns the model; with `measure`, the update ratio by name.
pub fn apply<M: Module>(
    optimizer: &mut dyn ParameterUpdates,
    model: M,
    gradients: Gradients,
    apply: Apply,
) -> (M, BTreeMap<String, f64>) {
    let mut walk = Walk { path: Vec::new(), optimizer, gradients, apply, moved: Vec::new() };
    let model = model.map(&mut walk);
    let (names, ratios): (Vec<_>, Vec<_>) = walk.moved.into_iter().unzip();
    (model, names.into_iter().zip(stats::read_scalars(ratios)).collect())
}

struct Walk<'a> {
    path: Vec<String>,
    optimizer: &'a mut dyn ParameterUpdates,
    gradients: Gradients,
    apply: Apply,
    moved: Vec<(String, Tensor<1>)>,
}

impl ModuleMapper for Walk<'_> {
    fn enter_module(&mut self, name: &str, _: &str) {
        self.path.push(name.to_owned());
    }

    fn exit_module(&mut self, _: &str, _: &str) {
        self.path.pop();
    }

    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let (id, tensor, mapper) = param.consume();
        let name = self.path.join(".");
        let Some(grad) = self.gradients.take(&name) else {
            return Param::from_mapped_value(id, tensor, mapper);
        };
        // A tensor remembers whether it is trained and how its tape is checkpointed; the new one must, too.
        let (trained, strategy) = (tensor.is_require_grad(), tensor.gradient_checkpointing_strategy());
        let shape = tensor.dims();
        let count: usize = shape.iter().product();
        let old = tensor.inner().reshape([count]);
        let grad = if self.apply.scale == 1.0 { grad } else { grad.mul_scalar(self.apply.scale) };
        let before = self.apply.measure.then(|| old.clone());
        let new = self.optimizer.update(&name, &shape, self.apply.lr, old, grad);
        if let Some(before) = before {
            self.moved.push((name, stats::ratio_of_rms(&(new.clone() - before.clone()), &before)));
        }
        let mut tensor = Tensor::from_inner(new.reshape(shape));
        if let Some(strategy) = strategy {
            tensor = tensor.with_gradient_checkpointing_strategy(strategy);
        }
        if trained {
            tensor = tensor.require_grad();
        }
        Param::from_mapped_value(id, tensor, mapper)
    }
}
