//! Numbers in JSON: a number that is not finite is the string `"nan"`, `"inf"` or `"-inf"`.
//!
//! Use as `#[serde(with = "number")]`, `number::optional` for an `Option<f64>`, `number::list` for a `Vec<f64>`,
//! `number::pair` for a `[f64; 2]`, `number::map` for numbers by name.

use std::fmt;

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{Error, Visitor},
};

/// A number however it is written. Read directly, and not by trying one form after another: a record has millions of them.
struct Written(f64);

impl<'de> Deserialize<'de> for Written {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader)
    }
}

struct Reader;

impl Visitor<'_> for Reader {
    type Value = Written;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number, \"nan\", \"inf\" or \"-inf\"")
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Written, E> {
        Ok(Written(value))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Written, E> {
        Ok(Written(value as f64))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Written, E> {
        Ok(Written(value as f64))
    }

    fn visit_str<E: Error>(self, word: &str) -> Result<Written, E> {
        match word {
            "nan" => Ok(Written(f64::NAN)),
            "inf" => Ok(Written(f64::INFINITY)),
            "-inf" => Ok(Written(f64::NEG_INFINITY)),
            other => Err(E::custom(format!("`{other}` is not a number"))),
        }
    }
}

/// Writes one number.
pub fn serialize<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    match word(*value) {
        Some(word) => serializer.serialize_str(word),
        None => serializer.serialize_f64(*value),
    }
}

/// Reads one number.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    Written::deserialize(deserializer).map(|number| number.0)
}

/// The word for a number that JSON cannot hold.
pub const fn word(value: f64) -> Option<&'static str> {
    if value.is_nan() {
        Some("nan")
    } else if value == f64::INFINITY {
        Some("inf")
    } else if value == f64::NEG_INFINITY {
        Some("-inf")
    } else {
        None
    }
}

/// The same for numbers that may be absent.
pub mod optional {
    use super::{Deserialize, Deserializer, Serialize, Serializer, Written, word};

    /// Writes a number or `null`.
    pub fn serialize<S: Serializer>(value: &Option<f64>, serializer: S) -> Result<S::Ok, S::Error> {
        match value {
            Some(value) => match word(*value) {
                Some(word) => serializer.serialize_str(word),
                None => serializer.serialize_f64(*value),
            },
            None => Option::<f64>::None.serialize(serializer),
        }
    }

    /// Reads a number or `null`.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
        Ok(Option::<Written>::deserialize(deserializer)?.map(|number| number.0))
    }
}

/// The same for lists.
pub mod list {
    use serde::ser::SerializeSeq;

    use super::{Deserialize, Deserializer, Serializer, Written, word};

    /// Writes the numbers in order.
    pub fn serialize<S: Serializer>(values: &[f64], serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(Some(values.len()))?;
        for value in values {
            match word(*value) {
                Some(word) => list.serialize_element(word)?,
                None => list.serialize_element(value)?,
            }
        }
        list.end()
    }

    /// Reads the numbers in order.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<f64>, D::Error> {
        Ok(Vec::<Written>::deserialize(deserializer)?.into_iter().map(|number| number.0).collect())
    }
}

/// The same for two numbers.
pub mod pair {
    use super::{Deserializer, Error, Serializer, list};

    /// Writes both numbers.
    pub fn serialize<S: Serializer>(values: &[f64; 2], serializer: S) -> Result<S::Ok, S::Error> {
        list::serialize(values, serializer)
    }

    /// Reads both numbers.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<[f64; 2], D::Error> {
        let read = list::deserialize(deserializer)?;
        read.try_into()
            .map_err(|read: Vec<f64>| D::Error::custom(format!("{} numbers instead of two", read.len())))
    }
}

/// The same for numbers by name.
pub mod map {
    use std::collections::BTreeMap;

    use serde::ser::SerializeMap;

    use super::{Deserialize, Deserializer, Serializer, Written, word};

    /// Writes the numbers by name.
    pub fn serialize<S: Serializer>(
        values: &BTreeMap<String, f64>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(values.len()))?;
        for (name, value) in values {
            match word(*value) {
                Some(word) => map.serialize_entry(name, word)?,
                None => map.serialize_entry(name, value)?,
            }
        }
        map.end()
    }

    /// Reads the numbers by name.
    pub fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<BTreeMap<String, f64>, D::Error> {
        let read = BTreeMap::<String, Written>::deserialize(deserializer)?;
        Ok(read.into_iter().map(|(name, value)| (name, value.0)).collect())
    }
}

#[cfg(test)]
mod tests {
    use crate::protocol::Strip;

    #[test]
    fn values_that_are_not_finite_survive_a_line_of_json() {
        let values = vec![1.5, f64::NAN, f64::NEG_INFINITY];
        let strip = Strip { name: "exp_avg".into(), axis: "element".into(), length: 3, values };
        let line = serde_json::to_string(&strip).unwrap();
        assert!(line.contains(r#"[1.5,"nan","-inf"]"#), "{line}");
        let read: Strip = serde_json::from_str(&line).unwrap();
        assert!(read.values[1].is_nan() && read.values[2] == f64::NEG_INFINITY);
    }
}
