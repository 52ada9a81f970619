//! Why a worker died without recording it, as far as it can be known: how it ended, if its starter saw that, and
//! whether the kernel killed for want of memory while it ran.

use std::{fs, os::unix::process::ExitStatusExt, path::Path, process::ExitStatus};

use serde::{Deserialize, Serialize};

use super::{RunDir, atomic, own, standing};

/// Exit code of a process that an interrupt ended.
const INTERRUPTED: i32 = 130;
/// Less free space than this is none, in bytes.
const FULL: u64 = 16 << 10;

/// What the kernel has counted. Nothing is known where it does not say so.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kernel {
    /// Changes with every start of the machine.
    pub boot: Option<String>,
    /// Processes of this machine that were killed for want of memory (`/proc/vmstat`).
    pub killed: Option<u64>,
    /// Processes of this process's control group that were (`memory.events`).
    pub killed_in_group: Option<u64>,
}

impl Kernel {
    /// As it stands now.
    pub fn now() -> Self {
        let text = |path: &str| fs::read_to_string(path).ok();
        let group = text("/proc/self/cgroup").and_then(|groups| {
            let path = groups.lines().find_map(|line| line.strip_prefix("0::"))?.to_owned();
            // Inside a container the path may be the one that the machine outside gives it.
            let places =
                [format!("/sys/fs/cgroup{path}/memory.events"), "/sys/fs/cgroup/memory.events".into()];
            places.iter().find_map(|place| text(place))
        });
        Self {
            boot: text("/proc/sys/kernel/random/boot_id").map(|id| id.trim().to_owned()),
            killed: text("/proc/vmstat").as_deref().and_then(count),
            killed_in_group: group.as_deref().and_then(count),
        }
    }

    /// What was killed for want of memory between two looks, and who says so.
    fn killed_since(&self, before: &Self) -> Option<String> {
        let since = |now: Option<u64>, before: Option<u64>| {
            now.zip(before).and_then(|(now, before)| now.checked_sub(before)).filter(|count| *count > 0)
        };
        let told = |count: u64, of: &str, source: &str| {
            let processes = if count == 1 { "process" } else { "processes" };
            format!(
                "the kernel's out-of-memory killer ended {count} {processes} of {of} meanwhile ({source})"
            )
        };
        if let Some(count) = since(self.killed_in_group, before.killed_in_group) {
            return Some(told(count, "its memory group", "memory.events"));
        }
        since(self.killed, before.killed).map(|count| told(count, "this machine", "/proc/vmstat"))
    }
}

/// The number behind `oom_kill`.
fn count(text: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok())
}

/// `worker.json`: what a worker notes when it starts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Birth {
    pid: u32,
    kernel: Kernel,
}

/// `death.json`: what the starter notes when its worker ends in any other way than by its own record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Death {
    pid: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    code: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    signal: Option<i32>,
    kernel: Kernel,
}

/// Notes that this process becomes the run's worker. What is known of an earlier one's death is out of date.
pub fn born(run: &RunDir) {
    let _ = fs::remove_file(run.death_json());
    // Without the note less is known about a death: no reason not to train.
    let _ = write(&run.worker_json(), &Birth { pid: std::process::id(), kernel: Kernel::now() });
}

/// Notes how the worker with that process id ended.
pub fn died(run: &RunDir, pid: u32, status: ExitStatus) {
    if !run.run_toml().exists() {
        return;
    }
    let note = Death { pid, code: status.code(), signal: status.signal(), kernel: Kernel::now() };
    // A folder that is gone or full takes no note.
    let _ = write(&run.death_json(), &note);
}

fn write(path: &Path, note: &impl Serialize) -> std::io::Result<()> {
    atomic::write_file(path, &serde_json::to_vec(note)?)
}

fn note<T: for<'a> Deserialize<'a>>(path: &Path) -> Option<T> {
    serde_json::from_slice(&own::read(path).ok()?).ok()
}

/// Why the worker of a run that recorded no end is gone; nothing when nobody knows.
pub fn cause(run: &RunDir) -> Option<String> {
    if !run.path().exists() {
        return Some("the run's folder was deleted while it trained".to_owned());
    }
    if standing::was_abandoned(run) {
        return Some("no worker was started: the program that made the run ended first".to_owned());
    }
    let known = told(note(&run.worker_json()).as_ref(), note(&run.death_json()).as_ref(), Kernel::now);
    let full = disk_is_full(run).then(|| {
        "the disk of its folder is full, so that it could not record how it ended: make room there".to_owned()
    });
    let all: Vec<String> = known.into_iter().chain(full).collect();
    (!all.is_empty()).then(|| all.join("; "))
}

/// Whether the file system that the run lies on has no room for a line of its record.
pub fn disk_is_full(run: &RunDir) -> bool {
    rustix::fs::statvfs(run.path()).is_ok_and(|disk| disk.f_bavail.saturating_mul(disk.f_frsize) < FULL)
}

