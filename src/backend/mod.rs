//! Devices by name, the hot operations, and what there is to know about memory.

pub mod allocator;
pub mod bytes;
pub mod devices;
#[cfg(feature = "libtorch")]
pub mod libtorch;
pub mod memory;
pub mod ops;
pub mod param;
pub mod peak;
