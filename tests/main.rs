//! One integration binary, one folder a subject. Nothing here needs a network, a GPU or a home folder.
// A test that cannot go on should say where; the list of traces that were not run belongs in its output.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod cli;
mod golden;
mod layering;
mod own;
mod readers;
mod screens;
mod soak;
mod support;
mod training;
