//! The documents of one file, one after another.

use std::path::Path;

use super::{super::DataError, chunks::Chunks, delimited::Rows, lines::lines, unpack::Meter};
use crate::config::file_kind::{self, Layout, Packing};

/// Longest line of a file with one object a line, and longest field in quotes, in bytes.
pub(super) const LONGEST_ROW: usize = 256 << 20;

/// Takes documents, piece by piece.
pub(in crate::data) trait Sink {
    /// The next piece of the present document.
    fn piece(&mut self, text: &str) -> Result<(), DataError>;
    /// The present document is complete.
    fn end(&mut self) -> Result<(), DataError>;
    /// A row without text was passed over.
    fn without_text(&mut self);
}

/// Reads one file into the sink. `field` names what holds the text in rows; when it is empty, every file is a text.
///
/// # Errors
/// The file cannot be read, is damaged, no text, or one of its rows is; and what the sink says.
pub(in crate::data) fn read(
    path: &Path,
    field: &str,
    meter: &Meter,
    sink: &mut dyn Sink,
) -> Result<(), DataError> {
    let (packing, layout) = file_kind::of(path);
    let chunks = || Chunks::open(path, packing, meter.clone());
    match layout {
        Layout::Parquet if packing != Packing::None => {
            Err(DataError::PackedTable { path: path.display().to_string() })
        }
        Layout::Parquet => table(path, field, meter, sink),
        Layout::Lines if !field.is_empty() => lines(path, chunks()?, field, sink),
        Layout::Delimited(delimiter) if !field.is_empty() => {
            let rows = Rows { path, packing, delimiter, field };
            rows.read(chunks()?, sink)
        }
        _ => text(chunks()?, sink),
    }
}

fn text(mut chunks: Chunks, sink: &mut dyn Sink) -> Result<(), DataError> {
    while let Some(piece) = chunks.next()? {
        sink.piece(piece)?;
    }
    sink.end()
}

#[cfg(not(feature = "parquet"))]
fn table(path: &Path, _: &str, _: &Meter, _: &mut dyn Sink) -> Result<(), DataError> {
    Err(DataError::Parquet { path: path.display().to_string() })
}

/// The rows of a Parquet file.
#[cfg(feature = "parquet")]
fn table(path: &Path, field: &str, meter: &Meter, sink: &mut dyn Sink) -> Result<(), DataError> {
    use super::super::parquet::{Holds, Table};

    let name = || path.display().to_string();
    if field.is_empty() {
        return Err(DataError::NoPlainText { path: name() });
    }
    let table = Table::open(path)?;
    let (header, holds) = (table.header(), table.holds());
    let Some(at) = place(&name(), &header, field)? else {
        let texts = header.iter().zip(&holds).filter(|(_, holds)| **holds == Holds::Text);
        let columns = texts.map(|(name, _)| &**name).collect::<Vec<_>>().join(", ");
        let columns = if columns.is_empty() { "none".to_owned() } else { columns };
        return Err(DataError::NoTextColumn { path: name(), field: field.to_owned(), columns });
    };
    if let Some(kind) = holds[at].unless_text() {
        let column = field.to_owned();
        return Err(DataError::ColumnKind {
            path: name(),
            column,
            kind,
            expected: "text",
            key: "data.field",
        });
    }
    table.rows(&[at], meter, &mut |row, cells| {
        let text = cells[0].text(field);
        match text.map_err(|fault| DataError::TableRow { path: name(), row, fault })? {
            Some(text) => document(text, sink),
            None => {
                sink.without_text();
                Ok(())
            }
        }
    })
}

/// Where a column stands; nothing when there is none of that name.
pub(super) fn place(path: &str, header: &[String], column: &str) -> Result<Option<usize>, DataError> {
    let mut places = (0..header.len()).filter(|at| header[*at] == column);
    let first = places.next();
    if places.next().is_some() {
        let (path, column) = (path.to_owned(), column.to_owned());
        return Err(DataError::ColumnTwice { path, column, columns: header.join(", ") });
    }
    Ok(first)
}

/// A row as a document, unless it has no text.
pub(super) fn document(text: &str, sink: &mut dyn Sink) -> Result<(), DataError> {
    if text.trim().is_empty() {
        sink.without_text();
        return Ok(());
    }
    sink.piece(text)?;
    sink.end()
}

#[cfg(test)]
mod tests {
    use tempfile::tempdir;

    use super::*;

    #[derive(Default)]
    struct All {
        documents: Vec<String>,
        present: String,
        without_text: u64,
    }

    impl Sink for All {
        fn piece(&mut self, text: &str) -> Result<(), DataError> {
            self.present.push_str(text);
            Ok(())
        }
        fn end(&mut self) -> Result<(), DataError> {
            self.documents.push(std::mem::take(&mut self.present));
            Ok(())
        }
        fn without_text(&mut self) {
            self.without_text += 1;
        }
    }

    fn documents(name: &str, bytes: impl AsRef<[u8]>, field: &str) -> Result<(Vec<String>, u64), String> {
        let folder = tempdir().unwrap();
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        let mut all = All::default();
        super::read(&path, field, &Meter::default(), &mut all).map_err(|error| error.to_string())?;
        Ok((all.documents, all.without_text))
    }

    fn refused(name: &str, bytes: impl AsRef<[u8]>, field: &str, words: &[&str]) {
        let message = documents(name, bytes, field).unwrap_err();
        assert_eq!(message.lines().count(), 1, "{message}");
        for word in words.iter().chain(&[name]) {
            assert!(message.contains(word), "`{word}` is not in: {message}");
        }
    }

