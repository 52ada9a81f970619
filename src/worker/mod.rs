//! Everything that runs inside a run's process.
