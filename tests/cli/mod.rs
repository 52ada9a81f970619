//! The real binary, headless.

mod bad_input;
mod bench;
mod check;
mod classification_data;
mod headless;
mod inspect;
mod libtorch;
mod lifecycle;
mod queue;
mod weights;
