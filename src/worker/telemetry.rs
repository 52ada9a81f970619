//! The thread that reads the machine about once a second: memory, processor, GPU.

use std::{
    collections::BTreeMap,
    io,
    sync::{
        Arc,
        atomic::Ordering::Relaxed,
        mpsc::{RecvTimeoutError, Sender, channel},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use sysinfo::{Pid, ProcessRefreshKind, ProcessesToUpdate, System};

use super::{control::Status, event_log::Events, nvml::Gpu};
use crate::{
    backend::{
        allocator, devices,
        memory::{self, DeviceMemory},
    },
    config::DeviceName,
    protocol::{Event, Host},
};

const PERIOD: Duration = Duration::from_secs(1);

/// The running thread; ends when this is dropped.
#[derive(Debug)]
pub struct Telemetry {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Telemetry {
    /// Reads once at the start, then every second.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn start(gpu: Gpu, status: Arc<Status>, started: Instant, events: Events) -> io::Result<Self> {
        let (stop, stopped) = channel::<()>();
        let thread = std::thread::Builder::new().name("telemetry".into()).spawn(move || {
            let mut host = HostReader::new();
            let mut last = false;
            loop {
                let mut reading = host.read();
                gpu.read(&mut reading);
                reading = with_device(reading, memory::device(gpu.serves()));
                reading.update = status.update.load(Relaxed);
                reading.time = started.elapsed().as_secs_f64();
                let counts = reading.gpu_energy.is_some();
                if events.send(Event::Host(reading)).is_err() || last {
                    return;
                }
                match stopped.recv_timeout(PERIOD) {
                    Err(RecvTimeoutError::Timeout) => {}
                    // A counter tells everything up to the end.
                    _ if counts => last = true,
                    _ => return,
                }
            }
        })?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Telemetry {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct HostReader {
    /// Absent where the system cannot be asked; then these readings are absent, too.
    system: Option<System>,
    pid: Pid,
    cores: f64,
}

impl HostReader {
    fn new() -> Self {
        Self {
            system: System::new().ok(),
            pid: Pid::from_u32(std::process::id()),
            cores: devices::threads() as f64,
        }
    }

    fn read(&mut self) -> Host {
        let what = ProcessRefreshKind::nothing().with_memory().with_cpu();
        if let Some(system) = &mut self.system {
            system.refresh_processes_specifics(ProcessesToUpdate::Some(&[self.pid]), false, what);
        }
        let process = self.system.as_ref().and_then(|system| system.process(self.pid));
        let live = allocator::live_bytes();
        Host {
            host_rss: process.map(sysinfo::Process::memory),
            cpu_percent: process.map(|process| f64::from(process.cpu_usage()) / self.cores),
            allocator: (live > 0).then_some(live),
            allocator_peak: (live > 0).then(allocator::peak_bytes),
            ..Host::default()
        }
    }
}

/// The reading with what the device's own allocator holds.
pub fn with_device(reading: Host, device: Option<DeviceMemory>) -> Host {
    Host {
        gpu_allocated: device.map(|memory| memory.allocated),
        gpu_allocated_peak: device.map(|memory| memory.allocated_peak),
        gpu_reserved: device.map(|memory| memory.reserved),
        gpu_reserved_peak: device.map(|memory| memory.reserved_peak),
        gpu_retries: device.map(|memory| memory.retries),
        ..reading
    }
}

/// What the machine is, for the header and the summary.
pub fn hardware(gpu: &Gpu) -> BTreeMap<String, String> {
    let mut hardware = BTreeMap::new();
    let mut put = |key: &str, value: String| drop(hardware.insert(key.to_owned(), value));
    put("cores", devices::threads().to_string());
    put("system", System::long_os_version().unwrap_or_else(|_| std::env::consts::OS.to_owned()));
    if let Ok(mut system) = System::new() {
        system.refresh_memory();
        system.refresh_cpu_all();
        let processor = system.cpus().first().map(|cpu| cpu.brand().trim().to_owned()).unwrap_or_default();
        put("processor", if processor.is_empty() { "unknown".to_owned() } else { processor });
        put("memory_bytes", system.total_memory().to_string());
    }
    if let Some((name, driver)) = gpu.describe() {
        put("gpu", name);
        put("driver", driver);
    }
    hardware
}

/// The processor or the GPU that serves the device, of what the machine is.
pub fn of_device(hardware: &BTreeMap<String, String>, device: DeviceName) -> String {
    let part = if matches!(device, DeviceName::LibtorchCuda(_)) { "gpu" } else { "processor" };
    hardware.get(part).cloned().unwrap_or_else(|| "unknown".to_owned())
}

/// Bytes of the machine's memory that this process has or can still get, in its container and under its limit of
/// addresses; nothing where the system does not say.
pub fn memory_within_reach() -> Option<u64> {
    let mut system = System::new().ok()?;
    system.refresh_memory();
    let pid = Pid::from_u32(std::process::id());
    system.refresh_processes_specifics(
        ProcessesToUpdate::Some(&[pid]),
        false,
        ProcessRefreshKind::nothing().with_memory(),
    );
    let own = system.process(pid).map_or(0, sysinfo::Process::memory);
    let reach = |total: u64, free: u64| (total > 0).then(|| total.min(free.saturating_add(own)));
    let machine = reach(system.total_memory(), system.available_memory());
    let container = system.cgroup_limits().and_then(|limits| reach(limits.total_memory, limits.free_memory));
    let addresses = rustix::process::getrlimit(rustix::process::Resource::As).current;
    [machine, container, addresses].into_iter().flatten().min()
}

/// The most bytes of this process that were resident at once, as the operating system counts them.
pub fn resident_peak() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().trim_end_matches("kB").trim().parse::<u64>().ok().map(|kilobytes| kilobytes * 1024)
}
