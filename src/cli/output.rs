//! Standard output and standard error. A reader that has gone ends a command quietly and with success, as when its
//! output is piped into `head`.
//!
//! What is printed may have come from a stranger's run: here is the one place where it is made harmless to a terminal.

use std::io::{self, Write};

use serde::Serialize;

use crate::run::text::{plain_json, plain_lines};

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
    write(format!("{}\n", plain_lines(text)).as_bytes())
}

/// One drawn screen with the sequences of its colours. Whatever else could do something to a terminal was taken out when
/// it was drawn.
///
/// # Errors
/// Standard output cannot be written for another reason than a reader that has gone.
pub fn frame(text: &str) -> anyhow::Result<bool> {
    write(format!("{text}\n").as_bytes())
}

/// One JSON value on one line; false when nobody reads any more.
///
/// # Errors
/// Standard output cannot be written for another reason, such as a full disk.
pub fn json_line(value: &impl Serialize) -> anyhow::Result<bool> {
    write(format!("{}\n", plain_json(&serde_json::to_string(value)?)).as_bytes())
}

/// Text as it is, as the whole output of a command: the exit code is 0.
///
/// # Errors
/// Standard output cannot be written for another reason than a reader that has gone.
pub fn text(text: &str) -> anyhow::Result<i32> {
    write(plain_lines(text).as_bytes()).map(|_| 0)
}

/// Standard output for what is written piece by piece and holds no text that could do something to a terminal. A reader
/// that has gone ends it.
pub fn pieces() -> io::BufWriter<io::StdoutLock<'static>> {
    io::BufWriter::with_capacity(1 << 16, io::stdout().lock())
}

/// One JSON document, as the whole output of a command: the exit code is 0.
///
/// # Errors
/// Standard output cannot be written for another reason than a reader that has gone.
pub fn json(value: &impl Serialize) -> anyhow::Result<i32> {
    json_text(&(serde_json::to_string_pretty(value)? + "\n"))
}

/// The same for JSON that is text already.
///
/// # Errors
/// Standard output cannot be written for another reason than a reader that has gone.
pub fn json_text(json: &str) -> anyhow::Result<i32> {
    write(plain_json(json).as_bytes()).map(|_| 0)
}

/// A message on standard error. Whether somebody reads it changes nothing.
pub fn message(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{}", plain_lines(text));
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
