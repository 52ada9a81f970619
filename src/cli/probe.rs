//! `tui-train-libtorch probe`: what this program can train with, for the program that starts it.

use super::output;
#[cfg(feature = "libtorch")]
use crate::backend::libtorch;

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
