//! `tui-train-libtorch probe`: what this program can train with, for the program that starts it.

use std::path::PathBuf;

use super::output;
#[cfg(feature = "libtorch")]
use crate::backend::libtorch;
use crate::{
    config::own,
    protocol::Probe,
    run::libtorch::{self as other, LibtorchError},
};

/// The program that trains on libtorch here, and what it says about itself. A task of its own trains in no program but the
/// one that has it.
///
/// # Errors
/// libtorch cannot train here.
pub(super) fn linked() -> Result<(PathBuf, Probe), LibtorchError> {
    if own::registered().is_none() {
        return other::probe();
    }
    #[cfg(feature = "libtorch")]
    return Ok((own::worker_program(), libtorch::probe()));
    #[cfg(not(feature = "libtorch"))]
    Err(LibtorchError::OwnTask(crate::config::DeviceName::LibtorchCpu))
}

/// Prints one JSON document; a program without libtorch says so.
///
/// # Errors
/// There is no libtorch in this program.
pub fn run() -> anyhow::Result<i32> {
    #[cfg(feature = "libtorch")]
    return output::text(&format!("{}\n", serde_json::to_string(&libtorch::probe())?));
    #[cfg(not(feature = "libtorch"))]
    {
        output::message("error: this program does not link libtorch");
        Ok(super::FAILED)
    }
}
