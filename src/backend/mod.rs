//! Devices and the counting allocator.
