//! The real binary, headless.

mod bad_input;
mod classification_data;
mod headless;
mod lifecycle;
