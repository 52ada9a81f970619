//! The optimizer state of one parameter, by shape: names, elements and bytes as PyTorch counts them.
//!
//! A number such as `step` counts as one element of 4 bytes, the convention of the optimizer guide that adds up
//! `numel` over all state values.

use crate::config::{OptimizerConfig, OptimizerName};

use super::F32;

/// One state tensor, or a number when the shape is empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateShape {
    pub name: &'static str,
    pub shape: Vec<usize>,
}

impl StateShape {
    /// Number of elements; 1 for a number.
    pub fn elements(&self) -> u64 {
        self.shape.iter().map(|&length| length as u64).product()
    }

    /// Bytes, all state of these optimizers being f32.
    pub fn bytes(&self) -> u64 {
        self.elements() * F32
    }
}

/// The state that the chosen optimizer keeps for a parameter of that shape.
pub fn state_of(optimizer: &OptimizerConfig, shape: &[usize]) -> Vec<StateShape> {
    let number = |name| StateShape { name, shape: Vec::new() };
    let like = |name| StateShape { name, shape: shape.to_vec() };
    match optimizer.name {
        OptimizerName::AdamW => {
            let mut state = vec![number("step"), like("exp_avg"), like("exp_avg_sq")];
            if optimizer.adamw.amsgrad {
                state.push(like("max_exp_avg_sq"));
            }
            state
        }
        OptimizerName::Adafactor => {
            let mut state = vec![number("step"), number("RMS")];
            match shape {
                [lead @ .., rows, columns] => {
                    state.push(StateShape { name: "exp_avg_sq_row", shape: [lead, &[*rows]].concat() });
                    state.push(StateShape { name: "exp_avg_sq_col", shape: [lead, &[*columns]].concat() });
                }
                _ => state.push(like("exp_avg_sq")),
            }
            if optimizer.adafactor.beta1.is_some() {
                state.push(like("exp_avg"));
            }
            state
        }
        OptimizerName::Sgd if optimizer.sgd.momentum > 0.0 => vec![like("momentum_buffer")],
        OptimizerName::Sgd => Vec::new(),
    }
}
