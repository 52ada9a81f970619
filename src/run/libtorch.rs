//! The program that links libtorch: where it is, what it says about itself, and which device a run gets.

mod ask;
mod error;
mod unseen;

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

pub use error::LibtorchError;
pub use unseen::Unseen;

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
/// The command that makes it against a libtorch with CUDA.
pub const BUILD_CUDA: &str =
    "TORCH_CUDA_VERSION=cu128 cargo build --release --features libtorch --bin tui-train-libtorch";

/// Where a run trains.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chosen {
    /// The program that becomes the worker.
    pub program: PathBuf,
    /// Never `auto`.
    pub device: DeviceName,
    /// What a person should know of the choice, each in a sentence.
    pub notes: Vec<String>,
}

/// What this program is: its version, and its revision where it was built in a clone.
const OURS: (&str, Option<&str>) = (env!("CARGO_PKG_VERSION"), option_env!("BUILD_GIT_REVISION"));

/// The program and the device for a configured name. `auto` takes CUDA before libtorch on the processor, and that before
/// flex.
///
/// # Errors
/// A libtorch device is asked for by name and cannot train.
pub fn choose(device: DeviceName) -> Result<Chosen, LibtorchError> {
    let flex = |notes| Chosen { program: own::worker_program(), device: DeviceName::Flex, notes };
    match device {
        DeviceName::Flex => Ok(flex(Vec::new())),
        DeviceName::Auto => Ok(best().unwrap_or_else(|error| flex(passed_over(&error)))),
        named => {
            let (program, probe) = probe()?;
            if let DeviceName::LibtorchCuda(index) = named {
                cuda(&program, &probe, index)?;
            }
            let notes = not_of_one_piece(&program, &probe);
            Ok(Chosen { program, device: named, notes })
        }
    }
}

/// Why `auto` trains on flex, where libtorch is there and cannot be used.
fn passed_over(error: &LibtorchError) -> Vec<String> {
    match error {
        LibtorchError::NotFound => Vec::new(),
        error => vec![format!("train.device = auto trains on flex: {error}")],
    }
}

/// What was built apart, and may not go together.
fn not_of_one_piece(program: &Path, probe: &Probe) -> Vec<String> {
    other_revision(program, probe, OURS.1).into_iter().chain(other_libtorch(program, probe)).collect()
}

/// It was compiled for one libtorch and has loaded another: what the two agree on is not known.
pub fn other_libtorch(program: &Path, probe: &Probe) -> Option<String> {
    let Probe { libtorch, built_for, .. } = probe;
    // What follows its numbers is how it was built.
    let numbers = |version: &str| {
        version.split(|sign: char| !sign.is_ascii_digit() && sign != '.').next().map(str::to_owned)
    };
    (!built_for.is_empty() && numbers(libtorch) != numbers(built_for)).then(|| {
        format!(
            "{} was built for libtorch {built_for} and has loaded {libtorch}: build it again with `{BUILD}`",
            program.display()
        )
    })
}

/// Of the same version, and yet not of one source: what the two mean by a run may differ.
fn other_revision(program: &Path, probe: &Probe, ours: Option<&str>) -> Option<String> {
    let (theirs, ours) = (probe.git.as_deref()?, ours?);
    (theirs != ours).then(|| {
        format!(
            "{} was built from revision {theirs} and this program from {ours}: if they do not go together, build it again with \
             `{BUILD}`",
            program.display()
        )
    })
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
    Ok(Chosen { program: own::worker_program(), device, notes: Vec::new() })
}

fn best() -> Result<Chosen, LibtorchError> {
    let (program, probe) = probe()?;
    let mut notes = not_of_one_piece(&program, &probe);
    let device = if probe.cuda_devices > 0 { DeviceName::LibtorchCuda(0) } else { DeviceName::LibtorchCpu };
    if device == DeviceName::LibtorchCpu
        && Unseen::find() == Unseen::Unserved
        && let Err(error) = cuda(&program, &probe, 0)
    {
        // There is a GPU that nobody has hidden.
        notes.push(format!("train.device = auto trains on {device}: {error}"));
    }
    Ok(Chosen { program, device, notes })
}

/// Whether that CUDA device is there; if not, which of the reasons it is.
///
/// # Errors
/// It is not.
pub fn cuda(program: &Path, probe: &Probe, index: usize) -> Result<(), LibtorchError> {
    if !probe.cuda_build {
        return Err(LibtorchError::NoCudaBuild { program: program.display().to_string() });
    }
    if probe.cuda_devices == 0 {
        return Err(LibtorchError::NoCuda { why: Unseen::find() });
    }
    if index >= probe.cuda_devices {
        let seen = probe.cuda_devices;
        return Err(LibtorchError::NoSuchDevice { index, seen, masked: unseen::masked(seen) });
    }
    Ok(())
}

/// Finds the program and asks it what it is.
///
/// # Errors
/// It is not there, does not start, or is of another version.
pub fn probe() -> Result<(PathBuf, Probe), LibtorchError> {
    let program = find(std::env::var_os(VARIABLE))?;
    let probe = understood(&program, &ask::ask(&program)?)?;
    Ok((program, probe))
}

