//! Documents in memory, such as the built-in stories.

use std::io;

use super::{DataError, stories, tokens::SEPARATOR};

/// Documents one after another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Corpus {
    /// `stories`, or the path.
    pub source: String,
    /// Each document followed by [`SEPARATOR`].
    pub text: Vec<u8>,
    /// Where each document ends, behind its separator.
    pub ends: Vec<usize>,
}

impl Corpus {
    /// No documents yet.
    pub fn new(source: impl Into<String>) -> Self {
        Self { source: source.into(), text: Vec::new(), ends: Vec::new() }
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
}

/// What the system says about a path.
pub(super) fn unreadable(path: &str, error: &io::Error) -> DataError {
    DataError::Unreadable { path: path.to_owned(), problem: error.to_string() }
}

/// The line a byte stands in, counted from 1.
pub(super) fn line(text: &[u8], offset: usize) -> usize {
    1 + text[..offset].iter().filter(|byte| **byte == b'\n').count()
}
