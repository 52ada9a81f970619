//! Training itself: what a person relies on when they believe a loss curve.

mod classification;
mod properties;
