//! The tables of a path: one file, or those of a folder.

use std::path::Path;

use super::{
    super::{
        DataError, Stage,
        text::{
            chunks::Chunks,
            kind::OTHER,
            listing::Listing,
            scan::{Ticker, Watch, passed_over},
            unpack::Meter,
        },
    },
    Example, Examples, delimited, lines,
};
use crate::config::file_kind::{self, Layout, Packing};

/// Bytes of tables that are read at most: they stay in memory.
const LIMIT: usize = 1 << 30;

impl Examples {
    /// Reads a file, or the tables of a folder one after another; `columns` names one or two sentences and then the
    /// label, or is empty.
    ///
    /// # Errors
    /// The first thing that is wrong with a file, with its line; a folder without rows.
    pub(in crate::data) fn read(
        path: &Path,
        columns: &[String],
        watch: &mut Watch<'_>,
    ) -> Result<Self, DataError> {
        let listing = Listing::of(path).map_err(|error| match error {
            DataError::Missing { path } => DataError::MissingTable { path },
            DataError::NotAFile { path } => DataError::NotATable { path },
            other => other,
        })?;
        let mut examples = Self { left_out: listing.left_out.clone(), ..Self::none(listing.name()) };
        let mut pass = Pass {
            columns,
            ticker: Ticker::new(watch, Stage::Reading, listing.bytes),
            before: 0,
            room: LIMIT,
            whole: listing.name(),
        };
        for file in 0..listing.len() {
            let path = listing.path(file);
            match pass.rows(&path) {
                Ok(rows) => {
                    examples.files.push((examples.rows.len(), path));
                    examples.rows.extend(rows);
                }
                // That a folder of tables has a page about them in it is no news.
                Err(DataError::NotATable { .. }) if listing.is_folder() => {
                    examples.left_out.add_expected(OTHER, listing.shown(file));
                }
                Err(error) => match passed_over(&error).filter(|_| listing.is_folder()) {
                    Some((reason, place)) => {
                        examples.left_out.add(&reason, Some(format!("{}{place}", listing.shown(file))));
                    }
                    None => return Err(error),
                },
            }
        }
        match examples.rows.len() {
            0 if listing.is_folder() => {
                let left_out = examples.left_out.counts.into_iter().collect();
                Err(DataError::NoTables { path: listing.name(), left_out })
            }
            rows @ 0..2 => Err(DataError::TooFewRows { path: listing.name(), rows }),
            _ => Ok(examples),
        }
    }
}

/// One pass over tables.
struct Pass<'a, 'w> {
    columns: &'a [String],
    ticker: Ticker<'a, 'w>,
    /// Bytes of the files before.
    before: u64,
    /// Bytes that there is room for.
    room: usize,
    /// The path of all tables.
    whole: String,
}

impl Pass<'_, '_> {
    /// The rows of one file.
    fn rows(&mut self, path: &Path) -> Result<Vec<Example>, DataError> {
        let meter = Meter::default();
        let rows = self.read(path, &meter);
        self.before += meter.read();
        rows
    }

    fn read(&mut self, path: &Path, meter: &Meter) -> Result<Vec<Example>, DataError> {
        let name = path.display().to_string();
        match file_kind::of(path) {
            (_, Layout::Text) => Err(DataError::NotATable { path: name }),
            (Packing::None, Layout::Parquet) => self.columnar(path, meter),
            (_, Layout::Parquet) => Err(DataError::PackedTable { path: name }),
            (packing, Layout::Delimited(delimiter)) => {
                let text = self.text(path, packing, meter)?;
                delimited::rows(&name, without_mark(&text), delimiter, self.columns)
            }
            (packing, Layout::Lines) => {
                let text = self.text(path, packing, meter)?;
                lines::rows(&name, without_mark(&text), self.columns)
            }
        }
    }

    /// Some bytes stay in memory.
    fn take(&mut self, bytes: usize) -> Result<(), DataError> {
        let too_large = || DataError::TooLarge { path: self.whole.clone(), limit: LIMIT as u64 };
        self.room = self.room.checked_sub(bytes).ok_or_else(too_large)?;
        Ok(())
    }

    fn text(&mut self, path: &Path, packing: Packing, meter: &Meter) -> Result<String, DataError> {
        let mut text = String::new();
        let mut chunks = Chunks::open(path, packing, meter.clone())?;
        while let Some(piece) = chunks.next()? {
            self.ticker.tick(self.before + meter.read());
            self.take(piece.len())?;
            text.push_str(piece);
        }
        Ok(text)
    }

