//! `tui-train devices`: what can train here.

use super::output;
use crate::backend::devices;

/// No options yet but JSON.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// As JSON
    #[arg(long)]
    json: bool,
}

/// Prints a line a device.
///
/// # Errors
/// Standard output cannot be written.
pub fn run(args: Args) -> anyhow::Result<i32> {
    let devices = devices::available();
    if args.json {
        let list: Vec<_> = devices
            .iter()
            .map(|(name, about)| serde_json::json!({"name": name, "about": about, "available": true}))
            .collect();
        return output::json(&serde_json::json!({"schema": crate::protocol::SCHEMA, "devices": list}));
    }
    let lines: String = devices.iter().map(|(name, about)| format!("{name}  {about}\n")).collect();
    output::text(&lines)
}
