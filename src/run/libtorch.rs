//! The program that links libtorch: where it is, what it says about itself, and which device a run gets.

use std::{
    ffi::OsString,
    fmt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use crate::{
    config::{Arch, Config, DeviceName, own},
    protocol::{Probe, SCHEMA},
};

/// Its file name.
pub const PROGRAM: &str = "tui-train-libtorch";
/// Its path, when it is somewhere else.
pub const VARIABLE: &str = "TUI_TRAIN_LIBTORCH";
/// The command that makes it.
pub const BUILD: &str =
    "LIBTORCH_USE_PYTORCH=1 cargo build --release --features libtorch --bin tui-train-libtorch";
/// Longest that it may take to load libtorch and to answer.
const PATIENCE: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(10);

/// The command that makes it against a libtorch with CUDA.
pub const BUILD_CUDA: &str =
    "TORCH_CUDA_VERSION=cu128 cargo build --release --features libtorch --bin tui-train-libtorch";

/// Why libtorch cannot train here, and what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LibtorchError {
    NotFound,
    NotThere(String),
    Libraries { program: String, said: String },
    Broken { program: String, said: String },
    Silent { program: String },
    OtherSchema { program: String, theirs: u32, ours: u32 },
    NoCudaBuild { program: String },
    NoCuda { mask: Option<String> },
    NoSuchDevice { index: usize, seen: usize, mask: Option<String> },
    OwnTask(DeviceName),
}

impl LibtorchError {
    /// What is wrong, without what to do about it.
    pub fn what(&self) -> String {
        match self {
            Self::NotFound => {
                format!("libtorch cannot train here: there is no {PROGRAM} beside this program or on PATH")
            }
            Self::NotThere(path) => format!("{VARIABLE} = {path} is no file"),
            Self::Libraries { program, said } => {
                format!("{program} cannot find its libraries ({said}): libtorch has moved since it was built")
            }
            Self::Broken { program, said } => format!("{program} does not work: {said}"),
            Self::Silent { program } => format!(
                "{program} did not answer within {} s: libtorch hangs while it is loaded",
                PATIENCE.as_secs()
            ),
            Self::OtherSchema { program, theirs, ours } => {
                format!("{program} speaks version {theirs} of the record and this program version {ours}")
            }
            Self::NoCudaBuild { program } => format!("{program} was built against a libtorch without CUDA"),
            Self::NoCuda { mask: Some(mask) } => format!(
                "libtorch sees no CUDA device here: CUDA_VISIBLE_DEVICES = \"{mask}\" masks them all, or there is no NVIDIA driver"
            ),
            Self::NoCuda { mask: None } => {
                "libtorch sees no CUDA device here: there is no NVIDIA driver, or it is too old for this libtorch"
                    .to_owned()
            }
            Self::OwnTask(device) => format!(
                "train.device = {device} needs libtorch, and the program of this task does not link it"
            ),
            Self::NoSuchDevice { index, seen, mask } => {
                let plural = if *seen == 1 { "" } else { "s" };
                let masked = mask.as_ref().map_or_else(String::new, |mask| {
                    format!("; CUDA_VISIBLE_DEVICES = \"{mask}\" masks the others")
                });
                format!(
                    "train.device = libtorch-cuda:{index} is not there: libtorch sees {seen} CUDA device{plural}, counted from 0{masked}"
                )
            }
        }
    }

    /// The one command that mends it, or says more where none does.
    pub fn command(&self) -> String {
        match self {
            Self::NotFound | Self::Libraries { .. } | Self::Broken { .. } | Self::OtherSchema { .. } => {
                BUILD.to_owned()
            }
            Self::NoCudaBuild { .. } => BUILD_CUDA.to_owned(),
            Self::NotThere(_) => format!("unset {VARIABLE}"),
            Self::Silent { program } => format!("{program} probe"),
            Self::NoCuda { mask: Some(_) } => "unset CUDA_VISIBLE_DEVICES".to_owned(),
            Self::NoCuda { mask: None } => "nvidia-smi".to_owned(),
            Self::NoSuchDevice { .. } => "tui-train devices".to_owned(),
            Self::OwnTask(_) => "cargo add tui-train --features libtorch".to_owned(),
        }
    }

    /// What to do, with that command.
    fn advice(&self) -> String {
        let command = self.command();
        match self {
            Self::NotFound => format!("build it with `{command}`"),
            Self::NotThere(_) => format!("give the path of {PROGRAM}, or `{command}`"),
            Self::Libraries { .. } | Self::Broken { .. } => format!("build it again with `{command}`"),
            Self::OtherSchema { .. } => format!("build both from one source: `{command}`"),
            Self::NoCudaBuild { .. } => {
                format!("build it again against one with CUDA (`{command}`), or use libtorch-cpu")
            }
            Self::OwnTask(_) => {
                format!("build that program with it (`{command}`), or leave train.device out")
            }
            Self::Silent { .. } => format!("`{command}` shows where"),
            Self::NoCuda { mask: Some(_) } => format!("`{command}` takes the mask away"),
            Self::NoCuda { mask: None } | Self::NoSuchDevice { .. } => {
                format!("`{command}` says what there is")
            }
        }
    }
}

