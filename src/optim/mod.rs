//! Optimizers: one driver, one file an optimizer, and views of their state.
