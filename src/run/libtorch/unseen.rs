//! Why libtorch sees no CUDA device, as far as NVIDIA's driver tells: libtorch itself only counts.

use std::fmt;

use crate::{
    config::DeviceName,
    run::nvml::{
        Gpu,
        visible::{self, Mask},
    },
};

/// What stands between libtorch and a GPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unseen {
    NoDriver,
    /// There is a driver's library, and it does not serve: why, and the command that mends it where one does.
    Driver {
        why: String,
        command: Option<&'static str>,
    },
    /// The environment hides every GPU that the driver lists.
    Masked(String),
    /// The driver lists GPUs that nothing hides.
    Unserved,
}

impl Unseen {
    /// Asks the driver.
    pub fn find() -> Self {
        let gpu = Gpu::open(DeviceName::Flex);
        if let Some(missing) = gpu.missing() {
            return if missing.no_driver {
                Self::NoDriver
            } else {
                Self::Driver { why: missing.why.clone(), command: missing.command }
            };
        }
        match gpu.listed() {
            Err(why) => Self::Driver { why, command: None },
            Ok(gpus) => {
                let mask = Mask::from_env();
                let none = visible::visible(&mask, &gpus).is_empty();
                mask.devices.filter(|_| none).map_or(Self::Unserved, Self::Masked)
            }
        }
    }

    /// The one command that mends it, or says more where none does.
    pub const fn command(&self) -> &'static str {
        match self {
            // Whether there is a GPU at all.
            Self::NoDriver => "lspci -d 10de:",
            Self::Driver { command: Some(command), .. } => command,
            Self::Driver { command: None, .. } | Self::Unserved => "nvidia-smi",
            Self::Masked(_) => "unset CUDA_VISIBLE_DEVICES",
        }
    }

    /// What to do, with that command.
    pub(super) fn advice(&self) -> String {
        let command = self.command();
        match self {
            Self::NoDriver => format!(
                "install it, or give the container its GPUs (`{command}` lists what there is), or use libtorch-cpu"
            ),
            Self::Driver { command: Some(_), .. } => format!("`{command}` mends it"),
            Self::Driver { command: None, .. } | Self::Unserved => format!("`{command}` says what there is"),
            Self::Masked(_) => format!("`{command}` takes the mask away"),
        }
    }
}

impl fmt::Display for Unseen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoDriver => f.write_str("there is no NVIDIA driver"),
            Self::Driver { why, .. } => f.write_str(why.strip_prefix("no GPU readings: ").unwrap_or(why)),
            Self::Masked(mask) => write!(f, "CUDA_VISIBLE_DEVICES = \"{mask}\" masks them all"),
            Self::Unserved => f.write_str("the driver is too old for this libtorch, or cannot serve it"),
        }
    }
}

/// The mask, and how many devices it hides beside those that libtorch sees; nothing where it hides none, or the driver
/// does not tell.
pub(super) fn masked(seen: usize) -> Option<(String, usize)> {
    let Mask { devices, bus_order } = Mask::from_env();
    let gpus = Gpu::open(DeviceName::Flex).listed().ok()?;
    let all = visible::visible(&Mask { devices: None, bus_order }, &gpus).len();
    devices.zip(all.checked_sub(seen).filter(|&hidden| hidden > 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_has_its_own_words_and_its_own_command() {
        let none = Unseen::NoDriver;
        assert!(
            !(none.to_string() + &none.advice()).contains("CUDA_VISIBLE_DEVICES"),
            "a mask is not at fault"
        );
        let masked = Unseen::Masked("-1".to_owned());
        assert!(masked.to_string().contains("\"-1\" masks them all") && masked.advice().contains("unset"));
        let old = Unseen::Unserved;
        assert!(old.to_string().contains("too old") && old.advice().contains("nvidia-smi"));
        let why = "no GPU readings: the NVIDIA driver is not loaded".to_owned();
        let unloaded = Unseen::Driver { why, command: Some("sudo modprobe nvidia") };
        assert_eq!(unloaded.to_string(), "the NVIDIA driver is not loaded");
        assert_eq!(unloaded.advice(), "`sudo modprobe nvidia` mends it");
    }
}
