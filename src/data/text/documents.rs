//! The documents of one file, one after another.

use std::{fmt, path::Path, rc::Rc};

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;

use super::{
    super::{
        DataError,
        error::RowFault,
        labelled::{Quotes, kind_of, object},
    },
    chunks::{Chunks, Reader, Slot},
    unpack::Meter,
};
use crate::config::file_kind::{self, Layout, Packing};

/// Longest line of a file with one object a line, and longest field in quotes, in bytes.
const LONGEST_ROW: usize = 256 << 20;

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
        Layout::Parquet => Err(DataError::Parquet { path: path.display().to_string() }),
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

fn document(text: &str, sink: &mut dyn Sink) -> Result<(), DataError> {
    if text.trim().is_empty() {
        sink.without_text();
        return Ok(());
    }
    sink.piece(text)?;
    sink.end()
}

/// One object a line.
fn lines(path: &Path, mut chunks: Chunks, field: &str, sink: &mut dyn Sink) -> Result<(), DataError> {
    let fault =
        |line: usize, fault: RowFault| DataError::Row { path: path.display().to_string(), line, fault };
    let mut one = |number: usize, line: &str| -> Result<(), DataError> {
        // Some programs put a mark before the text that says that it is UTF-8.
        let line = if number == 1 { line.strip_prefix('\u{feff}').unwrap_or(line) } else { line };
        if line.trim().is_empty() {
            return Ok(());
        }
        let text = text_of(line, field).map_err(|problem| match problem {
            RowFault::NoField { field, columns } if number == 1 => {
                DataError::NoField { path: path.display().to_string(), field, columns }
            }
            problem => fault(number, problem),
        })?;
        document(&text, sink)
    };
    let (mut begun, mut number) = (String::new(), 1);
    while let Some(piece) = chunks.next()? {
        let mut rest = piece;
        while let Some((line, behind)) = rest.split_once('\n') {
            if begun.is_empty() {
                one(number, line)?;
            } else {
                begun.push_str(line);
                one(number, &begun)?;
                begun.clear();
            }
            number += 1;
            rest = behind;
        }
        begun.push_str(rest);
        if begun.len() > LONGEST_ROW {
            return Err(fault(number, RowFault::TooLong { limit: LONGEST_ROW }));
        }
    }
    one(number, &begun)
}

/// The text that an object has under that key.
fn text_of(line: &str, field: &str) -> Result<String, RowFault> {
    let mut reader = serde_json::Deserializer::from_str(line);
    let quick = Pick(field).deserialize(&mut reader).and_then(|found| reader.end().map(|()| found));
    let value = match quick {
        Ok(Some(value)) => value,
        // It says what is wrong.
        Ok(None) | Err(_) => {
            let object = object(line)?;
            let columns = || object.keys().cloned().collect::<Vec<_>>().join(", ");
            object
                .get(field)
                .cloned()
                .ok_or_else(|| RowFault::NoField { field: field.to_owned(), columns: columns() })?
        }
    };
    match value {
        Value::String(text) if text.contains('\0') => Err(RowFault::Nul { column: field.to_owned() }),
        Value::String(text) => Ok(text),
        other => Err(RowFault::Kind { column: field.to_owned(), kind: kind_of(&other), expected: "text" }),
    }
}

/// Reads one value of an object and passes over the others.
struct Pick<'a>(&'a str);

impl<'de> DeserializeSeed<'de> for Pick<'_> {
    type Value = Option<Value>;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Pick<'_> {
    type Value = Option<Value>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut found = None;
        while let Some(wanted) = map.next_key_seed(Is(self.0))? {
            if wanted {
                found = Some(map.next_value()?);
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(found)
    }
}

/// Whether a key is that one.
struct Is<'a>(&'a str);

impl<'de> DeserializeSeed<'de> for Is<'_> {
    type Value = bool;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Is<'_> {
    type Value = bool;
    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a key")
    }
    fn visit_str<E>(self, key: &str) -> Result<bool, E> {
        Ok(key == self.0)
    }
}

/// A `.csv` or `.tsv` file.
struct Rows<'a> {
    path: &'a Path,
    packing: Packing,
    delimiter: u8,
    field: &'a str,
}

impl Rows<'_> {
    fn read(&self, chunks: Chunks, sink: &mut dyn Sink) -> Result<(), DataError> {
        let slot = Slot::default();
        let mut quotes = Quotes::new(self.delimiter);
        let look = |bytes: Option<&[u8]>| {
            let fault = match bytes {
                Some(bytes) => quotes.feed(bytes).or_else(|| quotes.open_longer_than(LONGEST_ROW)),
                None => quotes.end(),
            };
            fault.map_or(Ok(()), |(offset, fault)| Err(self.fault(offset, false, fault)))
        };
        let source = Reader { chunks, look, slot: Rc::clone(&slot), left: Vec::new(), at: 0 };
        let mut reader =
            csv::ReaderBuilder::new().delimiter(self.delimiter).flexible(true).from_reader(source);
        let unreadable = |error: csv::Error| {
            let told = slot.borrow_mut().take();
            told.unwrap_or_else(|| DataError::Unreadable { path: self.name(), problem: error.to_string() })
        };
        let header = reader.headers().map_err(unreadable)?;
        let header: Vec<String> =
            header.iter().map(|name| name.trim().trim_start_matches('\u{feff}').to_owned()).collect();
        let mut places = (0..header.len()).filter(|at| header[*at] == self.field);
        let columns = || header.join(", ");
        let at = match (places.next(), places.next()) {
            (Some(at), None) => at,
            (Some(_), Some(_)) => {
                let column = self.field.to_owned();
                return Err(DataError::ColumnTwice { path: self.name(), column, columns: columns() });
            }
            (None, _) => {
                let field = self.field.to_owned();
                return Err(DataError::NoField { path: self.name(), field, columns: columns() });
            }
        };
        let mut record = csv::StringRecord::new();
        while reader.read_record(&mut record).map_err(unreadable)? {
            if record.len() != header.len() {
                let offset = record.position().map_or(0, |position| position.byte() as usize);
                let fault = RowFault::Ragged { fields: record.len(), header: header.len() };
                return Err(self.fault(offset, true, fault));
            }
            document(record.get(at).unwrap_or_default(), sink)?;
        }
        Ok(())
    }

    fn name(&self) -> String {
        self.path.display().to_string()
    }

    /// The fault with its line, for which the file is read once more; `row` passes over empty lines.
    fn fault(&self, offset: usize, row: bool, fault: RowFault) -> DataError {
        let line = self.line(offset, row).unwrap_or(1);
        DataError::Row { path: self.name(), line, fault }
    }

    fn line(&self, offset: usize, row: bool) -> Result<usize, DataError> {
        let mut chunks = Chunks::open(self.path, self.packing, Meter::default())?;
        let (mut line, mut before) = (1, offset);
        while let Some(piece) = chunks.next()? {
            let bytes = piece.as_bytes();
            let counted = before.min(bytes.len());
            line += bytes[..counted].iter().filter(|byte| **byte == b'\n').count();
            before -= counted;
            if before == 0 && counted < bytes.len() {
                let empty = bytes[counted..].iter().take_while(|byte| row && matches!(byte, b'\n' | b'\r'));
                return Ok(line + empty.filter(|byte| **byte == b'\n').count());
            }
        }
        Ok(line)
    }
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
}
