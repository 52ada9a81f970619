//! What has been made of texts before, kept on the disk: tokens, vocabularies, and which text a folder holds.
//!
//! ```text
//! tokens/KEY/        tokens.json, train, validation: the ids of a text, by its content, tokenizer and split
//! vocabularies/KEY   a tokenizer.json that was learnt from a text
//! texts/KEY          what the files of a path hold, while their names, sizes and times are the same
//! ```
//!
//! Everything is made under a name of its own and then renamed, so that several processes may do it at once and nobody
//! sees half of it. What cannot be read, or has another length than it says, is as good as not there.

use std::{
    fs::{self, DirBuilder, File},
    io::{self, Write},
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::{Duration, SystemTime},
};

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use sha2::{Digest, Sha256};

use super::{
    token_file::{TokenFile, TokenWriter, width},
    tokenizer::hex,
    tokens::Tokens,
};

/// Bytes of tokens that are kept; beyond, what was not used for longest goes first. A text always has room.
pub(super) const LIMIT: u64 = 32 << 30;
/// What was begun and is not finished goes when nothing was written to it for so long.
const ABANDONED: Duration = Duration::from_secs(3600);
/// How often somebody else may be quicker.
const ATTEMPTS: usize = 100;
/// Changes with the layout of what is kept.
const VERSION: u32 = 1;

/// The folder that keeps it.
#[derive(Debug, Clone)]
pub(super) struct Store {
    folder: PathBuf,
    limit: u64,
}

/// What stands beside the tokens.
#[derive(Debug, Serialize, Deserialize)]
struct Sizes {
    version: u32,
    vocabulary: u32,
    train: usize,
    validation: usize,
}

/// Tokens that are being written.
#[derive(Debug)]
pub(super) struct Pending {
    folder: PathBuf,
    target: PathBuf,
    vocabulary: u32,
    pub(super) train: TokenWriter,
    pub(super) validation: TokenWriter,
    done: bool,
}

impl Store {
    /// The folder that the environment names; nothing where it names none.
    pub(super) fn from_env() -> Option<Self> {
        let set = |name: &str| std::env::var_os(name).filter(|text| !text.is_empty()).map(PathBuf::from);
        let folder = set("TUI_TRAIN_HOME")
            .map(|home| home.join("cache"))
            .or_else(|| {
                set("XDG_CACHE_HOME").filter(|path| path.is_absolute()).map(|path| path.join("tui-train"))
            })
            .or_else(|| set("HOME").map(|home| home.join(".cache/tui-train")))?;
        Some(Self::at(std::path::absolute(folder).ok()?, LIMIT))
    }

    /// This folder, with room for so many bytes of tokens. Nothing is made yet.
    pub(super) const fn at(folder: PathBuf, limit: u64) -> Self {
        Self { folder, limit }
    }

