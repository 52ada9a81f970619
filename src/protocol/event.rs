//! The lines of `events.jsonl`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Ledger, MatmulPeak, StateReport, Summary, TextSample, number};
use crate::config::Config;

/// One line of a run's record. `time` is seconds since the run started, paused time included.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Event {
    Header(Box<Header>),
    Update(Update),
    Window(Window),
    Validation(Validation),
    Sample(TextSample),
    Host(Host),
    Alert(Alert),
    State(StateReport),
    Checkpoint(CheckpointWritten),
    /// The run went on: earlier events of updates after this one do not count.
    Resumed(Box<Resumed>),
    /// Weights and state were copied for a checkpoint, which `checkpoint` tells of once it is on disk.
    Snapshot(Snapshot),
    Command(CommandRecord),
    RunEnded(Box<RunEnded>),
}

/// A run that goes on in a new process.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Resumed {
    /// The update of the checkpoint; 0 when there was none.
    pub from_update: u64,
    /// Seconds of the run that count, as of that update.
    #[serde(default, with = "number")]
    pub time: f64,
    /// Settings that changed: key, value before, value from now on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<[String; 3]>,
    /// A learning rate given by hand that is still in force.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "number::optional")]
    pub learning_rate: Option<f64>,
    /// The header that holds from now on; absent when the one before still does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub header: Option<Box<Header>>,
}

impl Resumed {
    /// Whether it trains on that device, where the run was trained before.
    pub fn stays_on(&self, device: &str) -> bool {
        self.header.as_ref().is_none_or(|header| header.device == device)
    }
}

impl Event {
    /// A resumption from that update with nothing changed.
    pub fn resumed(from_update: u64) -> Self {
        Self::Resumed(Box::new(Resumed { from_update, ..Resumed::default() }))
    }
}

/// A copy that is on its way to the disk.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    pub update: u64,
    #[serde(with = "number")]
    pub time: f64,
}

/// Where a fork comes from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Lineage {
    /// Id of the run.
    pub run: String,
    /// Updates made by then; the fork's count on.
    pub update: u64,
    /// Real input tokens trained by then.
    pub tokens: u64,
    /// Seconds of the run by then.
    #[serde(default, with = "number")]
    pub time: f64,
}

impl Lineage {
    /// In words, as they are said once when the fork begins.
    pub fn told(&self) -> String {
        format!("forked from run {} at update {}", self.run, self.update)
    }
}

/// The first line: what is being trained, where, from what.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Header {
    pub schema: u32,
    /// Name of the run directory.
    pub run: String,
    pub name: String,
    /// UTC, RFC 3339.
    pub started: String,
    pub config: Config,
    /// Keys set by hand, with their values.
    pub explicit: BTreeMap<String, String>,
    /// The device that trains, such as `flex`.
    pub device: String,
    /// Threads the device may use.
    pub threads: usize,
    pub version: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub git: Option<String>,
    /// Processor, memory, operating system; GPU and driver where there are any.
    pub hardware: BTreeMap<String, String>,
    /// Updates the run will make when nobody stops it.
    pub total_updates: u64,
    pub data: DataReport,
    pub ledger: Ledger,
    /// Things said once at the start, such as a schedule that has no effect.
    pub notes: Vec<String>,
    /// The checkpoint of another run that this one started from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked_from: Option<Lineage>,
    /// How fast the device multiplies matrices, where that was measured before the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub matmul_peak: Option<MatmulPeak>,
}

/// What was read, and what was left out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataReport {
    /// `stories`, `sentence-pairs`, or the path.
    pub source: String,
    /// Documents, or rows of a classification.
    pub documents: u64,
    pub bytes: u64,
    pub train_tokens: u64,
    pub train_sequences: u64,
    pub validation_tokens: u64,
    pub validation_sequences: u64,
    /// Why something was left out, and how many times.
    pub left_out: BTreeMap<String, u64>,
    /// The first of these by name, each with its reason and its place where it has one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out_named: Vec<String>,
    /// What else is to be said of it: a run says it among its own notes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Tells apart what is trained on, wherever it lies: of its text, its tokenizer and its split. Empty where it is not
    /// known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub content: String,
    /// What the classes of a classification are called, by their id.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
}

