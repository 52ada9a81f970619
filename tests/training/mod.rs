//! Training itself: what a person relies on when they believe a loss curve.

mod accumulation;
mod classification;
mod properties;
mod resume;
mod writing;
