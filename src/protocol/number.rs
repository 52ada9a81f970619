//! Numbers in JSON: a number that is not finite is the string `"nan"`, `"inf"` or `"-inf"`.
//!
//! Use as `#[serde(with = "number")]`, or `number::optional` for an `Option<f64>`.

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
