//! The real binary, headless.

mod bad_input;
mod check;
mod headless;
mod inspect;
mod lifecycle;
