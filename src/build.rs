//! Hands the git revision to the program, for the summary of a run; a build outside a clone has none. Its name must not
//! begin like a setting's: cargo puts it into the environment of what it runs.

use std::{path::Path, process::Command};

/// Grows with every commit and checkout.
const LOG: &str = ".git/logs/HEAD";

fn main() {
    // Watching a file that is not there would build anew every time.
    let watched = if Path::new(LOG).exists() { LOG } else { "src/build.rs" };
    println!("cargo:rerun-if-changed={watched}");
    let output = Command::new("git").args(["rev-parse", "--short=12", "HEAD"]).output();
    if let Some(output) = output.ok().filter(|output| output.status.success()) {
        println!("cargo:rustc-env=BUILD_GIT_REVISION={}", String::from_utf8_lossy(&output.stdout).trim());
    }
}
