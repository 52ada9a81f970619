//! The control socket: `control.sock` in the run's folder, or, where a socket cannot stand there (its path is too
//! long, the file system has no sockets, or others can look into the folder), a socket in a private temporary folder and its path in `control.sock`.

use std::{
    fs::{self, DirBuilder, Permissions},
    io,
    os::unix::{
        fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt},
        net::{UnixListener, UnixStream},
    },
    path::{Path, PathBuf},
};

use rustix::process::getuid;

use super::{RunDir, RunError, atomic, own};

/// Longest path that every Unix takes for a socket, in bytes.
const LONGEST: usize = 100;
/// How the name of a temporary folder with a socket begins.
const FOLDER: &str = "tui-train-";

/// Makes the socket. Only the worker that holds the run's lock may call this: it removes what a dead one left.
///
/// # Errors
/// No socket can be made, neither in the run's folder nor in a temporary one.
pub fn bind(run: &RunDir) -> Result<UnixListener, RunError> {
    remove(run);
    let path = run.control_sock();
    if is_private(run.path())
        && fits(&path)
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

/// Whether nobody else can look into that folder. One that was shared, or came from another machine, may be open to all:
/// between the making of a socket and its permissions somebody could connect there.
fn is_private(folder: &Path) -> bool {
    fs::metadata(folder).is_ok_and(|meta| meta.permissions().mode() & 0o077 == 0)
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
    let text = own::read_text(path).ok()?;
    Some(PathBuf::from(text.trim_end_matches('\n'))).filter(|path| is_ours(path))
}

/// Whether a socket elsewhere is one that [`bind`] makes: in a folder of this user's that nobody else may enter. A file
/// that a stranger wrote could point at any socket there is.
fn is_ours(socket: &Path) -> bool {
    let Some(folder) = socket.parent() else { return false };
    let named = folder.file_name().is_some_and(|name| name.to_string_lossy().starts_with(FOLDER));
    let own = |path: &Path, private: bool| {
        fs::symlink_metadata(path).is_ok_and(|meta| {
            let kind = if private { meta.is_dir() } else { meta.file_type().is_socket() };
            kind && meta.uid() == getuid().as_raw() && (!private || meta.mode() & 0o077 == 0)
        })
    };
    socket.is_absolute() && named && own(folder, true) && own(socket, false)
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
            let folder = place.join(format!("{FOLDER}{}-{number}", std::process::id()));
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
        fs::set_permissions(folder.path(), Permissions::from_mode(0o700)).unwrap();
        let run = RunDir::unchecked(folder.path().to_owned());
        assert!(matches!(connect(&run), Err(RunError::NotLive(_))));
        let listener = bind(&run).unwrap();
        assert!(fs::symlink_metadata(run.control_sock()).unwrap().file_type().is_socket());
        speaks(&run, &listener);
        let mode = |path: &Path| fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&run.control_sock()), 0o600);
        drop(listener);
        assert!(matches!(connect(&run), Err(RunError::NotLive(_))), "a dead worker's socket");
        speaks(&run, &bind(&run).unwrap());
        remove(&run);
        assert!(!run.control_sock().exists());
    }

    #[test]
    fn a_pointer_that_a_stranger_wrote_leads_nowhere() {
        let folder = tempfile::tempdir_in("/tmp").unwrap();
        let (run, victim) = (folder.path().join("run"), folder.path().join("agent"));
        fs::create_dir(&run).unwrap();
        let run = RunDir::unchecked(run);
        let _listener = UnixListener::bind(&victim).unwrap();
        let open = folder.path().join("tui-train-1-0");
        fs::create_dir(&open).unwrap();
        fs::set_permissions(&open, Permissions::from_mode(0o755)).unwrap();
        let _other = UnixListener::bind(open.join("s")).unwrap();
        for target in [victim.clone(), open.join("s"), open.join("../agent"), "relative/s".into()] {
            fs::write(run.control_sock(), target.to_str().unwrap()).unwrap();
            assert!(matches!(connect(&run), Err(RunError::NotLive(_))), "{}", target.display());
            remove(&run);
            assert!(victim.exists() && open.join("s").exists() && !run.control_sock().exists());
        }
    }

    #[test]
    fn a_folder_that_others_can_look_into_holds_a_pointer() {
        let folder = tempfile::tempdir_in("/tmp").unwrap();
        fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
        let run = RunDir::unchecked(folder.path().to_owned());
        let listener = bind(&run).unwrap();
        assert!(fs::symlink_metadata(run.control_sock()).unwrap().is_file());
        let elsewhere = address(&run.control_sock()).unwrap();
        let mode = fs::metadata(elsewhere.parent().unwrap()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        speaks(&run, &listener);
        remove(&run);
        assert!(!elsewhere.exists());
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
        assert_eq!(fs::metadata(&elsewhere).unwrap().permissions().mode() & 0o777, 0o600);
        speaks(&run, &listener);
        remove(&run);
        assert!(!elsewhere.exists() && !elsewhere.parent().unwrap().exists() && !run.control_sock().exists());
    }
}
