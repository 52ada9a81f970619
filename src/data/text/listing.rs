//! Which files a path names: one, or those of a folder that are recognised by their extension.

use std::{
    collections::{BTreeMap, HashSet},
    ffi::{OsStr, OsString},
    fs::{self, Metadata},
    io,
    os::unix::{ffi::OsStrExt, fs::MetadataExt},
    path::{Path, PathBuf},
};

use sha2::{Digest, Sha256};

use super::{
    super::{DataError, corpus::unreadable},
    kind,
};

/// Files that a report names at most, of all that were left out.
const NAMED: usize = 20;
/// The same of each reason that is no news, so that others have room.
const FEW: usize = 3;

/// What was left out, and why.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::data) struct LeftOut {
    /// Why, and how many times.
    pub(in crate::data) counts: BTreeMap<String, u64>,
    /// The first of them by name, each with its place where it has one.
    pub(in crate::data) named: Vec<String>,
}

impl LeftOut {
    /// Counts something; `name` is listed while there is room.
    pub(in crate::data) fn add(&mut self, reason: &str, name: Option<String>) {
        self.add_many(reason, 1);
        if let Some(name) = name.filter(|_| self.named.len() < NAMED) {
            self.named.push(format!("{name}: {reason}"));
        }
    }

    /// Counts something that nobody wonders about; the first few of a reason are listed.
    pub(in crate::data) fn add_expected(&mut self, reason: &str, name: String) {
        let few = self.counts.get(reason).is_none_or(|before| *before < FEW as u64);
        self.add(reason, few.then_some(name));
    }

    /// Counts things that have no name.
    pub(in crate::data) fn add_many(&mut self, reason: &str, times: u64) {
        if times > 0 {
            *self.counts.entry(reason.to_owned()).or_default() += times;
        }
    }
}

/// The files of a path in the order in which they are read. A million of them take some tens of MiB.
#[derive(Debug, Clone)]
pub(in crate::data) struct Listing {
    root: PathBuf,
    is_folder: bool,
    /// Paths in the folder, one behind another.
    names: Vec<u8>,
    ends: Vec<usize>,
    /// Bytes of all files as they lie on the disk.
    pub(in crate::data) bytes: u64,
    /// The names, sizes, numbers and times of all files: while it is the same, so is the text.
    pub(in crate::data) stamp: [u8; 32],
    /// When the youngest of them changed, in seconds since 1970.
    pub(in crate::data) youngest: i64,
    pub(in crate::data) left_out: LeftOut,
}

impl Listing {
    /// Looks at a file, or walks a folder in the order of names, so that every machine reads the same text.
    ///
    /// # Errors
    /// A path that does not exist, cannot be listed, or is neither a file nor a folder.
    pub(in crate::data) fn of(path: &Path) -> Result<Self, DataError> {
        let name = path.display().to_string();
        let metadata = match fs::metadata(path) {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(DataError::Missing { path: name });
            }
            Err(error) => return Err(unreadable(&name, &error)),
        };
        let mut walk = Walk {
            listing: Self {
                root: path.to_owned(),
                is_folder: metadata.is_dir(),
                names: Vec::new(),
                ends: Vec::new(),
                bytes: 0,
                stamp: [0; 32],
                youngest: i64::MIN,
                left_out: LeftOut::default(),
            },
            stamp: Sha256::new(),
            seen: HashSet::new(),
        };
        if metadata.is_dir() {
            walk.folder(Path::new("")).map_err(|error| unreadable(&name, &error))?;
        } else if metadata.is_file() {
            walk.add(Path::new(""), &metadata);
        } else {
            return Err(DataError::NotAFile { path: name });
        }
        let Walk { mut listing, stamp, .. } = walk;
        listing.stamp = stamp.finalize().into();
        Ok(listing)
    }

    /// How many files there are.
    pub(in crate::data) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether the path is a folder.
    pub(in crate::data) const fn is_folder(&self) -> bool {
        self.is_folder
    }

    /// The path of one file.
    pub(in crate::data) fn path(&self, file: usize) -> PathBuf {
        let start = if file == 0 { 0 } else { self.ends[file - 1] };
        let name = OsStr::from_bytes(&self.names[start..self.ends[file]]);
        if name.is_empty() { self.root.clone() } else { self.root.join(name) }
    }

    /// The path of one file, as seen from the folder.
    pub(in crate::data) fn shown(&self, file: usize) -> String {
        let path = self.path(file);
        path.strip_prefix(&self.root).unwrap_or(&path).display().to_string()
    }

    /// The path of the whole, as a person gave it.
    pub(in crate::data) fn name(&self) -> String {
        self.root.display().to_string()
    }
}

struct Walk {
    listing: Listing,
    stamp: Sha256,
    /// Device and number of what has been seen: links neither loop nor read a text twice.
    seen: HashSet<(u64, u64)>,
}

impl Walk {
    /// Fails only if this folder itself cannot be listed.
    fn folder(&mut self, below: &Path) -> io::Result<()> {
        let folder = self.listing.root.join(below);
        if !self.is_new(&fs::metadata(&folder)?) {
            self.listing.left_out.add("link to a folder already read", Some(below.display().to_string()));
            return Ok(());
        }
        let mut names: Vec<OsString> = Vec::new();
        for entry in fs::read_dir(&folder)? {
            names.push(entry?.file_name());
        }
        names.sort_unstable();
        names.into_iter().for_each(|name| self.entry(&below.join(&name), &name));
        Ok(())
    }

