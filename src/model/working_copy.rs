//! A copy of a model in bf16 for the passes, beside the f32 parameters that the optimizer updates.

use burn::{
    module::{Module, ModuleMapper, Param},
    tensor::{DType, Tensor},
};

use crate::ledger::Role;

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
        let (id, tensor, mapper) = param.consume();
        // A tensor remembers whether it is trained and how its tape is checkpointed; the new one must, too.
        let (trained, strategy) = (tensor.is_require_grad(), tensor.gradient_checkpointing_strategy());
        let mut copy = Tensor::from_inner(tensor.inner().cast(DType::BF16));
        if let Some(strategy) = strategy {
            copy = copy.with_gradient_checkpointing_strategy(strategy);
        }
        if trained {
            copy = copy.require_grad();
        }
        Param::from_mapped_value(id, copy, mapper)
    }
}
