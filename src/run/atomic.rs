//! Files and folders that are either whole or absent, whenever the machine stops.

use std::{
    fs::{self, File},
    io::{self, BufWriter, ErrorKind, Write},
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
};

use super::fault::step;

/// Writes a file under a temporary name beside it, waits until it is on disk, and renames it into place.
///
/// # Errors
/// Any step fails; what stood there before still stands.
pub fn write_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    stream_file(path, |file| file.write_all(bytes))
}

/// The same for what is written piece by piece, so that none of it need be in memory.
///
/// # Errors
/// Any step fails, or `fill` does; what stood there before still stands.
pub fn stream_file<E: From<io::Error>>(
    path: &Path,
    fill: impl FnOnce(&mut dyn Write) -> Result<(), E>,
) -> Result<(), E> {
    let temporary = beside(path)?;
    let create = || -> io::Result<File> {
        step()?;
        File::create_new(&temporary)
    };
    let written = create().map_err(E::from).and_then(|file| {
        let mut pieces = BufWriter::with_capacity(PIECE, Pieces(file));
        fill(&mut pieces)?;
        let file = pieces.into_inner().map_err(|error| error.into_error())?.0;
        step()?;
        Ok(file.sync_all()?)
    });
    let done = written.and_then(|()| Ok(rename(&temporary, path)?));
    if done.is_err() {
        // The error that matters is the one above.
        let _ = fs::remove_file(&temporary);
        return done;
    }
    Ok(sync_parent(path)?)
}

/// Bytes written at once.
const PIECE: usize = 1 << 18;

/// A file whose every write is a step.
struct Pieces(File);

impl Write for Pieces {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        step()?;
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Lets `fill` write into a temporary folder beside `path`, waits until all of it is on disk, and renames
/// it into place, instead of a folder that may stand there.
///
/// # Errors
/// Any step fails, or `fill` does; what stood there before still stands.
pub fn write_folder<E: From<io::Error>>(
    path: &Path,
    fill: impl FnOnce(&Path) -> Result<(), E>,
) -> Result<(), E> {
    let temporary = beside(path)?;
    step()?;
    fs::create_dir_all(&temporary)?;
    let filled = fill(&temporary).and_then(|()| Ok(sync_tree(&temporary)?));
    let done = filled.and_then(|()| Ok(replace(&temporary, path)?));
    if done.is_err() {
        let _ = fs::remove_dir_all(&temporary);
        return done;
    }
    Ok(sync_parent(path)?)
}

/// The same for a folder that must not stand there yet.
///
/// # Errors
/// Any step fails, or `fill` does, or something stands at `path`, which then stays as it is.
pub fn write_new_folder(path: &Path, fill: impl FnOnce(&Path) -> io::Result<()>) -> io::Result<()> {
    let temporary = beside(path)?;
    step()?;
    fs::create_dir(&temporary)?;
    let filled = fill(&temporary).and_then(|()| sync_tree(&temporary));
    // A rename would replace an empty folder, and fails on one that is not.
    let done = filled.and_then(|()| match path.symlink_metadata() {
        Ok(_) => Err(io::ErrorKind::AlreadyExists.into()),
        Err(_) => rename(&temporary, path),
    });
    if done.is_err() {
        let _ = fs::remove_dir_all(&temporary);
        return done;
    }
    sync_parent(path)
}

/// Whether a folder entry is one of this module's temporary names, left behind when a process died.
pub fn is_temporary(name: &str) -> bool {
    name.starts_with('.') && name.contains(".tmp-")
}

/// A folder with content cannot be renamed over: the two change places, or, on a file system that cannot do that, the
/// old one steps aside first.
fn replace(temporary: &Path, path: &Path) -> io::Result<()> {
    if path.symlink_metadata().is_err() {
        return rename(temporary, path);
    }
    step()?;
    if exchange(temporary, path).is_ok() {
        // What stays of the old one has a temporary name, and is swept with what dead workers left.
        let _ = step().and_then(|()| fs::remove_dir_all(temporary));
        return Ok(());
    }
    let aside = beside(path)?;
    rename(path, &aside)?;
    if let Err(error) = rename(temporary, path) {
        let _ = fs::rename(&aside, path);
        return Err(error);
    }
    fs::remove_dir_all(&aside)
}

/// Both names stand at every moment.
#[cfg(target_os = "linux")]
fn exchange(one: &Path, other: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    Ok(renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE)?)
}

#[cfg(not(target_os = "linux"))]
fn exchange(_: &Path, _: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

fn rename(from: &Path, to: &Path) -> io::Result<()> {
    step()?;
    fs::rename(from, to)
}

/// An unused name in the same folder, so that a rename never crosses file systems.
fn beside(path: &Path) -> io::Result<PathBuf> {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let name = path.file_name().ok_or_else(|| {
        io::Error::new(io::ErrorKind::InvalidInput, format!("{} has no file name", path.display()))
    })?;
    let count = COUNTER.fetch_add(1, Ordering::Relaxed);
    // Long names are cut: a name with its suffix must still fit in a folder entry.
    let name: String = name.to_string_lossy().chars().take(40).collect();
    Ok(path.with_file_name(format!(".{name}.tmp-{}-{count}", std::process::id())))
}

/// Waits until a folder and everything in it is on disk.
pub(super) fn sync_tree(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            sync_tree(&entry.path())?;
        } else {
            step()?;
            File::open(entry.path())?.sync_all()?;
        }
    }
    sync_folder(folder)
}

