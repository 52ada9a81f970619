//! Sentences with a label: the built-in pairs, or `.csv`, `.tsv` and `.jsonl` files.
//!
//! ```text
//! reading     the tables of a path: one file, or those of a folder
//! delimited   rows of a .csv or .tsv file
//! lines       rows of a .jsonl file
//! columnar    rows of a Parquet file, where the feature is on
//! columns     which columns hold the sentences and the label
//! classes     labels become class ids
//! ```

mod classes;
#[cfg(feature = "parquet")]
mod columnar;
mod columns;
mod delimited;
mod lines;
mod reading;

use std::path::PathBuf;

use super::{DataError, error::RowFault, pairs, store, text::listing::LeftOut, tokens::SEPARATOR};
use crate::config::file_kind::{self, Layout};

pub(super) use classes::Classes;
pub(super) use delimited::Quotes;
pub(super) use lines::{kind as kind_of, object};

/// One row: one or two sentences and what they are labelled with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Example {
    pub(super) first: String,
    pub(super) second: Option<String>,
    /// Without white space round it; never empty.
    pub(super) label: String,
    /// Where the row begins, counted from 1.
    pub(super) line: usize,
}

/// All rows of one source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Examples {
    /// `sentence-pairs`, or the path.
    pub(super) source: String,
    pub(super) rows: Vec<Example>,
    /// The files they are from, each with the number of its first row.
    files: Vec<(usize, PathBuf)>,
    pub(super) left_out: LeftOut,
}

impl Examples {
    /// The built-in pairs: the same on every machine.
    pub(super) fn pairs() -> Self {
        let row = |(number, pair): (usize, pairs::Pair)| Example {
            first: pair.first,
            second: Some(pair.second),
            label: pairs::LABELS[usize::from(pair.fits)].to_owned(),
            line: number + 1,
        };
        let rows = pairs::all().into_iter().enumerate().map(row).collect();
        Self { rows, ..Self::none("sentence-pairs".to_owned()) }
    }

    fn none(source: String) -> Self {
        Self { source, rows: Vec::new(), files: Vec::new(), left_out: LeftOut::default() }
    }

    /// What is wrong with a row, with its file and its place in it.
    pub(super) fn fault(&self, row: usize, fault: RowFault) -> DataError {
        let line = self.rows.get(row).map_or(0, |row| row.line);
        let file = self.files.partition_point(|(first, _)| *first <= row);
        match file.checked_sub(1).map(|file| &self.files[file].1) {
            Some(path) if file_kind::of(path).1 == Layout::Parquet => {
                DataError::TableRow { path: path.display().to_string(), row: line, fault }
            }
            Some(path) => DataError::Row { path: path.display().to_string(), line, fault },
            None => DataError::Row { path: self.source.clone(), line, fault },
        }
    }

    /// Tells these rows apart from others, with the tokenizer and the split that they are read with.
    pub(super) fn content(&self, tokenizer: &str, fraction: f64) -> String {
        let fraction = fraction.to_bits().to_le_bytes();
        let texts = self.rows.iter().flat_map(|row| {
            [row.first.as_bytes(), row.second.as_deref().unwrap_or_default().as_bytes(), row.label.as_bytes()]
        });
        store::key([tokenizer.as_bytes(), &fraction].into_iter().chain(texts))
    }

    /// The first sentences, of so many bytes, each with a separator.
    pub(super) fn beginning(&self, bytes: usize) -> String {
        let mut text = String::new();
        let sentences = self.rows.iter().flat_map(|row| [Some(&row.first), row.second.as_ref()]).flatten();
        for sentence in sentences {
            if text.len() >= bytes {
                break;
            }
            text.push_str(sentence);
            text.push(char::from(SEPARATOR));
        }
        text
    }

    /// Bytes of all sentences.
    pub(super) fn bytes(&self) -> u64 {
        let bytes = |row: &Example| row.first.len() + row.second.as_ref().map_or(0, String::len);
        self.rows.iter().map(|row| bytes(row) as u64).sum()
    }
}
