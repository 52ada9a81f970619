//! What a file holds, by its name: text, a table, and how it is packed.

use std::path::Path;

/// Extensions that are read inside a folder, in lower case; upper case is read too.
const EXTENSIONS: &[&str] = &[
    // prose
    "txt", "text", "md", "markdown", "rst", "org", "adoc", "tex", "srt", // data
    "json", "jsonl", "ndjson", "csv", "tsv", "toml", "yaml", "yml", "xml", "ini", "cfg", "conf",
    "sql", // web
    "html", "htm", "css", "scss", "js", "mjs", "jsx", "ts", "tsx", "vue", "svg", // programs
    "rs", "py", "pyi", "c", "h", "cc", "cpp", "cxx", "hh", "hpp", "cu", "go", "java", "kt", "scala", "swift",
    "cs", "fs", "rb", "php", "pl", "lua", "r", "jl", "hs", "ml", "ex", "exs", "erl", "clj", "lisp", "el",
    "scm", "nim", "zig", "d", "f90", "sh", "bash", "zsh", "fish", "ps1", "bat", "vim", "cmake", "mk",
    "proto",
];

/// Why most files are not read.
pub(in crate::data) const OTHER: &str = "other extension";

/// How a file is packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::data) enum Packing {
    None,
    Gzip,
    Zstd,
}

/// How what a file holds is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::data) enum Layout {
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
pub(in crate::data) fn of(path: &Path) -> (Packing, Layout) {
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

/// Why a file of that name is not read inside a folder; nothing if it is.
pub(super) fn passed_over(path: &Path) -> Option<&'static str> {
    match of(path) {
        (Packing::None, Layout::Parquet) if cfg!(feature = "parquet") => None,
        (Packing::None, Layout::Parquet) => {
            Some("Parquet, for which this program was built without a reader")
        }
        (_, Layout::Parquet) => Some("packed Parquet"),
        _ => {
            let (_, inner) = unpacked(path);
            let known = extension(&inner).is_some_and(|extension| EXTENSIONS.contains(&&*extension));
            (!known).then_some(OTHER)
        }
    }
}

/// The name without the extension of its packing.
fn unpacked(path: &Path) -> (Packing, std::path::PathBuf) {
    let packing = match extension(path).as_deref() {
        Some("gz" | "gzip") => Packing::Gzip,
        Some("zst" | "zstd") => Packing::Zstd,
        _ => Packing::None,
    };
    let inner = if packing == Packing::None { path.to_owned() } else { path.with_extension("") };
    (packing, inner)
}

fn extension(path: &Path) -> Option<String> {
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

    #[test]
    fn inside_a_folder_the_inner_extension_counts() {
        for name in ["a.txt", "a.RS", "a.md.gz", "a.jsonl.zst"] {
            assert_eq!(passed_over(Path::new(name)), None, "{name}");
        }
        for name in ["a", "a.gz", "a.tar.gz", "a.png", "a.zst"] {
            assert_eq!(passed_over(Path::new(name)), Some(OTHER), "{name}");
        }
        assert_eq!(passed_over(Path::new("a.parquet")).is_none(), cfg!(feature = "parquet"));
        assert!(passed_over(Path::new("a.parquet.gz")).unwrap().contains("packed Parquet"));
    }
}
