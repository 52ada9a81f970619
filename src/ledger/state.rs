//! The optimizer state of one parameter, by name and shape: names, elements and bytes as PyTorch counts them.
//!
//! A number such as `step` counts as one element of 4 bytes, the convention of the optimizer guide that adds up
//! `numel` over all state values.

use crate::config::{AdamW8bitConfig, OptimizerConfig, OptimizerName};

use super::{ParameterShape, Role};

/// The type of a state tensor's elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Element {
    F32,
    U8,
}

impl Element {
    /// Bytes of one.
    pub const fn bytes(self) -> u64 {
        match self {
            Self::F32 => 4,
            Self::U8 => 1,
        }
    }
}

/// One state tensor, or a number when the shape is empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateShape {
    pub name: &'static str,
    pub shape: Vec<usize>,
    pub element: Element,
}

impl StateShape {
    const fn number(name: &'static str) -> Self {
        Self { name, shape: Vec::new(), element: Element::F32 }
    }

    fn f32(name: &'static str, shape: &[usize]) -> Self {
        Self { name, shape: shape.to_vec(), element: Element::F32 }
    }

    fn u8(name: &'static str, shape: &[usize]) -> Self {
        Self { name, shape: shape.to_vec(), element: Element::U8 }
    }

    /// Number of elements; 1 for a number.
    pub fn elements(&self) -> u64 {
        self.shape.iter().map(|&length| length as u64).product()
    }

    /// Bytes of all elements.
    pub fn bytes(&self) -> u64 {
        self.elements() * self.element.bytes()
    }
}

/// The state that the chosen optimizer keeps for a parameter.
pub fn state_of(optimizer: &OptimizerConfig, parameter: &ParameterShape) -> Vec<StateShape> {
    let shape = &parameter.shape[..];
    let like = |name| StateShape::f32(name, shape);
    let number = StateShape::number;
    let quantized = is_quantized(&optimizer.adamw8bit, &parameter.name, parameter.elements());
    match optimizer.name {
        OptimizerName::AdamW => {
            let mut state = vec![number("step"), like("exp_avg"), like("exp_avg_sq")];
            if optimizer.adamw.amsgrad {
                state.push(like("max_exp_avg_sq"));
            }
            state
        }
        OptimizerName::AdamW8bit if quantized => {
            let blocks = [parameter.elements().div_ceil(optimizer.adamw8bit.blocksize as u64) as usize];
            vec![
                number("step"),
                StateShape::u8("state1", shape),
                StateShape::u8("state2", shape),
                StateShape::f32("absmax1", &blocks),
                StateShape::f32("absmax2", &blocks),
            ]
        }
        OptimizerName::AdamW8bit => vec![number("step"), like("state1"), like("state2")],
        OptimizerName::Adafactor => {
            let mut state = vec![number("step"), number("RMS")];
            match shape {
                [lead @ .., rows, columns] => {
                    state.push(StateShape::f32("exp_avg_sq_row", &[lead, &[*rows]].concat()));
                    state.push(StateShape::f32("exp_avg_sq_col", &[lead, &[*columns]].concat()));
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
        OptimizerName::Lion => vec![like("exp_avg")],
        OptimizerName::Muon if takes_muon(&parameter.name, shape) => vec![like("momentum_buffer")],
        OptimizerName::Muon => vec![number("step"), like("exp_avg"), like("exp_avg_sq")],
        // What a loop of its own keeps it alone knows.
        OptimizerName::Own => Vec::new(),
    }
}

/// State that all parameters share and that is there once: the two maps from 8-bit codes to values.
pub fn shared_state(optimizer: &OptimizerConfig, parameters: &[ParameterShape]) -> Vec<StateShape> {
    let needed = optimizer.name == OptimizerName::AdamW8bit
        && parameters
            .iter()
            .any(|parameter| is_quantized(&optimizer.adamw8bit, &parameter.name, parameter.elements()));
    let maps = ["qmap1", "qmap2"].map(|name| StateShape::f32(name, &[256]));
    if needed { maps.to_vec() } else { Vec::new() }
}

/// Whether 8-bit AdamW keeps this parameter's moments as codes.
pub fn is_quantized(config: &AdamW8bitConfig, name: &str, elements: u64) -> bool {
    let kept = Role::of(name) == Role::Embedding && !config.quantize_embeddings;
    elements >= config.min_8bit_size as u64 && !kept
}

/// Whether Muon updates this parameter: a matrix of a hidden layer. AdamW updates the rest.
pub fn takes_muon(name: &str, shape: &[usize]) -> bool {
    shape.len() == 2 && Role::of(name) == Role::Other
}
