//! `tui-train export RUN`: a run as a file for other programs and people.

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
};

use anyhow::{Context, bail};

use super::output;
use crate::{
    config::ConfigError,
    run::{
        Home, RunDir, atomic,
        dir::safe_name,
        export::{Format, render, safetensors},
        text,
    },
};

/// Which run, as what, and where to.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Id, unique prefix, name, path, or `latest`
    #[arg(value_name = "RUN")]
    run: String,
    /// json and md: the summary; csv: one row an update; commands: settings and commands for `run --commands`; safetensors: a folder with the weights, a config.json and the
    /// optimizer's state
    #[arg(long, value_enum)]
    format: Kind,
    /// File to write; standard output without one. With safetensors a new folder; NAME-safetensors without one
    #[arg(short, long, value_name = "PATH")]
    output: Option<PathBuf>,
    /// With safetensors: the checkpoint of this update instead of the last
    #[arg(long, value_name = "UPDATE")]
    at: Option<u64>,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Kind {
    Json,
    Md,
    Csv,
    Commands,
    Safetensors,
}

/// Writes the export.
///
/// # Errors
/// The run cannot be found or read, or the file cannot be written.
pub fn run(args: Args) -> anyhow::Result<i32> {
    let run = RunDir::resolve(&Home::from_env()?, &args.run)?;
    let format = match args.format {
        Kind::Json => Format::Json,
        Kind::Md => Format::Markdown,
        Kind::Csv => Format::Csv,
        Kind::Commands => Format::Commands,
        Kind::Safetensors => return folder(&run, args.at, args.output),
    };
    if args.at.is_some() {
        return usage("--at names a checkpoint, and only --format safetensors exports one: remove it");
    }
    let bytes = render(&run, format)?;
    let Some(path) = args.output.filter(|path| path != Path::new("-")) else {
        let text = String::from_utf8_lossy(&bytes);
        return if format == Format::Json { output::json_text(&text) } else { output::text(&text) };
    };
    write(&path, &bytes)?;
    output::message(&format!("wrote {} ({})", path.display(), text::bytes(bytes.len() as u64)));
    Ok(0)
}

/// The export that is a folder.
fn folder(run: &RunDir, at: Option<u64>, output: Option<PathBuf>) -> anyhow::Result<i32> {
    let target = output.unwrap_or_else(|| format!("{}-safetensors", safe_name(&run.name())).into());
    if target == Path::new("-") {
        return usage(
            "--format safetensors writes a folder, which standard output cannot take: name one with -o",
        );
    }
    let written = safetensors::write(run, at, &target)?;
    let (folder, size) = (target.display(), text::bytes(written.bytes));
    output::message(&format!("wrote {folder} ({size}): the weights after update {}", written.update));
    Ok(0)
}

fn usage(problem: &str) -> anyhow::Result<i32> {
    Err(ConfigError::Conflict(problem.to_owned()).into())
}

/// A file appears whole or not at all; what is no file, such as a pipe, is written to as it is.
fn write(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    let cannot = || format!("cannot write {}", path.display());
    match fs::metadata(path) {
        Ok(meta) if meta.is_dir() => {
            bail!("{} is a folder: name a file in it, such as {}", path.display(), path.join("run").display())
        }
        Ok(meta) if !meta.is_file() => {
            fs::OpenOptions::new().write(true).open(path).and_then(|mut file| file.write_all(bytes))
        }
        // A link is kept, and what it points at is replaced.
        Ok(_) => fs::canonicalize(path).and_then(|real| atomic::write_file(&real, bytes)),
        Err(_) => atomic::write_file(path, bytes),
    }
    .with_context(cannot)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_never_overwritten_and_a_file_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let told = write(folder.path(), b"x").unwrap_err().to_string();
        assert!(told.contains("is a folder"), "{told}");
        let file = folder.path().join("run.csv");
        write(&file, b"one").unwrap();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&file, &link).unwrap();
        write(&link, b"two").unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"two");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        let told = format!("{:#}", write(&folder.path().join("no/such"), b"x").unwrap_err());
        assert!(told.contains("cannot write") && told.contains("no/such"), "{told}");
        write(Path::new("/dev/null"), b"x").unwrap();
        assert!(!fs::metadata("/dev/null").unwrap().is_file());
    }
}
