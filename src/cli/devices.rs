//! `tui-train devices`: what can train here, and what would change that.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::{output, probe, progress::Waiting};
use crate::{
    backend::devices,
    config::DeviceName,
    protocol::{MatmulPeak, Probe, SCHEMA},
    run::{
        Home,
        export::markdown,
        libtorch::{self, LibtorchError},
        peaks,
        text::plain,
    },
};

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
    let waiting = Waiting::on("asking the devices");
    let mut devices = all(probe::linked());
    drop(waiting);
    let measured = Home::from_env().map(|home| peaks::all(&home)).unwrap_or_default();
    for row in &mut devices {
        let name = row.name.to_string();
        row.peaks = measured.iter().filter(|peak| peak.device == name).cloned().collect();
    }
    if args.json {
        let list: Vec<Value> = devices.iter().map(Row::as_json).collect();
        return output::json(&json!({"schema": SCHEMA, "devices": list}));
    }
    let width = devices.iter().map(|row| row.name.to_string().len()).max().unwrap_or(0);
    let lines: String = devices
        .iter()
        .map(|row| {
            let mark = if row.available { "yes" } else { "no " };
            format!("{:<width$}  {mark}  {}\n{}", row.name.to_string(), row.about, row.peaks(width))
        })
        .collect();
    output::text(&lines)
}

/// One device, and what there is to say about it.
struct Row {
    name: DeviceName,
    available: bool,
    about: String,
    /// How fast it multiplies, for each precision and machine that was measured.
    peaks: Vec<MatmulPeak>,
}

impl Row {
    fn as_json(&self) -> Value {
        json!({
            "name": self.name.to_string(),
            "available": self.available,
            "about": self.about,
            "matmul_peaks": self.peaks,
        })
    }

    /// A line a peak, or how to measure it.
    fn peaks(&self, width: usize) -> String {
        let line = |text: String| format!("{:<width$}       {text}\n", "");
        if self.available && self.peaks.is_empty() {
            let command = format!("`tui-train bench --device {}`", self.name);
            return line(format!("matmul peak: not measured, {command} does"));
        }
        let told = |peak: &MatmulPeak| {
            let (hardware, threads) = (plain(&peak.hardware), peak.threads);
            line(format!("matmul peak: {} on {hardware}, {threads} threads", markdown::measured(peak)))
        };
        self.peaks.iter().map(told).collect()
    }
}

fn all(probe: Result<(PathBuf, Probe), LibtorchError>) -> Vec<Row> {
    let row = |name, available, about| Row { name, available, about, peaks: Vec::new() };
    let threads = devices::threads();
    let mut rows = vec![row(
        DeviceName::Flex,
        true,
        format!("pure Rust on this machine's processor, {threads} threads"),
    )];
    match probe {
        Err(error) => rows.push(row(DeviceName::LibtorchCpu, false, error.to_string())),
        Ok((program, probe)) => {
            let about = format!("libtorch {} on this machine's processor, {threads} threads", probe.libtorch);
            rows.push(row(DeviceName::LibtorchCpu, true, about));
            let cuda = (0..probe.cuda_devices).map(|index| {
                row(
                    DeviceName::LibtorchCuda(index),
                    true,
                    format!("libtorch {} on CUDA device {index}", probe.libtorch),
                )
            });
            rows.extend(cuda);
            if probe.cuda_devices == 0
                && let Err(why) = libtorch::cuda(&program, &probe, 0)
            {
                rows.push(row(DeviceName::LibtorchCuda(0), false, why.to_string()));
            }
        }
    }
    rows
}
