//! What there is beyond the embedded device: libtorch, its CUDA devices, the driver, and the mask.

use super::{super::probe, Check};
use crate::{
    config::DeviceName,
    run::libtorch,
    worker::nvml::{
        Gpu,
        visible::{self, Listed, Mask},
    },
};

pub(super) fn all() -> Vec<Check> {
    let gpu = Gpu::open(DeviceName::Flex);
    let listed = gpu.listed();
    let gpus: &[Listed] = listed.as_deref().unwrap_or_default();
    let mut checks = vec![driver(&gpu, &listed)];
    checks.extend(mask(&Mask::from_env(), gpus));
    checks.extend(linked(gpus));
    checks
}

fn driver(gpu: &Gpu, listed: &Result<Vec<Listed>, String>) -> Check {
    let name = "driver";
    match (gpu.missing(), listed) {
        // The usual state of a machine without a GPU: there is nothing to mend.
        (Some(missing), _) if missing.no_driver => Check::ok(name, "no NVIDIA driver, and so no GPU"),
        (Some(missing), _) => Check::note(name, &*missing.why, missing.command),
        (None, Err(why)) => Check::note(name, why, Some("nvidia-smi")),
        (None, Ok(gpus)) => {
            let version = gpu.driver().unwrap_or_else(|| "of an unknown version".to_owned());
            let names: Vec<&str> = gpus.iter().map(|gpu| &*gpu.name).collect();
            Check::ok(name, format!("NVIDIA {version}: {}", names.join(", ")))
        }
    }
}

/// Only where the environment hides or orders GPUs that there are.
fn mask(mask: &Mask, gpus: &[Listed]) -> Option<Check> {
    let name = "mask";
    let text = mask.devices.as_ref()?;
    if gpus.is_empty() {
        return None;
    }
    let seen = visible::visible(mask, gpus);
    if seen.is_empty() {
        let found = format!("CUDA_VISIBLE_DEVICES = \"{text}\" hides every GPU from CUDA");
        return Some(Check::note(name, found, Some("unset CUDA_VISIBLE_DEVICES")));
    }
    let devices: Vec<String> = seen
        .iter()
        .enumerate()
        .map(|(index, device)| {
            let mark = if device.assumed { " (assumed)" } else { "" };
            format!("libtorch-cuda:{index} is {} {}{mark}", device.name, device.uuid)
        })
        .collect();
    let found = format!("CUDA_VISIBLE_DEVICES = \"{text}\": {}", devices.join(", "));
    Some(if seen.iter().any(|device| device.assumed) {
        Check::note(name, found, Some("export CUDA_DEVICE_ORDER=PCI_BUS_ID"))
    } else {
        Check::ok(name, found)
    })
}

/// The program that links libtorch, and what CUDA it sees.
fn linked(gpus: &[Listed]) -> Vec<Check> {
    let (program, probe) = match probe::linked() {
        Ok(found) => found,
        Err(error) => return vec![Check::note("libtorch", error.what(), Some(&*error.command()))],
    };
    let found = format!("{} links libtorch {}", program.display(), probe.libtorch);
    let cuda = match libtorch::cuda(&program, &probe, 0) {
        Ok(()) => {
            let last = probe.cuda_devices - 1;
            let range = if last == 0 { String::new() } else { format!(" to libtorch-cuda:{last}") };
            Check::ok("CUDA", format!("libtorch-cuda:0{range} can train"))
        }
        // Nothing is amiss where there is no GPU.
        Err(error) if gpus.is_empty() => Check::ok("CUDA", format!("no device: {}", error.what())),
        Err(error) => {
            let seen = match gpus {
                [] => String::new(),
                [one] => format!(", though the driver lists {}", one.name),
                many => format!(", though the driver lists {} GPUs", many.len()),
            };
            Check::note("CUDA", error.what() + &seen, Some(&*error.command()))
        }
    };
    let linked = match libtorch::other_libtorch(&program, &probe) {
        None => Check::ok("libtorch", found),
        Some(note) => Check::note("libtorch", note, Some(libtorch::BUILD)),
    };
    vec![linked, cuda]
}