fn told(birth: Option<&Birth>, death: Option<&Death>, now: impl FnOnce() -> Kernel) -> Option<String> {
    // A note about another process than the last worker says nothing.
    let death = death.filter(|death| birth.is_none_or(|birth| birth.pid == death.pid));
    if let Some(death) = death {
        let how = match (death.signal, death.code) {
            (Some(signal), _) => {
                let name = signal_hook::low_level::signal_name(signal).unwrap_or("an unnamed signal");
                format!("it was killed by {name} (signal {signal})")
            }
            (None, Some(INTERRUPTED)) => "it was interrupted twice and ended at once".to_owned(),
            (None, Some(code)) => format!("it ended with exit code {code}"),
            (None, None) => return None,
        };
        let oom = birth.filter(|_| death.signal == Some(rustix::process::Signal::KILL.as_raw()));
        let oom = oom.and_then(|birth| death.kernel.killed_since(&birth.kernel));
        return Some(oom.map_or_else(|| how.clone(), |oom| format!("{how}; {oom}")));
    }
    let (birth, now) = (birth?, now());
    if birth.kernel.boot.is_some() && birth.kernel.boot != now.boot {
        return Some(
            "the machine has been started anew since, or the folder comes from another machine".to_owned(),
        );
    }
    now.killed_since(&birth.kernel).map(|oom| format!("nobody saw it end; {oom}, perhaps this one"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::sample;

    fn kernel(boot: &str, killed: u64, in_group: Option<u64>) -> Kernel {
        Kernel { boot: Some(boot.to_owned()), killed: Some(killed), killed_in_group: in_group }
    }

    fn death(code: Option<i32>, signal: Option<i32>, kernel: Kernel) -> Death {
        Death { pid: 7, code, signal, kernel }
    }

    #[test]
    fn what_the_starter_saw_is_told_and_want_of_memory_only_with_evidence() {
        let birth = Birth { pid: 7, kernel: kernel("a", 3, Some(0)) };
        let told = |death: &Death| super::told(Some(&birth), Some(death), Kernel::default);
        let killed = told(&death(None, Some(9), kernel("a", 3, Some(0)))).unwrap();
        assert_eq!(killed, "it was killed by SIGKILL (signal 9)");
        let oom = told(&death(None, Some(9), kernel("a", 4, Some(1)))).unwrap();
        assert!(oom.contains("1 process of its memory group") && oom.contains("memory.events"), "{oom}");
        let oom = told(&death(None, Some(9), kernel("a", 5, Some(0)))).unwrap();
        assert!(oom.contains("2 processes of this machine") && oom.contains("/proc/vmstat"), "{oom}");
        let fault = told(&death(None, Some(11), kernel("a", 5, Some(2)))).unwrap();
        assert_eq!(fault, "it was killed by SIGSEGV (signal 11)", "a fault is no want of memory");
        assert!(told(&death(Some(130), None, Kernel::default())).unwrap().contains("twice"));
        assert!(told(&death(Some(1), None, Kernel::default())).unwrap().contains("exit code 1"));
        let other = Death { pid: 8, ..death(None, Some(9), Kernel::default()) };
        assert_eq!(super::told(Some(&birth), Some(&other), || kernel("a", 3, Some(0))), None);
    }

    #[test]
    fn without_a_starter_the_kernel_may_still_know() {
        let birth = Birth { pid: 7, kernel: kernel("a", 3, None) };
        let told = |now: &Kernel| super::told(Some(&birth), None, || now.clone());
        assert_eq!(told(&kernel("a", 3, None)), None);
        assert!(told(&kernel("b", 0, None)).unwrap().contains("started anew"));
        assert!(told(&kernel("a", 4, None)).unwrap().contains("perhaps"));
        assert_eq!(super::told(None, None, || kernel("a", 9, None)), None);
    }

    #[test]
    fn a_new_worker_ends_what_was_known_of_the_last_one() {
        let (_folder, run) = sample::run("death");
        assert_eq!(cause(&run), None);
        let status = ExitStatus::from_raw(9);
        died(&run, std::process::id(), status);
        assert!(cause(&run).unwrap().contains("SIGKILL"));
        born(&run);
        assert_eq!(cause(&run), None);
        fs::write(run.death_json(), "{\"pid\":").unwrap();
        assert_eq!(cause(&run), None, "a damaged note says nothing");
        fs::remove_dir_all(run.path()).unwrap();
        assert!(cause(&run).unwrap().contains("deleted"));
    }

    #[test]
    fn the_kernels_count_is_found_in_its_text() {
        assert_eq!(count("nr_free_pages 3\noom_kill 12\nzone 1\n"), Some(12));
        assert_eq!(count("low 0\noom 4\noom_kill 2\noom_group_kill 0\n"), Some(2));
        assert_eq!(count("oom 4\n"), None);
    }
}
