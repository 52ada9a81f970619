//! The real binary, headless.

mod bad_input;
mod bench;
mod check;
mod classification_data;
mod commands;
mod doctor;
mod exports;
mod fork;
mod headless;
mod hostile;
mod inspect;
mod labels;
mod libtorch;
mod lifecycle;
mod out_of_memory;
mod queue;
mod resume;
mod samples;
mod sensors;
mod text_data;
mod weights;
mod workers;
