//! A stand-in for NVIDIA's management library, compiled once and found by the real binary through the loader's path.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    process::Command,
    sync::Mutex,
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

/// The folder with that library, compiled unless an earlier test has done so.
fn folder(library: Library) -> PathBuf {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _guard = ONE_AT_A_TIME.lock();
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/nvml/fake.c");
    let (name, without) = match library {
        Library::Full => ("full", None),
        Library::Old => ("old", Some("-DNO_V2")),
        Library::OnlyStarts => ("only-starts", Some("-DONLY_INIT")),
        Library::Empty => ("empty", Some("-DNO_INIT")),
        Library::Broken => ("broken", None),
    };
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("nvml").join(name);
    let made = folder.join("libnvidia-ml.so.1");
    let modified = |path: &Path| std::fs::metadata(path).and_then(|file| file.modified()).ok();
    if modified(&made) > modified(Path::new(source)) {
        return folder;
    }
    std::fs::create_dir_all(&folder).unwrap();
    let unfinished = folder.join(format!("unfinished-{}", std::process::id()));
    if matches!(library, Library::Broken) {
        std::fs::write(&unfinished, "this is no library").unwrap();
    } else {
        let compiler = std::env::var_os("CC").filter(|name| !name.is_empty()).unwrap_or_else(|| "cc".into());
        let mut command = Command::new(&compiler);
        command.args(["-shared", "-fPIC", "-o"]).arg(&unfinished).args(without).arg(source);
        let output = command.output().unwrap_or_else(|error| panic!("{compiler:?} does not start: {error}"));
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    // Another test process may be at the same.
    std::fs::rename(&unfinished, &made).unwrap();
    folder
}
