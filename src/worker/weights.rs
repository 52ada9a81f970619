//! Parameters by name, in the model's order.

use burn::{
    module::{Module, ModuleVisitor, Param},
    tensor::{DType, Tensor},
};

/// A tensor on the host, in row-major order.
#[derive(Debug, Clone, PartialEq)]
pub struct HostTensor {
    pub name: String,
    pub shape: Vec<usize>,
    pub values: Vec<f32>,
}

/// Names and shapes.
pub fn shapes<M: Module>(model: &M) -> Vec<(String, Vec<usize>)> {
    let mut visitor =
        Visitor { path: Vec::new(), take: |param: Taken| (param.name, param.shape), out: Vec::new() };
    model.visit(&mut visitor);
    visitor.out
}

/// Names, shapes and values: copies every parameter to the host.
pub fn read<M: Module>(model: &M) -> Vec<HostTensor> {
    let take = |param: Taken| {
        let values = param.values.cast(DType::F32).into_data().iter::<f32>().collect();
        HostTensor { name: param.name, shape: param.shape, values }
    };
    let mut visitor = Visitor { path: Vec::new(), take, out: Vec::new() };
    model.visit(&mut visitor);
    visitor.out
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
