//! Documents that are rows of a `.csv` or `.tsv` file.

use std::{path::Path, rc::Rc};

use super::{
    super::{DataError, error::RowFault, labelled::Quotes},
    chunks::{Chunks, Reader, Slot},
    documents::{LONGEST_ROW, Sink, document, place},
    unpack::Meter,
};
use crate::config::file_kind::Packing;

/// A `.csv` or `.tsv` file.
pub(super) struct Rows<'a> {
    pub(super) path: &'a Path,
    pub(super) packing: Packing,
    pub(super) delimiter: u8,
    pub(super) field: &'a str,
}

impl Rows<'_> {
    /// Reads all rows.
    pub(super) fn read(&self, chunks: Chunks, sink: &mut dyn Sink) -> Result<(), DataError> {
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
        let Some(at) = place(&self.name(), &header, self.field)? else {
            let (path, field) = (self.name(), self.field.to_owned());
            return Err(DataError::NoField { path, field, columns: header.join(", ") });
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
