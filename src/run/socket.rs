//! The control socket: `control.sock` in the run's folder, or, where a socket cannot stand there (its path is too
//! long, or the file system has no sockets), a socket in a private temporary folder and its path in `control.sock`.

use std::{
    fs::{self, DirBuilder, Permissions},
    io,
    os::unix::{
        fs::{DirBuilderExt, FileTypeExt, PermissionsExt},
        net::{UnixListener, UnixStream},
    },
    path::{Path, PathBuf},
};

use super::{RunDir, RunError, atomic, bounded};

/// Longest path that every Unix takes for a socket, in bytes.
const LONGEST: usize = 100;
/// Longest file that says where the socket is, in bytes.
const LONGEST_POINTER: u64 = 4096;

/// Makes the socket. Only the worker that holds the run's lock may call this: it removes what a dead one left.
///
/// # Errors
/// No socket can be made, neither in the run's folder nor in a temporary one.
pub fn bind(run: &RunDir) -> Result<UnixListener, RunError> {
    remove(run);
    let path = run.control_sock();
    if fits(&path)
        && let Ok(listener) = listen(&path)
    {
        return Ok(listener);
    }
    let elsewhere = short_folder().map_err(RunError::io("cannot make a folder for", &path))?.join("s");
    let listener = listen(&elsewhere).map_err(RunError::io("cannot make socket", &elsewhere))?;
    let pointer = format!("{}\n", elsewhere.display());
    atomic::write_file(&path, pointer.as_bytes()).map_err(RunError::io("cannot write", &path))?;
    Ok(listener)
}

/// Connects to the run's worker.
///
/// # Errors
/// No worker listens.
pub fn connect(run: &RunDir) -> Result<UnixStream, RunError> {
    let gone = || RunError::NotLive(run.id().to_owned());
    let path = address(&run.control_sock()).ok_or_else(gone)?;
    UnixStream::connect(&path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => gone(),
        _ => RunError::io("cannot connect to", &path)(error),
    })
}

/// Removes the socket, and the temporary folder if it stands in one. To be called when the worker ends.
pub fn remove(run: &RunDir) {
    let path = run.control_sock();
    // What is not there needs no removal, and what cannot be removed fails when the socket is made.
    if let Some(elsewhere) = address(&path)
        && elsewhere != path
        && fs::symlink_metadata(&elsewhere).is_ok_and(|meta| meta.file_type().is_socket())
    {
        let _ = fs::remove_file(&elsewhere);
        if let Some(folder) = elsewhere.parent() {
            let _ = fs::remove_dir(folder);
        }
    }
    let _ = fs::remove_file(&path);
}

/// The socket's own path: that of `control.sock`, or what is written in it.
fn address(path: &Path) -> Option<PathBuf> {
    let meta = fs::symlink_metadata(path).ok()?;
    if meta.file_type().is_socket() {
        return Some(path.to_owned());
    }
    let text = bounded::read_text(path, LONGEST_POINTER).ok()?;
    Some(PathBuf::from(text.trim_end_matches('\n'))).filter(|path| path.is_absolute())
}

fn fits(path: &Path) -> bool {
    path.as_os_str().len() <= LONGEST
}

/// A socket that only this user may speak to.
fn listen(path: &Path) -> io::Result<UnixListener> {
    let listener = UnixListener::bind(path)?;
    fs::set_permissions(path, Permissions::from_mode(0o600))?;
    Ok(listener)
}

/// A new folder with a short path that nobody else may enter.
fn short_folder() -> io::Result<PathBuf> {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let places = runtime.into_iter().chain([std::env::temp_dir(), PathBuf::from("/tmp")]);
    let mut last = io::Error::other("no temporary folder has a path short enough for a socket");
    for place in places.filter(|place| place.is_absolute()) {
        for number in 0..1000 {
            let folder = place.join(format!("tui-train-{}-{number}", std::process::id()));
            if !fits(&folder.join("s")) {
                break;
            }
            match DirBuilder::new().mode(0o700).create(&folder) {
                Ok(()) => return Ok(folder),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => {
                    last = error;
                    break;
                }
            }
        }
    }
    Err(last)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use super::*;

    fn speaks(run: &RunDir, listener: &UnixListener) {
        let mut client = connect(run).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        client.write_all(b"hello").unwrap();
        client.shutdown(std::net::Shutdown::Write).unwrap();
        let mut heard = String::new();
        server.read_to_string(&mut heard).unwrap();
        assert_eq!(heard, "hello");
    }

    #[test]
    fn a_short_path_holds_the_socket_itself() {
        let folder = tempfile::tempdir_in("/tmp").unwrap();
        let run = RunDir::unchecked(folder.path().to_owned());
        assert!(matches!(connect(&run), Err(RunError::NotLive(_))));
        let listener = bind(&run).unwrap();
        assert!(fs::symlink_metadata(run.control_sock()).unwrap().file_type().is_socket());
        speaks(&run, &listener);
        drop(listener);
        assert!(matches!(connect(&run), Err(RunError::NotLive(_))), "a dead worker's socket");
        speaks(&run, &bind(&run).unwrap());
        remove(&run);
        assert!(!run.control_sock().exists());
    }

    #[test]
    fn a_long_path_holds_a_pointer() {
        let folder = tempfile::tempdir().unwrap();
        let deep = folder.path().join("d".repeat(120)).join("e".repeat(120));
        fs::create_dir_all(&deep).unwrap();
        let run = RunDir::unchecked(deep);
        let listener = bind(&run).unwrap();
        let elsewhere = PathBuf::from(fs::read_to_string(run.control_sock()).unwrap().trim());
        assert!(fits(&elsewhere));
        let mode = fs::metadata(elsewhere.parent().unwrap()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        speaks(&run, &listener);
        remove(&run);
        assert!(!elsewhere.exists() && !elsewhere.parent().unwrap().exists() && !run.control_sock().exists());
    }
}
