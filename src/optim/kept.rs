//! Optimizer state as a checkpoint holds it, on its way back to its optimizer.

use std::collections::BTreeMap;

use burn::tensor::{DType, Device, Tensor, TensorData, bf16, f16};
use thiserror::Error;

/// One value of a parameter's state: little-endian bytes in row-major order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    pub dtype: DType,
    /// `[]` of a number.
    pub shape: Vec<usize>,
    pub bytes: Vec<u8>,
}

/// The values of one parameter's state by their names.
pub type Values = BTreeMap<String, Stored>;

/// State that is not what this optimizer keeps.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum StateError {
    #[error("the state holds no `{0}`: it was written by another optimizer or with other settings")]
    Missing(String),
    #[error("`{name}` of the state has the shape {found:?} where {expected:?} is due")]
    Shape { name: String, found: Vec<usize>, expected: Vec<usize> },
    #[error("`{name}` of the state has elements of type {found}, which it cannot have")]
    Element { name: String, found: String },
    #[error("the state holds `{0}`, for which this optimizer has no use with these settings")]
    Surplus(String),
}

impl Stored {
    /// Values of type f32.
    pub fn f32(shape: &[usize], values: &[f32]) -> Self {
        let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        Self { dtype: DType::F32, shape: shape.to_vec(), bytes }
    }

    /// One number.
    pub fn number(value: f64) -> Self {
        Self::f32(&[], &[value as f32])
    }

    /// Bytes as they are.
    pub fn codes(shape: &[usize], bytes: Vec<u8>) -> Self {
        Self { dtype: DType::U8, shape: shape.to_vec(), bytes }
    }

    /// The elements as f32; `None` where they are no floats.
    pub fn floats(&self) -> Option<Vec<f32>> {
        let halves = |convert: fn(u16) -> f32| {
            self.bytes.as_chunks().0.iter().map(|half| convert(u16::from_le_bytes(*half))).collect()
        };
        match self.dtype {
            DType::F32 => {
                Some(self.bytes.as_chunks().0.iter().map(|four| f32::from_le_bytes(*four)).collect())
            }
            DType::BF16 => Some(halves(|bits| bf16::from_bits(bits).to_f32())),
            DType::F16 => Some(halves(|bits| f16::from_bits(bits).to_f32())),
            _ => None,
        }
    }

    /// The elements on a device, flat and of the type they have here; `None` where they are no floats.
    fn tensor(&self, device: &Device) -> Option<Tensor<1>> {
        let count = self.shape.iter().product::<usize>();
        let on_device = |data| Tensor::from_data(data, (device, self.dtype));
        let halves = || self.bytes.as_chunks().0.iter().map(|half| u16::from_le_bytes(*half));
        Some(on_device(match self.dtype {
            DType::F32 => TensorData::new(self.floats()?, [count]),
            DType::BF16 => TensorData::new(halves().map(bf16::from_bits).collect::<Vec<_>>(), [count]),
            DType::F16 => TensorData::new(halves().map(f16::from_bits).collect::<Vec<_>>(), [count]),
            _ => return None,
        }))
    }
}

/// The state of one parameter, and the device it goes to. Each value can be taken once; what is left over is an error.
#[derive(Debug)]
pub struct Kept<'a> {
    /// PyTorch's shape of the parameter.
    pub shape: &'a [usize],
    pub device: &'a Device,
    values: Values,
}

impl<'a> Kept<'a> {
    /// These values of a parameter of that shape.
    pub const fn new(shape: &'a [usize], values: Values, device: &'a Device) -> Self {
        Self { shape, device, values }
    }

    /// Whether there is a value of that name.
    pub fn has(&self, name: &str) -> bool {
        self.values.contains_key(name)
    }

    /// Whether the value of that name is one byte an element.
    pub fn is_codes(&self, name: &str) -> bool {
        self.values.get(name).is_some_and(|value| value.dtype == DType::U8)
    }

