//! Tokens in a file, read where they are wanted.

use std::{
    fs::File,
    io::{self, BufWriter, Write},
    ops::Range,
    os::unix::fs::FileExt,
    path::Path,
    sync::Arc,
};

/// Bytes that are written at once.
const AT_ONCE: usize = 1 << 20;

/// Bytes of one id of a vocabulary, little-endian: 1, 2 or 4.
pub(super) const fn width(vocabulary: u32) -> usize {
    match vocabulary {
        0..=0x100 => 1,
        0x101..=0x1_0000 => 2,
        _ => 4,
    }
}

/// Ids in a file.
#[derive(Debug, Clone)]
pub(super) struct TokenFile {
    file: Arc<File>,
    width: usize,
    len: usize,
}

impl TokenFile {
    /// Opens a file of so many ids.
    ///
    /// # Errors
    /// It cannot be opened, or has another length.
    pub(super) fn open(path: &Path, width: usize, len: usize) -> io::Result<Self> {
        let file = File::open(path)?;
        if file.metadata()?.len() != (len * width) as u64 {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "its length is another"));
        }
        Ok(Self { file: Arc::new(file), width, len })
    }

    /// How many ids there are.
    pub(super) const fn len(&self) -> usize {
        self.len
    }

    /// The ids at these places, which must be inside.
    pub(super) fn read(&self, places: Range<usize>) -> io::Result<Vec<i32>> {
        let mut bytes = vec![0; places.len() * self.width];
        self.file.read_exact_at(&mut bytes, (places.start * self.width) as u64)?;
        let id = |bytes: &[u8]| bytes.iter().rev().fold(0, |id: i32, byte| id << 8 | i32::from(*byte));
        Ok(bytes.chunks_exact(self.width).map(id).collect())
    }
}

/// Writes ids into a new file.
#[derive(Debug)]
pub(super) struct TokenWriter {
    out: BufWriter<File>,
    width: usize,
    len: usize,
}

impl TokenWriter {
    /// Makes the file.
    ///
    /// # Errors
    /// It cannot be made, or exists.
    pub(super) fn create(path: &Path, vocabulary: u32) -> io::Result<Self> {
        let out = BufWriter::with_capacity(AT_ONCE, File::create_new(path)?);
        Ok(Self { out, width: width(vocabulary), len: 0 })
    }

    /// Adds ids, which must be below the vocabulary.
    pub(super) fn push(&mut self, ids: &[u32]) -> io::Result<()> {
        self.len += ids.len();
        ids.iter().try_for_each(|id| self.out.write_all(&id.to_le_bytes()[..self.width]))
    }

    /// Adds ids of one byte each.
    pub(super) fn push_bytes(&mut self, ids: &[u8]) -> io::Result<()> {
        self.len += ids.len();
        self.out.write_all(ids)
    }

    /// Waits until everything is on the disk; how many ids there are.
    pub(super) fn sync(&mut self) -> io::Result<usize> {
        self.out.flush()?;
        self.out.get_ref().sync_all()?;
        Ok(self.len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_come_back_in_the_least_width_that_holds_them() {
        let folder = tempfile::tempdir().unwrap();
        for (vocabulary, bytes) in [(256, 1), (257, 2), (65_536, 2), (65_537, 4)] {
            let path = folder.path().join(vocabulary.to_string());
            let ids: Vec<u32> = (0..1000).map(|place: u32| place.wrapping_mul(40_503) % vocabulary).collect();
            let mut writer = TokenWriter::create(&path, vocabulary).unwrap();
            ids.chunks(7).for_each(|some| writer.push(some).unwrap());
            assert_eq!(writer.sync().unwrap(), 1000);
            assert_eq!(path.metadata().unwrap().len(), 1000 * bytes);
            let file = TokenFile::open(&path, width(vocabulary), 1000).unwrap();
            let expected: Vec<i32> = ids[3..800].iter().map(|id| *id as i32).collect();
            assert_eq!(file.read(3..800).unwrap(), expected);
            assert!(TokenFile::open(&path, width(vocabulary), 999).is_err());
        }
    }
}
