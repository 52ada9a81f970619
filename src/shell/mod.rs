//! The terminal: guard, loop, input, signals.
