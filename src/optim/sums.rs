//! Sums over whole tensors that repeat bit for bit.
//!
//! A device may split a large sum among its cores as they happen to be free, so that its rounding differs from one time
//! to the next. Sums of so many elements are taken in rows of a fixed length instead.

use burn::tensor::Tensor;

/// Elements of a row. No device splits a sum of so few.
pub const CHUNK: usize = 1 << 16;
/// Sums below this many elements are not split by any device.
const LARGE: usize = 1 << 20;

/// `sum(x^2)`, `[1]`, of a flat tensor.
pub fn sum_of_squares(values: &Tensor<1>) -> Tensor<1> {
    let squares = values.clone().square();
    let count = squares.dims()[0];
    if count < LARGE {
        return squares.sum();
    }
    let rows = count / CHUNK;
    let whole = squares.clone().narrow(0, 0, rows * CHUNK).reshape([rows, CHUNK]);
    let sum = whole.sum_dim(1).reshape([rows]).sum();
    match count - rows * CHUNK {
        0 => sum,
        rest => sum + squares.narrow(0, rows * CHUNK, rest).sum(),
    }
}

/// `mean(x^2)`, `[1]`, of a flat tensor.
pub fn mean_square(values: &Tensor<1>) -> Tensor<1> {
    let count = values.dims()[0];
    if count < LARGE {
        values.clone().square().mean()
    } else {
        sum_of_squares(values).div_scalar(count as f64)
    }
}

#[cfg(test)]
mod tests {
    use burn::tensor::{Device, TensorData};

    use super::*;
    use crate::optim::{Gradients, clip};

    /// Enough for flex to share a sum of it among its cores.
    const MANY: usize = (5 << 20) + 77;

    fn many() -> (Vec<f32>, Tensor<1>) {
        let values: Vec<f32> = (0..MANY).map(|i| ((i * 7919 + 13) % 10_007) as f32 / 5003.5 - 1.0).collect();
        let tensor = Tensor::from_data(TensorData::new(values.clone(), [MANY]), &Device::flex());
        (values, tensor)
    }

    #[test]
    fn large_sums_repeat_bit_for_bit_and_are_right() {
        let (values, tensor) = many();
        let exact: f64 = values.iter().map(|&x| f64::from(x) * f64::from(x)).sum();
        let mut gradients = Gradients::new();
        gradients.insert("large", tensor.clone());
        let norm = clip::global_norm(&gradients);
        let sum: f32 = sum_of_squares(&tensor).into_scalar();
        let mean: f32 = mean_square(&tensor).into_scalar();
        assert!((norm / exact.sqrt() - 1.0).abs() < 1e-6, "{norm} is not {}", exact.sqrt());
        assert!((f64::from(sum) / exact - 1.0).abs() < 1e-5, "{sum} is not {exact}");
        assert!((f64::from(mean) * MANY as f64 / exact - 1.0).abs() < 1e-5, "{mean}");
        for _ in 0..20 {
            assert_eq!(clip::global_norm(&gradients).to_bits(), norm.to_bits());
            assert_eq!(sum_of_squares(&tensor).into_scalar::<f32>().to_bits(), sum.to_bits());
            assert_eq!(mean_square(&tensor).into_scalar::<f32>().to_bits(), mean.to_bits());
        }
    }
}
