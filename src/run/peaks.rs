//! What was measured of this machine's devices, kept in `peaks.json` beside the runs: measured once, and again by every
//! `tui-train bench`. The best counts, for a busy machine measures too little.

use std::{fs, io, path::PathBuf};

use serde::{Deserialize, Serialize};

use super::{Home, atomic};
use crate::{
    config::{Precision, TrainConfig},
    protocol::{MatmulPeak, SCHEMA},
};

/// The file.
#[derive(Debug, Serialize, Deserialize)]
struct Kept {
    schema: u32,
    peaks: Vec<MatmulPeak>,
}

fn path(home: &Home) -> PathBuf {
    home.path().join("peaks.json")
}

/// All that is kept; nothing where there is no file, or none that can be read: it is measured again.
pub fn all(home: &Home) -> Vec<MatmulPeak> {
    let text = fs::read(path(home)).unwrap_or_default();
    serde_json::from_slice::<Kept>(&text).map(|kept| kept.peaks).unwrap_or_default()
}

/// The best of that device, hardware, threads and precision.
pub fn find(
    home: &Home,
    device: &str,
    hardware: &str,
    threads: usize,
    precision: &str,
) -> Option<MatmulPeak> {
    all(home).into_iter().find(|peak| {
        peak.key() == (device, hardware, threads, precision)
            && peak.flops_per_second.is_finite()
            && peak.flops_per_second > 0.0
    })
}

/// Keeps it unless a better one is kept, and returns the one that counts from now on.
///
/// # Errors
/// The file cannot be written.
pub fn keep(home: &Home, peak: MatmulPeak) -> io::Result<MatmulPeak> {
    let mut peaks = all(home);
    match peaks.iter_mut().find(|kept| kept.key() == peak.key()) {
        Some(kept) if kept.flops_per_second >= peak.flops_per_second => return Ok(kept.clone()),
        Some(kept) => kept.clone_from(&peak),
        None => peaks.push(peak.clone()),
    }
    fs::create_dir_all(home.path())?;
    atomic::write_file(&path(home), &serde_json::to_vec_pretty(&Kept { schema: SCHEMA, peaks })?)?;
    Ok(peak)
}

/// The type in which the products of a run are computed.
pub const fn precision(train: &TrainConfig) -> &'static str {
    match (train.precision, train.tf32) {
        (Precision::Bf16, _) => "bf16",
        (Precision::F32, true) => "tf32",
        (Precision::F32, false) => "f32",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peak(device: &str, precision: &str, flops_per_second: f64) -> MatmulPeak {
        MatmulPeak {
            device: device.into(),
            hardware: "a processor".into(),
            threads: 2,
            precision: precision.into(),
            flops_per_second,
            size: 512,
            measured: "2026-01-01T00:00:00Z".into(),
            version: "0.1.0".into(),
        }
    }

    #[test]
    fn the_best_of_each_device_and_precision_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path().join("not made yet"));
        let found = |device, precision, threads| {
            find(&home, device, "a processor", threads, precision).map(|peak| peak.flops_per_second)
        };
        assert_eq!(found("flex", "f32", 2), None);
        for (flops, best) in [(5e9, 5e9), (4e9, 5e9), (6e9, 6e9)] {
            assert_eq!(keep(&home, peak("flex", "f32", flops)).unwrap().flops_per_second, best);
            assert_eq!(found("flex", "f32", 2), Some(best));
        }
        keep(&home, peak("flex", "bf16", 1e9)).unwrap();
        assert_eq!((found("flex", "f32", 2), found("flex", "bf16", 2)), (Some(6e9), Some(1e9)));
        assert_eq!((found("flex", "f32", 4), found("libtorch-cpu", "f32", 2)), (None, None));
        fs::write(path(&home), "{\"torn").unwrap();
        assert_eq!(found("flex", "f32", 2), None);
        keep(&home, peak("flex", "f32", 1e9)).unwrap();
        assert_eq!(all(&home).len(), 1, "measured again");
    }
}
