//! Documents: the built-in stories, or what `data.path` names.
//!
//! A single file is read whatever its name, and is an error when it is no text. In a folder, files are chosen
//! by extension ([`EXTENSIONS`]), and everything passed over is counted with its reason.

use std::{
    collections::{BTreeMap, HashSet},
    fs::{self, DirEntry},
    io::{self, Read},
    path::{Path, PathBuf},
};

use super::{DataError, stories, tokens::SEPARATOR};

/// Extensions that are read inside a folder, in lower case; upper case is read too.
pub const EXTENSIONS: &[&str] = &[
    // prose
    "txt", "text", "md", "markdown", "rst", "org", "adoc", "tex", "srt", // data
    "json", "jsonl", "ndjson", "csv", "tsv", "toml", "yaml", "yml", "xml", "ini", "cfg", "conf",
    "sql", // web
    "html", "htm", "css", "scss", "js", "mjs", "jsx", "ts", "tsx", "vue", "svg", // programs
    "rs", "py", "pyi", "c", "h", "cc", "cpp", "cxx", "hh", "hpp", "cu", "go", "java", "kt", "scala", "swift",
    "cs", "fs", "rb", "php", "pl", "lua", "r", "jl", "hs", "ml", "ex", "exs", "erl", "clj", "lisp", "el",
    "scm", "nim", "zig", "d", "f90", "sh", "bash", "zsh", "fish", "ps1", "bat", "vim", "cmake", "mk",
    "proto",
];

/// Bytes of text that are read at most.
pub const LIMIT: u64 = 1 << 30;

/// Documents one after another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Corpus {
    /// `stories`, or the path.
    pub source: String,
    /// Each document followed by [`SEPARATOR`].
    pub text: Vec<u8>,
    /// Where each document ends, behind its separator.
    pub ends: Vec<usize>,
    /// Why something was left out, and how many times.
    pub left_out: BTreeMap<String, u64>,
}

impl Corpus {
    /// No documents yet.
    pub fn new(source: impl Into<String>) -> Self {
        Self { source: source.into(), text: Vec::new(), ends: Vec::new(), left_out: BTreeMap::new() }
    }

    /// The built-in stories: the same text on every machine.
    ///
    /// # Errors
    /// None in practice: see [`stories::tell_all`].
    pub fn stories() -> Result<Self, DataError> {
        let mut corpus = Self::new("stories");
        stories::tell_all(|story| corpus.push(story.as_bytes()))?;
        Ok(corpus)
    }

    /// Adds one document, which must not contain [`SEPARATOR`].
    pub fn push(&mut self, document: &[u8]) {
        debug_assert!(!document.contains(&SEPARATOR));
        self.text.extend_from_slice(document);
        self.text.push(SEPARATOR);
        self.ends.push(self.text.len());
    }

    /// How many documents there are.
    pub fn documents(&self) -> usize {
        self.ends.len()
    }

    /// Bytes of text, separators not counted.
    pub fn bytes(&self) -> u64 {
        (self.text.len() - self.ends.len()) as u64
    }

    fn leave_out(&mut self, reason: &str) {
        *self.left_out.entry(reason.to_owned()).or_default() += 1;
    }
}

/// Reads a file or a folder of at most [`LIMIT`] bytes of text.
///
/// # Errors
/// A path that does not exist or cannot be read, a single file that is no text, a folder without text.
pub fn read(path: &Path) -> Result<Corpus, DataError> {
    read_limited(path, LIMIT)
}

fn read_limited(path: &Path, limit: u64) -> Result<Corpus, DataError> {
    let name = path.display().to_string();
    let kind = match fs::metadata(path) {
        Ok(kind) => kind,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(DataError::Missing { path: name });
        }
        Err(error) => return Err(unreadable(&name, &error)),
    };
    let mut corpus = Corpus::new(name.clone());
    if kind.is_dir() {
        let mut walk = Walk { corpus: &mut corpus, limit, seen: HashSet::new() };
        walk.folder(path).map_err(|error| unreadable(&name, &error))?;
        if corpus.ends.is_empty() {
            return Err(DataError::NoText { path: name, left_out: corpus.left_out.into_iter().collect() });
        }
    } else if kind.is_file() {
        if kind.len() > limit {
            return Err(DataError::TooLarge { path: name, bytes: kind.len(), limit });
        }
        let text = fs::read(path).map_err(|error| unreadable(&name, &error))?;
        corpus.push(self::text(&name, &text)?.as_bytes());
    } else {
        return Err(DataError::NotAFile { path: name });
    }
    Ok(corpus)
}

