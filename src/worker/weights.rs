//! Parameters by name, in the model's order: read to the host, or loaded from a checkpoint.

use burn::{
    module::{Module, ModuleMapper, ModuleVisitor, Param},
    tensor::{DType, Tensor, TensorData},
};
use rayon::prelude::*;

use crate::{
    backend::param::replaced,
    run::weights::{Plan, WeightsError},
};

/// A tensor on the host, in row-major order.
#[derive(Debug, Clone, PartialEq)]
pub struct HostTensor {
    pub name: String,
    pub shape: Vec<usize>,
    /// f32, as it left the device.
    pub data: TensorData,
}

impl HostTensor {
    pub fn values(&self) -> &[f32] {
        self.data.as_slice().unwrap_or_default()
    }
}

/// Names and shapes.
pub fn shapes<M: Module>(model: &M) -> Vec<(String, Vec<usize>)> {
    let mut visitor =
        Visitor { path: Vec::new(), take: |param: Taken| (param.name, param.shape), out: Vec::new() };
    model.visit(&mut visitor);
    visitor.out
}

/// Bytes by name and size of an element.
pub fn bytes<M: Module>(model: &M) -> Vec<((String, usize), u64)> {
    let take = |param: Taken| {
        let size = param.values.dtype().size();
        ((param.name, size), (param.values.dims()[0] * size) as u64)
    };
    let mut visitor = Visitor { path: Vec::new(), take, out: Vec::new() };
    model.visit(&mut visitor);
    visitor.out
}

/// Names, shapes and values: copies every parameter to the host, once and on all cores.
pub fn read<M: Module>(model: &M) -> Vec<HostTensor> {
    let mut visitor = Visitor { path: Vec::new(), take: |param: Taken| param, out: Vec::new() };
    model.visit(&mut visitor);
    let copied = visitor.out.into_par_iter().map(|Taken { name, shape, values }| HostTensor {
        name,
        shape,
        data: values.cast(DType::F32).into_data(),
    });
    copied.collect()
}

/// Puts the values of a checkpoint into the model, one parameter at a time; what the checkpoint does not hold keeps
/// its value.
///
/// # Errors
/// A file cannot be read any more.
pub fn load<M: Module>(model: M, plan: &Plan) -> Result<M, WeightsError> {
    let mut loader = Loader { path: Vec::new(), plan, failed: None };
    let model = model.map(&mut loader);
    loader.failed.map_or(Ok(model), Err)
}

struct Taken {
    name: String,
    shape: Vec<usize>,
    values: Tensor<1>,
}

struct Visitor<T, F: Fn(Taken) -> T> {
    path: Vec<String>,
    take: F,
    out: Vec<T>,
}

impl<T, F: Fn(Taken) -> T> ModuleVisitor for Visitor<T, F> {
    fn enter_module(&mut self, name: &str, _: &str) {
        self.path.push(name.to_owned());
    }

    fn exit_module(&mut self, _: &str, _: &str) {
        self.path.pop();
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let shape = param.val().dims().to_vec();
        let count: usize = shape.iter().product();
        let values = param.val().inner().reshape([count]);
        self.out.push((self.take)(Taken { name: self.path.join("."), shape, values }));
    }
}

struct Loader<'a> {
    path: Vec<String>,
    plan: &'a Plan,
    /// The first thing that went wrong.
    failed: Option<WeightsError>,
}

impl ModuleMapper for Loader<'_> {
    fn enter_module(&mut self, name: &str, _: &str) {
        self.path.push(name.to_owned());
    }

    fn exit_module(&mut self, _: &str, _: &str) {
        self.path.pop();
    }

    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let values = match self.plan.read(&self.path.join(".")) {
            Ok(Some(values)) if self.failed.is_none() => values,
            Ok(_) => return param,
            Err(error) => {
                self.failed.get_or_insert(error);
                return param;
            }
        };
        replaced(param, |old| {
            let (shape, device) = (old.dims(), old.device());
            drop(old);
            Tensor::from_data(TensorData::new(values, shape), &device)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use burn::tensor::Device;

    use super::*;
    use crate::{
        config::{Config, Layers},
        model::{TrainModel, llama::Llama},
        run::weights,
    };

    fn config(weights: &str) -> Config {
        let mut config = Layers::new().resolve().unwrap().config;
        let formats = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/parity/formats");
        let model = &mut config.model;
        (model.vocab_size, model.hidden_size, model.intermediate_size) = (8, 8, 8);
        (model.num_hidden_layers, model.num_attention_heads, model.num_key_value_heads) = (1, 2, 1);
        model.tie_word_embeddings = false;
        model.weights = Some(formats.join(weights).display().to_string());
        config
    }

    #[test]
    fn every_parameter_gets_the_values_of_its_name_and_is_still_trained() {
        for weights in ["single", "strided.bin"] {
            let config = config(weights);
            let device = Device::flex().autodiff();
            let plan = weights::plan(&config.model).unwrap().unwrap();
            let fresh = Llama::init(&config, &device);
            let loaded = load(fresh.clone(), &plan).unwrap();
            let tensors = read(&loaded);
            assert_eq!(tensors.len(), 12);
            for (tensor, before) in tensors.iter().zip(read(&fresh)) {
                let expected = plan.read(&tensor.name).unwrap();
                assert_eq!(Some(tensor.values()), expected.as_deref(), "{}", tensor.name);
                assert_ne!(tensor.values(), before.values(), "{}", tensor.name);
            }
            let mut trained = Trained(0);
            loaded.visit(&mut trained);
            assert_eq!(trained.0, 12, "all are trained");
        }
    }

    struct Trained(usize);

    impl ModuleVisitor for Trained {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            self.0 += usize::from(param.val().is_require_grad());
        }
    }

    #[test]
    fn a_file_that_became_shorter_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let mut config = config("single");
        let original = format!("{}/model.safetensors", config.model.weights.unwrap());
        let copy = folder.path().join("copy.safetensors");
        std::fs::copy(original, &copy).unwrap();
        config.model.weights = Some(copy.display().to_string());
        let plan = weights::plan(&config.model).unwrap().unwrap();
        std::fs::write(&copy, "").unwrap();
        let error = load(Llama::init(&config, &Device::flex()), &plan).unwrap_err().to_string();
        assert!(error.contains("copy.safetensors cannot be read"), "{error}");
    }
}