    fn texts(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn every_layout_gives_the_same_documents() {
        let expected = (texts(&["so, so", "a\nb é"]), 1);
        let lines = "\u{feff}{\"text\": \"so, so\", \"n\": 1}\n\n{\"n\": [2], \"text\": \"a\\nb \\u00e9\"}\r\n{\"text\": \" \"}";
        assert_eq!(documents("a.jsonl", lines, "text").unwrap(), expected);
        let comma = "n,text\n1,\"so, so\"\n2,\"a\nb é\"\n3,\n";
        assert_eq!(documents("a.csv", comma, "text").unwrap(), expected);
        let tab = "\u{feff}body\tn\r\nso, so\t1\r\n\"a\nb é\"\t2\r\n\t3\r\n";
        assert_eq!(documents("a.tsv", tab, "body").unwrap(), expected);
        assert_eq!(documents("a.jsonl", lines, "").unwrap().0, [lines]);
        assert_eq!(documents("a.csv", comma, "").unwrap().0, [comma]);
        assert_eq!(documents("a.txt", "one\ntwo", "text").unwrap().0, ["one\ntwo"]);
    }

    #[test]
    fn another_separator_is_told() {
        refused("a.csv", "n;text\n1;so\n", "text", &["it has n;text", "parted by semicolons", "with commas"]);
        let told = documents("a.csv", "n,body\n1,so\n", "text").unwrap_err();
        assert!(!told.contains("parted by"), "{told}");
    }

    #[test]
    fn rows_longer_than_a_piece_are_whole() {
        let long = "word ".repeat(40_000);
        let lines = format!("{{\"text\": \"{long}\"}}\n{{\"text\": \"short\"}}\n{{\"text\": \"{long}\"}}");
        assert_eq!(documents("a.jsonl", lines, "text").unwrap().0, [&*long, "short", &*long]);
        let rows = format!("text\n\"{long}\"\nshort\n");
        assert_eq!(documents("a.csv", rows, "text").unwrap().0, [&*long, "short"]);
    }

    #[test]
    fn lines_that_are_wrong_are_named() {
        let good = "{\"text\": \"a\"}\n";
        let third = |line: &str, words: &[&str]| {
            let words: Vec<&str> = words.iter().chain(&["line 3"]).copied().collect();
            refused("a.jsonl", format!("{good}\n{line}\n{good}"), "text", &words);
        };
        third("{\"text\": ", &["not valid JSON", "one object a line"]);
        third("{\"text\": \"a\"} x", &["not valid JSON"]);
        third("[1]", &["a list", "one object a line"]);
        third("{\"body\": \"b\", \"n\": 1}", &["no `text`", "it has body, n", "data.field"]);
        third("{\"text\": 7}", &["`text` is a number", "expected text"]);
        third("{\"text\": \"a\\u0000\"}", &["NUL"]);
        refused("a.jsonl", "{\"body\": \"b\", \"n\": 1}\n", "text", &["no `text`", "body, n", "data.field"]);
    }

    #[test]
    fn rows_that_are_wrong_are_named() {
        refused("a.csv", "title,n\na,1\n", "text", &["no `text`", "title, n", "data.field"]);
        refused("a.csv", "text,text\na,1\n", "text", &["`text` more than once"]);
        let far = "some text,1\n".repeat(20_000);
        let ragged = format!("text,n\n{far}\n\nb\n");
        refused("a.csv", ragged, "text", &["line 20004", "1 field where the header has 2"]);
        refused("a.csv", format!("text,n\n{far}\"a,1\nb,0\n"), "text", &["line 20002", "never closed"]);
        refused("a.tsv", "text\tn\nx\t1\n\"a\" b\t0\n", "text", &["line 3", "behind a closing quote"]);
        refused("a.csv", b"text\ncaf\xe9\n", "text", &["not UTF-8", "line 2", "iconv"]);
        refused("a.parquet", b"PAR1", "text", &["Parquet"]);
    }

    #[test]
    fn a_packed_parquet_must_be_unpacked() {
        refused("a.parquet.gz", b"x", "text", &["packed Parquet", "unpack it"]);
    }

    #[cfg(not(feature = "parquet"))]
    #[test]
    fn a_build_without_the_reader_says_how_to_get_it() {
        refused("a.parquet", b"PAR1", "text", &["--features parquet", ".jsonl"]);
    }

    #[cfg(feature = "parquet")]
    #[test]
    fn the_rows_of_a_parquet_are_documents() {
        use crate::data::parquet::tests::{Given, written};

        let given = [Some("so, so"), None, Some("a\nb é"), Some(" ")];
        let columns = [("n", Given::Integers(&[1, 2, 3, 4])), ("text", Given::Texts(&given))];
        let (all, without) = documents("a.parquet", written(&columns, 2), "text").unwrap();
        assert_eq!((all, without), (texts(&["so, so", "a\nb é", "so, so", "a\nb é"]), 4));
        let bytes: [&[u8]; 2] = [b"so", b"caf\xe9"];
        let columns = || [("body", Given::Bytes(&bytes)), ("n", Given::Integers(&[1, 2]))];
        let table = || written(&columns(), 1);
        refused("a.parquet", table(), "body", &["a.parquet, row 2", "`body` is not UTF-8 at its byte 3"]);
        refused("a.parquet", table(), "text", &["no column `text`", "with text are: body", "data.field"]);
        refused("a.parquet", table(), "n", &["`n` of", "holds integers", "expected text", "data.field"]);
        refused("a.parquet", table(), "", &["as it is", "data.field"]);
        refused("a.parquet", written(&columns()[1..], 1), "text", &["with text are: none"]);
        let nul = [Some("a\0b")];
        refused("a.parquet", written(&[("text", Given::Texts(&nul))], 1), "text", &["row 1", "NUL"]);
        refused("a.parquet", &table()[..90], "body", &["ends early", "again"]);
    }
}
