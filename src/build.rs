//! Hands the git revision to the program, for the summary of a run; a build outside a clone has none.

use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=.git/logs/HEAD");
    let output = Command::new("git").args(["rev-parse", "--short=12", "HEAD"]).output();
    if let Some(output) = output.ok().filter(|output| output.status.success()) {
        println!("cargo:rustc-env=TUI_TRAIN_GIT={}", String::from_utf8_lossy(&output.stdout).trim());
    }
}
