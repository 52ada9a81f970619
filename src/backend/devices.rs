//! Devices by name. `Device::default()` is never called: a device is a value that is passed on.

use burn::tensor::Device;
use thiserror::Error;

/// A device that can train.
#[derive(Debug, Clone)]
pub struct TrainDevice {
    /// The name in configuration, logs and tables.
    pub name: String,
    /// Without autodiff.
    pub device: Device,
    pub threads: usize,
}

/// A device name that means nothing here.
#[derive(Debug, Error)]
#[error("device `{0}` is not available: this build trains on `flex` (or `auto`)")]
pub struct UnknownDevice(String);

/// Opens a device by its configured name; `auto` takes the best that works.
///
/// # Errors
/// The name is not one this build knows.
pub fn open(name: &str) -> Result<TrainDevice, UnknownDevice> {
    match name {
        "auto" | "flex" => {
            Ok(TrainDevice { name: "flex".to_owned(), device: Device::flex(), threads: threads() })
        }
        other => Err(UnknownDevice(other.to_owned())),
    }
}

/// Names and one line each of what can train here.
pub fn available() -> Vec<(&'static str, String)> {
    vec![("flex", format!("pure Rust on this machine's processor, {} threads", threads()))]
}

/// Threads that the processor runs at once.
pub fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
