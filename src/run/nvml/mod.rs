//! GPU readings through NVML, where there is a driver. What the driver does not tell is absent and never 0, and the note
//! says why.

mod older;
pub mod visible;

use std::sync::Mutex;

use nvml_wrapper::{
    Device, Nvml, enum_wrappers::device::TemperatureSensor, enums::device::UsedGpuMemory, error::NvmlError,
    struct_wrappers::device::ProcessInfo,
};

use self::visible::{Listed, Mask};
use crate::{config::DeviceName, protocol::Host};

const NO_GPU: &str = "the driver lists no GPU";

/// NVML or the reason why there is none, and which GPU is read. Tried once: a failed start costs milliseconds.
#[derive(Debug)]
pub struct Gpu {
    nvml: Result<Nvml, Missing>,
    serves: DeviceName,
    choice: Choice,
    /// The GPU whose energy is read, and its counter when it was read first, in millijoules.
    energy: Mutex<Option<(String, u64)>>,
}

/// Why there is no NVML.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// In a sentence.
    pub why: String,
    /// The command that mends it, where one does.
    pub command: Option<&'static str>,
    /// There is no driver: the usual state of a machine without a GPU.
    pub no_driver: bool,
}

/// Which GPU is read.
#[derive(Debug)]
enum Choice {
    /// The run is not on a GPU: the first that the driver lists, and nothing of this process.
    First,
    /// The one that the run's CUDA device is; `assumed` where that is not certain.
    Cuda { uuid: String, assumed: Option<String> },
    /// None, and why.
    Unknown(String),
}

impl Gpu {
    /// Looks for the driver, and among its GPUs for the one that serves this device of a run.
    pub fn open(device: DeviceName) -> Self {
        let nvml = Nvml::init().map_err(|error| missing(&error));
        let choice = match (&nvml, device) {
            (Ok(nvml), DeviceName::LibtorchCuda(index)) => {
                listed(nvml).map_or_else(Choice::Unknown, |gpus| choose(index, &Mask::from_env(), &gpus))
            }
            _ => Choice::First,
        };
        Self { nvml, serves: device, choice, energy: Mutex::default() }
    }

    /// Name of the GPU that is read, and version of the driver.
    pub fn describe(&self) -> Option<(String, String)> {
        let nvml = self.nvml.as_ref().ok()?;
        let name = self.device(nvml).ok()?.name().ok()?;
        Some((name, self.driver().unwrap_or_else(|| "unknown".into())))
    }

    /// The device of the run whose GPU is read.
    pub const fn serves(&self) -> DeviceName {
        self.serves
    }

    /// Why nothing can be read.
    pub fn missing(&self) -> Option<&Missing> {
        self.nvml.as_ref().err()
    }

    /// Version of the driver.
    pub fn driver(&self) -> Option<String> {
        self.nvml.as_ref().ok()?.sys_driver_version().ok()
    }

    /// Every GPU that the driver lists, in the order of the bus.
    ///
    /// # Errors
    /// There is no driver, or it lists none; in one sentence.
    pub fn listed(&self) -> Result<Vec<Listed>, String> {
        listed(self.nvml.as_ref().map_err(|missing| missing.why.clone())?)
    }

    /// Fills in what the GPU tells.
    pub fn read(&self, host: &mut Host) {
        let nvml = match &self.nvml {
            Ok(nvml) => nvml,
            Err(missing) => return host.gpu_note = Some(missing.why.clone()),
        };
        let mut notes = Vec::new();
        let device = match (&self.choice, self.confirmed(nvml)) {
            (Choice::Cuda { assumed: Some(_), .. }, Some(device)) => Ok(device),
            (Choice::Cuda { assumed: Some(note), .. }, None) => {
                notes.push(note.clone());
                self.device(nvml)
            }
            _ => self.device(nvml),
        };
        match device {
            Ok(device) => {
                let process = matches!(self.choice, Choice::Cuda { .. }).then(std::process::id);
                let absent = read_device(nvml, &device, process, host);
                host.gpu_energy = process.and_then(|_| self.joules(&device));
                if !absent.is_empty() {
                    notes.push(format!("n/a: {}", absent.join(", ")));
                }
            }
            Err(why) => notes.push(format!("no GPU readings: {why}")),
        }
        host.gpu_note = (!notes.is_empty()).then(|| notes.join("; "));
    }

