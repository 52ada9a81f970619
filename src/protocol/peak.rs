//! How fast a device multiplies matrices, measured.

use serde::{Deserialize, Serialize};

use super::number;

/// The most operations a second that products of square matrices came to. What a model's own speed is held against.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MatmulPeak {
    /// As in a configuration, such as `flex`.
    pub device: String,
    /// The processor or the GPU.
    pub hardware: String,
    /// Threads it was measured with.
    pub threads: usize,
    /// `f32`, `tf32` or `bf16`.
    pub precision: String,
    /// A multiplication and an addition are two operations.
    #[serde(with = "number")]
    pub flops_per_second: f64,
    /// Rows and columns of the matrices.
    pub size: usize,
    /// UTC, RFC 3339.
    pub measured: String,
    /// Of this program.
    pub version: String,
}

impl MatmulPeak {
    /// What it is the peak of: device, hardware, threads, precision.
    pub fn key(&self) -> (&str, &str, usize, &str) {
        (&self.device, &self.hardware, self.threads, &self.precision)
    }
}
