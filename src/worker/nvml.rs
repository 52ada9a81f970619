//! GPU readings through NVML, where there is a driver.

use nvml_wrapper::{
    Device, Nvml, enum_wrappers::device::TemperatureSensor, enums::device::UsedGpuMemory, error::NvmlError,
};

use crate::protocol::Host;

/// NVML, or the reason why there is none. Tried once: a failed start costs milliseconds.
#[derive(Debug)]
pub struct Gpu(Result<Nvml, String>);

impl Gpu {
    /// Looks for the driver.
    pub fn open() -> Self {
        // Servers often have the versioned library alone.
        let nvml = Nvml::init().or_else(|_| Nvml::builder().lib_path("libnvidia-ml.so.1".as_ref()).init());
        Self(nvml.map_err(|error| match error {
            NvmlError::LibloadingError(_) => "no NVIDIA driver: libnvidia-ml.so was not found".to_owned(),
            error => format!("no GPU readings: {}", one_line(&error.to_string())),
        }))
    }

    /// Name and driver of the first GPU.
    pub fn describe(&self) -> Option<(String, String)> {
        let nvml = self.0.as_ref().ok()?;
        let name = nvml.device_by_index(0).and_then(|device| device.name()).ok()?;
        Some((name, nvml.sys_driver_version().unwrap_or_else(|_| "unknown".into())))
    }

    /// Fills in what the first GPU tells; what it does not tell stays absent, with a note.
    pub fn read(&self, host: &mut Host) {
        match &self.0 {
            Err(why) => host.gpu_note = Some(why.clone()),
            Ok(nvml) => match nvml.device_by_index(0) {
                Ok(device) => read_device(&device, host),
                Err(error) => {
                    host.gpu_note = Some(format!("no GPU readings: {}", one_line(&error.to_string())));
                }
            },
        }
    }
}

fn read_device(device: &Device<'_>, host: &mut Host) {
    let mut missing = Vec::new();
    match device.memory_info() {
        Ok(memory) => {
            host.gpu_device_used = Some(memory.used);
            host.gpu_device_total = Some(memory.total);
        }
        Err(_) => missing.push("memory"),
    }
    host.gpu_utilization = device.utilization_rates().ok().map(|rates| u64::from(rates.gpu));
    host.gpu_temperature = device.temperature(TemperatureSensor::Gpu).ok().map(u64::from);
    host.gpu_power = device.power_usage().ok().map(|milliwatts| f64::from(milliwatts) / 1000.0);
    let mine = device.running_compute_processes().ok().and_then(|processes| {
        let mine = processes.into_iter().find(|process| process.pid == std::process::id())?;
        match mine.used_gpu_memory {
            UsedGpuMemory::Used(bytes) => Some(bytes),
            UsedGpuMemory::Unavailable => None,
        }
    });
    host.gpu_process_used = mine;
    if mine.is_none() {
        missing.push("this process (not on the GPU, or the driver sees other process numbers)");
    }
    if host.gpu_utilization.is_none() {
        missing.push("utilisation");
    }
    if !missing.is_empty() {
        host.gpu_note = Some(format!("n/a: {}", missing.join(", ")));
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
