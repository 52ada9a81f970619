//! `tui-train export RUN`: a run as a file for other programs and people.

use std::{
    fs,
    io::{self, BufWriter, ErrorKind, Write},
    path::{Path, PathBuf},
};

use super::{
    output,
    progress::{Bar, Waiting},
};
use crate::{
    config::ConfigError,
    run::{
        Home, RunDir, RunError, atomic,
        dir::safe_name,
        export::{self, ExportError, Format, safetensors, tensorboard},
        tensorboard::PREFIX,
        text,
    },
};

/// Which run, as what, and where to.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Id, unique prefix, name, path, or `latest`
    #[arg(value_name = "RUN")]
    run: String,
    /// What to write
    #[arg(long, value_enum)]
    format: Kind,
    /// File to write; standard output without one. With safetensors and tensorboard a new folder; NAME-FORMAT without one
    #[arg(short, long, value_name = "PATH")]
    output: Option<PathBuf>,
    /// Replace what stands there: a file, or a folder that holds nothing but such an export
    #[arg(short, long)]
    force: bool,
    /// With safetensors: the checkpoint of this update instead of the last
    #[arg(long, value_name = "UPDATE")]
    at: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Kind {
    /// The summary
    Json,
    /// The summary as a page of Markdown
    Md,
    /// One row an update
    Csv,
    /// The same, one JSON object a line
    Jsonl,
    /// The curves as a picture
    Svg,
    /// Summary and curves as one page for a browser, which needs no other file
    Html,
    /// A folder for `tensorboard --logdir`
    Tensorboard,
    /// Settings and commands for `run --commands`
    Commands,
    /// A folder with the weights, a config.json and the optimizer's state
    Safetensors,
}

/// Writes the export.
///
/// # Errors
/// The run cannot be found or read, or what is to be written cannot be.
pub fn run(args: Args) -> anyhow::Result<i32> {
    let run = RunDir::resolve(&Home::from_env()?, &args.run)?;
    if args.at.is_some() && args.format != Kind::Safetensors {
        return usage("--at names a checkpoint, and only --format safetensors exports one: remove it");
    }
    if let Some(path) = &args.output {
        not_of_the_run(&run, path)?;
    }
    let format = match args.format {
        Kind::Json => Format::Json,
        Kind::Md => Format::Markdown,
        Kind::Csv => Format::Csv,
        Kind::Jsonl => Format::Jsonl,
        Kind::Svg => Format::Svg,
        Kind::Html => Format::Html,
        Kind::Commands => Format::Commands,
        Kind::Tensorboard => return board(&run, args.output, args.force),
        Kind::Safetensors => return weights(&run, args.at, args.output, args.force),
    };
    let mut bar = Bar::bytes("reading");
    let mut progress = |done, total| bar.at(done, total);
    let Some(path) = args.output.filter(|path| path != Path::new("-")) else {
        return print(&run, format, &mut progress);
    };
    let size = write(&path, args.force, |out| export::write(&run, format, out, &mut progress))?;
    drop(bar);
    output::message(&format!("wrote {} ({})", path.display(), text::bytes(size)));
    Ok(0)
}

/// What is made of numbers, or is escaped already, goes to standard output piece by piece.
fn print(run: &RunDir, format: Format, progress: &mut dyn FnMut(u64, u64)) -> anyhow::Result<i32> {
    if let Format::Csv | Format::Jsonl | Format::Svg | Format::Html = format {
        let mut out = output::pieces();
        let written = export::write(run, format, &mut out, progress).and_then(|()| Ok(out.flush()?));
        return match written {
            Err(ExportError::Write(error)) if error.kind() == ErrorKind::BrokenPipe => Ok(0),
            Err(ExportError::Write(error)) => {
                Err(anyhow::Error::from(error).context("cannot write to standard output"))
            }
            Err(ExportError::Run(error)) => Err(error.into()),
            Ok(()) => Ok(0),
        };
    }
    let mut bytes = Vec::new();
    export::write(run, format, &mut bytes, progress).map_err(|error| told(Path::new("-"), error))?;
    let text = String::from_utf8_lossy(&bytes);
    if format == Format::Json { output::json_text(&text) } else { output::text(&text) }
}

