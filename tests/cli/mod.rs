//! The real binary, headless.

mod bad_input;
mod bench;
mod check;
mod classification_data;
mod headless;
mod lifecycle;
mod weights;