    /// What the GPU has used since its counter was read first. Nothing where it has none, as an instance, or where it was
    /// set back. Of a GPU that turns out to be another than was assumed, it begins anew.
    fn joules(&self, device: &Device<'_>) -> Option<f64> {
        let (uuid, now) = (device.uuid().ok()?, device.total_energy_consumption().ok()?);
        let mut kept = self.energy.lock().ok()?;
        let first = match &*kept {
            Some((of, first)) if *of == uuid => *first,
            _ => kept.insert((uuid, now)).1,
        };
        now.checked_sub(first).map(|millijoules| millijoules as f64 / 1000.0)
    }

    fn device<'a>(&self, nvml: &'a Nvml) -> Result<Device<'a>, String> {
        match &self.choice {
            Choice::First => nvml.device_by_index(0),
            Choice::Cuda { uuid, .. } => nvml.device_by_uuid(uuid.as_str()),
            Choice::Unknown(why) => return Err(why.clone()),
        }
        .map_err(|error| match error {
            NvmlError::InvalidArg => NO_GPU.to_owned(),
            error => why(&error),
        })
    }

    /// The one GPU that this process is on by the driver's list: where that is known, nothing has to be assumed.
    fn confirmed<'a>(&self, nvml: &'a Nvml) -> Option<Device<'a>> {
        if !matches!(self.choice, Choice::Cuda { assumed: Some(_), .. }) {
            return None;
        }
        let me = std::process::id();
        let mut found = listed(nvml).ok()?.into_iter().flat_map(Listed::devices).filter_map(|uuid| {
            let device = nvml.device_by_uuid(uuid).ok()?;
            processes(&device).ok()?.iter().any(|process| process.pid == me).then_some(device)
        });
        let device = found.next()?;
        found.next().is_none().then_some(device)
    }
}

fn choose(index: usize, mask: &Mask, gpus: &[Listed]) -> Choice {
    let seen = visible::visible(mask, gpus);
    let Some(device) = seen.get(index) else {
        return Choice::Unknown(format!(
            "no GPU that the driver lists is CUDA device {index}{}",
            mask.words()
        ));
    };
    let assumed = device.assumed.then(|| {
        format!("assumed to be CUDA device {index}: CUDA_DEVICE_ORDER=PCI_BUS_ID or a UUID in CUDA_VISIBLE_DEVICES makes it certain")
    });
    Choice::Cuda { uuid: device.uuid.to_owned(), assumed }
}

/// Those that may be used: in a container a driver counts more than it lets be opened.
fn listed(nvml: &Nvml) -> Result<Vec<Listed>, String> {
    let count = nvml.device_count().map_err(|error| why(&error))?;
    let mut refused = None;
    let mut gpus = Vec::new();
    for index in 0..count {
        match nvml.device_by_index(index).and_then(|device| describe(&device)) {
            Ok(gpu) => gpus.push(gpu),
            Err(error) => refused = Some(why(&error)),
        }
    }
    match refused {
        _ if !gpus.is_empty() => Ok(gpus),
        Some(why) => Err(why),
        None => Err(NO_GPU.to_owned()),
    }
}

fn describe(device: &Device<'_>) -> Result<Listed, NvmlError> {
    let uuid = device.uuid()?;
    let name = device.name().unwrap_or_else(|_| "a GPU without a name".to_owned());
    // Drivers and GPUs that know nothing of instances refuse the question.
    let divided = device.mig_mode().is_ok_and(|mode| mode.current == 1);
    let most = if divided { device.mig_device_count().unwrap_or(0) } else { 0 };
    let instances = (0..most)
        .filter_map(|index| device.mig_device_by_index(index).and_then(|instance| instance.uuid()).ok())
        .collect();
    Ok(Listed { name, uuid, divided, instances })
}

