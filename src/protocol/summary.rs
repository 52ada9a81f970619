//! The summary of a run: `summary.json`, and the data behind `summary.md`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Alert, CommandRecord, DataReport, Ledger, Lineage, MatmulPeak, Reason, TextSample, number};
use crate::config::Config;

/// Everything a person pastes into a report. Figures are exact, measured, or named an estimate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    pub schema: u32,
    pub run: String,
    pub name: String,
    pub reason: Reason,
    pub started: String,
    pub version: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git: Option<String>,
    pub device: String,
    pub threads: usize,
    pub hardware: BTreeMap<String, String>,
    pub config: Config,
    /// Keys whose value is not the default: key -> value.
    pub differences_from_default: BTreeMap<String, String>,
    pub seed: u64,
    pub data: DataReport,
    pub updates: u64,
    pub skipped_updates: u64,
    pub tokens: u64,
    /// Seconds, pauses included.
    #[serde(with = "number")]
    pub wall_seconds: f64,
    #[serde(with = "number::optional", default)]
    pub final_train_loss: Option<f64>,
    #[serde(with = "number::optional", default)]
    pub best_train_loss: Option<f64>,
    #[serde(with = "number::optional", default)]
    pub final_val_loss: Option<f64>,
    #[serde(with = "number::optional", default)]
    pub best_val_loss: Option<f64>,
    /// Of a classification, at the last validation: share of rows whose class was found.
    #[serde(with = "number::optional", default, skip_serializing_if = "Option::is_none")]
    pub eval_accuracy: Option<f64>,
    /// F1 of class 1 when there are two classes, else the macro average.
    #[serde(with = "number::optional", default, skip_serializing_if = "Option::is_none")]
    pub eval_f1: Option<f64>,
    /// Mean of the F1 of all classes.
    #[serde(with = "number::optional", default, skip_serializing_if = "Option::is_none")]
    pub eval_f1_macro: Option<f64>,
    /// Tokens over the time spent training, pauses and validation excluded.
    #[serde(with = "number::optional", default)]
    pub tokens_per_second: Option<f64>,
    /// Operations that the model asks for, by its shapes, over the time spent training.
    #[serde(with = "number::optional", default, skip_serializing_if = "Option::is_none")]
    pub flops_per_second: Option<f64>,
    /// The same as a share of the device's matmul peak.
    #[serde(with = "number::optional", default, skip_serializing_if = "Option::is_none")]
    pub mfu: Option<f64>,
    /// What was measured of the device before the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub matmul_peak: Option<MatmulPeak>,
    /// What the GPU used while the run's workers lived, by its own counter: all that ran on it.
    #[serde(with = "number::optional", default, skip_serializing_if = "Option::is_none")]
    pub gpu_energy_joules: Option<f64>,
    #[serde(with = "number::optional", default, skip_serializing_if = "Option::is_none")]
    pub gpu_joules_per_token: Option<f64>,
    /// The last text that a language model wrote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sample: Option<TextSample>,
    /// Computed before the run.
    pub ledger: Ledger,
    /// Counted from the tensors that were alive at the end.
    pub measured: Measured,
    pub interventions: Vec<CommandRecord>,
    /// Those that differ in nothing but their figures are one, which says how many they are.
    pub warnings: Vec<Alert>,
    /// What was said once: settings without effect, what became of the optimizer's state of a fork.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// What somebody wrote down about the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The command that shows this run again.
    pub show_command: String,
    /// The command that goes on with it: after it ran out of memory a fork or a new run with what would have room. Absent
    /// when every update has been made, or none helps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resume_command: Option<String>,
    /// The checkpoint of another run that this one started from; its updates, tokens and time are counted in, its
    /// speed is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked_from: Option<Lineage>,
}

/// What the worker counted and measured itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Measured {
    pub parameter_bytes: u64,
    /// By PyTorch's `compute_optimizer_size` convention: a number counts as one element of 4 bytes.
    pub state_elements: u64,
    pub state_bytes: u64,
    /// Alive in the worker's allocator before the model was made: the text and the program itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline_bytes: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_allocator_bytes: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_host_rss: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_gpu_device_bytes: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_gpu_process_bytes: Option<u64>,
    /// Of tensors on the GPU, by libtorch's allocator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_gpu_allocated_bytes: Option<u64>,
    /// Held of the GPU by libtorch's allocator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_gpu_reserved_bytes: Option<u64>,
    /// Allocations that succeeded only after the allocator had given back what it kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu_retries: Option<u64>,
    /// Where the peaks come from.
    pub peak_source: String,
}