    #[cfg(not(feature = "parquet"))]
    fn columnar(&self, path: &Path, _: &Meter) -> Result<Vec<Example>, DataError> {
        Err(DataError::Parquet { path: path.display().to_string() })
    }

    #[cfg(feature = "parquet")]
    fn columnar(&mut self, path: &Path, meter: &Meter) -> Result<Vec<Example>, DataError> {
        super::columnar::rows(path, self.columns, meter, &mut |bytes| {
            self.ticker.tick(self.before + meter.read());
            self.take(bytes)
        })
    }
}

/// Some programs put a mark before the text that says that it is UTF-8.
fn without_mark(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

#[cfg(test)]
pub(super) mod tests {
    use std::fs;

    use tempfile::tempdir;

    use super::*;
    use crate::data::{error::RowFault, text::unpack::tests::gzip};

    /// Reads a file of this name and text.
    pub(crate) fn read(name: &str, text: impl AsRef<[u8]>, columns: &[&str]) -> Result<Examples, DataError> {
        let folder = tempdir().unwrap();
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        let columns: Vec<String> = columns.iter().map(|name| (*name).to_owned()).collect();
        Examples::read(&path, &columns, &mut |_| ())
    }

    /// What is wrong with it; one sentence that names the file and holds all these words.
    pub(crate) fn refused(name: &str, text: impl AsRef<[u8]>, columns: &[&str], words: &[&str]) {
        let message = read(name, text, columns).unwrap_err().to_string();
        assert_eq!(message.lines().count(), 1, "{message}");
        for word in words.iter().chain(&[name]) {
            assert!(message.contains(word), "`{word}` is not in: {message}");
        }
    }

    #[test]
    fn the_formats_hold_the_same_rows() {
        let comma = read("a.csv", "sentence,label\n\"so, so\",0\ngood,1\n", &[]).unwrap().rows;
        let tab = read("a.TSV", "\u{feff}Sentence\tLabel\r\nso, so\t0\r\ngood\t1", &[]).unwrap().rows;
        let lines = "{\"sentence\": \"so, so\", \"label\": 0}\n{\"label\": 1, \"sentence\": \"good\"}\n";
        let lines = read("a.jsonl", lines, &[]).unwrap().rows;
        assert_eq!(comma.len(), 2);
        assert_eq!((&*comma[0].first, &*comma[0].label, comma[0].line), ("so, so", "0", 2));
        assert_eq!(comma, tab);
        assert_eq!(comma.iter().map(|row| &row.first).collect::<Vec<_>>(), ["so, so", "good"]);
        let without_lines = |rows: Vec<Example>| -> Vec<(String, String)> {
            rows.into_iter().map(|row| (row.first, row.label)).collect()
        };
        assert_eq!(without_lines(comma), without_lines(lines));
    }

    #[test]
    fn what_is_no_table_says_which_files_are() {
        refused("a.txt", "sentence,label\n", &[], &[".csv, .tsv or .jsonl"]);
        refused("a", "sentence,label\n", &[], &[".csv, .tsv or .jsonl"]);
        let folder = tempdir().unwrap();
        let message = Examples::read(folder.path(), &[], &mut |_| ()).unwrap_err().to_string();
        assert!(
            message.contains("the folder is empty") && message.contains(".csv, .tsv or .jsonl"),
            "{message}"
        );
        let message =
            Examples::read(&folder.path().join("no.csv"), &[], &mut |_| ()).unwrap_err().to_string();
        assert!(message.contains("no.csv does not exist") && message.contains(".csv, .tsv or"), "{message}");
    }

    #[test]
    fn faults_of_the_bytes_name_the_line() {
        refused("a.csv", b"sentence,label\ncaf\xe9,1\n", &[], &["not UTF-8", "line 2", "iconv"]);
        refused("a.jsonl", b"{}\n\0", &[], &["NUL byte", "line 2"]);
        refused("a.csv", "", &[], &["is empty"]);
    }

    #[test]
    fn too_few_rows_are_counted() {
        refused("a.csv", "sentence,label\n", &[], &["0 rows", "at least two"]);
        refused("a.csv", "sentence,label\nx,1\n", &[], &["1 row,", "at least two"]);
        refused("a.jsonl", "{\"text\": \"x\", \"label\": 1}\n", &[], &["1 row,", "at least two"]);
    }

    fn folder(files: &[(&str, &[u8])]) -> tempfile::TempDir {
        let folder = tempdir().unwrap();
        for (name, bytes) in files {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        }
        folder
    }

    #[test]
    fn the_tables_of_a_folder_are_one_in_the_order_of_names_and_the_rest_is_counted() {
        let folder = folder(&[
            ("b.csv", b"text,label\nbee,1\n"),
            ("a/z.jsonl.gz", &gzip(b"{\"label\": 0, \"text\": \"zed\"}\n")),
            ("a/A.TSV", b"label\ttext\n0\tay\n"),
            ("README.md", b"about these tables"),
            ("c.bin", b"x"),
            ("d.csv", b""),
            ("e.csv", b"text,label\ncaf\xe9,1\n"),
            ("f.csv", b"text,grade\nx,1\n"),
            ("g.csv", b"text,label\nx,\0\n"),
            ("h.csv", b"text;label\nx;1\n"),
            (".hidden.csv", b"text,label\nx,1\n"),
            ("z.csv", b"text,label\n\nzz,1\n"),
        ]);
        let (mut told, mut last) = (0, 0);
        let examples = Examples::read(folder.path(), &[], &mut |progress| {
            assert!(
                progress.done >= last && progress.done <= progress.total && progress.stage == Stage::Reading
            );
            (told, last) = (told + 1, progress.done);
        })
        .unwrap();
        assert!(told > 0);
        let rows: Vec<(&str, &str)> = examples.rows.iter().map(|row| (&*row.first, &*row.label)).collect();
        assert_eq!(rows, [("ay", "0"), ("zed", "0"), ("bee", "1"), ("zz", "1")]);
        let left_out: Vec<(&str, u64)> =
            examples.left_out.counts.iter().map(|(reason, count)| (&**reason, *count)).collect();
        let expected = [
            ("binary (NUL byte)", 1),
            ("empty", 1),
            ("hidden file", 1),
            ("not UTF-8", 1),
            ("other extension", 2),
            ("tables parted by semicolons (a .csv is read with commas and a .tsv with tabs)", 1),
            ("without the columns of a classification (data.columns)", 1),
        ];
        assert_eq!(left_out, expected);
        assert_eq!(examples.left_out.named.len(), 8);
        assert!(examples.left_out.named.iter().any(|name| name.starts_with("e.csv at byte 14 (line 2)")));
        // Each row knows its file.
        let fault = |row| examples.fault(row, RowFault::NoTokens).to_string();
        assert!(fault(0).contains("a/A.TSV, line 2"), "{}", fault(0));
        assert!(fault(1).contains("a/z.jsonl.gz, line 1"), "{}", fault(1));
        assert!(fault(3).contains("z.csv, line 3"), "{}", fault(3));
    }

    #[test]
    fn what_is_wrong_with_a_table_of_a_folder_names_it() {
        let message = |files: &[(&str, &[u8])]| {
            Examples::read(folder(files).path(), &[], &mut |_| ()).unwrap_err().to_string()
        };
        let good: (&str, &[u8]) = ("a.csv", b"text,label\na,1\nb,0\n");
        let ragged = message(&[good, ("b/c.csv", b"text,label\na,1\nb\n")]);
        assert!(ragged.contains("b/c.csv, line 3: 1 field where the header has 2"), "{ragged}");
        let early = message(&[good, ("b.csv.gz", &gzip(b"text,label\na,1\n")[..12])]);
        assert!(early.contains("b.csv.gz ends early"), "{early}");
        let none = message(&[("a.txt", b"text"), ("b.png", b"x"), ("c.csv", b"text,mark\na,1\n")]);
        assert!(
            none.contains("no rows to classify in")
                && none.contains("2 other extension, 1 without the columns of a classification")
                && none.contains(".csv, .tsv or .jsonl"),
            "{none}"
        );
        let few = message(&[("a.csv", b"text,label\na,1\n")]);
        assert!(few.contains("has 1 row,"), "{few}");
    }

    #[test]
    fn links_to_tables_neither_loop_nor_repeat() {
        let folder = folder(&[("a.csv", b"text,label\na,1\nb,0\n")]);
        std::os::unix::fs::symlink(folder.path(), folder.path().join("up")).unwrap();
        std::os::unix::fs::symlink("a.csv", folder.path().join("b.csv")).unwrap();
        let examples = Examples::read(folder.path(), &[], &mut |_| ()).unwrap();
        assert_eq!((examples.rows.len(), examples.left_out.counts.values().sum::<u64>()), (2, 2));
    }
}
