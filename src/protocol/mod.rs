//! Plain data between processes: what a run writes, what a person may command, what it answers.
//!
//! Everything here is one JSON line at a time. [`Event`]s are the lines of `events.jsonl` and of
//! `run --json`; [`Request`]s and [`Reply`]s travel over the control socket.

pub mod check;
pub mod command;
pub mod event;
pub mod ledger;
pub mod look;
pub mod number;
pub mod peak;
pub mod probe;
pub mod sample;
pub mod state;
pub mod summary;

pub use check::{AccumulationCheck, Deviation};
pub use command::{Answer, Command, Reply, Request};
pub use event::{
    Alert, CheckpointWritten, CommandRecord, DataReport, Event, Header, Host, Level, Lineage, Reason,
    Resumed, RunEnded, Snapshot, Update, Validation, Window,
};
pub use ledger::Ledger;
pub use look::{CodeUse, Histogram, HistogramBuilder, UpdateLook};
pub use peak::MatmulPeak;
pub use probe::Probe;
pub use sample::{Continuation, TextSample};
pub use state::{Heat, StateDetail, StateReport, StateTensor, Strip, TensorState, TensorStats};
pub use summary::Summary;

/// Version of every JSON shape; it stands in each document and in the first line of each log.
pub const SCHEMA: u32 = 1;
