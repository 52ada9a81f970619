//! Rows of a `.jsonl` file: one object a line.

use serde_json::{Map, Value};

use super::{
    super::error::RowFault,
    DataError, Example,
    columns::{Column, Columns},
};

/// The rows; the first one says which columns there are.
///
/// # Errors
/// A line that is no JSON object, or lacks one of the columns.
pub(super) fn rows(path: &str, text: &str, wanted: &[String]) -> Result<Vec<Example>, DataError> {
    let mut columns: Option<Columns> = None;
    let mut rows = Vec::new();
    for (number, line_text) in text.lines().enumerate() {
        if line_text.trim().is_empty() {
            continue;
        }
        let line = number + 1;
        let fault = |fault: RowFault| DataError::Row { path: path.to_owned(), line, fault };
        let object = object(line_text).map_err(fault)?;
        let columns = match &mut columns {
            Some(columns) => columns,
            none => {
                let header: Vec<String> = object.keys().cloned().collect();
                none.insert(Columns::choose(path, &header, wanted)?)
            }
        };
        let text = |column: &Column| text_of(&object, column);
        let label = |column: &Column| label_of(&object, column);
        rows.push(columns.example(line, text, label).map_err(fault)?);
    }
    Ok(rows)
}

/// One line as an object.
///
/// # Errors
/// It is none.
pub(in crate::data) fn object(line: &str) -> Result<Map<String, Value>, RowFault> {
    match serde_json::from_str(line) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(other) => Err(RowFault::NoObject { kind: kind(&other) }),
        Err(error) => {
            let problem = error.to_string();
            let problem = problem.split(" at line ").next().unwrap_or_default().to_owned();
            Err(RowFault::Json { problem, column: error.column() })
        }
    }
}

fn value<'a>(object: &'a Map<String, Value>, column: &Column) -> Result<&'a Value, RowFault> {
    object.get(&column.name).ok_or_else(|| RowFault::NoKey {
        column: column.name.clone(),
        columns: object.keys().cloned().collect::<Vec<_>>().join(", "),
    })
}

fn text_of(object: &Map<String, Value>, column: &Column) -> Result<String, RowFault> {
    match value(object, column)? {
        Value::String(text) if text.contains('\0') => Err(RowFault::Nul { column: column.name.clone() }),
        Value::String(text) => Ok(text.clone()),
        other => Err(RowFault::Kind { column: column.name.clone(), kind: kind(other), expected: "text" }),
    }
}

/// Integers and truth values are labels as well.
fn label_of(object: &Map<String, Value>, column: &Column) -> Result<String, RowFault> {
    match value(object, column)? {
        Value::String(text) => Ok(text.clone()),
        Value::Number(number) if number.is_i64() || number.is_u64() => Ok(number.to_string()),
        Value::Bool(truth) => Ok(truth.to_string()),
        other => {
            let expected = "text or an integer";
            Err(RowFault::Kind { column: column.name.clone(), kind: kind(other), expected })
        }
    }
}

/// What a value is, in words.
pub(in crate::data) const fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use super::super::reading::tests::{read, refused};

    const GOOD: &str = "{\"text\": \"a\", \"label\": \"x\"}\n";

    #[test]
    fn labels_are_text_integers_or_truth_values() {
        let text = "{\"premise\": \"a\", \"hypothesis\": \"b\\u00e9\", \"label\": true}\n\n{\"premise\": \"c\", \"hypothesis\": \"d\", \"label\": -3, \"idx\": 4}";
        let rows = read("a.jsonl", text, &[]).unwrap().rows;
        assert_eq!((&*rows[0].label, rows[0].second.as_deref(), rows[0].line), ("true", Some("bé"), 1));
        assert_eq!((&*rows[1].label, rows[1].line), ("-3", 3));
    }

    #[test]
    fn broken_lines_are_named() {
        let second = |line: &str, words: &[&str]| {
            let words: Vec<&str> = words.iter().chain(&["line 2"]).copied().collect();
            refused("a.jsonl", format!("{GOOD}{line}\n{GOOD}"), &[], &words);
        };
        second("{\"text\": \"a\", ", &["not valid JSON", "EOF", "column 14", "one object a line"]);
        second("[1]", &["a list", "one object a line"]);
        second("{\"text\": \"b\"}", &["no `label`", "it has text"]);
        second("{\"text\": 7, \"label\": 1}", &["`text` is a number", "expected text"]);
        second("{\"text\": \"b\", \"label\": null}", &["`label` is null", "expected text or an integer"]);
        second("{\"text\": \"b\", \"label\": 0.5}", &["`label` is a number", "expected text or an integer"]);
        second("{\"text\": \" \", \"label\": 1}", &["`text` is empty"]);
        second("{\"text\": \"a\\u0000\", \"label\": 1}", &["`text` contains a NUL"]);
        refused("a.jsonl", "{\"title\": \"b\", \"label\": 1}\n", &[], &["title, label", "data.columns"]);
        refused("a.jsonl", GOOD, &["body", "label"], &["no column `body`", "text, label"]);
    }
}
