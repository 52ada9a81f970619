//! Optimizer state as named values.

use burn::tensor::Tensor;
use thiserror::Error;

/// One value of a parameter's state under PyTorch's name.
#[derive(Debug, Clone)]
pub struct Entry {
    pub name: &'static str,
    pub value: Value,
}

/// A tensor (a handle, not a copy), or a number.
#[derive(Debug, Clone)]
pub enum Value {
    /// Flat values and the shape they stand for.
    Tensor {
        values: Tensor<1>,
        shape: Vec<usize>,
    },
    Number(f64),
}

/// State that does not belong to this optimizer.
#[derive(Debug, Error)]
#[error("the state holds no `{0}`: it was written by another optimizer or with other settings")]
pub struct StateError(pub &'static str);

impl Entry {
    /// A number such as `step`.
    pub const fn number(name: &'static str, number: f64) -> Self {
        Self { name, value: Value::Number(number) }
    }

    /// A tensor of that shape.
    pub fn tensor(name: &'static str, values: &Tensor<1>, shape: &[usize]) -> Self {
        Self { name, value: Value::Tensor { values: values.clone(), shape: shape.to_vec() } }
    }

    /// Elements as PyTorch's `compute_optimizer_size` counts them: 1 for a number.
    pub fn elements(&self) -> u64 {
        match &self.value {
            Value::Tensor { values, .. } => values.dims()[0] as u64,
            Value::Number(_) => 1,
        }
    }

    /// Bytes by the same convention: 4 for a number.
    pub fn bytes(&self) -> u64 {
        match &self.value {
            Value::Tensor { values, .. } => self.elements() * values.dtype().size() as u64,
            Value::Number(_) => 4,
        }
    }

    /// The element type: `f32`.
    pub fn dtype(&self) -> String {
        match &self.value {
            Value::Tensor { values, .. } => values.dtype().name().to_owned(),
            Value::Number(_) => "f32".to_owned(),
        }
    }
}

/// Takes values out of a list by name.
#[derive(Debug)]
pub struct Taker(pub Vec<Entry>);

impl Taker {
    /// The tensor of that name, if there is one.
    pub fn optional(&mut self, name: &str) -> Option<Tensor<1>> {
        let at = self.0.iter().position(|entry| entry.name == name)?;
        match self.0.swap_remove(at).value {
            Value::Tensor { values, .. } => Some(values),
            Value::Number(_) => None,
        }
    }

    /// The tensor of that name.
    pub fn tensor(&mut self, name: &'static str) -> Result<Tensor<1>, StateError> {
        self.optional(name).ok_or(StateError(name))
    }

    /// The number of that name.
    pub fn number(&mut self, name: &'static str) -> Result<f64, StateError> {
        let entry = self.0.iter().find(|entry| entry.name == name).ok_or(StateError(name))?;
        match entry.value {
            Value::Number(number) => Ok(number),
            Value::Tensor { .. } => Err(StateError(name)),
        }
    }
}
