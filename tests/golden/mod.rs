//! Numbers held against the libraries that define them.
//!
//! The traces were written by PyTorch, transformers and bitsandbytes; the folder is `tests/fixtures/golden`, or
//! another one named by `GOLDEN_DIR`.

mod accumulation;
mod clip;
mod eight_bit;
#[cfg(feature = "libtorch")]
mod operations;
mod optimizers;
mod parity;
mod schedule;
mod sizes;
mod trace;

use std::path::PathBuf;

/// The folder of traces.
fn folder() -> PathBuf {
    std::env::var_os("GOLDEN_DIR").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/golden"),
        PathBuf::from,
    )
}

fn read(name: &str) -> serde_json::Value {
    let path = folder().join(name);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Numbers of a JSON array; `"nan"`, `"inf"` and `"-inf"` are written as words.
fn numbers(value: &serde_json::Value) -> Vec<f64> {
    value.as_array().expect("an array of numbers").iter().map(number).collect()
}

fn number(value: &serde_json::Value) -> f64 {
    match value.as_str() {
        Some("nan") => f64::NAN,
        Some("inf") => f64::INFINITY,
        Some("-inf") => f64::NEG_INFINITY,
        _ => value.as_f64().expect("a number"),
    }
}
