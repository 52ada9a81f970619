//! Text that a language model wrote after a validation, so that a person sees what it has learnt.

use serde::{Deserialize, Serialize};

use super::number;

/// How the model goes on with the beginning of the held-out text. Nothing in it does anything to a terminal but break a
/// line.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TextSample {
    pub update: u64,
    #[serde(with = "number")]
    pub time: f64,
    /// Seconds that writing took: no update waits for anything else of it.
    #[serde(with = "number")]
    pub seconds: f64,
    /// The beginning of the held-out text.
    pub prompt: String,
    /// What the model wrote behind it, once for each temperature.
    pub texts: Vec<Continuation>,
}

/// One text.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Continuation {
    /// What the logits are divided by before a token is drawn; 0 takes the likeliest token each time.
    #[serde(with = "number")]
    pub temperature: f64,
    pub tokens: u64,
    pub text: String,
}

impl Continuation {
    /// `greedy`, or `temperature 0.8`.
    pub fn manner(&self) -> String {
        if self.temperature > 0.0 { format!("temperature {}", self.temperature) } else { "greedy".to_owned() }
    }
}
