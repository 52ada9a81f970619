//! A stream of tokens.

use std::ops::Range;

/// Ids of the byte tokenizer are below this.
pub const VOCABULARY: u32 = 256;

/// The byte after each document; its value is also the id that short rows are filled with.
pub const SEPARATOR: u8 = 0;

/// A stream of tokens, all below its vocabulary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Tokens {
    ids: Ids,
    vocabulary: u32,
}

/// A text of bytes stays as small as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Ids {
    Bytes(Vec<u8>),
    Wide(Vec<u32>),
}

impl Tokens {
    /// A text that already carries its separators.
    pub(super) fn from_bytes(bytes: Vec<u8>) -> Self {
        Self { ids: Ids::Bytes(bytes), vocabulary: VOCABULARY }
    }

    /// Ids of a wider vocabulary; `Err` is an id beyond it.
    pub(super) fn from_ids(ids: Vec<u32>, vocabulary: u32) -> Result<Self, u32> {
        match ids.iter().find(|id| **id >= vocabulary) {
            Some(id) => Err(*id),
            None => Ok(Self { ids: Ids::Wide(ids), vocabulary }),
        }
    }

    pub(super) fn len(&self) -> usize {
        match &self.ids {
            Ids::Bytes(bytes) => bytes.len(),
            Ids::Wide(ids) => ids.len(),
        }
    }

    /// Every id is below this.
    pub(super) const fn vocabulary(&self) -> u32 {
        self.vocabulary
    }

    /// The ids at these places; places beyond the end give nothing.
    pub(super) fn ids(&self, places: Range<usize>) -> impl Iterator<Item = i32> {
        let end = places.end.min(self.len());
        let start = places.start.min(end);
        let (bytes, wide): (&[u8], &[u32]) = match &self.ids {
            Ids::Bytes(bytes) => (&bytes[start..end], &[]),
            Ids::Wide(ids) => (&[], &ids[start..end]),
        };
        bytes.iter().map(|byte| i32::from(*byte)).chain(wide.iter().map(|id| *id as i32))
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
        assert_eq!(tokens.ids(1..9).collect::<Vec<_>>(), [98, 99]);
        assert_eq!(tokens.ids(5..9).count(), 0);
    }

    #[test]
    fn wide_ids_are_kept_and_stay_below_the_vocabulary() {
        let tokens = Tokens::from_ids(vec![7, 70_000, 0], 70_001).unwrap();
        assert_eq!(tokens.ids(0..3).collect::<Vec<_>>(), [7, 70_000, 0]);
        assert_eq!((tokens.len(), tokens.vocabulary()), (3, 70_001));
        assert_eq!(Tokens::from_ids(vec![7, 70_000, 0], 70_000), Err(70_000));
    }
}
