//! The real binary, headless.

mod bad_input;
mod bench;
mod check;
mod headless;
mod lifecycle;
mod weights;
