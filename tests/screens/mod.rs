//! The real binary in a pseudo-terminal, driven by keys and read as a person would.

mod check;
mod drive;
mod manners;
mod replay;
mod signals;
mod survival;
pub(crate) mod terminal;
