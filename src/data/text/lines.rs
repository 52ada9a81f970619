//! Documents that are rows of a file with one JSON object a line.

use std::{fmt, path::Path};

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;

use super::{
    super::{
        DataError,
        error::RowFault,
        labelled::{kind_of, object},
    },
    chunks::Chunks,
    documents::{LONGEST_ROW, Sink, document},
};

/// One object a line.
pub(super) fn lines(
    path: &Path,
    mut chunks: Chunks,
    field: &str,
    sink: &mut dyn Sink,
) -> Result<(), DataError> {
    let fault =
        |line: usize, fault: RowFault| DataError::Row { path: path.display().to_string(), line, fault };
    let mut one = |number: usize, line: &str| -> Result<(), DataError> {
        // Some programs put a mark before the text that says that it is UTF-8.
        let line = if number == 1 { line.strip_prefix('\u{feff}').unwrap_or(line) } else { line };
        if line.trim().is_empty() {
            return Ok(());
        }
        let text = text_of(line, field).map_err(|problem| match problem {
            RowFault::NoField { field, columns } if number == 1 => {
                DataError::NoField { path: path.display().to_string(), field, columns }
            }
            problem => fault(number, problem),
        })?;
        document(&text, sink)
    };
    let (mut begun, mut number) = (String::new(), 1);
    while let Some(piece) = chunks.next()? {
        let mut rest = piece;
        while let Some((line, behind)) = rest.split_once('\n') {
            if begun.is_empty() {
                one(number, line)?;
            } else {
                begun.push_str(line);
                one(number, &begun)?;
                begun.clear();
            }
            number += 1;
            rest = behind;
        }
        begun.push_str(rest);
        if begun.len() > LONGEST_ROW {
            return Err(fault(number, RowFault::TooLong { limit: LONGEST_ROW }));
        }
    }
    one(number, &begun)
}

/// The text that an object has under that key.
fn text_of(line: &str, field: &str) -> Result<String, RowFault> {
    let mut reader = serde_json::Deserializer::from_str(line);
    let quick = Pick(field).deserialize(&mut reader).and_then(|found| reader.end().map(|()| found));
    let value = match quick {
        Ok(Some(value)) => value,
        // It says what is wrong.
        Ok(None) | Err(_) => {
            let object = object(line)?;
            let columns = || object.keys().cloned().collect::<Vec<_>>().join(", ");
            object
                .get(field)
                .cloned()
                .ok_or_else(|| RowFault::NoField { field: field.to_owned(), columns: columns() })?
        }
    };
    match value {
        Value::String(text) if text.contains('\0') => Err(RowFault::Nul { column: field.to_owned() }),
        Value::String(text) => Ok(text),
        other => Err(RowFault::Kind { column: field.to_owned(), kind: kind_of(&other), expected: "text" }),
    }
}

/// Reads one value of an object and passes over the others.
struct Pick<'a>(&'a str);

impl<'de> DeserializeSeed<'de> for Pick<'_> {
    type Value = Option<Value>;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Pick<'_> {
    type Value = Option<Value>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut found = None;
        while let Some(wanted) = map.next_key_seed(Is(self.0))? {
            if wanted {
                found = Some(map.next_value()?);
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(found)
    }
}

/// Whether a key is that one.
struct Is<'a>(&'a str);

impl<'de> DeserializeSeed<'de> for Is<'_> {
    type Value = bool;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Is<'_> {
    type Value = bool;
    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a key")
    }
    fn visit_str<E>(self, key: &str) -> Result<bool, E> {
        Ok(key == self.0)
    }
}