/// The folder with the weights.
fn weights(run: &RunDir, at: Option<u64>, output: Option<PathBuf>, force: bool) -> anyhow::Result<i32> {
    let target = folder(run, output, "safetensors")?;
    if force {
        let known = ["config.json", "model.safetensors", "optimizer.safetensors"];
        remove_export(&target, |name| known.contains(&name))?;
    }
    let waiting = Waiting::on("writing the weights");
    let written = safetensors::write(run, at, &target).map_err(|error| match error {
        RunError::Io { path, source, .. } if path == target => cannot(&target, &source),
        other => other.into(),
    })?;
    drop(waiting);
    let (folder, size) = (target.display(), text::bytes(written.bytes));
    output::message(&format!("wrote {folder} ({size}): the weights after update {}", written.update));
    Ok(0)
}

/// The folder for TensorBoard.
fn board(run: &RunDir, output: Option<PathBuf>, force: bool) -> anyhow::Result<i32> {
    let target = folder(run, output, "tensorboard")?;
    if force {
        remove_export(&target, |name| name.starts_with(PREFIX))?;
    } else if target.symlink_metadata().is_ok() {
        return Err(RunError::Taken(target).into());
    }
    let mut bar = Bar::bytes("reading");
    let mut size = 0;
    let fill = |folder: &Path| -> Result<(), ExportError> {
        size = tensorboard::write(run, folder, &mut |done, total| bar.at(done, total))?;
        Ok(())
    };
    atomic::write_folder(&target, fill).map_err(|error| told(&target, error))?;
    drop(bar);
    let (folder, size) = (target.display(), text::bytes(size));
    output::message(&format!("wrote {folder} ({size}): see it with `tensorboard --logdir {folder}`"));
    Ok(0)
}

/// The folder to write, which standard output cannot take.
fn folder(run: &RunDir, output: Option<PathBuf>, format: &str) -> anyhow::Result<PathBuf> {
    let target = output.unwrap_or_else(|| format!("{}-{format}", safe_name(&run.name())).into());
    if target == Path::new("-") {
        return usage(&format!(
            "--format {format} writes a folder, which standard output cannot take: name one with -o"
        ));
    }
    Ok(target)
}

/// Removes an earlier export of the kind; a folder with anything else in it is somebody's.
fn remove_export(target: &Path, is_ours: impl Fn(&str) -> bool) -> anyhow::Result<()> {
    let Ok(meta) = target.symlink_metadata() else { return Ok(()) };
    let refuse = |what: &str| {
        usage::<()>(&format!(
            "{} {what}, and --force replaces only a folder with such an export: name another with -o",
            target.display()
        ))
    };
    if !meta.is_dir() {
        return refuse("is no folder");
    }
    let entries = fs::read_dir(target).map_err(|error| cannot(target, &error))?;
    for entry in entries {
        let entry = entry.map_err(|error| cannot(target, &error))?;
        let name = entry.file_name();
        let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
        if !is_file || !name.to_str().is_some_and(&is_ours) {
            return refuse(&format!("holds {}", name.to_string_lossy()));
        }
    }
    fs::remove_dir_all(target).map_err(|error| cannot(target, &error))
}

/// What stands in the run's folder is its record and its checkpoints: nothing to be replaced, even when asked.
fn not_of_the_run(run: &RunDir, target: &Path) -> anyhow::Result<()> {
    let (Ok(target), Ok(run)) = (fs::canonicalize(target), fs::canonicalize(run.path())) else {
        return Ok(());
    };
    if target.starts_with(&run) {
        return usage(&format!("{} belongs to the run itself: name another place with -o", target.display()));
    }
    Ok(())
}

fn usage<T>(problem: &str) -> anyhow::Result<T> {
    Err(ConfigError::Conflict(problem.to_owned()).into())
}

/// A file appears whole or not at all; what is no file, such as a pipe, is written to as it is. Returns the bytes.
fn write(
    path: &Path,
    force: bool,
    fill: impl FnOnce(&mut dyn Write) -> Result<(), ExportError>,
) -> anyhow::Result<u64> {
    let mut size = 0;
    let counted = |out: &mut dyn Write| {
        let mut counted = Counted { out, bytes: 0 };
        fill(&mut counted)?;
        size = counted.bytes;
        Ok(())
    };
    let written = match fs::metadata(path) {
        Ok(meta) if meta.is_dir() => {
            let inside = path.join("run").display().to_string();
            return usage(&format!("{} is a folder: name a file in it, such as {inside}", path.display()));
        }
        Ok(meta) if !meta.is_file() => through(path, counted),
        Ok(_) if !force => return Err(RunError::Taken(path.to_owned()).into()),
        // A link is kept, and what it points at is replaced.
        Ok(_) => match fs::canonicalize(path) {
            Ok(real) => atomic::stream_file(&real, counted),
            Err(error) => Err(error.into()),
        },
        Err(_) if !force && path.is_symlink() => return Err(RunError::Taken(path.to_owned()).into()),
        Err(_) => atomic::stream_file(path, counted),
    };
    written.map_err(|error| told(path, error))?;
    Ok(size)
}

