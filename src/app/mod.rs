//! The pure state of the UI.
