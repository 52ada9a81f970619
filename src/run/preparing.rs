//! How far the data of a run is that has not begun: one line in its folder, for whoever waits.

use std::{fs, io::Read};

use super::{RunDir, atomic, own};

/// Longest line that is read, in bytes.
const LONGEST: u64 = 200;

/// Writes the line anew. That it cannot be written changes nothing.
pub fn tell(run: &RunDir, line: &str) {
    let _ = atomic::write_file(&run.preparing(), line.as_bytes());
}

/// Takes the line away: the run begins.
pub fn over(run: &RunDir) {
    let _ = fs::remove_file(run.preparing());
}

/// The line, while there is one.
pub fn read(run: &RunDir) -> Option<String> {
    let mut line = String::new();
    let file = own::look(&run.preparing()).ok()?;
    file.take(LONGEST).read_to_string(&mut line).ok()?;
    Some(line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::sample;

    #[test]
    fn the_line_is_there_until_the_run_begins() {
        let (_folder, run) = sample::run("one");
        assert_eq!(read(&run), None);
        tell(&run, "tokenizing 42 %");
        tell(&run, "tokenizing 43 %");
        assert_eq!(read(&run).unwrap(), "tokenizing 43 %");
        over(&run);
        over(&run);
        assert_eq!(read(&run), None);
    }
}
