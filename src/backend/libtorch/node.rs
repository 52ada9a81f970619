//! Any function of libtorch as one node of Burn's tape.
//!
//! Forward, the function runs under libtorch's own autograd on leaves that share the inputs' memory; its graph is kept
//! in the node. Backward, libtorch's engine is given the gradient of the output and returns those of the leaves.

use burn::{
    backend::{
        Autodiff, LibTorch,
        autodiff::{
            checkpoint::base::Checkpointer,
            checkpoint::strategy::{CheckpointStrategy, NoCheckpointing},
            grads::Gradients,
            ops::{Backward, Ops, OpsKind},
        },
        tensor::FloatTensor,
    },
    tensor::Tensor,
};
use burn_tch::TchTensor;

use super::shim;

type Tracked = FloatTensor<Autodiff<LibTorch>>;

/// A tensor on a libtorch device, with or without a tape.
#[derive(Debug)]
pub(super) enum Raw {
    Plain(TchTensor),
    Tracked(Tracked),
}

impl Raw {
    /// The tensor's own; `None` when it lives elsewhere.
    pub(super) fn of<const D: usize>(tensor: &Tensor<D>) -> Option<Self> {
        if tensor.device().is_autodiff() {
            tensor.clone().try_into_primitive::<Autodiff<LibTorch>>().ok().map(Self::Tracked)
        } else {
            tensor.clone().try_into_primitive::<LibTorch>().ok().map(Self::Plain)
        }
    }

    fn value(&self) -> &TchTensor {
        match self {
            Self::Plain(tensor) => tensor,
            Self::Tracked(tensor) => tensor.primitive(),
        }
    }
}

/// What a node keeps between the passes.
struct Saved<const N: usize> {
    /// The output with its graph.
    root: tch::Tensor,
    leaves: [tch::Tensor; N],
    /// Burn works in place on memory that it holds once: as long as the graph needs it, it is held twice.
    _pins: Vec<TchTensor>,
}

impl<const N: usize> Clone for Saved<N> {
    fn clone(&self) -> Self {
        Self {
            root: self.root.shallow_clone(),
            leaves: self.leaves.each_ref().map(tch::Tensor::shallow_clone),
            _pins: self._pins.clone(),
        }
    }
}

impl<const N: usize> std::fmt::Debug for Saved<N> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Saved<{N}>")
    }
}

#[derive(Debug)]
struct Function;

impl<const N: usize> Backward<LibTorch, N> for Function {
    type State = Saved<N>;

    fn backward(self, ops: Ops<Saved<N>, N>, grads: &mut Gradients, _: &mut Checkpointer) {
        let seed = grads.consume::<LibTorch>(&ops.node);
        let found = match shim::grad(&ops.state.root, &seed.tensor, &ops.state.leaves) {
            Ok(found) => found,
            // Burn's backward pass has no other way to fail; the worker catches it.
            Err(error) => std::panic::panic_any(error.to_string()),
        };
        for (parent, gradient) in ops.parents.into_iter().zip(found) {
            if let (Some(node), Some(gradient)) = (parent, gradient) {
                grads.register::<LibTorch>(node.id, TchTensor::new(gradient));
            }
        }
    }
}

/// Runs a function of `N` tensors as one node; `None` when they do not all live on a libtorch device.
pub(super) fn node<const N: usize, const D: usize>(
    inputs: [Option<Raw>; N],
    function: impl FnOnce([&tch::Tensor; N]) -> tch::Tensor,
) -> Option<Tensor<D>> {
    let inputs: Vec<Raw> = inputs.into_iter().collect::<Option<_>>()?;
    let inputs: [Raw; N] = inputs.try_into().ok()?;
    if inputs.iter().all(|input| matches!(input, Raw::Plain(_))) {
        let output = function(inputs.each_ref().map(|input| &input.value().tensor));
        return Some(Tensor::from_primitive::<LibTorch>(TchTensor::new(output)));
    }
    let tracked = inputs.map(|input| match input {
        Raw::Tracked(tensor) => tensor,
        Raw::Plain(tensor) => Tracked::new(tensor),
    });
    let output = record::<N, NoCheckpointing>(tracked, function);
    Some(Tensor::from_primitive::<Autodiff<LibTorch>>(output))
}

fn record<const N: usize, C: CheckpointStrategy>(
    inputs: [Tracked; N],
    function: impl FnOnce([&tch::Tensor; N]) -> tch::Tensor,
) -> Tracked {
    let nodes = inputs.each_ref().map(|input| input.node());
    match Function.prepare::<C>(nodes).compute_bound().stateful() {
        OpsKind::Tracked(prepared) => {
            let leaves =
                inputs.each_ref().map(|input| input.primitive().tensor.detach().set_requires_grad(true));
            let root = tch::with_grad(|| function(leaves.each_ref()));
            let output = TchTensor::new(root.detach());
            let mut pins: Vec<TchTensor> = inputs.iter().map(|input| input.primitive().clone()).collect();
            pins.push(output.clone());
            prepared.finish(Saved { root, leaves, _pins: pins }, output)
        }
        OpsKind::UnTracked(prepared) => {
            let values = inputs.each_ref().map(|input| &input.primitive().tensor);
            prepared.finish(TchTensor::new(function(values)))
        }
    }
}
