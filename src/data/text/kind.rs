//! Which files of a folder are read, by their names.

use std::path::Path;

use crate::config::file_kind::{Layout, Packing, extension, of, unpacked};

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

#[cfg(test)]
mod tests {
    use super::*;

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
