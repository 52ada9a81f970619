//! One file a screen, or a panel that is large enough.

pub mod check;
pub mod curves;
pub mod heat;
pub mod journal;
pub mod memory;
pub mod runs;
pub mod schedule;
pub mod setup;
pub mod strips;
pub mod tensors;
pub mod train;
pub mod waterfall;