/// One optimizer update.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Update {
    pub update: u64,
    #[serde(with = "number")]
    pub time: f64,
    /// Real input tokens since the start of the run.
    pub tokens: u64,
    /// Micro-batches in this update's window.
    pub micro_batches: u64,
    /// Cross-entropy in nats: summed over the window, divided by its target tokens.
    #[serde(rename = "train/loss", with = "number")]
    pub loss: f64,
    /// The rate that was used.
    #[serde(rename = "train/learning_rate", with = "number")]
    pub learning_rate: f64,
    /// Global gradient norm before clipping.
    #[serde(rename = "train/grad_norm", with = "number")]
    pub grad_norm: f64,
    #[serde(rename = "perf/tokens_per_second", with = "number")]
    pub tokens_per_second: f64,
    /// Operations that the model asks for, by its shapes, over the time of the passes and the optimizer.
    #[serde(
        rename = "perf/flops_per_second",
        default,
        skip_serializing_if = "Option::is_none",
        with = "number::optional"
    )]
    pub flops_per_second: Option<f64>,
    /// The same as a share of the device's measured matmul peak.
    #[serde(
        rename = "perf/mfu",
        default,
        skip_serializing_if = "Option::is_none",
        with = "number::optional"
    )]
    pub mfu: Option<f64>,
    /// The gradient was not finite: parameters, state and schedule were left alone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub skipped: bool,
}

/// How far the window of the next update has been filled; written a few times a second at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Window {
    /// The update being prepared.
    pub update: u64,
    /// Micro-batches done.
    pub micro_batches: u64,
    pub of: u64,
}

/// Loss on the held-out text.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Validation {
    pub update: u64,
    #[serde(with = "number")]
    pub time: f64,
    #[serde(rename = "val/loss", with = "number")]
    pub loss: f64,
    /// Targets the loss is a mean over: tokens of a language model, rows of a classification.
    pub tokens: u64,
    /// Of a classification: share of rows whose class was found.
    #[serde(
        rename = "val/accuracy",
        default,
        skip_serializing_if = "Option::is_none",
        with = "number::optional"
    )]
    pub accuracy: Option<f64>,
    /// F1 of class 1 when there are two classes, else the macro average.
    #[serde(rename = "val/f1", default, skip_serializing_if = "Option::is_none", with = "number::optional")]
    pub f1: Option<f64>,
    /// Mean of the F1 of all classes.
    #[serde(
        rename = "val/f1_macro",
        default,
        skip_serializing_if = "Option::is_none",
        with = "number::optional"
    )]
    pub f1_macro: Option<f64>,
}

