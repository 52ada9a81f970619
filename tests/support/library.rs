//! Shared libraries in C that stand in for something, compiled once with the compiler that a build needs anyway.

use std::{
    path::{Path, PathBuf},
    process::Command,
    sync::Mutex,
};

/// The library of that file name, in a folder of its own among those of this kind, made of a source in `tests/fixtures`
/// unless an earlier test has done so.
pub(crate) fn compiled(source: &str, kind: &str, file: &str, flags: &[&str]) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(source);
    made(kind, file, &source, |unfinished| {
        let compiler = std::env::var_os("CC").filter(|name| !name.is_empty()).unwrap_or_else(|| "cc".into());
        let mut command = Command::new(&compiler);
        command.args(["-shared", "-fPIC", "-o"]).arg(unfinished).args(flags).arg(&source);
        let output = command.output().unwrap_or_else(|error| panic!("{compiler:?} does not start: {error}"));
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    })
}

/// The file, made by `make` where it is older than its source.
pub(crate) fn made(kind: &str, file: &str, source: &Path, make: impl FnOnce(&Path)) -> PathBuf {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _guard = ONE_AT_A_TIME.lock();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(kind);
    let finished = folder.join(file);
    let modified = |path: &Path| std::fs::metadata(path).and_then(|file| file.modified()).ok();
    if modified(&finished) > modified(source) {
        return finished;
    }
    std::fs::create_dir_all(&folder).unwrap();
    let unfinished = folder.join(format!("unfinished-{}", std::process::id()));
    make(&unfinished);
    // Another test process may be at the same.
    std::fs::rename(&unfinished, &finished).unwrap();
    finished
}