/// The bytes of a file as text.
///
/// # Errors
/// It is empty, no UTF-8, or holds a NUL byte.
pub(super) fn text<'a>(path: &str, bytes: &'a [u8]) -> Result<&'a str, DataError> {
    let path = || path.to_owned();
    match fault(bytes) {
        Some(Fault::Empty) => Err(DataError::Empty { path: path() }),
        Some(Fault::Nul(offset)) => {
            Err(DataError::Binary { path: path(), offset, line: line(bytes, offset) })
        }
        Some(Fault::NotUtf8(offset)) => {
            Err(DataError::NotUtf8 { path: path(), offset, line: line(bytes, offset) })
        }
        None => std::str::from_utf8(bytes)
            .map_err(|error| DataError::Unreadable { path: path(), problem: error.to_string() }),
    }
}

pub(super) fn unreadable(path: &str, error: &io::Error) -> DataError {
    DataError::Unreadable { path: path.to_owned(), problem: error.to_string() }
}

/// Why a file is no text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    Empty,
    /// The first byte that belongs to no character.
    NotUtf8(usize),
    Nul(usize),
}

fn fault(text: &[u8]) -> Option<Fault> {
    if text.is_empty() {
        return Some(Fault::Empty);
    }
    let nul = text.iter().position(|byte| *byte == SEPARATOR).map(Fault::Nul);
    nul.or_else(|| std::str::from_utf8(text).err().map(|error| Fault::NotUtf8(error.valid_up_to())))
}

/// The line a byte stands in, counted from 1.
pub(super) fn line(text: &[u8], offset: usize) -> usize {
    1 + text[..offset].iter().filter(|byte| **byte == b'\n').count()
}

/// Walks a folder in the order of names, so that every machine reads the same text.
struct Walk<'a> {
    corpus: &'a mut Corpus,
    limit: u64,
    /// What has been read, under its real name: links neither loop nor read a text twice.
    seen: HashSet<PathBuf>,
}

impl Walk<'_> {
    /// Fails only if this folder itself cannot be listed.
    fn folder(&mut self, folder: &Path) -> io::Result<()> {
        if !self.seen.insert(fs::canonicalize(folder)?) {
            self.corpus.leave_out("link to a folder already read");
            return Ok(());
        }
        let mut entries: Vec<DirEntry> = Vec::new();
        for entry in fs::read_dir(folder)? {
            entries.push(entry?);
        }
        entries.sort_by_key(DirEntry::file_name);
        for entry in entries {
            self.entry(&entry);
        }
        Ok(())
    }

    fn entry(&mut self, entry: &DirEntry) {
        let path = entry.path();
        let hidden = entry.file_name().to_string_lossy().starts_with('.');
        // Follows links.
        let reason = match fs::metadata(&path) {
            Err(error) if is_loop(&error) => Some("link that leads nowhere"),
            Err(_) => Some("unreadable"),
            Ok(kind) if kind.is_dir() && hidden => Some("hidden folder"),
            Ok(kind) if kind.is_dir() => self.folder(&path).err().map(|_| "unreadable folder"),
            Ok(_) if hidden => Some("hidden file"),
            Ok(kind) if !kind.is_file() => Some("neither file nor folder"),
            Ok(_) if !is_text_name(&path) => Some("other extension"),
            Ok(kind) => self.file(&path, kind.len()).err(),
        };
        if let Some(reason) = reason {
            self.corpus.leave_out(reason);
        }
    }

    /// Adds one file, or says why not.
    fn file(&mut self, path: &Path, size: u64) -> Result<(), &'static str> {
        const OVER: &str = "over the limit of bytes read";
        let left = self.limit.saturating_sub(self.corpus.bytes());
        if size > left {
            return Err(OVER);
        }
        let real = fs::canonicalize(path).map_err(|_| "unreadable")?;
        if !self.seen.insert(real) {
            return Err("link to a file already read");
        }
        let mut text = Vec::with_capacity(size as usize);
        let file = fs::File::open(path).map_err(|_| "unreadable")?;
        // A file may grow while it is read.
        file.take(left + 1).read_to_end(&mut text).map_err(|_| "unreadable")?;
        if text.len() as u64 > left {
            return Err(OVER);
        }
        match fault(&text) {
            None => self.corpus.push(&text),
            Some(Fault::Empty) => return Err("empty"),
            Some(Fault::NotUtf8(_)) => return Err("not UTF-8"),
            Some(Fault::Nul(_)) => return Err("binary (NUL byte)"),
        }
        Ok(())
    }
}

/// A link to itself, in a circle, or to nothing.
fn is_loop(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound
        || rustix::io::Errno::from_io_error(error) == Some(rustix::io::Errno::LOOP)
}

