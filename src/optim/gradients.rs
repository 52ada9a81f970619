//! Gradients by parameter name, flat, summed over the micro-batches of a window.

use std::collections::BTreeMap;

use burn::{
    module::{Module, ModuleVisitor, Param},
    tensor::{DType, Gradients as Tape, Tensor},
};

/// The gradient of a window. Names are in a fixed order, so that sums over them repeat bit for bit.
#[derive(Debug, Default)]
pub struct Gradients {
    by_name: BTreeMap<String, Tensor<1>>,
}

impl Gradients {
    /// Empty: nothing has been added to the window yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds what one backward pass left on the tape.
    pub fn add<M: Module>(&mut self, model: &M, tape: &mut Tape) {
        model.visit(&mut Collect { path: Vec::new(), tape, into: &mut self.by_name });
    }

    /// Adds one gradient, flat.
    pub fn insert(&mut self, name: &str, gradient: Tensor<1>) {
        add_to(&mut self.by_name, name.to_owned(), gradient);
    }

    /// Takes one parameter's gradient out; `None` when the loss does not depend on it.
    pub fn take(&mut self, name: &str) -> Option<Tensor<1>> {
        self.by_name.remove(name)
    }

    /// Names and flat gradients, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Tensor<1>)> {
        self.by_name.iter().map(|(name, gradient)| (name.as_str(), gradient))
    }

    /// Bytes that the gradients hold.
    pub fn bytes(&self) -> u64 {
        self.by_name.values().map(|gradient| (gradient.dims()[0] * gradient.dtype().size()) as u64).sum()
    }
}

struct Collect<'a> {
    path: Vec<String>,
    tape: &'a mut Tape,
    into: &'a mut BTreeMap<String, Tensor<1>>,
}

impl ModuleVisitor for Collect<'_> {
    fn enter_module(&mut self, name: &str, _: &str) {
        self.path.push(name.to_owned());
    }

    fn exit_module(&mut self, _: &str, _: &str) {
        self.path.pop();
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        if let Some(gradient) = param.val().grad_remove(self.tape) {
            let count = gradient.shape().num_elements();
            // Sums are f32 whatever the type of the passes.
            add_to(self.into, self.path.join("."), gradient.reshape([count]).cast(DType::F32));
        }
    }
}

fn add_to(by_name: &mut BTreeMap<String, Tensor<1>>, name: String, gradient: Tensor<1>) {
    let sum = match by_name.remove(&name) {
        Some(sum) => sum + gradient,
        None => gradient,
    };
    by_name.insert(name, sum);
}
