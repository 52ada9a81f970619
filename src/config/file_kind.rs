//! What a file of data holds, by its name: text, rows, and how it is packed.

use std::path::{Path, PathBuf};

/// How a file is packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packing {
    None,
    Gzip,
    Zstd,
}

/// How what a file holds is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// One document.
    Text,
    /// One JSON object a line.
    Lines,
    /// Rows under a header, with this separator.
    Delimited(u8),
    /// Apache Parquet.
    Parquet,
}

/// What the name says. A name that says nothing is a text.
pub fn of(path: &Path) -> (Packing, Layout) {
    let (packing, inner) = unpacked(path);
    let layout = match extension(&inner).as_deref() {
        Some("csv") => Layout::Delimited(b','),
        Some("tsv") => Layout::Delimited(b'\t'),
        Some("jsonl" | "ndjson") => Layout::Lines,
        Some("parquet") => Layout::Parquet,
        _ => Layout::Text,
    };
    (packing, layout)
}

/// The name without the extension of its packing.
pub fn unpacked(path: &Path) -> (Packing, PathBuf) {
    let packing = match extension(path).as_deref() {
        Some("gz" | "gzip") => Packing::Gzip,
        Some("zst" | "zstd") => Packing::Zstd,
        _ => Packing::None,
    };
    let inner = if packing == Packing::None { path.to_owned() } else { path.with_extension("") };
    (packing, inner)
}

/// The extension in lower case.
pub fn extension(path: &Path) -> Option<String> {
    path.extension().map(|extension| extension.to_string_lossy().to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_what_is_inside() {
        let kind = |name: &str| of(Path::new(name));
        assert_eq!(kind("a/notes"), (Packing::None, Layout::Text));
        assert_eq!(kind("a.txt.GZ"), (Packing::Gzip, Layout::Text));
        assert_eq!(kind("a.JSONL.zst"), (Packing::Zstd, Layout::Lines));
        assert_eq!(kind("a.csv"), (Packing::None, Layout::Delimited(b',')));
        assert_eq!(kind("a.tsv.gz"), (Packing::Gzip, Layout::Delimited(b'\t')));
        assert_eq!(kind("a.parquet"), (Packing::None, Layout::Parquet));
        assert_eq!(kind("a.json"), (Packing::None, Layout::Text));
    }
}