fn through(
    path: &Path,
    fill: impl FnOnce(&mut dyn Write) -> Result<(), ExportError>,
) -> Result<(), ExportError> {
    let mut out = BufWriter::new(fs::OpenOptions::new().write(true).open(path)?);
    fill(&mut out)?;
    Ok(out.flush()?)
}

/// Counts what is written.
struct Counted<'a> {
    out: &'a mut dyn Write,
    bytes: u64,
}

impl Write for Counted<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

fn told(path: &Path, error: ExportError) -> anyhow::Error {
    match error {
        ExportError::Run(error) => error.into(),
        ExportError::Write(error) => cannot(path, &error),
    }
}

/// What cannot be written, why, and what to do.
fn cannot(path: &Path, error: &io::Error) -> anyhow::Error {
    let remedy = match error.kind() {
        ErrorKind::NotFound => "make its folder first",
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => {
            "nothing was left there; make room or name another place with -o"
        }
        _ => "name another place with -o",
    };
    anyhow::anyhow!("cannot write {} ({error}): {remedy}", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(path: &Path, force: bool, text: &str) -> Result<u64, String> {
        write(path, force, |out| Ok(out.write_all(text.as_bytes())?)).map_err(|error| format!("{error:#}"))
    }

    #[test]
    fn the_palette_and_the_command_line_know_the_same_formats() {
        use clap::ValueEnum;
        let typed: Vec<String> = Kind::value_variants()
            .iter()
            .filter_map(|kind| Some(kind.to_possible_value()?.get_name().to_owned()))
            .collect();
        let mut known: Vec<&str> = export::NAMES.iter().map(|(name, _)| *name).collect();
        known.sort_unstable();
        let mut sorted = typed.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, known);
        for name in typed {
            let folder = matches!(&*name, "tensorboard" | "safetensors");
            assert_eq!(Format::named(&name).is_none(), folder, "{name}");
        }
    }

    #[test]
    fn nothing_is_overwritten_unless_asked_and_a_link_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        for force in [false, true] {
            let told = text(folder.path(), force, "x").unwrap_err();
            assert!(told.contains("is a folder: name a file in it"), "{told}");
        }
        let file = folder.path().join("run.csv");
        assert_eq!(text(&file, false, "one"), Ok(3));
        let told = text(&file, false, "two").unwrap_err();
        assert!(told.contains("exists already") && told.contains("--force"), "{told}");
        assert_eq!(fs::read(&file).unwrap(), b"one");
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&file, &link).unwrap();
        text(&link, true, "three").unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"three");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        let nowhere = folder.path().join("nowhere");
        std::os::unix::fs::symlink(folder.path().join("gone"), &nowhere).unwrap();
        assert!(text(&nowhere, false, "x").unwrap_err().contains("exists already"));
        let told = text(&folder.path().join("no/such"), false, "x").unwrap_err();
        assert!(told.contains("cannot write") && told.contains("make its folder first"), "{told}");
        text(Path::new("/dev/null"), false, "x").unwrap();
        assert!(!fs::metadata("/dev/null").unwrap().is_file());
    }

    #[test]
    fn only_a_folder_with_such_an_export_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("out");
        let ours = |name: &str| name == "model.safetensors";
        remove_export(&target, ours).unwrap();
        fs::create_dir(&target).unwrap();
        fs::write(target.join("model.safetensors"), "x").unwrap();
        fs::write(target.join("precious"), "x").unwrap();
        let told = remove_export(&target, ours).unwrap_err().to_string();
        assert!(told.contains("holds precious") && target.join("model.safetensors").exists(), "{told}");
        fs::remove_file(target.join("precious")).unwrap();
        remove_export(&target, ours).unwrap();
        assert!(!target.exists());
        fs::write(&target, "x").unwrap();
        assert!(remove_export(&target, ours).unwrap_err().to_string().contains("is no folder"));
    }
}
