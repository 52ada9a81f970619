//! New values for a parameter of a module.

use burn::{module::Param, tensor::Tensor};

/// The parameter with another value, made of the one it has; both are without a tape. A tensor remembers whether it is
/// trained and how its tape is checkpointed, and the new one does as the old one did.
pub fn replaced<const D: usize>(
    param: Param<Tensor<D>>,
    new: impl FnOnce(Tensor<D>) -> Tensor<D>,
) -> Param<Tensor<D>> {
    let (id, old, mapper) = param.consume();
    let (trained, strategy) = (old.is_require_grad(), old.gradient_checkpointing_strategy());
    let mut tensor = Tensor::from_inner(new(old.inner()));
    if let Some(strategy) = strategy {
        tensor = tensor.with_gradient_checkpointing_strategy(strategy);
    }
    if trained {
        tensor = tensor.require_grad();
    }
    Param::from_mapped_value(id, tensor, mapper)
}
