//! A stand-in for NVIDIA's management library, compiled once and found by the real binary through the loader's path.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    process::Command,
};

/// Which functions it has.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Library {
    Full,
    /// As before R510: neither the second query of memory nor the third of processes.
    Old,
    /// Starts, and has nothing else.
    OnlyStarts,
    /// Has not even its start.
    Empty,
    /// Is no library at all.
    Broken,
}

/// Makes a command find it, and makes it answer as these words say (they are listed in its source).
pub(crate) fn answer<'a>(command: &'a mut Command, library: Library, words: &str) -> &'a mut Command {
    let mut path = OsString::from(folder(library));
    if let Some(rest) = std::env::var_os("LD_LIBRARY_PATH").filter(|rest| !rest.is_empty()) {
        path.push(":");
        path.push(rest);
    }
    command.env("LD_LIBRARY_PATH", path).env("FAKE_NVML", words);
    command.env_remove("CUDA_VISIBLE_DEVICES").env_remove("CUDA_DEVICE_ORDER")
}

/// The folder with that library.
fn folder(library: Library) -> PathBuf {
    let file = "libnvidia-ml.so.1";
    let compiled = |name: &str, flags: &[&str]| {
        super::library::compiled("nvml/fake.c", &format!("nvml/{name}"), file, flags)
    };
    let mut path = match library {
        Library::Full => compiled("full", &[]),
        Library::Old => compiled("old", &["-DNO_V2"]),
        Library::OnlyStarts => compiled("only-starts", &["-DONLY_INIT"]),
        Library::Empty => compiled("empty", &["-DNO_INIT"]),
        Library::Broken => super::library::made("nvml/broken", file, Path::new(file!()), |unfinished| {
            std::fs::write(unfinished, "this is no library").unwrap();
        }),
    };
    path.pop();
    path
}
