//! Which files of a folder are read, by their names.

use std::path::Path;

use crate::config::file_kind::{extension, unpacked};

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

/// Whether a file of that name is read inside a folder.
pub(super) fn is_text_name(path: &Path) -> bool {
    let (_, inner) = unpacked(path);
    extension(&inner).is_some_and(|extension| EXTENSIONS.contains(&&*extension))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inside_a_folder_the_inner_extension_counts() {
        for name in ["a.txt", "a.RS", "a.md.gz", "a.jsonl.zst"] {
            assert!(is_text_name(Path::new(name)), "{name}");
        }
        for name in ["a", "a.gz", "a.tar.gz", "a.png", "a.zst"] {
            assert!(!is_text_name(Path::new(name)), "{name}");
        }
    }
}
