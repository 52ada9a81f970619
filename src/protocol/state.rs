//! The optimizer's state as data: statistics of tensors, and strips of one tensor.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{CodeUse, Histogram, UpdateLook, number};

/// Statistics of every parameter's state, written every `log.state_every` updates.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StateReport {
    pub update: u64,
    pub optimizer: String,
    pub tensors: Vec<TensorState>,
    /// State that all parameters share and that is there once (`qmap1`, `qmap2`).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub shared: BTreeMap<String, StateTensor>,
}

impl StateReport {
    /// Bytes of all state in the report.
    pub fn bytes(&self) -> u64 {
        let own: u64 = self.tensors.iter().map(TensorState::bytes).sum();
        own + self.shared.values().map(|tensor| tensor.bytes).sum::<u64>()
    }

    /// Elements of all state in the report, as PyTorch counts them.
    pub fn elements(&self) -> u64 {
        let own: u64 = self.tensors.iter().map(TensorState::elements).sum();
        own + self.shared.values().map(|tensor| tensor.elements).sum::<u64>()
    }
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
    /// The update that this is of, and whatever else was measured of an update; without, that of the report.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured_at: Option<u64>,
    /// What was measured at the last update that was looked into, by name: see [`figures`].
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty", with = "number::map")]
    pub figures: BTreeMap<String, f64>,
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

/// Names of the figures of one parameter.
pub mod figures {
    /// `|R C / mean(R) - (g^2 + eps1)| / |g^2 + eps1|` in the Frobenius norm: Adafactor's second moment after the update
    /// against the update's own squared gradient. At the first update it is what factoring alone loses.
    pub const FACTORIZATION_ERROR: &str = "factorization_error";
    /// `|dequantised - m| / |m|` over the tensor, the first moment in f32 before it became codes in this update.
    pub const QUANTIZATION_ERROR_1: &str = "quantization_error/state1";
    /// The same of the second moment.
    pub const QUANTIZATION_ERROR_2: &str = "quantization_error/state2";
    /// Rows of a matrix in whose state no gradient has left a trace: it is what it began with. A trace fades where the
    /// average forgets fast, as Adafactor's does with a `decay_rate` near 0.
    pub const ROWS_NEVER_TOUCHED: &str = "rows_never_touched";
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
    /// Adafactor's reconstructed second moment `R C / mean(R)` of a matrix.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reconstructed: Option<Heat>,
    /// How the values of each state tensor are spread.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub histograms: Vec<Histogram>,
    /// How 8-bit codes are used.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub codes: Vec<CodeUse>,
    /// What the last update that was looked into did: told by a live run alone, from the first update after the tensor
    /// was opened on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub look: Option<Box<UpdateLook>>,
}

/// A matrix averaged over equal blocks of cells.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Heat {
    pub name: String,
    /// Of the matrix before it was averaged.
    pub shape: [usize; 2],
    /// Cells in a column and in a row of `values`.
    pub rows: usize,
    pub columns: usize,
    /// `[rows, columns]`, row after row.
    #[serde(with = "number::list")]
    pub values: Vec<f64>,
}

impl Heat {
    /// Adafactor's second moment as its factors stand for it, `R C / mean(R)`, in at most `width / 2` rows of `width`
    /// cells. The mean over a block of an outer product is the product of the means, so that the matrix itself is never
    /// made.
    pub fn reconstructed(row: &[f64], col: &[f64], width: usize) -> Self {
        let mean = row.iter().sum::<f64>() / row.len() as f64;
        let (rows, columns) = (grouped(row, (width / 2).max(1)), grouped(col, width.max(1)));
        Self {
            name: "exp_avg_sq_row exp_avg_sq_col / mean(exp_avg_sq_row)".to_owned(),
            shape: [row.len(), col.len()],
            rows: rows.len(),
            columns: columns.len(),
            values: rows.iter().flat_map(|row| columns.iter().map(move |col| row / mean * col)).collect(),
        }
    }
}

/// Means of at most `cells` equal groups; the last may be smaller.
fn grouped(values: &[f64], cells: usize) -> Vec<f64> {
    let group = values.len().div_ceil(cells).max(1);
    values.chunks(group).map(|part| part.iter().sum::<f64>() / part.len() as f64).collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_of_a_block_is_that_of_the_matrix_that_is_never_made() {
        let (row, col) = ([1.0, 3.0, 2.0, 6.0, 8.0], [0.5, 1.0, 4.0]);
        let full = Heat::reconstructed(&row, &col, 64);
        assert_eq!((full.rows, full.columns, full.shape), (5, 3, [5, 3]));
        assert_eq!(full.values[4], 3.0 / 4.0 * 1.0);
        let small = Heat::reconstructed(&row, &col, 4);
        assert_eq!((small.rows, small.columns, small.values.len()), (2, 3, 6));
        // Three rows of the first cell.
        let mean = [0, 3, 6].into_iter().map(|at| full.values[at]).sum::<f64>() / 3.0;
        assert!((small.values[0] - mean).abs() < 1e-12);
    }
}
