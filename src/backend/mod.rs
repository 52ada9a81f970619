//! Devices and the counting allocator. Backend names live here alone.

pub mod allocator;
pub mod devices;