    /// The folder itself.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    fn place(&self, kind: &str, key: &str) -> PathBuf {
        self.folder.join(kind).join(key)
    }

    /// A name that nobody else uses, beside that one.
    fn beside(path: &Path) -> PathBuf {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Relaxed);
        path.with_extension(format!("{}-{number}.part", std::process::id()))
    }

    /// The tokens kept under that key: those to train on, and those held out.
    pub(super) fn tokens(&self, key: &str) -> Option<(Tokens, Tokens)> {
        let folder = self.place("tokens", key);
        let sizes: Sizes = serde_json::from_slice(&fs::read(folder.join("tokens.json")).ok()?).ok()?;
        if sizes.version != VERSION {
            return None;
        }
        let part = |name: &str, len: usize| {
            let file = TokenFile::open(&folder.join(name), width(sizes.vocabulary), len).ok()?;
            Some(Tokens::from_file(file, sizes.vocabulary))
        };
        let tokens = (part("train", sizes.train)?, part("validation", sizes.validation)?);
        // So that it is known when they were used last.
        let used = File::options().write(true).open(folder.join("tokens.json"));
        let _ = used.and_then(|file| file.set_modified(SystemTime::now()));
        Some(tokens)
    }

    /// Begins to write tokens under that key.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub(super) fn begin(&self, key: &str, vocabulary: u32) -> io::Result<Pending> {
        let target = self.place("tokens", key);
        let folder = Self::beside(&target);
        private().create(&folder)?;
        let train = TokenWriter::create(&folder.join("train"), vocabulary)?;
        let validation = TokenWriter::create(&folder.join("validation"), vocabulary)?;
        Ok(Pending { folder, target, vocabulary, train, validation, done: false })
    }

    /// What was kept of that kind under that key.
    pub(super) fn get<T: DeserializeOwned>(&self, kind: &str, key: &str) -> Option<T> {
        serde_json::from_slice(&fs::read(self.place(kind, key)).ok()?).ok()
    }

    /// Keeps something small. That it cannot be kept costs time and nothing else.
    pub(super) fn keep(&self, kind: &str, key: &str, what: &impl Serialize) {
        let target = self.place(kind, key);
        let write = || -> io::Result<()> {
            private().create(self.folder.join(kind))?;
            let part = Self::beside(&target);
            let written = File::create_new(&part).and_then(|mut file| {
                file.write_all(&serde_json::to_vec(what)?)?;
                file.sync_all()
            });
            let outcome = written.and_then(|()| fs::rename(&part, &target));
            if outcome.is_err() {
                let _ = fs::remove_file(&part);
            }
            outcome
        };
        let _ = write();
    }

    /// Makes room: of the tokens all but those under `key` may go, and what was abandoned.
    pub(super) fn tidy(&self, key: &str) {
        let Ok(entries) = fs::read_dir(self.folder.join("tokens")) else { return };
        let mut kept: Vec<(SystemTime, u64, PathBuf)> = Vec::new();
        let mut total = 0;
        for path in entries.filter_map(Result::ok).map(|entry| entry.path()) {
            let size: u64 = ["train", "validation"]
                .iter()
                .filter_map(|part| fs::metadata(path.join(part)).ok())
                .map(|metadata| metadata.len())
                .sum();
            let is_part = path.extension().is_some_and(|extension| extension == "part");
            let changed = |path: PathBuf| fs::metadata(path).and_then(|metadata| metadata.modified());
            if is_part {
                let begun = changed(path.join("train")).or_else(|_| changed(path.clone()));
                if begun.is_ok_and(|begun| begun.elapsed().is_ok_and(|age| age > ABANDONED)) {
                    let _ = fs::remove_dir_all(&path);
                }
                continue;
            }
            total += size;
            if path.file_name().is_none_or(|name| name != key) {
                let used = changed(path.join("tokens.json")).unwrap_or(SystemTime::UNIX_EPOCH);
                kept.push((used, size, path));
            }
        }
        kept.sort();
        for (_, size, path) in kept {
            if total <= self.limit {
                break;
            }
            // Whoever reads them now keeps them open.
            if fs::remove_dir_all(&path).is_ok() {
                total -= size;
            }
        }
    }
}

impl Pending {
    /// Puts the tokens where they are found.
    ///
    /// # Errors
    /// The disk is full, or fails otherwise.
    pub(super) fn finish(mut self) -> io::Result<()> {
        let (train, validation) = (self.train.sync()?, self.validation.sync()?);
        let sizes = Sizes { version: VERSION, vocabulary: self.vocabulary, train, validation };
        let mut file = File::create_new(self.folder.join("tokens.json"))?;
        file.write_all(&serde_json::to_vec(&sizes)?)?;
        file.sync_all()?;
        let mut outcome = fs::rename(&self.folder, &self.target);
        for _ in 0..ATTEMPTS {
            if outcome.is_ok() {
                break;
            }
            // Somebody else was quicker, or left something that cannot be read.
            let old = Store::beside(&self.target);
            if fs::rename(&self.target, &old).is_ok() {
                let _ = fs::remove_dir_all(&old);
            }
            outcome = fs::rename(&self.folder, &self.target);
        }
        outcome?;
        self.done = true;
        if let Some(parent) = self.target.parent() {
            // Some file systems cannot do that: what a crash costs there is the time to make the tokens again.
            let _ = File::open(parent).and_then(|folder| folder.sync_all());
        }
        Ok(())
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if !self.done {
            let _ = fs::remove_dir_all(&self.folder);
        }
    }
}

