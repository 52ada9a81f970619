//! Files of a run's folder, which may have come from a stranger: nothing is written through a link, no pipe in a file's
//! place holds a reader up, and nothing is read that is larger than it can be.

use std::{
    fs::{File, OpenOptions},
    io,
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

use rustix::{fs::OFlags, io::Errno};

use super::{RunDir, RunError, bounded};

/// Opens a file for writing, but not what a link in its place points at.
///
/// # Errors
/// It cannot be opened, is a link, or is no file.
pub fn open(path: &Path, options: &OpenOptions) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = options.clone().custom_flags(flags.bits() as i32).open(path).map_err(|error| {
        if Errno::from_io_error(&error) == Some(Errno::LOOP) { io::Error::other(LINK) } else { error }
    })?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other("it is no file")) }
}

const LINK: &str = "it is a link, and a run is written into its own folder alone: put a file in its place";

/// Opens a file for reading.
///
/// # Errors
/// It cannot be opened, or is no file.
pub fn look(path: &Path) -> io::Result<File> {
    Ok(look_long(path)?.0)
}

/// The same, with its length in bytes.
///
/// # Errors
/// The same.
pub fn look_long(path: &Path) -> io::Result<(File, u64)> {
    let file = OpenOptions::new().read(true).custom_flags(OFlags::NONBLOCK.bits() as i32).open(path)?;
    let metadata = file.metadata()?;
    if metadata.is_file() { Ok((file, metadata.len())) } else { Err(io::Error::other("it is no file")) }
}

/// The bytes of a small file.
///
/// # Errors
/// It cannot be read, is no file, or is longer than [`bounded::LONGEST_FILE`].
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    bounded::read(path, bounded::LONGEST_FILE)
}

/// The same as text.
///
/// # Errors
/// The same, or it is no UTF-8.
pub fn read_text(path: &Path) -> io::Result<String> {
    bounded::read_text(path, bounded::LONGEST_FILE)
}

/// Refuses a run in which a link stands where a worker writes or removes.
///
/// # Errors
/// There is one; the sentence names it.
pub fn refuse_links(run: &RunDir) -> Result<(), RunError> {
    let written = [
        run.lock(),
        run.events(),
        run.worker_log(),
        run.checkpoints(),
        run.control_sock(),
        run.tensorboard(),
    ];
    match written.into_iter().find(|path| path.is_symlink()) {
        Some(path) => Err(RunError::Damaged { path, problem: LINK.to_owned() }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::run::{EventWriter, RunLock, sample};

    #[test]
    fn nothing_is_written_through_a_link() {
        let (folder, run) = sample::run("links");
        let precious = folder.path().join("precious");
        std::fs::write(&precious, "mine").unwrap();
        for path in [run.lock(), run.events(), run.worker_log()] {
            symlink(&precious, &path).unwrap();
            let told = refuse_links(&run).unwrap_err().to_string();
            assert!(told.contains(&path.display().to_string()) && told.contains("is a link"), "{told}");
            assert!(RunLock::acquire(&run).is_err() || path != run.lock());
            assert!(EventWriter::create(&run, &sample::header(&run)).is_err() || path != run.events());
            let log = open(&path, OpenOptions::new().append(true).create(true));
            assert!(log.unwrap_err().to_string().contains("is a link"));
            std::fs::remove_file(&path).unwrap();
            let _ = std::fs::remove_file(run.events());
        }
        assert_eq!(std::fs::read(&precious).unwrap(), b"mine");
        symlink(folder.path(), run.checkpoints()).unwrap();
        assert!(refuse_links(&run).is_err());
        std::fs::remove_file(run.checkpoints()).unwrap();
        refuse_links(&run).unwrap();
    }

    #[test]
    fn a_pipe_or_a_folder_in_a_files_place_holds_nobody_up() {
        let (_folder, run) = sample::run("pipes");
        for path in [run.lock(), run.run_toml(), run.meta_json()] {
            let _ = std::fs::remove_file(&path);
            let made = std::process::Command::new("mkfifo").arg(&path).status().unwrap();
            assert!(made.success());
        }
        assert!(!crate::run::is_live(&run));
        assert!(RunLock::acquire(&run).is_err());
        assert!(run.config().is_err() && run.meta().is_err());
        assert!(read(run.path()).unwrap_err().to_string().contains("no file"));
    }
}
