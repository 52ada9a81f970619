//! Devices as `train.device` names them.

use std::{fmt, str::FromStr};

/// What trains. Whether it is there is found out when a run starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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

impl FromStr for DeviceName {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        match text {
            "auto" => Ok(Self::Auto),
            "flex" => Ok(Self::Flex),
            "libtorch-cpu" => Ok(Self::LibtorchCpu),
            "libtorch-cuda" => Ok(Self::LibtorchCuda(0)),
            other => {
                let index = other.strip_prefix("libtorch-cuda:").ok_or(())?;
                index.parse().map(Self::LibtorchCuda).map_err(drop)
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
            assert_eq!(text.parse::<DeviceName>(), Err(()), "{text}");
        }
    }
}
