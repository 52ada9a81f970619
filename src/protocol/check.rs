//! What a check of the training itself found: `check accumulation --json`, and the overlay that shows it.

use serde::{Deserialize, Serialize};

use super::number;

/// The gradient of one window taken twice: as one batch of all its rows, and summed over micro-batches of one row. Where
/// there are two figures, the first is of the one batch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AccumulationCheck {
    pub schema: u32,
    pub model: String,
    pub device: String,
    /// Sequences of the window.
    pub rows: u64,
    /// Targets of the window, by which both gradients were divided.
    pub targets: u64,
    /// Nats a target.
    #[serde(with = "number::pair")]
    pub loss: [f64; 2],
    /// Global norm of the gradient.
    #[serde(with = "number::pair")]
    pub grad_norm: [f64; 2],
    /// Between any two elements of the two gradients.
    #[serde(with = "number")]
    pub largest_difference: f64,
    /// Largest absolute element of either gradient.
    #[serde(with = "number")]
    pub largest_gradient: f64,
    /// Terms of the longest sum behind an element of the gradient; the tolerance follows from it.
    pub terms: u64,
    /// The largest difference that rounding explains.
    #[serde(with = "number")]
    pub tolerance: f64,
    pub holds: bool,
    /// The largest difference if each micro-batch were divided by its own targets, and the micro-batches averaged.
    #[serde(with = "number")]
    pub naive_largest_difference: f64,
    /// The parameters that differ most.
    pub worst: Vec<Deviation>,
    /// What was changed for the check, or keeps it from meaning much.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// How far one parameter's two gradients are apart.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Deviation {
    pub name: String,
    #[serde(with = "number")]
    pub difference: f64,
    /// Largest absolute element of the gradient.
    #[serde(with = "number")]
    pub gradient: f64,
}

impl AccumulationCheck {
    /// Whether there are two ways of taking the window: one row is one micro-batch either way.
    pub const fn compares(&self) -> bool {
        self.rows > 1
    }

    /// Whether averaging the means of the micro-batches would have given another gradient.
    pub fn naive_differs(&self) -> bool {
        self.naive_largest_difference.is_nan() || self.naive_largest_difference > self.tolerance
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_that_are_no_numbers_survive_json() {
        let check = AccumulationCheck {
            schema: 1,
            model: "llama-nano".into(),
            device: "flex".into(),
            rows: 8,
            targets: 512,
            loss: [5.5, f64::INFINITY],
            grad_norm: [1.0, 1.0],
            largest_difference: f64::INFINITY,
            largest_gradient: 0.5,
            terms: 512,
            tolerance: 1e-6,
            holds: false,
            naive_largest_difference: 0.25,
            worst: vec![Deviation { name: "a.weight".into(), difference: 1.0, gradient: 0.5 }],
            notes: Vec::new(),
        };
        let line = serde_json::to_string(&check).unwrap();
        assert!(line.contains(r#""loss":[5.5,"inf"]"#) && !line.contains("notes"), "{line}");
        assert_eq!(serde_json::from_str::<AccumulationCheck>(&line).unwrap(), check);
        assert!(check.naive_differs());
        assert!(serde_json::from_str::<AccumulationCheck>(&line.replace("[5.5,", "[")).is_err());
    }
}
