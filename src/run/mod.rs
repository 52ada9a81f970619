//! The run directory: create it, hold its lock, write and follow its events, talk to its worker, and read
//! everything that lists, pages, comparisons and exports show.
//!
//! ```text
//! home             where runs live
//! dir              one run's folder: create, find by what a person types
//! launch, fork     a new run and its worker process; one that starts from another's checkpoint
//! goes_on          the command that goes on with a run which would fail again as it is
//! queue            runs that wait for one another
//! lock             held while the worker lives
//! libtorch, nvml   the program that links libtorch; what NVIDIA's driver tells of its GPUs
//! reaper, death    how a worker ended, and why, as far as it can be known
//! own              files of a folder that a stranger may have made
//! socket, client   commands to a live run
//! writer, tail     events.jsonl, both ends; line: one of its lines
//! atomic, bounded  files and folders that are whole or absent; reading no more than can be meant
//! record, summary  what the events add up to
//! pulse            signs of life of a worker
//! standing, list   queued, live, ended or crashed; all runs at a glance; entry: one of them
//! label            what a person calls a run and writes down about it
//! checkpoint       checkpoints on disk; checkpoint_view, tensors, strips: the optimizer's state in them
//! script           commands that are given at fixed updates
//! compare, export  runs side by side; a run as a file for others
//! tensorboard      files that TensorBoard loads
//! peaks            how fast this machine's devices multiply
//! weights          checkpoints that others made, to start a run from
//! text, table      figures and tables as text; ticks: round numbers on an axis
//! ```

pub mod atomic;
pub mod bounded;
pub mod checkpoint;
pub mod checkpoint_view;
pub mod client;
pub mod compare;
pub mod death;
pub mod dir;
pub mod entry;
pub mod error;
pub mod export;
pub(crate) mod fault;
pub mod find;
pub mod fork;
pub mod goes_on;
pub mod home;
pub mod label;
pub mod last;
pub mod launch;
pub mod libtorch;
pub mod line;
pub mod list;
mod list_cache;
pub mod lock;
mod newest;
pub mod nvml;
pub mod own;
pub mod peaks;
pub mod preparing;
pub mod pulse;
pub mod queue;
pub mod reaper;
pub mod record;
#[cfg(test)]
pub(crate) mod sample;
pub mod script;
mod seeds;
pub mod socket;
pub mod standing;
pub mod strips;
pub mod summary;
pub mod table;
pub mod tail;
pub mod tensorboard;
pub mod tensors;
pub mod text;
pub mod ticks;
pub mod trash;
pub mod verdict;
pub mod weights;
pub mod writer;

pub use client::Client;
pub use dir::{Meta, RunDir};
pub use error::RunError;
pub use home::Home;
pub use list::{RunEntry, list};
pub use lock::{RunLock, is_live};
pub use queue::Queue;
pub use record::Record;
pub use standing::State;
pub use summary::Standing;
pub use tail::Tail;
pub use writer::EventWriter;