/// Readings of the machine, about once a second.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Host {
    pub update: u64,
    #[serde(with = "number")]
    pub time: f64,
    /// Resident bytes of the worker, from the operating system.
    #[serde(rename = "mem/host_rss", skip_serializing_if = "Option::is_none")]
    pub host_rss: Option<u64>,
    /// Bytes alive in the worker's allocator, and the most there were at once.
    #[serde(rename = "mem/allocator", skip_serializing_if = "Option::is_none")]
    pub allocator: Option<u64>,
    #[serde(rename = "mem/allocator_peak", skip_serializing_if = "Option::is_none")]
    pub allocator_peak: Option<u64>,
    /// Share of all cores the worker used, in percent.
    #[serde(
        rename = "sys/cpu_percent",
        skip_serializing_if = "Option::is_none",
        with = "number::optional",
        default
    )]
    pub cpu_percent: Option<f64>,
    #[serde(rename = "mem/gpu_device_used", skip_serializing_if = "Option::is_none")]
    pub gpu_device_used: Option<u64>,
    #[serde(rename = "mem/gpu_device_total", skip_serializing_if = "Option::is_none")]
    pub gpu_device_total: Option<u64>,
    #[serde(rename = "mem/gpu_process_used", skip_serializing_if = "Option::is_none")]
    pub gpu_process_used: Option<u64>,
    /// By libtorch's allocator: bytes of tensors that are alive, and the most there were at once.
    #[serde(rename = "mem/gpu_allocated", skip_serializing_if = "Option::is_none")]
    pub gpu_allocated: Option<u64>,
    #[serde(rename = "mem/gpu_allocated_peak", skip_serializing_if = "Option::is_none")]
    pub gpu_allocated_peak: Option<u64>,
    /// Bytes that it holds of the GPU, and the most it held.
    #[serde(rename = "mem/gpu_reserved", skip_serializing_if = "Option::is_none")]
    pub gpu_reserved: Option<u64>,
    #[serde(rename = "mem/gpu_reserved_peak", skip_serializing_if = "Option::is_none")]
    pub gpu_reserved_peak: Option<u64>,
    /// Allocations that succeeded only after it had given back what it kept.
    #[serde(rename = "mem/gpu_retries", skip_serializing_if = "Option::is_none")]
    pub gpu_retries: Option<u64>,
    #[serde(rename = "sys/gpu_utilization", skip_serializing_if = "Option::is_none")]
    pub gpu_utilization: Option<u64>,
    #[serde(rename = "sys/gpu_temperature", skip_serializing_if = "Option::is_none")]
    pub gpu_temperature: Option<u64>,
    /// Watts.
    #[serde(
        rename = "sys/gpu_power",
        skip_serializing_if = "Option::is_none",
        with = "number::optional",
        default
    )]
    pub gpu_power: Option<f64>,
    /// Joules since the worker began, by the GPU's own counter: all that ran on it. Of a run on that GPU alone.
    #[serde(
        rename = "sys/gpu_energy",
        skip_serializing_if = "Option::is_none",
        with = "number::optional",
        default
    )]
    pub gpu_energy: Option<f64>,
    /// Why there are no GPU readings, or which of them are missing.
    #[serde(rename = "sys/gpu_note", skip_serializing_if = "Option::is_none")]
    pub gpu_note: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    Info,
    Warning,
    Error,
}

/// Something a person should know.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Alert {
    pub update: u64,
    #[serde(with = "number")]
    pub time: f64,
    pub level: Level,
    pub message: String,
}

/// A checkpoint that is complete on disk.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CheckpointWritten {
    pub update: u64,
    #[serde(with = "number")]
    pub time: f64,
    /// Relative to the run directory.
    pub path: String,
    pub bytes: u64,
}

/// A command that somebody gave and what became of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CommandRecord {
    pub id: u64,
    pub name: String,
    /// `applied` or `rejected`.
    pub outcome: String,
    /// The updates done when it took effect.
    pub update: u64,
    /// The micro-batches of the next update that were done by then.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub micro_batches: u64,
    #[serde(with = "number")]
    pub time: f64,
    /// The value of a learning-rate override; absent value with that name: the override ended.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "number::optional")]
    pub value: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// Left out of a line.
#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
pub(crate) const fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Why a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    Finished,
    Stopped,
    NotFinite,
    OutOfMemory,
    Failed,
    DataEnded,
}

impl Reason {
    /// Exit code of a headless run that ended so.
    pub const fn exit_code(self) -> i32 {
        match self {
            Self::Finished | Self::Stopped | Self::DataEnded => 0,
            Self::NotFinite => 4,
            Self::OutOfMemory | Self::Failed => 1,
        }
    }

    /// Whether there is nothing left to train: the run can be resumed only with more updates than it had.
    pub const fn is_complete(self) -> bool {
        matches!(self, Self::Finished | Self::DataEnded)
    }

    /// The word in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Finished => "finished",
            Self::Stopped => "stopped",
            Self::NotFinite => "not_finite",
            Self::OutOfMemory => "out_of_memory",
            Self::Failed => "failed",
            Self::DataEnded => "data_ended",
        }
    }
}

/// The last line of a run that ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunEnded {
    pub reason: Reason,
    /// What went wrong, in one sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    pub summary: Summary,
}