    fn take(&mut self, name: &str, shape: &[usize]) -> Result<Stored, StateError> {
        let value = self.values.remove(name).ok_or_else(|| StateError::Missing(name.to_owned()))?;
        if value.shape != shape {
            return Err(StateError::Shape {
                name: name.to_owned(),
                found: value.shape,
                expected: shape.to_vec(),
            });
        }
        Ok(value)
    }

    /// The tensor of that name and shape, flat.
    ///
    /// # Errors
    /// There is none, or it has another shape or no floats.
    pub fn tensor(&mut self, name: &str, shape: &[usize]) -> Result<Tensor<1>, StateError> {
        let value = self.take(name, shape)?;
        value.tensor(self.device).ok_or_else(|| element(name, &value))
    }

    /// The tensor of that name and shape, if there is one.
    ///
    /// # Errors
    /// It has another shape or no floats.
    pub fn optional(&mut self, name: &str, shape: &[usize]) -> Result<Option<Tensor<1>>, StateError> {
        self.has(name).then(|| self.tensor(name, shape)).transpose()
    }

    /// The number of that name.
    ///
    /// # Errors
    /// There is none, or it is no float.
    pub fn number(&mut self, name: &str) -> Result<f64, StateError> {
        self.floats(name, &[])?
            .first()
            .map(|&number| f64::from(number))
            .ok_or_else(|| StateError::Missing(name.into()))
    }

    /// The values of that name and shape, in host memory.
    ///
    /// # Errors
    /// There are none, or they have another shape or are no floats.
    pub fn floats(&mut self, name: &str, shape: &[usize]) -> Result<Vec<f32>, StateError> {
        let value = self.take(name, shape)?;
        value.floats().ok_or_else(|| element(name, &value))
    }

    /// The codes of that name and shape.
    ///
    /// # Errors
    /// There are none, or they have another shape or are no bytes.
    pub fn codes(&mut self, name: &str, shape: &[usize]) -> Result<Vec<u8>, StateError> {
        let value = self.take(name, shape)?;
        if value.dtype == DType::U8 { Ok(value.bytes) } else { Err(element(name, &value)) }
    }

    /// Nothing may be left.
    ///
    /// # Errors
    /// Something is.
    pub fn finish(self) -> Result<(), StateError> {
        self.values.into_keys().next().map_or(Ok(()), |name| Err(StateError::Surplus(name)))
    }
}

fn element(name: &str, value: &Stored) -> StateError {
    StateError::Element { name: name.to_owned(), found: value.dtype.name().to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_back_with_their_type_and_what_does_not_fit_is_told() {
        let device = Device::flex();
        let half = Stored { dtype: DType::BF16, shape: vec![2], bytes: vec![0x80, 0x3f, 0x00, 0xc0] };
        let values = Values::from([
            ("half".to_owned(), half),
            ("step".to_owned(), Stored::number(7.0)),
            ("codes".to_owned(), Stored::codes(&[2], vec![3, 250])),
            ("more".to_owned(), Stored::f32(&[2], &[0.5, -0.0])),
        ]);
        let mut kept = Kept::new(&[2], values, &device);
        let half = kept.tensor("half", &[2]).unwrap();
        assert_eq!(half.dtype(), DType::BF16);
        assert_eq!(half.cast(DType::F32).into_data().iter::<f32>().collect::<Vec<_>>(), [1.0, -2.0]);
        assert_eq!(kept.number("step").unwrap(), 7.0);
        assert!(matches!(kept.tensor("step", &[]), Err(StateError::Missing(_))), "a value is taken once");
        assert!(kept.is_codes("codes") && !kept.is_codes("more"));
        assert_eq!(kept.codes("codes", &[2]).unwrap(), [3, 250]);
        assert!(kept.optional("nothing", &[2]).unwrap().is_none());
        assert!(matches!(kept.floats("more", &[3]), Err(StateError::Shape { .. })));
        let values = Values::from([("more".to_owned(), Stored::f32(&[1], &[0.5]))]);
        let mut kept = Kept::new(&[1], values.clone(), &device);
        assert!(matches!(kept.codes("more", &[1]), Err(StateError::Element { .. })));
        assert_eq!(Kept::new(&[1], values, &device).finish(), Err(StateError::Surplus("more".into())));
    }
}
