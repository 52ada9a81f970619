//! Rows of a `.csv` or `.tsv` file, quoted as RFC 4180 has it.

use super::{
    super::{corpus, error::RowFault},
    DataError, Example,
    columns::Columns,
};

/// The rows behind the header.
///
/// # Errors
/// Quotes that do not close, rows of another length than the header, columns and texts that are missing.
pub(super) fn rows(
    path: &str,
    text: &str,
    delimiter: u8,
    wanted: &[String],
) -> Result<Vec<Example>, DataError> {
    let fault = |line: usize, fault: RowFault| DataError::Row { path: path.to_owned(), line, fault };
    if let Some((offset, problem)) = misquoted(text.as_bytes(), delimiter) {
        return Err(fault(corpus::line(text.as_bytes(), offset), problem));
    }
    let unreadable =
        |error: csv::Error| DataError::Unreadable { path: path.to_owned(), problem: error.to_string() };
    let mut reader =
        csv::ReaderBuilder::new().delimiter(delimiter).flexible(true).from_reader(text.as_bytes());
    let header: Vec<String> =
        reader.headers().map_err(unreadable)?.iter().map(|name| name.trim().to_owned()).collect();
    let columns = Columns::choose(path, &header, wanted)?;
    let mut lines = Lines { text: text.as_bytes(), offset: 0, line: 1 };
    let mut record = csv::StringRecord::new();
    let mut rows = Vec::new();
    while reader.read_record(&mut record).map_err(unreadable)? {
        let line = lines.of(record.position().map_or(0, |position| position.byte() as usize));
        if record.len() != header.len() {
            return Err(fault(line, RowFault::Ragged { fields: record.len(), header: header.len() }));
        }
        let field =
            |column: &super::columns::Column| Ok(record.get(column.at).unwrap_or_default().to_owned());
        rows.push(columns.example(line, field, field).map_err(|problem| fault(line, problem))?);
    }
    Ok(rows)
}

/// Counts lines from one row to the next.
struct Lines<'a> {
    text: &'a [u8],
    offset: usize,
    line: usize,
}

impl Lines<'_> {
    /// The line in which the row begins that follows this place; places must not fall.
    fn of(&mut self, place: usize) -> usize {
        let place = place.min(self.text.len());
        // Empty lines are no rows.
        let empty = self.text[place..].iter().take_while(|byte| matches!(byte, b'\n' | b'\r')).count();
        let start = (place + empty).max(self.offset);
        self.line += self.text[self.offset..start].iter().filter(|byte| **byte == b'\n').count();
        self.offset = start;
        self.line
    }
}

/// The first place where quotes break the rules.
fn misquoted(text: &[u8], delimiter: u8) -> Option<(usize, RowFault)> {
    let mut quotes = Quotes::new(delimiter);
    quotes.feed(text).or_else(|| quotes.end())
}

/// Looks for quotes that break the rules, in a text that comes bit by bit. One left open would swallow the rows behind it.
#[derive(Debug, Clone)]
pub(in crate::data) struct Quotes {
    delimiter: u8,
    state: State,
    /// Bytes seen.
    offset: usize,
}

#[derive(Debug, Clone, Copy)]
enum State {
    Start,
    Plain,
    /// Since this place.
    Quoted(usize),
    Closed(usize),
}

impl Quotes {
    pub(in crate::data) const fn new(delimiter: u8) -> Self {
        Self { delimiter, state: State::Start, offset: 0 }
    }

    /// More of the text; the first place that is wrong.
    pub(in crate::data) fn feed(&mut self, text: &[u8]) -> Option<(usize, RowFault)> {
        for (at, byte) in text.iter().copied().enumerate() {
            let ends = byte == self.delimiter || matches!(byte, b'\n' | b'\r');
            self.state = match (self.state, byte) {
                (State::Quoted(open), b'"') => State::Closed(open),
                (State::Quoted(open), _) => State::Quoted(open),
                (State::Closed(open), b'"') => State::Quoted(open),
                (State::Start, b'"') => State::Quoted(self.offset + at),
                (_, _) if ends => State::Start,
                (State::Closed(_), _) => return Some((self.offset + at, RowFault::StrayQuote)),
                (State::Start | State::Plain, _) => State::Plain,
            };
        }
        self.offset += text.len();
        None
    }

    /// A quote that has been open for more bytes.
    pub(in crate::data) fn open_longer_than(&self, limit: usize) -> Option<(usize, RowFault)> {
        match self.state {
            State::Quoted(open) if self.offset - open > limit => Some((open, RowFault::OpenQuote)),
            _ => None,
        }
    }

    /// The text is over.
    pub(in crate::data) const fn end(&self) -> Option<(usize, RowFault)> {
        match self.state {
            State::Quoted(open) => Some((open, RowFault::OpenQuote)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::reading::tests::{read, refused};

    #[test]
    fn quoted_fields_hold_separators_quotes_and_line_breaks() {
        let text = "text,label,more\n\n\"a, \"\"b\"\"\nc\",1,x\r\n\r\nplain \"d\" e,0,\n";
        let rows = read("a.csv", text, &[]).unwrap().rows;
        assert_eq!((&*rows[0].first, rows[0].line), ("a, \"b\"\nc", 3));
        assert_eq!((&*rows[1].first, rows[1].line), ("plain \"d\" e", 6));
    }

    #[test]
    fn pairs_and_columns_by_name() {
        let text = "left\tright\tmark\none\ttwo\t x \nthree\tfour\ty\n";
        let rows = read("a.tsv", text, &["left", "right", "mark"]).unwrap().rows;
        assert_eq!(rows[0].second.as_deref(), Some("two"));
        assert_eq!(rows[0].label, "x");
    }

    #[test]
    fn broken_rows_name_their_line() {
        refused("a.csv", "text,label\na,1\nb,c,0\n", &[], &["line 3", "3 fields", "header has 2"]);
        refused("a.csv", "text,label\na\n", &[], &["line 2", "1 field ", "header has 2"]);
        refused("a.csv", "text,label\n\na,1\n\n \nb,0\n", &[], &["line 5", "1 field "]);
        refused("a.tsv", "text\tlabel\n\"a\t1\nb\t0\n", &[], &["line 2", "never closed"]);
        refused("a.tsv", "text\tlabel\nx\t1\n\"a\" b\t0\n", &[], &["line 3", "behind a closing quote"]);
        refused("a.csv", "text,label\na,1\n\" \",0\n", &[], &["line 3", "`text` is empty"]);
        refused("a.csv", "text,label\na,\nb,0\n", &[], &["line 2", "`label` is empty"]);
        refused("a.csv", "title,label\na,1\n", &[], &["title, label", "data.columns"]);
        refused("a.csv", "title,label\na,1\n", &["text", "label"], &["no column `text`", "title, label"]);
    }
}
