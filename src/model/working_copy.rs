//! A copy of a model in bf16 for the passes, beside the f32 parameters that the optimizer updates.

use burn::{
    module::{Module, ModuleMapper, Param},
    tensor::{DType, Tensor},
};

use crate::{backend::param::replaced, ledger::Role};

/// The model with every parameter in bf16, but for those of norms, which compute in f32.
pub fn bf16<M: Module>(model: M) -> M {
    model.map(&mut Cast { path: Vec::new() })
}

struct Cast {
    path: Vec<String>,
}

impl ModuleMapper for Cast {
    fn enter_module(&mut self, name: &str, _: &str) {
        self.path.push(name.to_owned());
    }

    fn exit_module(&mut self, _: &str, _: &str) {
        self.path.pop();
    }

    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        if Role::of(&self.path.join(".")) == Role::Norm {
            return param;
        }
        replaced(param, |tensor| tensor.cast(DType::BF16))
    }
}
