//! The run directory: create it, hold its lock, write and follow its events, talk to its worker, and read
//! everything that lists, pages, comparisons and exports show.
//!
//! ```text
//! home             where runs live
//! dir              one run's folder: create, find by what a person types
//! lock             held while the worker lives
//! socket, client   commands to a live run
//! writer, tail     events.jsonl, both ends
//! atomic           files and folders that are whole or absent
//! ```

pub mod atomic;
pub mod client;
pub mod dir;
pub mod error;
pub mod find;
pub mod home;
pub mod lock;
#[cfg(test)]
pub(crate) mod sample;
pub mod socket;
pub mod tail;
pub mod writer;

pub use client::Client;
pub use dir::{Meta, RunDir};
pub use error::RunError;
pub use home::Home;
pub use lock::{RunLock, is_live};
pub use tail::Tail;
pub use writer::EventWriter;
