//! The presets: small TOML files in `assets/presets`, compiled in.

/// A named starting point: the file's text and the sentence in its first line.
#[derive(Debug, Clone, Copy)]
pub struct Preset {
    pub name: &'static str,
    pub text: &'static str,
}

impl Preset {
    /// The comment on the file's first line.
    pub fn about(&self) -> &'static str {
        self.text.lines().next().unwrap_or_default().trim_start_matches('#').trim()
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

/// The preset of that name.
pub fn find(name: &str) -> Option<&'static Preset> {
    PRESETS.iter().find(|preset| preset.name == name)
}