/// What a thing is called that is made of these.
pub(super) fn key<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> String {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update((part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    hex(&hasher.finalize()[..20])
}

/// Makes folders that nobody else can read: texts may be private.
fn private() -> DirBuilder {
    let mut builder = DirBuilder::new();
    builder.recursive(true).mode(0o700);
    builder
}

#[cfg(test)]
mod tests {
    use tempfile::{TempDir, tempdir};

    use super::*;

    fn store(limit: u64) -> (TempDir, Store) {
        let folder = tempdir().unwrap();
        let store = Store::at(folder.path().join("cache"), limit);
        (folder, store)
    }

    fn write(store: &Store, key: &str, train: &[u32]) {
        let mut pending = store.begin(key, 1000).unwrap();
        pending.train.push(train).unwrap();
        pending.validation.push(&[7]).unwrap();
        pending.finish().unwrap();
    }

    fn train(store: &Store, key: &str) -> Option<Vec<i32>> {
        store.tokens(key).map(|(train, _)| train.ids(0..99).unwrap())
    }

    #[test]
    fn tokens_come_back_and_the_last_writer_wins() {
        let (_folder, store) = store(LIMIT);
        assert!(store.tokens("a").is_none());
        write(&store, "a", &[1, 2, 999]);
        assert_eq!(train(&store, "a").unwrap(), [1, 2, 999]);
        let (open, held_out) = store.tokens("a").unwrap();
        write(&store, "a", &[1, 2, 999, 4]);
        assert_eq!(train(&store, "a").unwrap(), [1, 2, 999, 4]);
        // Whoever had it open still reads it.
        assert_eq!((open.ids(0..9).unwrap(), held_out.ids(0..9).unwrap()), (vec![1, 2, 999], vec![7]));
        assert_eq!(fs::read_dir(store.folder().join("tokens")).unwrap().count(), 1);
    }

    #[test]
    fn what_is_torn_is_not_there() {
        let (_folder, store) = store(LIMIT);
        write(&store, "a", &[1, 2, 3]);
        let file = |name: &str| store.place("tokens", "a").join(name);
        let whole = fs::read(file("train")).unwrap();
        fs::write(file("train"), &whole[..whole.len() - 1]).unwrap();
        assert!(store.tokens("a").is_none());
        fs::write(file("train"), &whole).unwrap();
        assert!(store.tokens("a").is_some());
        let sizes = fs::read(file("tokens.json")).unwrap();
        fs::write(file("tokens.json"), &sizes[..9]).unwrap();
        assert!(store.tokens("a").is_none());
        write(&store, "a", &[4]);
        assert_eq!(train(&store, "a").unwrap(), [4], "it is made anew");
    }

    #[test]
    fn what_is_given_up_leaves_nothing() {
        let (_folder, store) = store(LIMIT);
        let mut pending = store.begin("a", 1000).unwrap();
        pending.train.push(&[1]).unwrap();
        drop(pending);
        assert_eq!(fs::read_dir(store.folder().join("tokens")).unwrap().count(), 0);
    }

    #[test]
    fn what_was_not_used_for_longest_goes_first() {
        // Of 2 bytes a token, 20 tokens and one held out.
        let (_folder, store) = store(100);
        let old = SystemTime::now() - Duration::from_secs(1000);
        for (age, key) in ["a", "b", "c"].iter().enumerate() {
            write(&store, key, &[1; 20]);
            let file =
                File::options().write(true).open(store.place("tokens", key).join("tokens.json")).unwrap();
            file.set_modified(old + Duration::from_secs(age as u64)).unwrap();
        }
        assert!(store.tokens("a").is_some(), "it was used just now");
        store.tidy("c");
        let there = ["a", "b", "c"].map(|key| store.tokens(key).is_some());
        assert_eq!(there, [true, false, true]);
        let abandoned = store.begin("d", 1000).unwrap();
        let train = abandoned.folder.join("train");
        store.tidy("c");
        assert!(train.exists());
        File::options()
            .write(true)
            .open(&train)
            .unwrap()
            .set_modified(SystemTime::now() - ABANDONED * 2)
            .unwrap();
        store.tidy("c");
        assert!(!train.exists());
        let tiny = Store::at(store.folder().to_owned(), 1);
        tiny.tidy("c");
        assert_eq!(["a", "b", "c"].map(|key| store.tokens(key).is_some()), [false, false, true]);
    }

    #[test]
    fn small_things_come_back_whole_or_not_at_all() {
        let (_folder, store) = store(LIMIT);
        assert_eq!(store.get::<Vec<u32>>("texts", "a"), None);
        store.keep("texts", "a", &vec![1, 2]);
        assert_eq!(store.get::<Vec<u32>>("texts", "a"), Some(vec![1, 2]));
        fs::write(store.place("texts", "a"), "[1, ").unwrap();
        assert_eq!(store.get::<Vec<u32>>("texts", "a"), None);
    }

    #[test]
    fn several_writers_at_once_leave_one_whole() {
        let (_folder, store) = store(LIMIT);
        std::thread::scope(|scope| {
            for number in 0..8 {
                let store = &store;
                scope.spawn(move || write(store, "a", &[number; 50]));
            }
        });
        let ids = train(&store, "a").unwrap();
        assert!(ids.len() == 50 && ids.iter().all(|id| *id == ids[0]), "{ids:?}");
    }
}
