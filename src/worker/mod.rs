//! Everything that runs inside a run's process: `tui-train worker RUNDIR`.
//!
//! The engine thread owns every tensor. Around it: a writer of events, a telemetry thread, a prefetch thread, and the
//! control socket. They talk by channels; nothing here knows of a terminal.

pub mod check;
pub mod checkpoint;
mod commands;
pub mod control;
pub mod engine;
pub mod event_log;
pub mod fault;
pub mod keeper;
pub mod learner;
pub mod leave;
pub mod metrics;
mod over;
pub mod own;
pub mod process;
pub mod recorder;
mod reserve;
pub mod restore;
pub mod resume;
pub mod telemetry;
pub mod trainer;
pub mod weights;
pub mod writing;

pub use crate::run::nvml;
