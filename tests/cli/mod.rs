//! The real binary, headless.

mod bad_input;
mod bench;
mod check;
mod classification_data;
mod commands;
mod headless;
mod hostile;
mod inspect;
mod libtorch;
mod lifecycle;
mod weights;
mod workers;
