//! Reading what others wrote without believing how long it is.

use std::{
    io::{self, BufRead, Read},
    path::Path,
};

use super::own;

/// Longest line of a record that is read, in bytes; the state of thousands of tensors is a tenth of it.
pub const LONGEST_LINE: usize = 64 << 20;
/// Longest request on the control socket, in bytes.
pub const LONGEST_REQUEST: usize = 1 << 20;
/// Longest small file of a run: its configuration, its name, what a checkpoint says of itself; in bytes.
pub const LONGEST_FILE: u64 = 64 << 20;

/// The whole of a small file.
///
/// # Errors
/// It is no file (a pipe or a device may have no end), is longer than `most` bytes, or cannot be read.
pub fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let (file, length) = own::look_long(path)?;
    // Room for all of it at once, and for the look whether it has grown.
    let mut bytes = Vec::with_capacity(usize::try_from(length.min(most)).unwrap_or_default() + 1);
    file.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(too_long("it", most));
    }
    Ok(bytes)
}

/// The same as text.
///
/// # Errors
/// As [`read`], or it is no UTF-8.
pub fn read_text(path: &Path, most: u64) -> io::Result<String> {
    String::from_utf8(read(path, most)?).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

/// Reads one line into `line`, without its line break; false at the end. What stands after the last line break counts
/// as a line.
///
/// # Errors
/// The line is longer than `most` bytes, or cannot be read.
pub fn line(reader: &mut impl BufRead, most: usize, line: &mut Vec<u8>) -> io::Result<bool> {
    line.clear();
    let mut limited = reader.take(most as u64 + 1);
    if limited.read_until(b'\n', line)? == 0 {
        return Ok(false);
    }
    if line.last() == Some(&b'\n') {
        line.pop();
    } else if line.len() > most {
        return Err(too_long("a line", most as u64));
    }
    Ok(true)
}

fn too_long(what: &str, most: u64) -> io::Error {
    let problem = format!("{what} is longer than {most} bytes, more than anything of this kind has");
    io::Error::new(io::ErrorKind::InvalidData, problem)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_up_to_its_limit_and_what_is_no_file_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        std::fs::write(&path, "four").unwrap();
        assert_eq!(read_text(&path, 4).unwrap(), "four");
        assert!(read(&path, 3).unwrap_err().to_string().contains("3 bytes"));
        assert!(read(folder.path(), 9).unwrap_err().to_string().contains("no file"));
        assert!(read(Path::new("/dev/zero"), 9).unwrap_err().to_string().contains("no file"));
        std::fs::write(&path, b"\xff").unwrap();
        assert!(read_text(&path, 4).is_err());
    }

    #[test]
    fn lines_are_read_up_to_their_limit() {
        let mut reader = io::Cursor::new("abc\n\nlast");
        let mut buffer = Vec::new();
        let mut next = |most| {
            line(&mut reader, most, &mut buffer)
                .map(|more| more.then(|| String::from_utf8(buffer.clone()).unwrap()))
        };
        assert_eq!(next(3).unwrap().as_deref(), Some("abc"));
        assert_eq!(next(3).unwrap().as_deref(), Some(""));
        assert_eq!(next(4).unwrap().as_deref(), Some("last"));
        assert_eq!(next(4).unwrap(), None);
        let mut endless = io::BufReader::new(io::repeat(b'x'));
        assert!(line(&mut endless, 1000, &mut Vec::new()).unwrap_err().to_string().contains("1000 bytes"));
    }
}
