//! Memory by category, before any of it is measured.

use serde::{Deserialize, Serialize};

/// Memory by category in bytes. All counted from shapes but the activations, which are an estimate.
///
/// What nobody counts is 0 here and `null` in JSON: the activations of a model that is not built in, and everything but
/// the parameters of a loop of one's own.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Written", into = "Written")]
pub struct Ledger {
    pub parameters: u64,
    pub parameter_tensors: u64,
    pub parameter_bytes: u64,
    pub gradient_bytes: u64,
    /// The second gradient buffer that accumulation needs; 0 when `accumulate` is 1.
    pub accumulation_bytes: u64,
    pub state_elements: u64,
    pub state_bytes: u64,
    pub activation_bytes_estimated: u64,
    /// The sum of what is counted.
    pub total_bytes_estimated: u64,
}

impl Ledger {
    /// Whether more is counted than the parameters: whatever is trained with this program's optimizers has gradients.
    pub const fn counts_training(&self) -> bool {
        self.gradient_bytes > 0
    }
}

/// As it stands in JSON.
#[derive(Serialize, Deserialize)]
#[serde(default)]
struct Written {
    parameters: Option<u64>,
    parameter_tensors: u64,
    parameter_bytes: Option<u64>,
    gradient_bytes: Option<u64>,
    accumulation_bytes: Option<u64>,
    state_elements: Option<u64>,
    state_bytes: Option<u64>,
    activation_bytes_estimated: Option<u64>,
    total_bytes_estimated: Option<u64>,
}

impl From<Ledger> for Written {
    fn from(ledger: Ledger) -> Self {
        let counts = ledger.counts_training();
        let of_training = |count: u64| counts.then_some(count);
        let known = |count: u64| Some(count).filter(|&count| count > 0);
        Self {
            parameters: known(ledger.parameters),
            parameter_tensors: ledger.parameter_tensors,
            parameter_bytes: known(ledger.parameter_bytes),
            gradient_bytes: of_training(ledger.gradient_bytes),
            accumulation_bytes: of_training(ledger.accumulation_bytes),
            state_elements: of_training(ledger.state_elements),
            state_bytes: of_training(ledger.state_bytes),
            activation_bytes_estimated: known(ledger.activation_bytes_estimated),
            total_bytes_estimated: of_training(ledger.total_bytes_estimated),
        }
    }
}

impl Default for Written {
    fn default() -> Self {
        Ledger::default().into()
    }
}

impl From<Written> for Ledger {
    fn from(written: Written) -> Self {
        let counted = Option::unwrap_or_default;
        let parameter_bytes = counted(written.parameter_bytes);
        Self {
            parameters: counted(written.parameters),
            parameter_tensors: written.parameter_tensors,
            parameter_bytes,
            gradient_bytes: counted(written.gradient_bytes),
            accumulation_bytes: counted(written.accumulation_bytes),
            state_elements: counted(written.state_elements),
            state_bytes: counted(written.state_bytes),
            activation_bytes_estimated: counted(written.activation_bytes_estimated),
            total_bytes_estimated: written.total_bytes_estimated.unwrap_or(parameter_bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn what_nobody_counts_is_null_and_what_is_counted_as_nothing_is_0() {
        let sgd = Ledger {
            parameters: 10,
            parameter_tensors: 2,
            parameter_bytes: 40,
            gradient_bytes: 40,
            activation_bytes_estimated: 20,
            total_bytes_estimated: 100,
            ..Ledger::default()
        };
        let written = serde_json::to_value(&sgd).unwrap();
        for counted in ["accumulation_bytes", "state_bytes", "state_elements"] {
            assert_eq!(written[counted], 0, "{counted}");
        }
        let told = Ledger {
            parameters: 2,
            parameter_tensors: 1,
            parameter_bytes: 8,
            total_bytes_estimated: 8,
            ..Ledger::default()
        };
        let written = serde_json::to_value(&told).unwrap();
        assert_eq!(
            written,
            json!({
                "parameters": 2, "parameter_tensors": 1, "parameter_bytes": 8, "gradient_bytes": null,
                "accumulation_bytes": null, "state_elements": null, "state_bytes": null,
                "activation_bytes_estimated": null, "total_bytes_estimated": null,
            })
        );
        assert_eq!(serde_json::to_value(Ledger::default()).unwrap()["parameters"], Value::Null);
        for ledger in [sgd, told, Ledger::default()] {
            let line = serde_json::to_string(&ledger).unwrap();
            assert_eq!(serde_json::from_str::<Ledger>(&line).unwrap(), ledger, "{line}");
        }
    }
}
