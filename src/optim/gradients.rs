//! Gradients by parameter name, flat, summed over the micro-batches of a window.

use std::collections::BTreeMap;

use burn::{
    module::{Module, ModuleVisitor, Param},
    tensor::{DType, Gradients as Tape, Tensor},
};

use crate::backend::ops;

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
        let mut found = Collect { path: Vec::new(), tape, found: BTreeMap::new() };
        model.visit(&mut found);
        self.add_all(found.found);
    }

    fn add_all(&mut self, mut found: BTreeMap<String, Tensor<1>>) {
        let mut pairs = Vec::new();
        for (name, sum) in &mut self.by_name {
            pairs.extend(found.get(name).map(|gradient| (sum, gradient)));
        }
        if !pairs.is_empty() && ops::add_in_place(&mut pairs) {
            found.retain(|name, _| !self.by_name.contains_key(name));
        }
        for (name, gradient) in found {
            self.insert(&name, gradient);
        }
    }

    /// Adds one gradient, flat. Sums are f32 whatever the type of the passes.
    pub fn insert(&mut self, name: &str, gradient: Tensor<1>) {
        let gradient = gradient.cast(DType::F32);
        let sum = match self.by_name.remove(name) {
            Some(sum) => sum + gradient,
            None => gradient,
        };
        self.by_name.insert(name.to_owned(), sum);
    }

    /// Multiplies every gradient by the same number: by how much clipping shortens them.
    pub fn scale(&mut self, factor: f64) {
        let mut all: Vec<&mut Tensor<1>> = self.by_name.values_mut().collect();
        if factor == 1.0 || ops::scale_in_place(&mut all, factor) {
            return;
        }
        let old = std::mem::take(&mut self.by_name);
        self.by_name = old.into_iter().map(|(name, gradient)| (name, gradient.mul_scalar(factor))).collect();
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
    found: BTreeMap<String, Tensor<1>>,
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
            self.found.insert(self.path.join("."), gradient.reshape([count]));
        }
    }
}

#[cfg(test)]
mod tests {
    use burn::{
        module::{Module, Param},
        tensor::{Device, TensorData},
    };

    use super::*;
    use crate::backend::devices;

    #[derive(Module, Debug)]
    struct Two {
        weight: Param<Tensor<2>>,
        bias: Param<Tensor<1>>,
    }

    fn model(device: &Device) -> Two {
        let weight = Tensor::from_data(TensorData::new(vec![1.0_f32, 2.0, 3.0, 4.0], [2, 2]), device);
        let bias = Tensor::from_data(TensorData::new(vec![5.0_f32, 6.0], [2]), device);
        Two { weight: Param::from_tensor(weight), bias: Param::from_tensor(bias) }
    }

    fn read(gradients: &Gradients) -> Vec<(String, Vec<f32>)> {
        gradients.iter().map(|(name, values)| (name.to_owned(), values.to_data().iter().collect())).collect()
    }

    /// On the device that the tests are asked to run on: libtorch adds and multiplies all in one call.
    fn device() -> Device {
        let named = std::env::var("TEST_DEVICE").ok();
        named.map_or_else(Device::flex, |name| devices::open(name.parse().unwrap()).unwrap().device)
    }

    #[test]
    fn passes_add_up_whichever_parameters_they_reach_and_what_was_handed_out_stays() {
        let model = model(&device().autodiff());
        let mut gradients = Gradients::new();
        let pass = |loss: Tensor<1>, gradients: &mut Gradients| gradients.add(&model, &mut loss.backward());
        // 2 w; then 2 w and 1; then 1.
        let square = || model.weight.val().square().sum();
        pass(square(), &mut gradients);
        let held = gradients.iter().next().unwrap().1.clone();
        pass(square() + model.bias.val().sum(), &mut gradients);
        pass(model.bias.val().sum(), &mut gradients);
        let sums = [("bias".to_owned(), vec![2.0, 2.0]), ("weight".to_owned(), vec![4.0, 8.0, 12.0, 16.0])];
        assert_eq!(read(&gradients), sums);
        assert_eq!(gradients.bytes(), 4 * 6);
        gradients.scale(0.25);
        let scaled = [("bias".to_owned(), vec![0.5, 0.5]), ("weight".to_owned(), vec![1.0, 2.0, 3.0, 4.0])];
        assert_eq!(read(&gradients), scaled);
        assert_eq!(held.into_data().iter::<f32>().collect::<Vec<_>>(), [2.0, 4.0, 6.0, 8.0]);
        // The parameters are not what was written to.
        assert_eq!(model.bias.val().into_data().iter::<f32>().collect::<Vec<_>>(), [5.0, 6.0]);
    }

    #[test]
    fn short_gradients_are_summed_in_f32() {
        let mut gradients = Gradients::new();
        let short = |value: f32| Tensor::<1>::full([3], value, &device()).cast(DType::BF16);
        for _ in 0..3 {
            gradients.insert("weight", short(1.0));
        }
        // 259 is not a number of bf16.
        gradients.insert("weight", short(256.0));
        assert_eq!(read(&gradients), [("weight".to_owned(), vec![259.0; 3])]);
    }
}
