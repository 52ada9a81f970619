//! Small changes that break formats: lengths that lie, pieces that repeat, numbers at their limits.

use std::path::PathBuf;

/// Longest file that changes make, in bytes.
const LONGEST: usize = 256 * 1024;

/// Pieces that mean something to one format or another.
const WORDS: [&[u8]; 28] = [
    b"\n",
    b"{",
    b"}",
    b"[",
    b"]",
    b"\"",
    b",",
    b":",
    b"null",
    b"-1",
    b"1e999",
    b"18446744073709551616",
    b"9223372036854775807",
    b"0.0000000000000000000001",
    b"\"nan\"",
    b"\\u0000",
    b"\xff\xfe",
    b"\0\0\0\0\0\0\0\0",
    b"\xff\xff\xff\xff\xff\xff\xff\xff",
    b"\0\0\0\0\0\0\0\x10",
    b"{\"type\":\"update\",\"update\":1}\n",
    b"{\"type\":\"resumed\",\"from_update\":0}\n",
    b"\"shape\":[4611686018427387904,4]",
    b"\"data_offsets\":[0,1152921504606846976]",
    b"\x80\x02}q\x00.",
    b"cos\nsystem\n",
    b"PK\x01\x02",
    b"[model]\n",
];

/// One change.
pub(super) struct Mutation {
    kind: u8,
    place: u32,
    value: u64,
}

impl From<(u8, u32, u64)> for Mutation {
    fn from((kind, place, value): (u8, u32, u64)) -> Self {
        Self { kind, place, value }
    }
}

impl Mutation {
    /// Changes the bytes; `others` are files to take pieces from.
    pub(super) fn apply(&self, bytes: &mut Vec<u8>, others: &[(PathBuf, Vec<u8>)]) {
        let length = bytes.len();
        let at = if length == 0 { 0 } else { self.place as usize % length };
        let some = (self.value as usize % 64 + 1).min(length - at);
        match self.kind % 9 {
            0 if length > 0 => bytes[at] ^= 1 << (self.value % 8),
            1 if length > 0 => bytes[at] = self.value as u8,
            2 => bytes.truncate(at),
            3 => drop(bytes.drain(at..at + some)),
            4 => {
                let piece = bytes[at..at + some].to_vec();
                let times = (self.value >> 8) as usize % 512 + 1;
                let room = LONGEST.saturating_sub(length) / some.max(1);
                bytes.splice(at..at, piece.repeat(times.min(room)));
            }
            5 => {
                let word = WORDS[self.value as usize % WORDS.len()];
                bytes.splice(at..at, word.iter().copied());
            }
            6 => {
                // A number where a length may stand.
                for (offset, byte) in self.value.to_le_bytes().into_iter().enumerate() {
                    if let Some(place) = bytes.get_mut(at + offset) {
                        *place = byte;
                    }
                }
            }
            7 => {
                let word = WORDS[self.value as usize % WORDS.len()];
                let end = (at + word.len()).min(length);
                bytes.splice(at..end, word.iter().copied());
            }
            _ => {
                let other = &others[self.value as usize % others.len()].1;
                let from = (self.value >> 16) as usize % (other.len() + 1);
                bytes.truncate(at);
                bytes.extend_from_slice(&other[from..]);
            }
        }
        bytes.truncate(LONGEST);
    }
}
