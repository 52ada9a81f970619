//! One micro-batch on the host.

use std::io;

use super::{
    DataError,
    own::Payload,
    tokens::{SEPARATOR, Tokens},
};

/// The target of a padded place: it has no loss. PyTorch's `ignore_index`.
pub const IGNORE: i32 = -100;

/// Rows of input tokens, all filled to `seq_len`, and what is to be learnt from them: a target for every token of a
/// language model, a class for every row of a classification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch {
    pub rows: usize,
    pub seq_len: usize,
    /// `[rows, seq_len]`, row after row; short rows are filled with 0 on the right.
    pub inputs: Vec<i32>,
    /// `[rows, seq_len]`: the token after each input, [`IGNORE`] where the row is filled. Of a classification `[rows]`:
    /// the class.
    pub targets: Vec<i32>,
    /// Real input tokens of each row.
    pub lengths: Vec<usize>,
    /// Targets that count: tokens, or rows of a classification.
    pub target_count: u64,
    /// The examples of a task of its own, which are all there is to its batches.
    pub own: Option<Payload>,
}

impl Batch {
    /// The given sequences of a stream, one a row. A sequence beyond the end makes an all-padded row.
    ///
    /// # Errors
    /// The stream lies in a file that cannot be read.
    pub(super) fn cut(
        tokens: &Tokens,
        seq_len: usize,
        sequences: impl Iterator<Item = u64>,
    ) -> io::Result<Self> {
        let rows = sequences.size_hint().0;
        let mut batch = Self {
            rows: 0,
            seq_len,
            inputs: Vec::with_capacity(rows * seq_len),
            targets: Vec::with_capacity(rows * seq_len),
            lengths: Vec::with_capacity(rows),
            target_count: 0,
            own: None,
        };
        for sequence in sequences {
            let start = sequence as usize * seq_len;
            let ids = tokens.ids(start..start + 1 + seq_len)?;
            let length = ids.len().saturating_sub(1);
            batch.rows += 1;
            batch.targets.extend(ids.iter().skip(1));
            batch.inputs.extend(&ids[..length]);
            batch.inputs.resize(batch.rows * seq_len, i32::from(SEPARATOR));
            batch.targets.resize(batch.rows * seq_len, IGNORE);
            batch.lengths.push(length);
            batch.target_count += length as u64;
        }
        debug_assert!(batch.check(tokens.vocabulary() as usize).is_ok(), "a stream holds what it says");
        Ok(batch)
    }

    /// No rows at all.
    pub(super) fn nothing(seq_len: usize) -> Self {
        let (inputs, targets, lengths) = (Vec::new(), Vec::new(), Vec::new());
        Self { rows: 0, seq_len, inputs, targets, lengths, target_count: 0, own: None }
    }

    /// Refuses ids that an embedding of so many rows does not have, before a device sees them: there they would end the
    /// process, or read what is none of theirs.
    ///
    /// # Errors
    /// One of the inputs is beyond the vocabulary; the sentence names it.
    pub fn check(&self, vocabulary: usize) -> Result<(), DataError> {
        let known = 0..i32::try_from(vocabulary).unwrap_or(i32::MAX);
        match self.inputs.iter().find(|id| !known.contains(id)) {
            None => Ok(()),
            Some(&id) => Err(DataError::TokenId { id, vocabulary }),
        }
    }

    /// Real input tokens.
    pub fn tokens(&self) -> u64 {
        self.lengths.iter().map(|&length| length as u64).sum()
    }

    /// Whether some row is shorter than `seq_len`.
    pub fn has_padding(&self) -> bool {
        self.lengths.iter().any(|&length| length < self.seq_len)
    }

    /// Inputs and targets of one row, padding included; empty beyond the last row. Of a classification the class is
    /// the only target.
    pub fn row(&self, row: usize) -> (&[i32], &[i32]) {
        let part = |width: usize| row * width..(row + 1) * width;
        let targets = self.targets.len() / self.rows.max(1);
        (
            self.inputs.get(part(self.seq_len)).unwrap_or_default(),
            self.targets.get(part(targets)).unwrap_or_default(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_the_inputs_one_on() {
        let tokens = Tokens::from_bytes(b"abcdefg".to_vec());
        let batch = Batch::cut(&tokens, 3, 0..2).unwrap();
        assert_eq!((batch.rows, batch.seq_len, batch.target_count), (2, 3, 6));
        assert_eq!(batch.row(0), (&[97, 98, 99][..], &[98, 99, 100][..]));
        assert_eq!(batch.row(1), (&[100, 101, 102][..], &[101, 102, 103][..]));
        assert!(batch.row(2).0.is_empty());
        assert!(!batch.has_padding());
    }

    #[test]
    fn an_id_beyond_the_vocabulary_is_told_before_a_device_sees_it() {
        let batch = Batch::cut(&Tokens::from_bytes(b"abcdefg".to_vec()), 3, 0..2).unwrap();
        batch.check(103).unwrap();
        let told = batch.check(102).unwrap_err().to_string();
        assert!(told.contains("token id 102") && told.contains("model.vocab_size = 102"), "{told}");
        let negative = Batch { inputs: vec![-1], ..batch };
        assert!(negative.check(256).unwrap_err().to_string().contains("token id -1"));
    }

    #[test]
    fn a_short_last_sequence_is_filled_and_its_targets_are_ignored() {
        let tokens = Tokens::from_bytes(b"abcdef".to_vec());
        let batch = Batch::cut(&tokens, 4, 0..2).unwrap();
        assert_eq!(batch.lengths, [4, 1]);
        assert_eq!(batch.row(1), (&[101, 0, 0, 0][..], &[102, IGNORE, IGNORE, IGNORE][..]));
        assert_eq!(batch.target_count, 5);
        assert!(batch.has_padding());
    }
}
