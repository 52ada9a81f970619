//! Files and folders that are either whole or absent, whenever the machine stops.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
};

/// Writes a file under a temporary name beside it, waits until it is on disk, and renames it into place.
///
/// # Errors
/// Any step fails; what stood there before still stands.
pub fn write_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let temporary = beside(path)?;
    let written = File::create_new(&temporary).and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()
    });
    let done = written.and_then(|()| fs::rename(&temporary, path));
    if done.is_err() {
        // The error that matters is the one above.
        let _ = fs::remove_file(&temporary);
        return done;
    }
    sync_parent(path)
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
    fs::create_dir(&temporary)?;
    let filled = fill(&temporary).and_then(|()| sync_tree(&temporary));
    // A rename would replace an empty folder, and fails on one that is not.
    let done = filled.and_then(|()| match path.symlink_metadata() {
        Ok(_) => Err(io::ErrorKind::AlreadyExists.into()),
        Err(_) => fs::rename(&temporary, path),
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

/// A folder with content cannot be renamed over: the old one steps aside first.
fn replace(temporary: &Path, path: &Path) -> io::Result<()> {
    if !path.exists() {
        return fs::rename(temporary, path);
    }
    let aside = beside(path)?;
    fs::rename(path, &aside)?;
    if let Err(error) = fs::rename(temporary, path) {
        let _ = fs::rename(&aside, path);
        return Err(error);
    }
    fs::remove_dir_all(&aside)
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

fn sync_tree(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            sync_tree(&entry.path())?;
        } else {
            File::open(entry.path())?.sync_all()?;
        }
    }
    File::open(folder)?.sync_all()
}

fn sync_parent(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => File::open(parent)?.sync_all(),
        _ => File::open(".")?.sync_all(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn temporary_names_are_told_apart() {
        let temporary = beside(Path::new("/x/00000010")).unwrap();
        assert!(is_temporary(&temporary.file_name().unwrap().to_string_lossy()));
        assert!(!is_temporary("00000010") && !is_temporary(".hidden"));
    }
}
