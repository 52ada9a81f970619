//! Programs with a model and with a loop of their own: the examples beside this file, started as people start them.

mod faults;
mod reported;
mod stripes;
