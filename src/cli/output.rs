//! Standard output and standard error. A reader that has gone ends a command quietly and with success, as when its
//! output is piped into `head`.

use std::io::{self, Write};

use serde::Serialize;

/// Writes to standard output; false when nobody reads any more.
fn write(bytes: &[u8]) -> anyhow::Result<bool> {
    written(write_to(&mut io::stdout().lock(), bytes))
}

fn write_to(out: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    out.write_all(bytes)?;
    out.flush()
}

fn written(outcome: io::Result<()>) -> anyhow::Result<bool> {
    match outcome {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(anyhow::Error::from(error).context("cannot write to standard output")),
    }
}

/// One line of data; false when nobody reads any more, so that the caller may end.
///
/// # Errors
/// Standard output cannot be written for another reason, such as a full disk.
pub fn line(text: &str) -> anyhow::Result<bool> {
    write(format!("{text}\n").as_bytes())
}

/// Text as it is, as the whole output of a command: the exit code is 0.
///
/// # Errors
/// Standard output cannot be written for another reason than a reader that has gone.
pub fn text(text: &str) -> anyhow::Result<i32> {
    bytes(text.as_bytes())
}

/// The same for what may not be text.
///
/// # Errors
/// Standard output cannot be written for another reason than a reader that has gone.
pub fn bytes(bytes: &[u8]) -> anyhow::Result<i32> {
    write(bytes).map(|_| 0)
}

/// One JSON document, as the whole output of a command: the exit code is 0.
///
/// # Errors
/// Standard output cannot be written for another reason than a reader that has gone.
pub fn json(value: &impl Serialize) -> anyhow::Result<i32> {
    text(&(serde_json::to_string_pretty(value)? + "\n"))
}

/// A message on standard error. Whether somebody reads it changes nothing.
pub fn message(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Fails(io::ErrorKind);

    impl Write for Fails {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_reader_that_has_gone_is_no_error_and_a_full_disk_is() {
        assert!(!written(write_to(&mut Fails(io::ErrorKind::BrokenPipe), b"x")).unwrap());
        let full = written(write_to(&mut Fails(io::ErrorKind::StorageFull), b"x"));
        assert!(full.unwrap_err().to_string().contains("standard output"));
        assert!(written(write_to(&mut Vec::new(), b"x")).unwrap());
    }
}
