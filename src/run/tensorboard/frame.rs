//! Records as TensorFlow frames them: length, its check sum, the bytes, theirs.

use std::io::{self, Write};

/// Writes one record.
///
/// # Errors
/// `out` cannot be written.
pub fn write(out: &mut impl Write, record: &[u8]) -> io::Result<()> {
    let length = (record.len() as u64).to_le_bytes();
    out.write_all(&length)?;
    out.write_all(&masked(&length).to_le_bytes())?;
    out.write_all(record)?;
    out.write_all(&masked(record).to_le_bytes())
}

/// CRC-32C, turned and shifted, so that a sum over bytes that hold sums is no weaker.
fn masked(bytes: &[u8]) -> u32 {
    crc32c::crc32c(bytes).rotate_right(15).wrapping_add(0xa282_ead8)
}

/// Reads records back and checks their sums; what remains of one that is cut short is left out.
///
/// # Errors
/// A check sum is wrong.
pub fn read(mut bytes: &[u8]) -> io::Result<Vec<&[u8]>> {
    let sum = |bytes: &[u8]| bytes.try_into().map(u32::from_le_bytes).unwrap_or_default();
    let wrong = || io::Error::new(io::ErrorKind::InvalidData, "the check sum of a record is wrong");
    let mut records = Vec::new();
    while let Some((head, rest)) = bytes.split_at_checked(12) {
        if masked(&head[..8]) != sum(&head[8..]) {
            return Err(wrong());
        }
        let length = head[..8].try_into().map(u64::from_le_bytes).unwrap_or_default();
        let Some((record, rest)) =
            usize::try_from(length).ok().and_then(|length| rest.split_at_checked(length))
        else {
            break;
        };
        let Some((tail, rest)) = rest.split_at_checked(4) else { break };
        if masked(record) != sum(tail) {
            return Err(wrong());
        }
        records.push(record);
        bytes = rest;
    }
    Ok(records)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first record of every file of version 2 is 24 bytes long: wall time 1 s, and `brain.Event:2`. The bytes are what
    /// the `tensorboard` package for Python writes for it.
    #[test]
    fn a_record_is_the_known_bytes() {
        let record = [&[0x09, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f, 0x1a, 0x0d][..], b"brain.Event:2"].concat();
        let mut out = Vec::new();
        write(&mut out, &record).unwrap();
        assert_eq!(out[..12], [0x18, 0, 0, 0, 0, 0, 0, 0, 0xa3, 0x7f, 0x4b, 0x22]);
        assert_eq!((&out[12..36], out.len()), (&record[..], 40));
        write(&mut out, b"second").unwrap();
        assert_eq!(read(&out).unwrap(), [&record[..], b"second"]);
        assert_eq!(read(&out[..out.len() - 1]).unwrap().len(), 1, "one is cut short");
        out[20] ^= 1;
        assert!(read(&out).is_err());
    }
}
