//! Devices by name. `Device::default()` is never called: a device is a value that is passed on.

use burn::tensor::Device;
use thiserror::Error;

use crate::config::DeviceName;

/// A device that can train.
#[derive(Debug, Clone)]
pub struct TrainDevice {
    /// Never `auto`.
    pub name: DeviceName,
    /// Without autodiff.
    pub device: Device,
    pub threads: usize,
}

/// A device that this program cannot open.
#[derive(Debug, Error)]
#[error("{0} is not in this program: tui-train starts tui-train-libtorch for it")]
pub struct NotLinked(DeviceName);

/// Opens a device; `auto` is the best that this program has.
///
/// # Errors
/// A libtorch device in a program that does not link it.
pub fn open(name: DeviceName) -> Result<TrainDevice, NotLinked> {
    #[cfg(feature = "libtorch")]
    if name != DeviceName::Flex {
        let (name, device) = super::libtorch::open(name);
        return Ok(TrainDevice { name, device, threads: threads() });
    }
    match name {
        DeviceName::Auto | DeviceName::Flex => {
            Ok(TrainDevice { name: DeviceName::Flex, device: Device::flex(), threads: threads() })
        }
        other => Err(NotLinked(other)),
    }
}

/// Products of f32 matrices in TF32 or not, for all that this process computes. Nothing where the device has none.
pub fn use_tf32(on: bool) {
    #[cfg(feature = "libtorch")]
    super::libtorch::use_tf32(on);
    #[cfg(not(feature = "libtorch"))]
    let _ = on;
}

/// Gives memory that is kept for later back to the device.
pub fn give_back_memory() {
    #[cfg(feature = "libtorch")]
    super::libtorch::give_back_memory();
}

/// Threads that the processor runs at once.
pub fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
