//! Hands the git revision to the program, for the summary of a run; a build outside a clone has none. Its name must not
//! begin like a setting's: cargo puts it into the environment of what it runs.
//!
//! With the feature `libtorch`: compiles the C++ shim, and tells the one executable that links libtorch where it is.

use std::{path::Path, process::Command};

/// Grows with every commit and checkout.
const LOG: &str = ".git/logs/HEAD";

fn main() {
    revision();
    #[cfg(feature = "libtorch")]
    libtorch::main();
}

fn revision() {
    // Watching a file that is not there would build anew every time.
    let watched = if Path::new(LOG).exists() { LOG } else { "src/build.rs" };
    println!("cargo:rerun-if-changed={watched}");
    let output = Command::new("git").args(["rev-parse", "--short=12", "HEAD"]).output();
    if let Some(output) = output.ok().filter(|output| output.status.success()) {
        println!("cargo:rustc-env=BUILD_GIT_REVISION={}", String::from_utf8_lossy(&output.stdout).trim());
    }
}

#[cfg(feature = "libtorch")]
mod libtorch {
    use std::path::{Path, PathBuf};

    /// The executable that links libtorch.
    const WORKER: &str = "tui-train-libtorch";
    const SHIM: [&str; 2] = ["src/backend/libtorch/shim.cpp", "src/backend/libtorch/adafactor.cpp"];
    const HEADER: &str = "src/backend/libtorch/guarded.h";

    pub(super) fn main() {
        SHIM.iter().chain([&HEADER]).for_each(|file| println!("cargo:rerun-if-changed={file}"));
        println!("cargo:rerun-if-env-changed=DEP_TCH_LIBTORCH_LIB");
        // The bindings' build script found it and says so to those who depend on them directly.
        let Some(lib) = std::env::var_os("DEP_TCH_LIBTORCH_LIB").map(PathBuf::from) else {
            panic!("torch-sys did not say where libtorch is");
        };
        let include = lib.parent().unwrap_or(&lib).join("include");
        cc::Build::new()
            .cpp(true)
            .std("c++17")
            .define("_GLIBCXX_USE_CXX11_ABI", "1")
            .include(&include)
            .include(include.join("torch/csrc/api/include"))
            .warnings(false)
            .files(SHIM)
            .compile("shim");
        link(&lib);
    }

    fn link(lib: &Path) {
        let argument = |argument: &str| println!("cargo:rustc-link-arg-bin={WORKER}={argument}");
        // A folder beside the executable first, for a worker that is carried to another machine.
        argument("-Wl,-rpath,$ORIGIN/libtorch/lib");
        argument(&format!("-Wl,-rpath,{}", lib.display()));
        argument("-Wl,--no-as-needed");
        if lib.join("libtorch_cuda.so").exists() {
            argument("-ltorch_cuda");
        }
        argument("-ltorch");
        println!("cargo:rustc-env=LIBTORCH_LIB_DIR={}", lib.display());
    }
}
