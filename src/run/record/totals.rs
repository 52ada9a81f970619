//! What a record adds up to at one moment: counts, readings, losses.

use crate::protocol::{Host, Update, summary::Measured};

/// Counts and readings at one moment.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Totals {
    /// The newest update event.
    pub last: Option<Update>,
    /// Loss of the newest update that was not skipped.
    pub train_loss: Option<f64>,
    /// Seconds since the start, pauses included, at the newest event.
    pub time: f64,
    /// Seconds that the updates took, by their own tokens and speeds.
    pub training_seconds: f64,
    pub host: Option<Host>,
    pub peaks: Peaks,
    pub energy: Energy,
    /// Operations that the updates came to, by their own speeds.
    pub flops: f64,
    /// Updates that were skipped because something was not finite.
    pub skipped: u64,
}

/// Loss on the held-out text, and how much had been trained by then.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ValidationPoint {
    pub update: u64,
    pub time: f64,
    /// Real input tokens trained so far, as of the newest update event.
    pub tokens: u64,
    pub loss: f64,
    /// Of a classification, as are the next two.
    pub accuracy: Option<f64>,
    pub f1: Option<f64>,
    pub f1_macro: Option<f64>,
}

/// What a GPU used, in joules: each worker counts from its own beginning.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Energy {
    /// Of the workers before this one.
    before: f64,
    /// Of this one, at its newest reading.
    pub(super) now: f64,
}

impl Energy {
    /// All of it; nothing where no GPU tells, and where it was read but once.
    pub fn joules(&self) -> Option<f64> {
        let all = self.before + self.now;
        (all > 0.0).then_some(all)
    }

    /// Another worker counts from 0.
    pub(super) fn next_worker(&mut self) {
        *self = Self { before: self.before + self.now, now: 0.0 };
    }
}

/// The largest readings, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Peaks {
    pub allocator: Option<u64>,
    pub host_rss: Option<u64>,
    pub gpu_device: Option<u64>,
    pub gpu_process: Option<u64>,
    pub gpu_allocated: Option<u64>,
    pub gpu_reserved: Option<u64>,
    /// A count, and no bytes.
    pub gpu_retries: Option<u64>,
}

impl Peaks {
    /// Those that a summary tells.
    pub const fn told(measured: &Measured) -> Self {
        Self {
            allocator: measured.peak_allocator_bytes,
            host_rss: measured.peak_host_rss,
            gpu_device: measured.peak_gpu_device_bytes,
            gpu_process: measured.peak_gpu_process_bytes,
            gpu_allocated: measured.peak_gpu_allocated_bytes,
            gpu_reserved: measured.peak_gpu_reserved_bytes,
            gpu_retries: measured.gpu_retries,
        }
    }

    /// These in a summary.
    pub fn tell(self, measured: Measured) -> Measured {
        Measured {
            peak_allocator_bytes: self.allocator,
            peak_host_rss: self.host_rss,
            peak_gpu_device_bytes: self.gpu_device,
            peak_gpu_process_bytes: self.gpu_process,
            peak_gpu_allocated_bytes: self.gpu_allocated,
            peak_gpu_reserved_bytes: self.gpu_reserved,
            gpu_retries: self.gpu_retries,
            ..measured
        }
    }

    /// The larger of each.
    pub fn most(self, other: Self) -> Self {
        Self {
            allocator: self.allocator.max(other.allocator),
            host_rss: self.host_rss.max(other.host_rss),
            gpu_device: self.gpu_device.max(other.gpu_device),
            gpu_process: self.gpu_process.max(other.gpu_process),
            gpu_allocated: self.gpu_allocated.max(other.gpu_allocated),
            gpu_reserved: self.gpu_reserved.max(other.gpu_reserved),
            gpu_retries: self.gpu_retries.max(other.gpu_retries),
        }
    }

    /// Whether anything was measured.
    pub fn any(self) -> bool {
        self != Self::default()
    }

    /// Takes one reading into account.
    pub fn apply(&mut self, host: &Host) {
        self.allocator = self.allocator.max(host.allocator_peak).max(host.allocator);
        self.host_rss = self.host_rss.max(host.host_rss);
        self.gpu_device = self.gpu_device.max(host.gpu_device_used);
        self.gpu_process = self.gpu_process.max(host.gpu_process_used);
        self.gpu_allocated = self.gpu_allocated.max(host.gpu_allocated_peak);
        self.gpu_reserved = self.gpu_reserved.max(host.gpu_reserved_peak);
        self.gpu_retries = self.gpu_retries.max(host.gpu_retries);
    }
}
