//! The flags that make a configuration, shared by every subcommand that takes one.

use std::path::PathBuf;

use crate::config::{ConfigError, Layers, Resolved};

/// `[CONFIG.toml] [--set key=value]... [--device D]`
#[derive(Debug, Clone, Default, clap::Args)]
pub struct Settings {
    /// Configuration file; the demo without one
    #[arg(value_name = "CONFIG.toml")]
    pub file: Option<PathBuf>,
    /// Set one key, such as train.accumulate=4; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Device to train on: auto or flex
    #[arg(long, value_name = "DEVICE")]
    pub device: Option<String>,
}

impl Settings {
    /// Flags over environment over file over preset over defaults.
    ///
    /// # Errors
    /// The first setting that cannot be used.
    pub fn resolve(&self) -> Result<Resolved, ConfigError> {
        self.layers()?.resolve()
    }

    /// The same before it is resolved.
    ///
    /// # Errors
    /// A key that is unknown or holds a value of the wrong type.
    pub fn layers(&self) -> Result<Layers, ConfigError> {
        let layers = match &self.file {
            Some(path) => Layers::new().with_file(path)?,
            None => Layers::new(),
        };
        let device = self.device.as_ref().map(|device| format!("train.device={device}"));
        layers.with_environment(environment())?.with_assignments(self.set.iter().chain(device.as_ref()))
    }
}

/// The variables that are text; others are none of ours.
pub fn environment() -> impl Iterator<Item = (String, String)> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
}
