//! Devices as `train.device` names them.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// What trains. Whether it is there is found out when a run starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum DeviceName {
    /// The best that works here.
    Auto,
    /// Burn's pure-Rust device, in this program itself.
    Flex,
    /// libtorch on the processor.
    LibtorchCpu,
    /// libtorch on that CUDA device, as CUDA counts them.
    LibtorchCuda(usize),
}

impl DeviceName {
    /// Whether the program that links libtorch has to train.
    pub const fn needs_libtorch(self) -> bool {
        matches!(self, Self::LibtorchCpu | Self::LibtorchCuda(_))
    }
}

/// A text that names no device.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("train.device = \"{0}\" is no device: auto, flex, libtorch-cpu and libtorch-cuda:N are")]
pub struct NoDevice(String);

impl TryFrom<String> for DeviceName {
    type Error = NoDevice;

    fn try_from(text: String) -> Result<Self, NoDevice> {
        text.parse()
    }
}

impl From<DeviceName> for String {
    fn from(name: DeviceName) -> Self {
        name.to_string()
    }
}

impl FromStr for DeviceName {
    type Err = NoDevice;

    fn from_str(text: &str) -> Result<Self, NoDevice> {
        let no = || NoDevice(text.to_owned());
        match text {
            "auto" => Ok(Self::Auto),
            "flex" => Ok(Self::Flex),
            "libtorch-cpu" => Ok(Self::LibtorchCpu),
            "libtorch-cuda" => Ok(Self::LibtorchCuda(0)),
            other => {
                let index = other.strip_prefix("libtorch-cuda:").ok_or_else(no)?;
                index.parse().map(Self::LibtorchCuda).map_err(|_| no())
            }
        }
    }
}

impl fmt::Display for DeviceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Flex => f.write_str("flex"),
            Self::LibtorchCpu => f.write_str("libtorch-cpu"),
            Self::LibtorchCuda(index) => write!(f, "libtorch-cuda:{index}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        for name in [
            DeviceName::Auto,
            DeviceName::Flex,
            DeviceName::LibtorchCpu,
            DeviceName::LibtorchCuda(0),
            DeviceName::LibtorchCuda(3),
        ] {
            assert_eq!(name.to_string().parse(), Ok(name));
        }
        assert_eq!("libtorch-cuda".parse(), Ok(DeviceName::LibtorchCuda(0)));
        for text in ["", "cuda", "libtorch", "libtorch-cuda:", "libtorch-cuda:-1", "libtorch-cuda:a"] {
            assert!(text.parse::<DeviceName>().is_err(), "{text}");
        }
    }
}
