//! The real binary, headless.

mod bad_input;
mod headless;
mod lifecycle;
mod weights;
