//! A file as text, in pieces that are checked: UTF-8 without NUL.

use std::{cell::RefCell, io, path::Path, rc::Rc};

use super::{
    super::{DataError, tokens::SEPARATOR},
    unpack::{Meter, Unpacked},
};
use crate::config::file_kind::Packing;

/// Bytes of a piece.
const PIECE: usize = 1 << 16;

/// The text of a file, piece by piece; no character is cut.
pub(in crate::data) struct Chunks {
    file: Unpacked,
    name: String,
    buffer: Vec<u8>,
    /// Bytes at the front of the buffer that begin a character, and bytes of the piece that was given last.
    carried: usize,
    given: usize,
    /// Bytes of text and line breaks before the buffer.
    offset: usize,
    lines: usize,
}

impl Chunks {
    /// Opens a file.
    ///
    /// # Errors
    /// It cannot be opened.
    pub(in crate::data) fn open(path: &Path, packing: Packing, meter: Meter) -> Result<Self, DataError> {
        Ok(Self {
            file: Unpacked::open(path, packing, meter)?,
            name: path.display().to_string(),
            buffer: vec![0; PIECE],
            carried: 0,
            given: 0,
            offset: 0,
            lines: 0,
        })
    }

    /// The next piece; nothing after the last.
    ///
    /// # Errors
    /// The file cannot be read, is empty, no UTF-8, or holds a NUL byte.
    pub(in crate::data) fn next(&mut self) -> Result<Option<&str>, DataError> {
        self.lines += breaks(&self.buffer[..self.given]);
        self.offset += self.given;
        self.buffer.copy_within(self.given..self.given + self.carried, 0);
        let got = self.file.fill(&mut self.buffer[self.carried..])?;
        let bytes = &self.buffer[..self.carried + got];
        if bytes.is_empty() {
            return if self.offset == 0 {
                Err(DataError::Empty { path: self.name.clone() })
            } else {
                Ok(None)
            };
        }
        let path = || self.name.clone();
        let place = |at: usize| (self.offset + at, 1 + self.lines + breaks(&bytes[..at]));
        if let Some(at) = bytes.iter().position(|byte| *byte == SEPARATOR) {
            let (offset, line) = place(at);
            return Err(DataError::Binary { path: path(), offset, line });
        }
        let valid = match std::str::from_utf8(bytes) {
            Ok(_) => bytes.len(),
            // A character that goes on in the next piece.
            Err(error) if error.error_len().is_none() && bytes.len() == self.buffer.len() => {
                error.valid_up_to()
            }
            Err(error) => {
                let (offset, line) = place(error.valid_up_to());
                return Err(DataError::NotUtf8 { path: path(), offset, line });
            }
        };
        self.carried = bytes.len() - valid;
        self.given = valid;
        let piece = std::str::from_utf8(&self.buffer[..valid]);
        piece
            .map(Some)
            .map_err(|error| DataError::Unreadable { path: self.name.clone(), problem: error.to_string() })
    }
}

fn breaks(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| **byte == b'\n').count()
}

/// What went wrong below a reader that can only speak of input and output.
pub(super) type Slot = Rc<RefCell<Option<DataError>>>;

/// The same text for somebody who reads bytes. Each piece is shown to `look` first; what goes wrong lies in the slot.
pub(super) struct Reader<F> {
    pub(super) chunks: Chunks,
    pub(super) look: F,
    pub(super) slot: Slot,
    pub(super) left: Vec<u8>,
    pub(super) at: usize,
}

impl<F: FnMut(Option<&[u8]>) -> Result<(), DataError>> io::Read for Reader<F> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.at == self.left.len() {
            let result = match self.chunks.next() {
                Ok(Some(piece)) => {
                    self.left.clear();
                    self.left.extend_from_slice(piece.as_bytes());
                    self.at = 0;
                    (self.look)(Some(piece.as_bytes()))
                }
                Ok(None) => (self.look)(None),
                Err(error) => Err(error),
            };
            if let Err(error) = result {
                *self.slot.borrow_mut() = Some(error);
                return Err(io::Error::other("see the slot"));
            }
        }
        let some = buffer.len().min(self.left.len() - self.at);
        buffer[..some].copy_from_slice(&self.left[self.at..self.at + some]);
        self.at += some;
        Ok(some)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tempfile::tempdir;

    use super::*;

    fn read(bytes: &[u8]) -> Result<String, String> {
        let folder = tempdir().unwrap();
        let path = folder.path().join("file.txt");
        std::fs::write(&path, bytes).unwrap();
        let mut chunks = Chunks::open(&path, Packing::None, Meter::default()).unwrap();
        let mut all = String::new();
        while let Some(piece) = chunks.next().map_err(|error| error.to_string())? {
            all.push_str(piece);
        }
        Ok(all)
    }

    #[test]
    fn faults_beyond_the_first_piece_name_their_place() {
        let lines = "a line\n".repeat(PIECE / 4);
        let at = lines.len();
        let message = read(&[lines.as_bytes(), b"caf\xe9 au lait"].concat()).unwrap_err();
        assert!(message.contains(&format!("at byte {} (line {})", at + 3, PIECE / 4 + 1)), "{message}");
        let message = read(&[lines.as_bytes(), b"\nx\0"].concat()).unwrap_err();
        assert!(message.contains(&format!("at byte {} (line {})", at + 2, PIECE / 4 + 2)), "{message}");
        let message = read(&[lines.as_bytes(), b"\xc3"].concat()).unwrap_err();
        assert!(message.contains(&format!("not UTF-8 at byte {at} ")), "{message}");
        assert!(read(b"").unwrap_err().contains("is empty"));
    }

    proptest! {
        #[test]
        fn no_character_is_lost_at_an_edge(before in PIECE - 9..PIECE + 1, character in "[aé€😀]{8}", after in 0usize..99) {
            let text = "x".repeat(before) + &character + &"y".repeat(after);
            prop_assert_eq!(read(text.as_bytes()), Ok(text));
        }
    }
}
