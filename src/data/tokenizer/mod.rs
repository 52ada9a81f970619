//! How text becomes ids: its bytes, or a Hugging Face `tokenizer.json`.
//!
//! ```text
//! bytes   ids that are the values of bytes, and rows of them
//! file    the tokenizers of Hugging Face's library
//! unknown what one of them does not know of a text
//! ```

mod bytes;
mod file;
mod unknown;

use std::sync::Arc;

use super::{DataError, tokens::VOCABULARY, unborne};
use crate::config::{self, Task};

pub(in crate::data) use file::{FileEncoder, TokenizerText};
pub(in crate::data) use unknown::LOOKED_AT;

use bytes::SEP;
use file::ENDS;

/// Turns text into ids.
#[derive(Debug, Clone)]
pub(in crate::data) enum Encoder {
    Bytes,
    File(Arc<FileEncoder>),
}

/// What `data.tokenizer` asks for, before anything is made of it.
#[derive(Debug, Clone)]
pub(in crate::data) enum Choice {
    Bytes,
    File(TokenizerText),
    /// Learnt from the text, with so many tokens at most.
    Bpe(usize),
}

/// What can be had of a choice before there is a text.
#[derive(Debug)]
pub(in crate::data) enum Ready {
    Now(Encoder),
    /// To be learnt from the text, with so many tokens at most.
    Learn(usize),
}

impl Choice {
    /// Reads what is named.
    ///
    /// # Errors
    /// A file that is missing, unreadable, or of another library.
    pub(in crate::data) fn of(choice: &config::Tokenizer) -> Result<Self, DataError> {
        match choice {
            config::Tokenizer::Bytes => Ok(Self::Bytes),
            config::Tokenizer::File(path) => TokenizerText::read(path).map(Self::File),
            config::Tokenizer::Bpe(size) => Ok(Self::Bpe(*size)),
        }
    }

    /// Loads what does not depend on a text.
    ///
    /// # Errors
    /// The file is no `tokenizer.json`.
    pub(in crate::data) fn ready(&self) -> Result<Ready, DataError> {
        match self {
            Self::Bytes => Ok(Ready::Now(Encoder::Bytes)),
            Self::File(text) => text.load().map(Ready::Now),
            Self::Bpe(size) => Ok(Ready::Learn(*size)),
        }
    }

    /// What is called by that name makes the same ids of a text.
    pub(in crate::data) fn identity(&self) -> String {
        match self {
            Self::Bytes => "bytes".to_owned(),
            Self::File(text) => format!("file {}", text.digest()),
            Self::Bpe(size) => format!("bpe {size}"),
        }
    }
}

/// One row of a classification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::data) struct EncodedRow {
    pub(in crate::data) ids: Vec<u32>,
    /// Something did not fit.
    pub(in crate::data) truncated: bool,
}

impl Encoder {
    /// Says which characters at the beginning of a text are not known; nothing when all are.
    pub(in crate::data) fn unknown_of(&self, beginning: &[u8]) -> Option<String> {
        match self {
            Self::Bytes => None,
            Self::File(encoder) => unknown::note(encoder, beginning),
        }
    }

    /// Checks that the model has a row for every id.
    ///
    /// # Errors
    /// `model.vocab_size` is too small.
    pub(in crate::data) fn fits(&self, task: Task, vocab_size: usize) -> Result<(), DataError> {
        let (tokenizer, needed) = match (self, task) {
            (Self::Bytes, Task::LanguageModel) => ("bytes", VOCABULARY as usize),
            (Self::Bytes, Task::Classification) => ("bytes", SEP as usize + 1),
            (_, Task::Own) => return Ok(()),
            (Self::File(file), _) => (&*file.path, file.vocabulary),
        };
        if needed <= vocab_size {
            return Ok(());
        }
        Err(DataError::Vocabulary { tokenizer: tokenizer.to_owned(), needed, vocab_size })
    }

    /// Ids are below this.
    pub(in crate::data) fn vocabulary(&self) -> u32 {
        match self {
            Self::Bytes => VOCABULARY,
            Self::File(file) => file.vocabulary(),
        }
    }

    /// Checks that documents can be told apart.
    ///
    /// # Errors
    /// There are several, and no token ends one.
    pub(in crate::data) fn ends_documents(&self, documents: u64) -> Result<(), DataError> {
        match self {
            Self::File(file) if file.end.is_none() && documents > 1 => {
                Err(DataError::NoEnd { path: file.path.clone(), documents, known: ENDS.join(", ") })
            }
            _ => Ok(()),
        }
    }

    /// Checks that rows are marked: a classification is read off the first mark.
    ///
    /// # Errors
    /// The tokenizer adds none.
    pub(in crate::data) fn marks_rows(&self) -> Result<(), DataError> {
        match self {
            Self::File(file) if file.marks(false) == 0 => Err(DataError::NoMarks { path: file.path.clone() }),
            _ => Ok(()),
        }
    }

    /// The text of ids, as far as they are one: see [`crate::data::Dataset::decode`].
    pub(in crate::data) fn decode(&self, ids: &[i32]) -> String {
        match self {
            Self::Bytes => bytes::text(ids),
            Self::File(file) => file.decode(ids),
        }
    }

    /// One or two sentences with the marks of a classification, at most `longest` ids of them: the longer sentence
    /// loses its end first.
    ///
    /// # Errors
    /// No room for the marks and a token of each sentence; the tokenizer fails on a text.
    pub(in crate::data) fn row(
        &self,
        first: &str,
        second: Option<&str>,
        longest: usize,
    ) -> Result<EncodedRow, DataError> {
        let sentences = 1 + usize::from(second.is_some());
        let marks = match self {
            Self::Bytes => 1 + sentences,
            Self::File(file) => file.marks(second.is_some()),
        };
        if longest < marks + sentences {
            return Err(DataError::NoRoom { seq_len: longest, marks, needed: marks + sentences });
        }
        match self {
            Self::Bytes => Ok(bytes::row(first, second, longest - marks)),
            Self::File(file) => file.row(first, second, longest - marks),
        }
    }
}

/// What is left of two lengths that have this room together, as Hugging Face's `longest_first`: the longer one gives
/// until both are the same, then both give, and an odd place goes to the longer (of equals to the second).
fn longest_first(first: usize, second: usize, room: usize) -> (usize, usize) {
    if first + second <= room {
        return (first, second);
    }
    let short = first.min(second).min(room / 2);
    if first <= second { (short, room - short) } else { (room - short, short) }
}

/// Bytes as hexadecimal digits.
pub(in crate::data) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
pub(super) mod tests;