/// Returns what is absent, each with its reason. Of which process memory is asked for, if of any.
fn read_device(nvml: &Nvml, device: &Device<'_>, process: Option<u32>, host: &mut Host) -> Vec<String> {
    let mut absent = Vec::new();
    match memory(nvml, device) {
        Ok((used, total)) => (host.gpu_device_used, host.gpu_device_total) = (Some(used), Some(total)),
        Err(why) => absent.push(format!("memory ({why})")),
    }
    match process.map(|id| process_memory(device, id)) {
        Some(Ok(used)) => host.gpu_process_used = Some(used),
        Some(Err(why)) => absent.push(format!("this process ({why})")),
        None => {}
    }
    let told = |figure: u32| (figure != u32::MAX).then_some(u64::from(figure));
    host.gpu_temperature = device.temperature(TemperatureSensor::Gpu).ok().and_then(told);
    host.gpu_power = device.power_usage().ok().and_then(told).map(|milliwatts| milliwatts as f64 / 1000.0);
    match device.utilization_rates() {
        Ok(rates) => host.gpu_utilization = told(rates.gpu),
        Err(_) if device.mig_is_mig_device_handle().unwrap_or(false) => {
            absent.push("utilisation (not told of a MIG instance)".to_owned());
        }
        Err(error) => absent.push(format!("utilisation ({})", why(&error))),
    }
    absent
}

/// Bytes used and in all.
fn memory(nvml: &Nvml, device: &Device<'_>) -> Result<(u64, u64), String> {
    let read = match device.memory_info() {
        Err(error) if is_unknown(&error) => older::memory(nvml, device),
        read => read.map(|memory| (memory.used, memory.total)),
    };
    match read {
        // What does not fit is no figure: some drivers put a number without meaning where they know none.
        Ok((used, total)) if total > 0 && total < u64::MAX && used <= total => Ok((used, total)),
        Ok(_) => Err("the driver gives no figure".to_owned()),
        Err(NvmlError::NotSupported) => {
            Err("not told by the driver, as of a GPU that shares the machine's memory".to_owned())
        }
        Err(error) => Err(why(&error)),
    }
}

/// Bytes of that process, which are never 0 once it has used the GPU.
fn process_memory(device: &Device<'_>, id: u32) -> Result<u64, String> {
    let list = processes(device).map_err(|error| why(&error))?;
    match list.iter().find(|process| process.pid == id).map(|process| &process.used_gpu_memory) {
        Some(UsedGpuMemory::Used(bytes)) if *bytes > 0 => Ok(*bytes),
        Some(_) => Err("the driver lists it without a figure, as under WSL2".to_owned()),
        None => Err("not in the driver's list: not on the GPU yet, or in a container".to_owned()),
    }
}

fn processes(device: &Device<'_>) -> Result<Vec<ProcessInfo>, NvmlError> {
    match device.running_compute_processes() {
        Err(error) if is_unknown(&error) => device.running_compute_processes_v2(),
        list => list,
    }
}

/// Whether the driver does not have that function, or not in that version.
fn is_unknown(error: &NvmlError) -> bool {
    matches!(
        error,
        NvmlError::FailedToLoadSymbol(_) | NvmlError::FunctionNotFound | NvmlError::UnexpectedVariant(_)
    )
}

/// Why there are no readings at all.
fn missing(error: &NvmlError) -> Missing {
    let loading = match error {
        NvmlError::LibloadingError(error) => Some(one_line(&error.to_string())),
        _ => None,
    };
    let no_driver = loading.as_ref().is_some_and(|text| text.contains("No such file"));
    let why = match loading {
        Some(_) if no_driver => "no NVIDIA driver: libnvidia-ml.so.1 was not found".to_owned(),
        Some(text) => format!("no GPU readings: libnvidia-ml.so.1 cannot be loaded: {text}"),
        None => format!("no GPU readings: {}", why(error)),
    };
    let command = match error {
        NvmlError::LibRmVersionMismatch => Some("sudo reboot"),
        NvmlError::DriverNotLoaded => Some("sudo modprobe nvidia"),
        _ => None,
    };
    Missing { why, command, no_driver }
}

/// An error in words that fit into a sentence.
fn why(error: &NvmlError) -> String {
    match error {
        error if is_unknown(error) => "the driver does not know the question".to_owned(),
        NvmlError::NotSupported => "not told by the driver".to_owned(),
        NvmlError::NoPermission => "the driver does not permit it".to_owned(),
        NvmlError::DriverNotLoaded => "the NVIDIA driver is not loaded".to_owned(),
        NvmlError::GpuLost => "the GPU has fallen off the bus".to_owned(),
        NvmlError::LibRmVersionMismatch => {
            "the driver's library and its kernel module are of different versions: restart the machine"
                .to_owned()
        }
        error => one_line(&error.to_string()),
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
