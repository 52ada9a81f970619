//! libtorch, through Burn's backend of that name: the one folder that knows it.
//!
//! Burn 0.22 is the last version with this backend, and says so wherever it is named.
#![allow(deprecated)]

mod node;
pub(super) mod ops;
pub(super) mod optim;
pub mod shim;
