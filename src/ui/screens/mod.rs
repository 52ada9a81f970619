//! One file a screen, or a panel that is large enough.

pub mod beside;
pub mod check;
pub mod curves;
pub mod fork;
pub mod gradient;
pub mod heat;
pub mod history;
pub mod journal;
pub mod memory;
pub mod plan;
pub mod run_list;
pub mod runs;
pub mod samples;
pub mod scatter;
pub mod schedule;
pub mod setup;
pub mod spread;
pub mod strips;
pub mod tensors;
pub mod train;
pub mod waterfall;
