//! Training itself: what a person relies on when they believe a loss curve.

mod accumulation;
mod classification;
#[cfg(feature = "libtorch")]
mod parity;
mod properties;
mod resume;
mod writing;
