//! Screens, panels, keymap, theme and format.