    fn is_new(&mut self, metadata: &Metadata) -> bool {
        self.seen.insert((metadata.dev(), metadata.ino()))
    }

    fn entry(&mut self, below: &Path, name: &OsStr) {
        let hidden = name.as_bytes().starts_with(b".");
        // Follows links.
        let reason = match fs::metadata(self.listing.root.join(below)) {
            Err(error) if is_loop(&error) => Some("link that leads nowhere"),
            Err(_) => Some("unreadable"),
            Ok(kind) if kind.is_dir() && hidden => Some("hidden folder"),
            Ok(kind) if kind.is_dir() => self.folder(below).err().map(|_| "unreadable folder"),
            Ok(_) if hidden => Some("hidden file"),
            Ok(kind) if !kind.is_file() => Some("neither file nor folder"),
            Ok(_) if kind::passed_over(below).is_some() => kind::passed_over(below),
            Ok(kind) if kind.len() == 0 => Some("empty"),
            Ok(kind) if !self.is_new(&kind) => Some("link to a file already read"),
            Ok(kind) => {
                self.add(below, &kind);
                None
            }
        };
        if let Some(reason) = reason {
            // That a folder of programs has pictures in it is no news.
            let (name, left_out) = (below.display().to_string(), &mut self.listing.left_out);
            if reason.starts_with("hidden") || reason == kind::OTHER {
                left_out.add_expected(reason, name);
            } else {
                left_out.add(reason, Some(name));
            }
        }
    }

    fn add(&mut self, below: &Path, metadata: &Metadata) {
        let listing = &mut self.listing;
        let name = below.as_os_str().as_bytes();
        listing.names.extend_from_slice(name);
        listing.ends.push(listing.names.len());
        listing.bytes += metadata.len();
        listing.youngest = listing.youngest.max(metadata.mtime()).max(metadata.ctime());
        let numbers = [metadata.len(), metadata.dev(), metadata.ino(), name.len() as u64];
        numbers.iter().for_each(|number| self.stamp.update(number.to_le_bytes()));
        let times = [metadata.mtime(), metadata.mtime_nsec(), metadata.ctime(), metadata.ctime_nsec()];
        times.iter().for_each(|time| self.stamp.update(time.to_le_bytes()));
        self.stamp.update(name);
    }
}

/// A link to itself, in a circle, or to nothing.
fn is_loop(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound
        || rustix::io::Errno::from_io_error(error) == Some(rustix::io::Errno::LOOP)
}

#[cfg(test)]
mod tests {
    use tempfile::tempdir;

    use super::*;

    #[test]
    fn a_stamp_changes_with_a_file_and_with_nothing_else() {
        let folder = tempdir().unwrap();
        let path = folder.path().join("a.txt");
        fs::write(&path, "one").unwrap();
        fs::write(folder.path().join("b.bin"), "x").unwrap();
        let stamp = || Listing::of(folder.path()).unwrap().stamp;
        let before = stamp();
        assert_eq!(before, stamp());
        fs::write(folder.path().join("c.bin"), "not read").unwrap();
        assert_eq!(before, stamp());
        fs::write(&path, "one more").unwrap();
        let after = stamp();
        assert_ne!(before, after);
        fs::rename(&path, folder.path().join("z.txt")).unwrap();
        assert_ne!(after, stamp());
    }

    #[test]
    fn of_what_nobody_wonders_about_the_first_few_are_named() {
        let folder = tempdir().unwrap();
        let write = |name: String, text: &str| fs::write(folder.path().join(name), text).unwrap();
        (0..30).for_each(|number| write(format!("{number:02}.png"), "picture"));
        (0..2).for_each(|number| write(format!(".{number}"), "hidden"));
        write("z.txt".to_owned(), "");
        let left_out = Listing::of(folder.path()).unwrap().left_out;
        assert_eq!((left_out.counts["hidden file"], left_out.counts[kind::OTHER]), (2, 30));
        let pictures = ["00.png", "01.png", "02.png"].map(|name| format!("{name}: {}", kind::OTHER));
        let hidden = [".0", ".1"].map(|name| format!("{name}: hidden file"));
        let all = [&hidden[..], &pictures, &["z.txt: empty".to_owned()]].concat();
        assert_eq!(left_out.named, all, "others have room behind them");
    }

    #[test]
    fn of_many_that_are_left_out_some_are_named_and_all_are_counted() {
        let folder = tempdir().unwrap();
        (0..NAMED + 5).for_each(|number| fs::write(folder.path().join(format!("{number}.txt")), "").unwrap());
        let listing = Listing::of(folder.path()).unwrap();
        assert_eq!((listing.len(), listing.bytes), (0, 0));
        assert_eq!(listing.left_out.counts["empty"], NAMED as u64 + 5);
        assert_eq!((listing.left_out.named.len(), &*listing.left_out.named[0]), (NAMED, "0.txt: empty"));
    }
}
