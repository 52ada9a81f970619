//! The real binary in a pseudo-terminal, driven by keys and read as a person would.

mod check;
mod drive;
mod habits;
mod keys;
mod manners;
mod pointer;
mod replay;
mod signals;
mod survival;
mod terminal;
