//! Optimizer state as named values.

use std::sync::Arc;

use burn::tensor::Tensor;

use super::quantize::{self, DynamicMap};
use crate::backend::bytes::DeviceBytes;

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
    /// The same in host memory.
    Host {
        values: Arc<Vec<f32>>,
        shape: Vec<usize>,
    },
    /// 8-bit codes.
    Codes(Codes),
    Number(f64),
}

/// Bytes in host memory or in the device's.
#[derive(Debug, Clone)]
pub enum Bytes {
    Host(Arc<Vec<u8>>),
    Device(DeviceBytes),
}

impl Bytes {
    /// Number of bytes.
    pub fn len(&self) -> usize {
        match self {
            Self::Host(bytes) => bytes.len(),
            Self::Device(bytes) => bytes.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// On the host; a copy where they live elsewhere.
    pub fn read(&self) -> Arc<Vec<u8>> {
        match self {
            Self::Host(bytes) => Arc::clone(bytes),
            Self::Device(bytes) => Arc::new(bytes.read()),
        }
    }
}

/// The largest absolute value of each block, in host memory or in the device's.
#[derive(Debug, Clone)]
pub enum Scales {
    Host(Arc<Vec<f32>>),
    Device(Tensor<1>),
}

impl Scales {
    /// On the host; a copy where they live elsewhere.
    pub fn read(&self) -> Arc<Vec<f32>> {
        match self {
            Self::Host(scales) => Arc::clone(scales),
            Self::Device(scales) => Arc::new(scales.clone().into_data().iter::<f32>().collect()),
        }
    }
}

/// A tensor kept as one byte an element.
#[derive(Debug, Clone)]
pub struct Codes {
    pub shape: Vec<usize>,
    /// One an element, in row-major order.
    pub codes: Bytes,
    /// The largest absolute value of each block.
    pub absmax: Scales,
    /// Elements of a block.
    pub blocksize: usize,
    /// What a code stands for, as a share of its block's largest value.
    pub map: &'static DynamicMap,
}

impl Codes {
    /// The values that the codes stand for.
    pub fn values(&self) -> Vec<f32> {
        quantize::values(self.map, &self.codes.read(), &self.absmax.read(), self.blocksize)
    }
}

impl Entry {
    /// A number such as `step`.
    pub const fn number(name: &'static str, number: f64) -> Self {
        Self { name, value: Value::Number(number) }
    }

    /// A tensor of that shape.
    pub fn tensor(name: &'static str, values: &Tensor<1>, shape: &[usize]) -> Self {
        Self { name, value: Value::Tensor { values: values.clone(), shape: shape.to_vec() } }
    }

    /// A vector in host memory.
    pub fn host(name: &'static str, values: Arc<Vec<f32>>) -> Self {
        Self { name, value: Value::Host { shape: vec![values.len()], values } }
    }

    /// 8-bit codes.
    pub const fn codes(name: &'static str, codes: Codes) -> Self {
        Self { name, value: Value::Codes(codes) }
    }

    /// PyTorch's shape; `[]` for a number.
    pub fn shape(&self) -> &[usize] {
        match &self.value {
            Value::Tensor { shape, .. } | Value::Host { shape, .. } => shape,
            Value::Codes(codes) => &codes.shape,
            Value::Number(_) => &[],
        }
    }

    /// Elements as PyTorch's `compute_optimizer_size` counts them: 1 for a number.
    pub fn elements(&self) -> u64 {
        match &self.value {
            Value::Tensor { values, .. } => values.dims()[0] as u64,
            Value::Host { values, .. } => values.len() as u64,
            Value::Codes(codes) => codes.codes.len() as u64,
            Value::Number(_) => 1,
        }
    }

    /// Bytes by the same convention: 4 for a number.
    pub fn bytes(&self) -> u64 {
        match &self.value {
            Value::Tensor { values, .. } => self.elements() * values.dtype().size() as u64,
            Value::Host { .. } => self.elements() * 4,
            Value::Codes(_) => self.elements(),
            Value::Number(_) => 4,
        }
    }

    /// The element type: `f32`, `u8`.
    pub fn dtype(&self) -> String {
        match &self.value {
            Value::Tensor { values, .. } => values.dtype().name().to_owned(),
            Value::Codes(_) => "u8".to_owned(),
            Value::Host { .. } | Value::Number(_) => "f32".to_owned(),
        }
    }
}