impl fmt::Display for LibtorchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.what(), self.advice())
    }
}

impl std::error::Error for LibtorchError {}

/// Where a run trains.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chosen {
    /// The program that becomes the worker.
    pub program: PathBuf,
    /// Never `auto`.
    pub device: DeviceName,
}

/// The program and the device for a configured name. `auto` takes CUDA before libtorch on the processor, and that before
/// flex.
///
/// # Errors
/// A libtorch device is asked for by name and cannot train.
pub fn choose(device: DeviceName) -> Result<Chosen, LibtorchError> {
    let flex = || Chosen { program: own::worker_program(), device: DeviceName::Flex };
    match device {
        DeviceName::Flex => Ok(flex()),
        DeviceName::Auto => Ok(best().unwrap_or_else(|_| flex())),
        named => {
            let (program, probe) = probe()?;
            if let DeviceName::LibtorchCuda(index) = named {
                cuda(&program, &probe, index)?;
            }
            Ok(Chosen { program, device: named })
        }
    }
}

/// The same for a configuration: what `choose` says of its device, but that a task of its own trains in the program that
/// has it.
///
/// # Errors
/// The same; or the program of the task does not link what the device needs.
pub fn choose_for(
    config: &Config,
    choose: impl FnOnce(DeviceName) -> Result<Chosen, LibtorchError>,
) -> Result<Chosen, LibtorchError> {
    let device = config.train.device;
    if config.model.arch != Arch::Own {
        return choose(device);
    }
    if device.needs_libtorch() && !cfg!(feature = "libtorch") {
        return Err(LibtorchError::OwnTask(device));
    }
    let device = if device == DeviceName::Auto { DeviceName::Flex } else { device };
    Ok(Chosen { program: own::worker_program(), device })
}

fn best() -> Result<Chosen, LibtorchError> {
    let (program, probe) = probe()?;
    let device = if probe.cuda_devices > 0 { DeviceName::LibtorchCuda(0) } else { DeviceName::LibtorchCpu };
    Ok(Chosen { program, device })
}

/// Whether that CUDA device is there; if not, which of the reasons it is.
///
/// # Errors
/// It is not.
pub fn cuda(program: &Path, probe: &Probe, index: usize) -> Result<(), LibtorchError> {
    let mask = std::env::var("CUDA_VISIBLE_DEVICES").ok();
    if !probe.cuda_build {
        return Err(LibtorchError::NoCudaBuild { program: program.display().to_string() });
    }
    if probe.cuda_devices == 0 {
        return Err(LibtorchError::NoCuda { mask });
    }
    if index >= probe.cuda_devices {
        return Err(LibtorchError::NoSuchDevice { index, seen: probe.cuda_devices, mask });
    }
    Ok(())
}

/// Finds the program and asks it what it is.
///
/// # Errors
/// It is not there, does not start, or is of another version.
pub fn probe() -> Result<(PathBuf, Probe), LibtorchError> {
    let program = find(std::env::var_os(VARIABLE))?;
    let name = program.display().to_string();
    let (code, stdout, stderr) = ask(&program)?;
    let said = stderr.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("no message").trim().to_owned();
    if stderr.contains("error while loading shared libraries") {
        return Err(LibtorchError::Libraries { program: name, said });
    }
    // Only the last line is the answer: libraries may have spoken before.
    let answer = stdout.lines().last().unwrap_or_default();
    match serde_json::from_str::<Probe>(answer) {
        Ok(probe) if probe.schema == SCHEMA => Ok((program, probe)),
        Ok(probe) => Err(LibtorchError::OtherSchema { program: name, theirs: probe.schema, ours: SCHEMA }),
        Err(_) => Err(LibtorchError::Broken { program: name, said: format!("{said} ({code})") }),
    }
}

/// Named by the variable, beside this program, or on PATH.
fn find(named: Option<OsString>) -> Result<PathBuf, LibtorchError> {
    if let Some(path) = named.filter(|path| !path.is_empty()).map(PathBuf::from) {
        let there = path.is_file();
        return if there { Ok(path) } else { Err(LibtorchError::NotThere(path.display().to_string())) };
    }
    let beside = std::env::current_exe().ok().and_then(|this| Some(this.parent()?.to_owned()));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders = beside.into_iter().chain(std::env::split_paths(&path));
    folders
        .find_map(|folder| Some(folder.join(PROGRAM)).filter(|file| file.is_file()))
        .ok_or(LibtorchError::NotFound)
}

/// Exit status in words, standard output and standard error of `PROGRAM probe`.
fn ask(program: &Path) -> Result<(String, String, String), LibtorchError> {
    let broken = |said: String| LibtorchError::Broken { program: program.display().to_string(), said };
    let mut child = Command::new(program)
        .arg("probe")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| broken(error.to_string()))?;
    let until = Instant::now() + PATIENCE;
    loop {
        match child.try_wait() {
            Ok(Some(_)) => break,
            Ok(None) if Instant::now() < until => std::thread::sleep(POLL),
            _ => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(LibtorchError::Silent { program: program.display().to_string() });
            }
        }
    }
    let output = child.wait_with_output().map_err(|error| broken(error.to_string()))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ok((output.status.to_string(), text(&output.stdout), text(&output.stderr)))
}