fn is_text_name(path: &Path) -> bool {
    let extension = path.extension().map(|extension| extension.to_string_lossy().to_lowercase());
    extension.is_some_and(|extension| EXTENSIONS.contains(&&*extension))
}

#[cfg(test)]
mod tests {
    use tempfile::{TempDir, tempdir};

    use super::*;

    fn folder(files: &[(&str, &[u8])]) -> TempDir {
        let folder = tempdir().unwrap();
        for (name, text) in files {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        folder
    }

    fn counts(corpus: &Corpus) -> Vec<(&str, u64)> {
        corpus.left_out.iter().map(|(reason, count)| (&**reason, *count)).collect()
    }

    #[test]
    fn a_folder_is_read_in_the_order_of_names_and_the_rest_is_counted() {
        let folder = folder(&[
            ("b.txt", b"bee"),
            ("a/z.md", b"zed"),
            ("a/A.RS", b"fn"),
            ("c.bin", b"x"),
            ("d.png", b"x"),
            ("e.txt", b""),
            ("f.txt", b"ab\xff"),
            ("g.txt", b"a\0b"),
            (".git/config.txt", b"x"),
            (".hidden.txt", b"x"),
        ]);
        let corpus = read(folder.path()).unwrap();
        assert_eq!(corpus.text, b"fn\0zed\0bee\0");
        assert_eq!((corpus.documents(), corpus.bytes()), (3, 8));
        let expected = [
            ("binary (NUL byte)", 1),
            ("empty", 1),
            ("hidden file", 1),
            ("hidden folder", 1),
            ("not UTF-8", 1),
            ("other extension", 2),
        ];
        assert_eq!(counts(&corpus), expected);
    }

    #[cfg(unix)]
    #[test]
    fn links_neither_loop_nor_repeat() {
        use std::os::unix::fs::symlink;
        let folder = folder(&[("a/one.txt", b"one")]);
        symlink(folder.path(), folder.path().join("a/up")).unwrap();
        symlink(folder.path().join("a/one.txt"), folder.path().join("b.txt")).unwrap();
        symlink("itself", folder.path().join("itself")).unwrap();
        symlink("nothing.txt", folder.path().join("gone.txt")).unwrap();
        let corpus = read(folder.path()).unwrap();
        assert_eq!(corpus.text, b"one\0");
        let expected = [
            ("link that leads nowhere", 2),
            ("link to a file already read", 1),
            ("link to a folder already read", 1),
        ];
        assert_eq!(counts(&corpus), expected);
    }

    #[test]
    fn the_limit_counts_what_no_longer_fits() {
        let folder = folder(&[("a.txt", b"12345"), ("b.txt", b"123456"), ("c.txt", b"123")]);
        let corpus = read_limited(folder.path(), 8).unwrap();
        assert_eq!(corpus.text, [&b"12345\0"[..], b"123\0"].concat());
        assert_eq!(counts(&corpus), [("over the limit of bytes read", 1)]);
        let error = read_limited(&folder.path().join("b.txt"), 5).unwrap_err();
        assert!(error.to_string().contains("holds 6 bytes"), "{error}");
    }

    #[test]
    fn a_single_file_is_read_whatever_its_name() {
        let folder = folder(&[("notes", b"hello")]);
        assert_eq!(read(&folder.path().join("notes")).unwrap().text, b"hello\0");
    }

    #[test]
    fn faults_of_a_single_file_name_the_place_and_the_remedy() {
        let folder = folder(&[("latin.txt", b"one\ntwo\ncaf\xe9"), ("nul", b"a\n\0"), ("empty.txt", b"")]);
        let message = |name: &str| read(&folder.path().join(name)).unwrap_err().to_string();
        let latin = message("latin.txt");
        assert!(latin.contains("latin.txt is not UTF-8 at byte 11 (line 3)"), "{latin}");
        assert!(latin.contains("iconv"), "{latin}");
        let nul = message("nul");
        assert!(nul.contains("NUL byte at byte 2 (line 2)"), "{nul}");
        let empty = message("empty.txt");
        assert!(empty.contains("empty.txt is empty"), "{empty}");
        let missing = message("missing.txt");
        assert!(missing.contains("missing.txt does not exist"), "{missing}");
    }

    #[test]
    fn a_folder_without_text_says_what_it_has() {
        let folder = folder(&[("a.bin", b"x"), ("b.bin", b"x"), ("c.txt", b"")]);
        let message = read(folder.path()).unwrap_err().to_string();
        assert!(message.contains("left out 1 empty, 2 other extension"), "{message}");
        let nothing = read(tempdir().unwrap().path()).unwrap_err().to_string();
        assert!(nothing.contains("the folder is empty"), "{nothing}");
    }
}
