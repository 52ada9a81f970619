//! What can be wrong with libtorch here, each in one sentence with the command that mends it.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use super::{BUILD, BUILD_CUDA, PROGRAM, Unseen, VARIABLE, ask::PATIENCE};
use crate::config::DeviceName;

/// The version of libtorch that this version of the program is made for.
const SUPPORTED: &str = "2.9.0";

/// Why libtorch cannot train here, and what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LibtorchError {
    NotFound,
    NotThere(String),
    Libraries {
        program: String,
        said: String,
    },
    /// Its libraries are there, and are not those that it was built for.
    OtherLibtorch {
        program: String,
        folder: Option<String>,
        said: String,
    },
    Broken {
        program: String,
        said: String,
    },
    Silent {
        program: String,
    },
    OtherSchema {
        program: String,
        theirs: u32,
        ours: u32,
    },
    OtherVersion {
        program: String,
        theirs: String,
        ours: &'static str,
    },
    NoCudaBuild {
        program: String,
    },
    NoCuda {
        why: Unseen,
    },
    NoSuchDevice {
        index: usize,
        seen: usize,
        /// `CUDA_VISIBLE_DEVICES`, and how many it hides.
        masked: Option<(String, usize)>,
    },
    OwnTask(DeviceName),
}

impl LibtorchError {
    /// What is wrong, without what to do about it.
    pub fn what(&self) -> String {
        match self {
            Self::NotFound => {
                format!("libtorch cannot train here: there is no {PROGRAM} beside this program or on PATH")
            }
            Self::NotThere(path) => format!("{VARIABLE} = {path} is no file"),
            Self::Libraries { program, said } => {
                format!("{program} cannot find its libraries ({said}): libtorch has moved since it was built")
            }
            Self::OtherLibtorch { program, folder, said } => {
                let place = folder.as_ref().map_or_else(String::new, |folder| format!(" in {folder}"));
                format!("{program} was built for libtorch {SUPPORTED}, and finds another one{place}: {said}")
            }
            Self::Broken { program, said } => format!("{program} does not work: {said}"),
            Self::Silent { program } => format!(
                "{program} did not answer within {} s: libtorch hangs while it is loaded",
                PATIENCE.as_secs()
            ),
            Self::OtherSchema { program, theirs, ours } => {
                format!("{program} speaks version {theirs} of the record and this program version {ours}")
            }
            Self::OtherVersion { program, theirs, ours } => format!(
                "{program} is version {theirs} and this program version {ours}: it may not know every setting"
            ),
            Self::NoCudaBuild { program } => format!("{program} was built against a libtorch without CUDA"),
            Self::NoCuda { why } => format!("libtorch sees no CUDA device here: {why}"),
            Self::OwnTask(device) => format!(
                "train.device = {device} needs libtorch, and the program of this task does not link it"
            ),
            Self::NoSuchDevice { index, seen, masked } => {
                let plural = if *seen == 1 { "" } else { "s" };
                let masked = masked.as_ref().map_or_else(String::new, |(mask, hidden)| {
                    format!("; CUDA_VISIBLE_DEVICES = \"{mask}\" masks {hidden} more")
                });
                format!(
                    "train.device = libtorch-cuda:{index} is not there: libtorch sees {seen} CUDA device{plural}, counted from 0{masked}"
                )
            }
        }
    }

    /// The one command that mends it, or says more where none does.
    pub fn command(&self) -> String {
        match self {
            Self::NotFound
            | Self::Libraries { .. }
            | Self::OtherLibtorch { .. }
            | Self::Broken { .. }
            | Self::OtherSchema { .. }
            | Self::OtherVersion { .. } => BUILD.to_owned(),
            Self::NoCudaBuild { .. } => BUILD_CUDA.to_owned(),
            Self::NotThere(_) => format!("unset {VARIABLE}"),
            Self::Silent { program } => format!("{program} probe"),
            Self::NoCuda { why } => why.command().to_owned(),
            Self::NoSuchDevice { .. } => "tui-train devices".to_owned(),
            Self::OwnTask(_) => "cargo add tui-train --features libtorch".to_owned(),
        }
    }

    /// What to do, with that command.
    fn advice(&self) -> String {
        let command = self.command();
        match self {
            Self::NotFound => format!("build it with `{command}`"),
            Self::NotThere(_) => format!("give the path of {PROGRAM}, or `{command}`"),
            Self::Libraries { .. } | Self::OtherLibtorch { .. } | Self::Broken { .. } => {
                format!("build it again with `{command}`")
            }
            Self::OtherSchema { .. } | Self::OtherVersion { .. } => {
                format!("build both from one source: `{command}`")
            }
            Self::NoCudaBuild { .. } => {
                format!("build it again against one with CUDA (`{command}`), or use libtorch-cpu")
            }
            Self::OwnTask(_) => {
                format!("build that program with it (`{command}`), or leave train.device out")
            }
            Self::Silent { .. } => format!("`{command}` shows where"),
            Self::NoCuda { why } => why.advice(),
            Self::NoSuchDevice { .. } => format!("`{command}` says what there is"),
        }
    }
}

impl fmt::Display for LibtorchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.what(), self.advice())
    }
}

impl std::error::Error for LibtorchError {}

/// Whether the loader says that a library of libtorch's lacks what it should have.
pub(super) fn of_another_libtorch(said: &str) -> bool {
    let version = said.contains("version `") && said.contains("not found");
    said.contains("symbol lookup error")
        || said.contains("undefined symbol")
        || version && ["libtorch", "libc10"].iter().any(|name| said.contains(name))
}

/// The folder of the libtorch that it finds: the loader names the library, or else the environment the folder.
pub(super) fn folder_of_libtorch(program: &Path, said: &str) -> Option<String> {
    let named = said.split(": ").map(Path::new).find(|path| {
        path.is_absolute() && path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("lib"))
    });
    let beside = program.parent().map(|folder| folder.join("libtorch/lib"));
    let searched: Vec<PathBuf> = std::env::var_os("LD_LIBRARY_PATH")
        .map(|path| std::env::split_paths(&path).collect())
        .unwrap_or_default();
    let named = named.and_then(Path::parent).map(Path::to_owned);
    let mut folders =
        searched.into_iter().chain(beside).filter(|folder| folder.join("libtorch.so").is_file());
    named.or_else(|| folders.next()).map(|folder| folder.display().to_string())
}
