//! A stream of tokens.

use std::{io, ops::Range};

use super::token_file::TokenFile;

/// Ids of the byte tokenizer are below this.
pub const VOCABULARY: u32 = 256;

/// The byte after each document; its value is also the id that short rows are filled with.
pub const SEPARATOR: u8 = 0;

/// A stream of tokens, all below its vocabulary.
#[derive(Debug, Clone)]
pub(super) struct Tokens {
    ids: Ids,
    vocabulary: u32,
}

/// A text of bytes stays as small as it is, and a long one stays on the disk.
#[derive(Debug, Clone)]
enum Ids {
    Bytes(Vec<u8>),
    Wide(Vec<u32>),
    File(TokenFile),
}

impl Tokens {
    /// A text that already carries its separators.
    pub(super) fn from_bytes(bytes: Vec<u8>) -> Self {
        Self { ids: Ids::Bytes(bytes), vocabulary: VOCABULARY }
    }

    /// Ids of a wider vocabulary; the tokenizer that made them has checked them, piece by piece.
    pub(super) fn from_ids(ids: Vec<u32>, vocabulary: u32) -> Self {
        debug_assert!(ids.iter().all(|id| *id < vocabulary));
        Self { ids: Ids::Wide(ids), vocabulary }
    }

    /// Ids that lie in a file; whoever wrote it has checked them.
    pub(super) const fn from_file(file: TokenFile, vocabulary: u32) -> Self {
        Self { ids: Ids::File(file), vocabulary }
    }

    pub(super) fn len(&self) -> usize {
        match &self.ids {
            Ids::Bytes(bytes) => bytes.len(),
            Ids::Wide(ids) => ids.len(),
            Ids::File(file) => file.len(),
        }
    }

    /// Every id is below this.
    pub(super) const fn vocabulary(&self) -> u32 {
        self.vocabulary
    }

    /// The ids at these places; places beyond the end give nothing.
    ///
    /// # Errors
    /// They lie in a file that cannot be read.
    pub(super) fn ids(&self, places: Range<usize>) -> io::Result<Vec<i32>> {
        let end = places.end.min(self.len());
        let start = places.start.min(end);
        match &self.ids {
            Ids::Bytes(bytes) => Ok(bytes[start..end].iter().map(|byte| i32::from(*byte)).collect()),
            Ids::Wide(ids) => Ok(ids[start..end].iter().map(|id| *id as i32).collect()),
            Ids::File(file) => file.read(start..end),
        }
    }

    /// Sequences of `seq_len` targets; each begins on the last token of the one before, the last may be short.
    pub(super) fn sequences(&self, seq_len: usize) -> u64 {
        self.len().saturating_sub(1).div_ceil(seq_len.max(1)) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences_cover_every_target_once() {
        let count = |len: usize| Tokens::from_bytes(vec![b'a'; len]).sequences(4);
        assert_eq!([0, 1, 2, 5, 6, 9, 10].map(count), [0, 0, 1, 1, 2, 2, 3]);
    }

    #[test]
    fn places_beyond_the_end_are_cut() {
        let tokens = Tokens::from_bytes(b"abc".to_vec());
        assert_eq!(tokens.ids(1..9).unwrap(), [98, 99]);
        assert!(tokens.ids(5..9).unwrap().is_empty());
    }

    #[test]
    fn wide_ids_are_kept() {
        let tokens = Tokens::from_ids(vec![7, 70_000, 0], 70_001);
        assert_eq!(tokens.ids(0..3).unwrap(), [7, 70_000, 0]);
        assert_eq!((tokens.len(), tokens.vocabulary()), (3, 70_001));
    }
}
