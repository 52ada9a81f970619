//! The flags that make a configuration, shared by every subcommand that takes one.

use std::{
    path::{Path, PathBuf},
    sync::OnceLock,
};

use crate::config::{ConfigError, Layers, Resolved, layers};

/// A configuration that came through a pipe.
static PIPED: OnceLock<String> = OnceLock::new();

/// Whether a path is neither a file nor a folder, so that what it gives can be read once.
pub fn is_pipe(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|meta| !meta.is_file() && !meta.is_dir())
}

/// The configuration that came through a pipe, if one did.
pub fn piped() -> Option<&'static str> {
    PIPED.get().map(String::as_str)
}

/// `[CONFIG.toml] [--set key=value]... [--device D]`
#[derive(Debug, Clone, Default, clap::Args)]
pub struct Settings {
    /// Configuration file; the demo without one
    #[arg(value_name = "CONFIG.toml")]
    pub file: Option<PathBuf>,
    /// Set one key, such as train.accumulate=4; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Device to train on: auto, flex, libtorch-cpu or libtorch-cuda:N
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
        self.layers_over(Layers::new())
    }

    /// The same on top of others.
    ///
    /// # Errors
    /// A key that is unknown or holds a value of the wrong type.
    pub fn layers_over(&self, base: Layers) -> Result<Layers, ConfigError> {
        let layers = match &self.file {
            // What comes through a pipe can be read once, and another program may have to read it, too.
            Some(path) if is_pipe(path) => {
                let text = layers::read(path)?;
                base.with_toml(PIPED.get_or_init(|| text), &path.display().to_string())?
            }
            Some(path) => base.with_file(path)?,
            None => base,
        };
        let by_key =
            |setting: &String| setting.split('=').next().is_some_and(|key| key.trim() == "train.device");
        if self.device.is_some() && self.set.iter().any(by_key) {
            return Err(ConfigError::Conflict(
                "--device and --set train.device are both given: remove one of the two".into(),
            ));
        }
        let device = self.device.as_ref().map(|device| format!("train.device={device}"));
        layers.with_environment(environment())?.with_assignments(self.set.iter().chain(device.as_ref()))
    }
}

/// The variables that are text; others are none of ours.
pub fn environment() -> impl Iterator<Item = (String, String)> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
}
