//! Numbers in JSON: a number that is not finite is the string `"nan"`, `"inf"` or `"-inf"`.
//!
//! Use as `#[serde(with = "number")]`, `number::optional` for an `Option<f64>`, `number::list` for a `Vec<f64>`,
//! `number::pair` for a `[f64; 2]`, `number::map` for numbers by name.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

#[derive(Deserialize)]
#[serde(untagged)]
enum Written {
    Number(f64),
    Word(String),
}

impl Written {
    fn read<E: Error>(self) -> Result<f64, E> {
        match self {
            Self::Number(value) => Ok(value),
            Self::Word(word) => match &*word {
                "nan" => Ok(f64::NAN),
                "inf" => Ok(f64::INFINITY),
                "-inf" => Ok(f64::NEG_INFINITY),
                other => Err(E::custom(format!("`{other}` is not a number"))),
            },
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
    Written::deserialize(deserializer)?.read()
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
        Option::<Written>::deserialize(deserializer)?.map(Written::read).transpose()
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
        Vec::<Written>::deserialize(deserializer)?.into_iter().map(Written::read).collect()
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
        read.into_iter().map(|(name, value)| Ok((name, value.read()?))).collect()
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
