//! The presets: small TOML files in `assets/presets`, compiled in.

use super::own;

/// A named starting point: the file's text and the sentence in its first line.
#[derive(Debug, Clone, Copy)]
pub struct Preset {
    pub name: &'static str,
    pub text: &'static str,
}

impl Preset {
    /// The comment on the file's first line.
    pub fn about(&self) -> &'static str {
        let first = self.text.lines().next().filter(|line| line.starts_with('#'));
        first.unwrap_or_default().trim_start_matches('#').trim()
    }
}

macro_rules! preset {
    ($name:literal) => {
        Preset { name: $name, text: include_str!(concat!("../../assets/presets/", $name, ".toml")) }
    };
}

/// The preset that is used when nothing is chosen: small enough to learn while one watches.
pub const DEMO: &str = "llama-nano";

/// Every preset: those that a CPU trains, then by size.
pub const PRESETS: &[Preset] = &[
    preset!("llama-nano"),
    preset!("llama-tiny"),
    preset!("distilbert-nano"),
    preset!("distilbert-base-cased"),
    preset!("gpt2-124m"),
    preset!("llama-160m"),
    preset!("tinyllama-1.1b"),
];

/// Every preset, the one of the program's own task first.
pub fn all() -> impl Iterator<Item = &'static Preset> {
    own::registered().map(|task| &task.preset).into_iter().chain(PRESETS)
}

/// The preset that is used when nothing is chosen: that of the program's own task, or the demo's.
pub fn first() -> &'static str {
    own::registered().map_or(DEMO, |task| task.preset.name)
}

/// The preset of that name.
pub fn find(name: &str) -> Option<&'static Preset> {
    all().find(|preset| preset.name == name)
}