/// Waits until the names in a folder are on disk, on a file system that can do that: some of those of networks and of virtual
/// machines refuse it, and with them nothing more can be done.
///
/// # Errors
/// The folder cannot be opened, or its names do not reach the disk.
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    step()?;
    match File::open(folder)?.sync_all() {
        Err(error) if matches!(error.kind(), ErrorKind::InvalidInput | ErrorKind::Unsupported) => Ok(()),
        done => done,
    }
}

/// Waits until the name of a file or folder is on disk.
pub(super) fn sync_parent(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => sync_folder(parent),
        _ => sync_folder(Path::new(".")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::fault::{self, Fault, Outcome};

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_is_replaced_whole_and_nothing_is_left_over() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("summary.json");
        write_file(&path, b"first").unwrap();
        write_file(&path, b"second").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"second");
        assert_eq!(names(folder.path()), ["summary.json"]);
    }

    #[test]
    fn a_folder_is_replaced_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("00000010");
        for text in ["old", "new"] {
            write_folder(&path, |inside| fs::write(inside.join(text), text)).unwrap();
        }
        assert_eq!(names(&path), ["new"]);
        assert_eq!(names(folder.path()), ["00000010"]);
    }

    #[test]
    fn a_folder_that_fails_half_way_leaves_the_old_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("00000010");
        write_folder(&path, |inside| fs::write(inside.join("good"), "1")).unwrap();
        let failed = write_folder(&path, |inside| {
            fs::write(inside.join("half"), "2")?;
            Err(io::Error::other("disk full"))
        });
        assert_eq!(failed.unwrap_err().to_string(), "disk full");
        assert_eq!(names(&path), ["good"]);
        assert_eq!(names(folder.path()), ["00000010"]);
    }

    #[test]
    fn a_new_folder_replaces_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        write_new_folder(&path, |inside| fs::write(inside.join("first"), "1")).unwrap();
        let taken = write_new_folder(&path, |inside| fs::write(inside.join("second"), "2"));
        assert_eq!(taken.unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!((names(&path), names(folder.path())), (vec!["first".to_owned()], vec!["out".to_owned()]));
    }

    /// Faults at every step, until there are no more of them. Hands over a folder with something old in it, and looks at
    /// what is there afterwards; returns the number of steps.
    fn at_every_step(
        work: impl Fn(&Path) -> io::Result<()>,
        old: bool,
        look: impl Fn(&Path) -> String,
    ) -> u32 {
        let mut steps = 0;
        for fault in [Fault::Fails, Fault::Dies] {
            for number in 0.. {
                let folder = tempfile::tempdir().unwrap();
                let path = folder.path().join("it");
                if old {
                    work(&path).unwrap();
                }
                let before = look(&path);
                // Each writes its own number, so that old and new differ.
                WRITTEN.set(WRITTEN.get() + 1);
                let outcome = fault::at(number, fault, || work(&path));
                let (now, new) = (look(&path), format!("{}", WRITTEN.get()));
                let whole = now == before || now == new;
                assert!(whole, "{fault:?} at step {number}: {now}, neither {before} nor {new}");
                let left: Vec<String> =
                    names(folder.path()).into_iter().filter(|name| name != "it").collect();
                match outcome {
                    Outcome::NotReached => {
                        steps = number;
                        break;
                    }
                    Outcome::Returned(Ok(())) => assert_eq!(now, new),
                    Outcome::Returned(Err(error)) => {
                        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
                        assert!(left.is_empty(), "{fault:?} at step {number} leaves {left:?}");
                    }
                    Outcome::Died => assert!(left.iter().all(|name| is_temporary(name)), "{left:?}"),
                }
                // Whatever was left, the next one is written.
                WRITTEN.set(WRITTEN.get() + 1);
                let _ = fs::remove_dir_all(&path).or_else(|_| fs::remove_file(&path));
                work(&path).unwrap();
                assert_eq!(look(&path), format!("{}", WRITTEN.get()));
            }
        }
        steps
    }

    thread_local! {
        static WRITTEN: std::cell::Cell<u32> = const { std::cell::Cell::new(0) };
    }

    #[test]
    fn a_fault_at_any_step_leaves_the_old_or_the_new_and_never_a_part() {
        let text = || WRITTEN.get().to_string();
        let file = |path: &Path| fs::read_to_string(path).unwrap_or_default();
        let steps = at_every_step(|path| write_file(path, text().as_bytes()), true, file);
        assert_eq!(steps, 5, "create, write, sync, rename, sync of the folder");
        at_every_step(|path| write_file(path, text().as_bytes()), false, file);

        // A disk that fills after the first piece of many.
        let long = |path: &Path| {
            stream_file(path, |file| {
                (0..3)
                    .try_for_each(|_| file.write_all(&[b' '; PIECE]))
                    .and_then(|()| write!(file, "{}", text()))
            })
        };
        let trimmed = |path: &Path| file(path).trim().to_owned();
        assert!(at_every_step(long, true, trimmed) > 6);

        let fill = |inside: &Path| {
            fs::write(inside.join("a"), text())?;
            fs::write(inside.join("b"), text())
        };
        // Both files of one folder, or none of it.
        let both = |path: &Path| {
            let (a, b) = (file(&path.join("a")), file(&path.join("b")));
            if a == b { a } else { format!("{a} and {b}") }
        };
        assert!(at_every_step(|path| write_folder(path, fill), true, both) >= 6);
        assert!(at_every_step(|path| write_folder(path, fill), false, both) >= 6);
        assert!(at_every_step(|path| write_new_folder(path, fill), false, both) >= 5);
    }

    #[test]
    fn temporary_names_are_told_apart() {
        let temporary = beside(Path::new("/x/00000010")).unwrap();
        assert!(is_temporary(&temporary.file_name().unwrap().to_string_lossy()));
        assert!(!is_temporary("00000010") && !is_temporary(".hidden"));
    }
}
