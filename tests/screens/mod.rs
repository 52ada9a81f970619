//! The real binary in a pseudo-terminal, driven by keys and read as a person would.

mod check;
mod day;
mod drafts;
mod drive;
mod habits;
mod keys;
mod manners;
mod pointer;
mod replay;
mod runs;
mod signals;
mod survival;
pub(crate) mod terminal;
mod waiting;
