//! The newest lines of a record without reading all of it.

use std::{borrow::Cow, io, ops::ControlFlow, os::unix::fs::FileExt, path::Path};

use super::{bounded::LONGEST_LINE, own};

/// Bytes read at once.
const BLOCK: u64 = 64 * 1024;
/// The first time: most who look back want one line, and thousands of runs are looked at.
const FIRST: u64 = 8 * 1024;

/// Shows the complete lines of a file to `take`, the last one first, until it breaks, the file is through, or about
/// `most` bytes are read. A torn last line is not shown.
///
/// # Errors
/// The file cannot be read.
pub fn lines_back(path: &Path, most: u64, mut take: impl FnMut(&[u8]) -> ControlFlow<()>) -> io::Result<()> {
    let (file, length) = own::look_long(path)?;
    let (mut at, mut torn) = (length, true);
    // The rest of a line whose beginning has not been read, last piece first.
    let mut rest: Vec<Vec<u8>> = Vec::new();
    while at > 0 && length - at < most {
        let size = if at == length { FIRST } else { BLOCK }.min(at);
        at -= size;
        let mut block = vec![0; usize::try_from(size).unwrap_or_default()];
        file.read_exact_at(&mut block, at)?;
        let mut end = block.len();
        while let Some(newline) = block[..end].iter().rposition(|&byte| byte == b'\n') {
            let line = joined(&block[newline + 1..end], &mut rest);
            if !torn && !line.is_empty() && take(&line).is_break() {
                return Ok(());
            }
            torn = false;
            end = newline;
        }
        block.truncate(end);
        if !torn {
            rest.push(block);
        }
        if rest.len() as u64 * BLOCK > LONGEST_LINE as u64 {
            // Nothing that anybody wrote on purpose: passed over like a torn line.
            rest.clear();
            torn = true;
        }
    }
    if at == 0 && !torn {
        let line = joined(&[], &mut rest);
        if !line.is_empty() {
            let _ = take(&line);
        }
    }
    Ok(())
}

/// A line from its beginning and the pieces that follow, which are used up.
fn joined<'a>(first: &'a [u8], rest: &mut Vec<Vec<u8>>) -> Cow<'a, [u8]> {
    if rest.is_empty() {
        return first.into();
    }
    let mut line = first.to_vec();
    rest.drain(..).rev().for_each(|piece| line.extend(piece));
    line.into()
}

/// The first line of a file if it is complete.
///
/// # Errors
/// The file cannot be read.
pub fn first_line(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let file = own::look(path)?;
    let mut line = Vec::new();
    let mut block = vec![0; 16 * 1024];
    loop {
        let read = file.read_at(&mut block, line.len() as u64)?;
        if read == 0 {
            return Ok(None);
        }
        if let Some(end) = block[..read].iter().position(|&byte| byte == b'\n') {
            line.extend_from_slice(&block[..end]);
            return Ok(Some(line));
        }
        line.extend_from_slice(&block[..read]);
        if line.len() > LONGEST_LINE {
            return Ok(None);
        }
    }
}

/// The last lines of a log with control characters taken out; none when there is no log. A line counts even when the
/// process died before it ended it.
pub fn log_tail(path: &Path, lines: usize) -> Vec<String> {
    // Without a log there is nothing to tell.
    let bytes = end_of(path, BLOCK).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let mut kept: Vec<String> =
        text.lines().map(super::text::plain).filter(|line| !line.trim().is_empty()).collect();
    kept.drain(..kept.len().saturating_sub(lines));
    kept
}

fn end_of(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let (file, length) = own::look_long(path)?;
    let from = length.saturating_sub(most);
    let mut bytes = vec![0; usize::try_from(length - from).unwrap_or_default()];
    file.read_exact_at(&mut bytes, from)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn back(text: &str, most: u64) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        std::fs::write(&path, text).unwrap();
        let mut lines = Vec::new();
        lines_back(&path, most, |line| {
            lines.push(String::from_utf8(line.to_vec()).unwrap());
            ControlFlow::Continue(())
        })
        .unwrap();
        lines
    }

    #[test]
    fn lines_come_last_first_without_a_torn_one() {
        assert_eq!(back("a\nb\n\nc\n", u64::MAX), ["c", "b", "a"]);
        assert_eq!(back("a\nb\ntorn", u64::MAX), ["b", "a"]);
        assert_eq!(back("torn", u64::MAX), Vec::<String>::new());
        assert_eq!(back("", u64::MAX), Vec::<String>::new());
    }

    #[test]
    fn lines_across_blocks_are_whole() {
        let lines: Vec<String> = (0..20_000).map(|n| format!("{n}-{}", "x".repeat(n % 97))).collect();
        let text = lines.join("\n") + "\n";
        let mut read = back(&text, u64::MAX);
        read.reverse();
        assert_eq!(read, lines);
        let some = back(&text, 1);
        assert!(!some.is_empty() && some.len() < 10_000, "{}", some.len());
        let long = "y".repeat(300_000);
        assert_eq!(back(&format!("a\n{long}\nb\n"), u64::MAX), ["b", &long, "a"]);
    }

    #[test]
    fn a_line_that_nobody_can_have_meant_is_passed_over() {
        let long = "z".repeat(LONGEST_LINE + 3 * BLOCK as usize);
        assert_eq!(back(&format!("a\n{long}\nb\n"), u64::MAX), ["b", "a"]);
        assert_eq!(back(&format!("a\n{long}"), u64::MAX), ["a"]);
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("f"), long).unwrap();
        assert_eq!(first_line(&folder.path().join("f")).unwrap(), None);
    }

    #[test]
    fn a_first_line_counts_once_it_is_complete() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        let long = "z".repeat(50_000);
        std::fs::write(&path, &long).unwrap();
        assert_eq!(first_line(&path).unwrap(), None);
        std::fs::write(&path, format!("{long}\nsecond\n")).unwrap();
        assert_eq!(first_line(&path).unwrap().unwrap(), long.as_bytes());
    }
}
