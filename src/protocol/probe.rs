//! What the program that links libtorch says about itself.

use serde::{Deserialize, Serialize};

/// The answer of `tui-train-libtorch probe`, one JSON document on standard output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Probe {
    /// Of this document and of everything the worker writes.
    pub schema: u32,
    /// Version of the program.
    pub version: String,
    /// Revision it was built from, where it was built in a clone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git: Option<String>,
    /// Version of the libtorch that it has loaded.
    pub libtorch: String,
    /// Version of libtorch that it was compiled for.
    #[serde(default)]
    pub built_for: String,
    /// Where it was found when the program was built.
    pub folder: String,
    /// Whether it was built against a libtorch with CUDA.
    pub cuda_build: bool,
    /// CUDA devices that libtorch sees, the environment's mask applied.
    pub cuda_devices: usize,
}
