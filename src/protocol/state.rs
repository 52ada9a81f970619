//! The optimizer's state as data: statistics of tensors, and strips of one tensor.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::number;

/// Statistics of every parameter's state, written every `log.state_every` updates.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StateReport {
    pub update: u64,
    pub optimizer: String,
    pub tensors: Vec<TensorState>,
}

/// One parameter and its optimizer state. Shapes and names are PyTorch's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TensorState {
    /// Hugging Face's path, such as `model.layers.0.mlp.up_proj.weight`.
    pub name: String,
    pub shape: Vec<usize>,
    /// Updates applied to this tensor.
    pub step: u64,
    /// RMS of the last update over RMS of the parameter before it.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "number::optional")]
    pub update_ratio: Option<f64>,
    /// State tensors by name (`exp_avg_sq_row`), numbers by name (`step`, `RMS`) as tensors of one element.
    pub state: BTreeMap<String, StateTensor>,
}

impl TensorState {
    /// Bytes of all state of this parameter, as PyTorch counts them.
    pub fn bytes(&self) -> u64 {
        self.state.values().map(|tensor| tensor.bytes).sum()
    }

    /// Elements of all state of this parameter, as PyTorch counts them.
    pub fn elements(&self) -> u64 {
        self.state.values().map(|tensor| tensor.elements).sum()
    }
}

/// One state tensor: what it holds and, when asked for, its statistics.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StateTensor {
    /// `[]` for a number.
    pub shape: Vec<usize>,
    pub dtype: String,
    pub elements: u64,
    pub bytes: u64,
    #[serde(flatten, default, skip_serializing_if = "Option::is_none")]
    pub stats: Option<TensorStats>,
}

/// Statistics over all elements of a tensor, reduced on the device.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct TensorStats {
    #[serde(with = "number")]
    pub min: f64,
    #[serde(with = "number")]
    pub max: f64,
    #[serde(with = "number")]
    pub mean: f64,
    #[serde(with = "number")]
    pub rms: f64,
    pub zeros: u64,
    pub nonfinite: u64,
}

/// One tensor opened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StateDetail {
    pub update: u64,
    pub tensor: TensorState,
    pub strips: Vec<Strip>,
}

/// A state tensor as a row of values: a vector as it is, a matrix averaged over its rows and its columns,
/// a long axis averaged in equal groups. Averages are of absolute values for signed moments.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Strip {
    /// Name of the state tensor.
    pub name: String,
    /// What one value stands for, such as `row` or `mean |x| of 16 columns`.
    pub axis: String,
    /// Length of the axis before grouping.
    pub length: u64,
    #[serde(with = "number::list")]
    pub values: Vec<f64>,
}