/// What its answer says.
fn understood(program: &Path, answer: &ask::Answer) -> Result<Probe, LibtorchError> {
    let name = program.display().to_string();
    let said = answer.stderr.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("no message").trim();
    // The loader begins with the name of what it loads.
    let said = said.strip_prefix(&format!("{name}: ")).unwrap_or(said).to_owned();
    if answer.stderr.contains("error while loading shared libraries") {
        return Err(LibtorchError::Libraries { program: name, said });
    }
    if error::of_another_libtorch(&said) {
        let folder = error::folder_of_libtorch(program, &said);
        return Err(LibtorchError::OtherLibtorch { program: name, folder, said });
    }
    // Only the last line is the answer: libraries may have spoken before.
    let last = answer.stdout.lines().last().unwrap_or_default();
    match serde_json::from_str::<Probe>(last) {
        Ok(probe) if probe.schema != SCHEMA => {
            Err(LibtorchError::OtherSchema { program: name, theirs: probe.schema, ours: SCHEMA })
        }
        Ok(probe) if probe.version != OURS.0 => {
            Err(LibtorchError::OtherVersion { program: name, theirs: probe.version, ours: OURS.0 })
        }
        Ok(probe) => Ok(probe),
        Err(_) => Err(LibtorchError::Broken { program: name, said: format!("{said} ({})", answer.status) }),
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

#[cfg(test)]
mod tests {
    use super::*;

    fn probe(git: Option<&str>) -> Probe {
        Probe {
            schema: SCHEMA,
            version: OURS.0.to_owned(),
            git: git.map(str::to_owned),
            libtorch: "2.9.0".to_owned(),
            built_for: "2.9.0".to_owned(),
            folder: "/lib".to_owned(),
            cuda_build: false,
            cuda_devices: 0,
        }
    }

    fn answered(stdout: &str, stderr: &str) -> Result<Probe, LibtorchError> {
        let (stdout, stderr) = (stdout.to_owned(), stderr.to_owned());
        understood(
            Path::new("/bin/worker"),
            &ask::Answer { status: "exit status: 127".to_owned(), stdout, stderr },
        )
    }

    #[test]
    fn a_program_of_another_source_is_told_and_one_of_no_known_source_is_not() {
        let told = |theirs, ours| other_revision(Path::new("/bin/worker"), &probe(theirs), ours);
        let note = told(Some("aaaa"), Some("bbbb")).unwrap();
        for word in ["/bin/worker", "aaaa", "bbbb", BUILD] {
            assert!(note.contains(word), "{word} in {note}");
        }
        assert_eq!(told(Some("aaaa"), Some("aaaa")), None);
        assert_eq!((told(None, Some("bbbb")), told(Some("aaaa"), None)), (None, None));
    }

    #[test]
    fn another_libtorch_than_that_of_the_headers_is_told() {
        let told = |probe: &Probe| other_libtorch(Path::new("/bin/worker"), probe);
        let same = probe(None);
        assert_eq!(told(&same), None);
        assert_eq!(told(&Probe { libtorch: "2.9.0+cu128".to_owned(), ..same.clone() }), None);
        let later = Probe { libtorch: "2.9.1+cu128".to_owned(), ..same };
        let note = told(&later).unwrap();
        for word in ["/bin/worker", "built for libtorch 2.9.0", "loaded 2.9.1+cu128", BUILD] {
            assert!(note.contains(word), "{word} in {note}");
        }
        assert_eq!(told(&Probe { built_for: String::new(), ..later }), None, "one that does not tell");
    }

    #[test]
    fn an_answer_is_of_this_version_or_refused() {
        let json = |probe: &Probe| serde_json::to_string(probe).unwrap();
        let ours = probe(Some("aaaa"));
        assert_eq!(answered(&format!("warning\n{}", json(&ours)), "").as_ref(), Ok(&ours));
        let older = Probe { version: "0.0.1".to_owned(), ..ours };
        let told = answered(&json(&older), "").unwrap_err().to_string();
        assert!(told.contains("version 0.0.1") && told.contains(OURS.0) && told.contains(BUILD), "{told}");
        let schema = Probe { schema: 0, ..older };
        assert!(matches!(answered(&json(&schema), ""), Err(LibtorchError::OtherSchema { theirs: 0, .. })));
    }

    #[test]
    fn another_libtorch_than_it_was_built_for_has_a_sentence() {
        let lines =
            "/bin/worker: symbol lookup error: /opt/torch/lib/libtorch_cpu.so: undefined symbol: _ZN3c10";
        let told = answered("", lines).unwrap_err();
        let LibtorchError::OtherLibtorch { folder, said, .. } = &told else { panic!("{told:?}") };
        assert_eq!(folder.as_deref(), Some("/opt/torch/lib"));
        assert!(said.starts_with("symbol lookup error"), "{said}");
        let broken = answered("", "libc.so.6: version `GLIBC_2.99' not found").unwrap_err();
        assert!(matches!(broken, LibtorchError::Broken { .. }), "{broken}");
    }

    #[test]
    fn only_a_program_that_is_not_there_is_passed_over_without_a_word() {
        assert!(passed_over(&LibtorchError::NotFound).is_empty());
        let broken = LibtorchError::NotThere("/nowhere".to_owned());
        let notes = passed_over(&broken);
        assert!(notes[0].contains("auto trains on flex") && notes[0].contains("/nowhere"), "{notes:?}");
    }
}
