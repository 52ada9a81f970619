//! The byte tokenizer and the stream it makes.

use std::ops::Range;

/// Ids are below this.
pub const VOCABULARY: u32 = 256;

/// The token after each document; also what short rows are filled with.
pub const SEPARATOR: u8 = 0;

/// A stream of tokens. One byte each now; the interface speaks of ids so that a wider tokenizer fits behind it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Tokens(Vec<u8>);

impl Tokens {
    /// A text that already carries its separators.
    pub(super) fn from_bytes(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// The ids at these places; places beyond the end give nothing.
    pub(super) fn ids(&self, places: Range<usize>) -> impl Iterator<Item = i32> {
        let end = places.end.min(self.0.len());
        let start = places.start.min(end);
        self.0[start..end].iter().map(|byte| i32::from(*byte))
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
}
