//! Devices, the counting allocator, and the seeded generator. Backend names live here alone.

pub mod allocator;
pub mod devices;
pub mod random;
