//! Sentences with a label: the built-in pairs, or a `.csv`, `.tsv` or `.jsonl` file.
//!
//! ```text
//! delimited   rows of a .csv or .tsv file
//! lines       rows of a .jsonl file
//! columns     which columns hold the sentences and the label
//! classes     labels become class ids
//! ```

mod classes;
mod columns;
mod delimited;
mod lines;

use std::{fs, io, path::Path};

use super::{
    DataError, corpus, pairs,
    text::{chunks::Chunks, unpack::Meter},
};
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
}

/// Bytes of a table that are read at most: it stays in memory.
const LIMIT: usize = 1 << 30;

impl Examples {
    /// The built-in pairs: the same on every machine.
    pub(super) fn pairs() -> Self {
        let row = |(number, pair): (usize, pairs::Pair)| Example {
            first: pair.first,
            second: Some(pair.second),
            label: pairs::LABELS[usize::from(pair.fits)].to_owned(),
            line: number + 1,
        };
        Self {
            source: "sentence-pairs".to_owned(),
            rows: pairs::all().into_iter().enumerate().map(row).collect(),
        }
    }

    /// Reads a file; `columns` names one or two sentences and then the label, or is empty.
    ///
    /// # Errors
    /// The first thing that is wrong with the file, with its line.
    pub(super) fn read(path: &Path, columns: &[String]) -> Result<Self, DataError> {
        let name = path.display().to_string();
        let kind_of_file = match fs::metadata(path) {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(DataError::MissingTable { path: name });
            }
            Err(error) => return Err(corpus::unreadable(&name, &error)),
        };
        if kind_of_file.is_dir() {
            return Err(DataError::TableFolder { path: name });
        }
        let (packing, layout) = file_kind::of(path);
        let delimiter = match layout {
            _ if !kind_of_file.is_file() => return Err(DataError::NotATable { path: name }),
            Layout::Delimited(delimiter) => Some(delimiter),
            Layout::Lines => None,
            Layout::Parquet => return Err(DataError::Parquet { path: name }),
            Layout::Text => return Err(DataError::NotATable { path: name }),
        };
        let mut text = String::new();
        let mut chunks = Chunks::open(path, packing, Meter::default())?;
        while let Some(piece) = chunks.next()? {
            text.push_str(piece);
            if text.len() > LIMIT {
                return Err(DataError::TooLarge { path: name, limit: LIMIT as u64 });
            }
        }
        // Some programs put a mark before the text that says that it is UTF-8.
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        let rows = match delimiter {
            Some(delimiter) => delimited::rows(&name, text, delimiter, columns)?,
            None => lines::rows(&name, text, columns)?,
        };
        if rows.len() < 2 {
            return Err(DataError::TooFewRows { path: name, rows: rows.len() });
        }
        Ok(Self { source: name, rows })
    }

    /// Bytes of all sentences.
    pub(super) fn bytes(&self) -> u64 {
        let bytes = |row: &Example| row.first.len() + row.second.as_ref().map_or(0, String::len);
        self.rows.iter().map(|row| bytes(row) as u64).sum()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use tempfile::tempdir;

    use super::*;

    /// Reads a file of this name and text.
    pub(crate) fn read(name: &str, text: impl AsRef<[u8]>, columns: &[&str]) -> Result<Examples, DataError> {
        let folder = tempdir().unwrap();
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        let columns: Vec<String> = columns.iter().map(|name| (*name).to_owned()).collect();
        Examples::read(&path, &columns)
    }

    /// What is wrong with it; one sentence that names the file and holds all these words.
    pub(crate) fn refused(name: &str, text: impl AsRef<[u8]>, columns: &[&str], words: &[&str]) {
        let message = read(name, text, columns).unwrap_err().to_string();
        assert_eq!(message.lines().count(), 1, "{message}");
        for word in words.iter().chain(&[name]) {
            assert!(message.contains(word), "`{word}` is not in: {message}");
        }
    }

    #[test]
    fn the_formats_hold_the_same_rows() {
        let comma = read("a.csv", "sentence,label\n\"so, so\",0\ngood,1\n", &[]).unwrap().rows;
        let tab = read("a.TSV", "\u{feff}Sentence\tLabel\r\nso, so\t0\r\ngood\t1", &[]).unwrap().rows;
        let lines = "{\"sentence\": \"so, so\", \"label\": 0}\n{\"label\": 1, \"sentence\": \"good\"}\n";
        let lines = read("a.jsonl", lines, &[]).unwrap().rows;
        assert_eq!(comma.len(), 2);
        assert_eq!((&*comma[0].first, &*comma[0].label, comma[0].line), ("so, so", "0", 2));
        assert_eq!(comma, tab);
        assert_eq!(comma.iter().map(|row| &row.first).collect::<Vec<_>>(), ["so, so", "good"]);
        let without_lines = |rows: Vec<Example>| -> Vec<(String, String)> {
            rows.into_iter().map(|row| (row.first, row.label)).collect()
        };
        assert_eq!(without_lines(comma), without_lines(lines));
    }

    #[test]
    fn what_is_no_table_says_which_files_are() {
        refused("a.txt", "sentence,label\n", &[], &[".csv, .tsv or .jsonl"]);
        refused("a", "sentence,label\n", &[], &[".csv, .tsv or .jsonl"]);
        let folder = tempdir().unwrap();
        let message = Examples::read(folder.path(), &[]).unwrap_err().to_string();
        assert!(message.contains("is a folder") && message.contains(".csv, .tsv or .jsonl"), "{message}");
        let message = Examples::read(&folder.path().join("no.csv"), &[]).unwrap_err().to_string();
        assert!(message.contains("no.csv does not exist") && message.contains(".csv, .tsv or"), "{message}");
    }

    #[test]
    fn faults_of_the_bytes_name_the_line() {
        refused("a.csv", b"sentence,label\ncaf\xe9,1\n", &[], &["not UTF-8", "line 2", "iconv"]);
        refused("a.jsonl", b"{}\n\0", &[], &["NUL byte", "line 2"]);
        refused("a.csv", "", &[], &["is empty"]);
    }

    #[test]
    fn too_few_rows_are_counted() {
        refused("a.csv", "sentence,label\n", &[], &["0 rows", "at least two"]);
        refused("a.csv", "sentence,label\nx,1\n", &[], &["1 row,", "at least two"]);
        refused("a.jsonl", "{\"text\": \"x\", \"label\": 1}\n", &[], &["1 row,", "at least two"]);
    }
}
