//! The tokenizer of bytes: an id is the value of a byte, and rows of a classification carry two marks more.

use super::{
    super::tokens::{SEPARATOR, VOCABULARY},
    EncodedRow, longest_first,
};

/// Stands before the first sentence of a row of bytes.
pub(super) const CLS: u32 = VOCABULARY;
/// Stands behind each sentence of a row of bytes.
pub(super) const SEP: u32 = VOCABULARY + 1;

/// How the end of a document is written where a byte stands for it.
const END: &str = "<end>";

/// The text of ids: see [`super::Encoder::decode`].
pub(super) fn text(ids: &[i32]) -> String {
    let mut bytes = Vec::with_capacity(ids.len());
    for &id in ids {
        match u8::try_from(id) {
            Ok(SEPARATOR) => bytes.extend_from_slice(END.as_bytes()),
            Ok(byte) => bytes.push(byte),
            Err(_) => bytes.extend_from_slice("\u{fffd}".as_bytes()),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// One or two sentences between marks, with this room for their bytes.
pub(super) fn row(first: &str, second: Option<&str>, room: usize) -> EncodedRow {
    let ids = |bytes: &[u8]| -> Vec<u32> { bytes.iter().map(|byte| u32::from(*byte)).collect() };
    let (keep, keep_second) = longest_first(first.len(), second.map_or(0, str::len), room);
    let mut row = vec![CLS];
    row.extend(ids(&first.as_bytes()[..keep]));
    row.push(SEP);
    if let Some(second) = second {
        row.extend(ids(&second.as_bytes()[..keep_second]));
        row.push(SEP);
    }
    EncodedRow { ids: row, truncated: first.len() + second.map_or(0, str::len) > room }
}
