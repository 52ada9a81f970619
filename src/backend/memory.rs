//! What the allocator of a device holds, where it has one that tells.

use crate::config::DeviceName;

/// Bytes in the device's caching allocator, and how often it was short of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DeviceMemory {
    /// Of tensors that are alive.
    pub allocated: u64,
    pub allocated_peak: u64,
    /// Held of the device, tensors and what is kept for the next ones.
    pub reserved: u64,
    pub reserved_peak: u64,
    /// Allocations that succeeded only after what was kept had been given back.
    pub retries: u64,
}

/// What that device's allocator holds now; `None` of a device without one. May be asked by any thread.
pub fn device(name: DeviceName) -> Option<DeviceMemory> {
    #[cfg(feature = "libtorch")]
    return super::libtorch::memory(name);
    #[cfg(not(feature = "libtorch"))]
    {
        let _ = name;
        None
    }
}
