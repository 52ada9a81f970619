//! One integration binary, one folder a subject. Nothing here needs a network, a GPU or a home folder.

mod cli;
mod golden;
mod layering;
mod screens;
mod support;
mod training;
