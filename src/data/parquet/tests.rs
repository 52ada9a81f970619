use std::{path::PathBuf, sync::Arc};

use ::parquet::{
    basic::Compression,
    data_type::{BoolType, ByteArrayType, Int64Type},
    file::{properties::WriterProperties, writer::SerializedFileWriter},
    schema::parser::parse_message_type,
};
use tempfile::tempdir;

use super::*;

/// A column to be written; nothing where a row has no text.
pub(in crate::data) enum Given<'a> {
    Texts(&'a [Option<&'a str>]),
    Bytes(&'a [&'a [u8]]),
    Integers(&'a [i64]),
    Truth(&'a [bool]),
}

/// A file with these columns in each of its row groups.
pub(in crate::data) fn written(columns: &[(&str, Given<'_>)], groups: usize) -> Vec<u8> {
    let field = |(name, given): &(&str, Given<'_>)| match given {
        Given::Texts(_) => format!("OPTIONAL BYTE_ARRAY {name} (STRING);"),
        Given::Bytes(_) => format!("REQUIRED BYTE_ARRAY {name};"),
        Given::Integers(_) => format!("REQUIRED INT64 {name};"),
        Given::Truth(_) => format!("REQUIRED BOOLEAN {name};"),
    };
    let schema = format!("message table {{ {} }}", columns.iter().map(field).collect::<String>());
    let schema = Arc::new(parse_message_type(&schema).unwrap());
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_data_page_row_count_limit(100)
        .set_write_batch_size(10)
        .build();
    let mut writer = SerializedFileWriter::new(Vec::new(), schema, Arc::new(properties)).unwrap();
    for _ in 0..groups {
        let mut group = writer.next_row_group().unwrap();
        for (_, given) in columns {
            let mut column = group.next_column().unwrap().unwrap();
            match given {
                Given::Texts(texts) => {
                    let levels: Vec<i16> = texts.iter().map(|text| i16::from(text.is_some())).collect();
                    let values: Vec<ByteArray> = texts.iter().flatten().map(|text| (*text).into()).collect();
                    column.typed::<ByteArrayType>().write_batch(&values, Some(&levels), None).unwrap();
                }
                Given::Bytes(bytes) => {
                    let values: Vec<ByteArray> = bytes.iter().map(|bytes| bytes.to_vec().into()).collect();
                    column.typed::<ByteArrayType>().write_batch(&values, None, None).unwrap();
                }
                Given::Integers(values) => {
                    column.typed::<Int64Type>().write_batch(values, None, None).unwrap();
                }
                Given::Truth(values) => {
                    column.typed::<BoolType>().write_batch(values, None, None).unwrap();
                }
            }
            column.close().unwrap();
        }
        group.close().unwrap();
    }
    writer.into_inner().unwrap()
}

/// A file that pyarrow wrote.
pub(in crate::data) fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/parquet").join(name)
}

fn texts(path: &Path, column: &str) -> Result<Vec<Option<String>>, DataError> {
    let table = Table::open(path)?;
    let at = table.header().iter().position(|name| name == column).unwrap();
    let (meter, mut all) = (Meter::default(), Vec::new());
    table.rows(&[at], &meter, &mut |row, cells| {
        assert_eq!(row, all.len() + 1);
        all.push(cells[0].text(column).unwrap().map(str::to_owned));
        Ok(())
    })?;
    assert_eq!(meter.read(), path.metadata().unwrap().len());
    Ok(all)
}

#[test]
fn every_packing_of_another_writer_gives_the_same_rows() {
    let text = |row: usize| match row % 10 {
        3 => None,
        7 => Some(String::new()),
        _ => Some(format!("The moon rose over hill {row}, é.")),
    };
    let long: Vec<Option<String>> = (0..50).map(|row| Some(format!("sentence number {row}"))).collect();
    for name in ["snappy", "zstd", "gzip", "lz4", "none"] {
        let path = fixture(&format!("{name}.parquet"));
        assert_eq!(texts(&path, "text").unwrap(), (0..50).map(text).collect::<Vec<_>>(), "{name}");
        assert_eq!(texts(&path, "long").unwrap(), long, "{name}");
    }
    // Bytes that nobody calls text, and words that lie in a dictionary.
    assert_eq!(texts(&fixture("snappy.parquet"), "raw").unwrap()[9].as_deref(), Some("raw 9"));
    assert_eq!(texts(&fixture("snappy.parquet"), "mood").unwrap()[9].as_deref(), Some("good"));
}

#[test]
fn columns_say_what_they_hold() {
    let table = Table::open(&fixture("snappy.parquet")).unwrap();
    let found: Vec<(String, Holds)> = table.header().into_iter().zip(table.holds()).collect();
    let expected = [
        ("n", Holds::Integers { signed: true }),
        ("text", Holds::Text),
        ("long", Holds::Text),
        ("label", Holds::Integers { signed: false }),
        ("mood", Holds::Text),
        ("truth", Holds::Truth),
        ("raw", Holds::Text),
        ("score", Holds::Other("fractions")),
        ("day", Holds::Other("dates or times")),
        ("words", Holds::Other("lists")),
        ("source", Holds::Other("objects")),
    ];
    assert_eq!(found, expected.map(|(name, holds)| (name.to_owned(), holds)));
}

#[test]
fn several_columns_keep_step_over_pages_and_row_groups() {
    let words: Vec<String> = (0..1000).map(|row| "x".repeat(row % 50)).collect();
    let texts: Vec<Option<&str>> =
        words.iter().enumerate().map(|(row, word)| (row % 3 > 0).then_some(&**word)).collect();
    let numbers: Vec<i64> = (0..1000).map(|row| row - 500).collect();
    let truth: Vec<bool> = (0..1000).map(|row| row % 7 == 0).collect();
    let columns =
        [("a", Given::Texts(&texts)), ("b", Given::Integers(&numbers)), ("c", Given::Truth(&truth))];
    let folder = tempdir().unwrap();
    let path = folder.path().join("t.parquet");
    std::fs::write(&path, written(&columns, 3)).unwrap();
    let (meter, mut rows, mut before) = (Meter::default(), 0, 0);
    Table::open(&path)
        .unwrap()
        .rows(&[2, 0, 1], &meter, &mut |row, cells| {
            rows += 1;
            assert!(meter.read() >= before, "it goes forward");
            before = meter.read();
            let at = (row - 1) % 1000;
            assert_eq!(cells[0].label("c").unwrap(), truth[at].to_string());
            assert_eq!(cells[1].text("a").unwrap(), texts[at], "{row}");
            assert_eq!(cells[2].label("b").unwrap(), numbers[at].to_string());
            Ok(())
        })
        .unwrap();
    assert_eq!((rows, meter.read()), (3000, path.metadata().unwrap().len()));
}

/// What becomes of these bytes as a file; how many rows it has, or what is wrong in one line.
fn read(bytes: &[u8]) -> Result<usize, String> {
    let folder = tempdir().unwrap();
    let path = folder.path().join("t.parquet");
    std::fs::write(&path, bytes).unwrap();
    let outcome = Table::open(&path).and_then(|table| {
        let columns: Vec<usize> = table
            .holds()
            .iter()
            .enumerate()
            .filter(|(_, holds)| !matches!(holds, Holds::Other(_)))
            .map(|(at, _)| at)
            .collect();
        let mut rows = 0;
        table.rows(&columns, &Meter::default(), &mut |row, cells| {
            cells.iter().for_each(|cell| drop(cell.label("any")));
            rows = row;
            Ok(())
        })?;
        Ok(rows)
    });
    outcome.map_err(|error| {
        let message = error.to_string();
        assert!(message.lines().count() == 1 && message.contains("t.parquet"), "{message}");
        message
    })
}

#[test]
fn a_file_that_ends_early_or_is_none_says_so() {
    let whole = std::fs::read(fixture("zstd.parquet")).unwrap();
    assert_eq!(read(&whole), Ok(50));
    for keep in (4..whole.len()).step_by(41).chain([whole.len() - 1]) {
        let message = read(&whole[..keep]).unwrap_err();
        assert!(message.contains(&format!("ends early: its {keep} bytes")), "{message}");
    }
    assert!(read(b"").unwrap_err().contains("is empty"));
    assert!(read(b"text,label\na,1\n").unwrap_err().contains("no Parquet file"));
    // The middle is missing, and the end is there.
    let torn = [&whole[..200], &whole[whole.len() - 900..]].concat();
    assert!(read(&torn).unwrap_err().contains("damaged"));
    let mut encrypted = whole;
    encrypted[..4].copy_from_slice(b"PARE");
    assert!(read(&encrypted).unwrap_err().contains("encrypted"));
    let packed = std::fs::read(fixture("brotli.parquet")).unwrap();
    let message = read(&packed).unwrap_err();
    assert!(message.to_lowercase().contains("brotli"), "{message}");
}

#[test]
fn bytes_that_are_wrong_are_told_or_read_and_nothing_else() {
    for name in ["snappy", "zstd", "gzip", "lz4", "none"] {
        let whole = std::fs::read(fixture(&format!("{name}.parquet"))).unwrap();
        let mut refused = 0;
        for at in (0..whole.len()).step_by(7) {
            let mut broken = whole.clone();
            broken[at] ^= 1 << (at % 8);
            refused += u32::from(read(&broken).is_err());
        }
        assert!(refused > 20, "{name}: {refused}");
    }
}

#[test]
fn a_reader_that_gives_up_is_a_damaged_file() {
    let outcome = guarded::<()>("t.parquet", || panic!("no\nway"));
    let message = outcome.unwrap_err().to_string();
    assert!(
        message.contains("t.parquet is damaged") && message.contains("gave up on it: no way"),
        "{message}"
    );
}
