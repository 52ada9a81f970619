//! Rows of a Parquet file.

use std::path::Path;

use super::{
    super::{
        parquet::{Holds, Table, Value},
        text::unpack::Meter,
    },
    DataError, Example,
    columns::{Column, Columns},
};

/// The rows; `taken` is told the bytes of each.
///
/// # Errors
/// The file is damaged, a column is missing or holds something else, a row lacks a sentence or a label; what `taken`
/// says.
pub(super) fn rows(
    path: &Path,
    wanted: &[String],
    meter: &Meter,
    taken: &mut dyn FnMut(usize) -> Result<(), DataError>,
) -> Result<Vec<Example>, DataError> {
    let name = path.display().to_string();
    let table = Table::open(path)?;
    let columns = Columns::choose(&name, &table.header(), wanted)?;
    let holds = table.holds();
    let refused = |column: &Column, kind, expected| DataError::ColumnKind {
        path: name.clone(),
        column: column.name.clone(),
        kind,
        expected,
        key: "data.columns",
    };
    for column in columns.sentences() {
        if let Some(kind) = holds[column.at].unless_text() {
            return Err(refused(column, kind, "text"));
        }
    }
    if let Holds::Other(kind) = holds[columns.label().at] {
        return Err(refused(columns.label(), kind, "text or integers"));
    }
    let all: Vec<&Column> = columns.sentences().chain([columns.label()]).collect();
    let places: Vec<usize> = all.iter().map(|column| column.at).collect();
    let mut rows = Vec::new();
    table.rows(&places, meter, &mut |row, cells| {
        let cell = |column: &Column| {
            let at = places.iter().position(|place| *place == column.at);
            at.and_then(|at| cells.get(at)).unwrap_or(&Value::Null)
        };
        let text = |column: &Column| Ok(cell(column).text(&column.name)?.unwrap_or_default().to_owned());
        let label = |column: &Column| cell(column).label(&column.name);
        let example = columns.example(row, text, label).map_err(|fault| DataError::TableRow {
            path: name.clone(),
            row,
            fault,
        })?;
        taken(example.first.len() + example.second.as_ref().map_or(0, String::len))?;
        rows.push(example);
        Ok(())
    })?;
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::super::reading::tests::{read, refused};
    use crate::data::parquet::tests::{Given, fixture, written};

    #[test]
    fn labels_are_text_integers_or_truth_values() {
        let table = std::fs::read(fixture("snappy.parquet")).unwrap();
        let labels = |column: &str| -> Vec<String> {
            let rows = read("t.parquet", &table, &["long", column]).unwrap().rows;
            assert_eq!((rows.len(), &*rows[31].first, rows[31].line), (50, "sentence number 31", 32));
            rows[..4].iter().map(|row| row.label.clone()).collect()
        };
        assert_eq!(labels("label"), ["0", "1", "2", "0"]);
        assert_eq!(labels("mood"), ["bad", "good", "bad", "good"]);
        assert_eq!(labels("truth"), ["true", "false", "true", "false"]);
        let pair = read("t.parquet", &table, &["long", "mood", "n"]).unwrap().rows;
        assert_eq!((pair[7].second.as_deref(), &*pair[7].label), (Some("good"), "7"));
        // The usual names are found, and a sentence is missing.
        refused("t.parquet", &table, &[], &["t.parquet, row 4", "`text` is empty"]);
    }

    #[test]
    fn columns_and_rows_that_do_not_suit_are_named() {
        let table = std::fs::read(fixture("snappy.parquet")).unwrap();
        refused(
            "t.parquet",
            &table,
            &["text", "mark"],
            &["no column `mark`", "n, text, long", "data.columns"],
        );
        refused(
            "t.parquet",
            &table,
            &["n", "label"],
            &["`n` of", "holds integers", "expected text;", "data.columns"],
        );
        refused("t.parquet", &table, &["words", "label"], &["`words` of", "holds lists"]);
        refused("t.parquet", &table, &["text", "score"], &["holds fractions", "text or integers"]);
        refused("t.parquet", &table[..2000], &[], &["ends early"]);
        let texts = [Some("a"), Some("b")];
        let without = [("text", Given::Texts(&texts)), ("label", Given::Texts(&[Some("x"), None]))];
        refused("t.parquet", written(&without, 1), &[], &["t.parquet, row 2", "`label` is empty"]);
        let one = [("text", Given::Texts(&texts[..1])), ("label", Given::Integers(&[1]))];
        refused("t.parquet", written(&one, 1), &[], &["1 row,", "at least two"]);
    }
}
