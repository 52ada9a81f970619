//! How many operations a second a device comes to in what it does best: products of large square matrices.

use std::time::{Duration, Instant};

use burn::tensor::{DType, Tensor};

use super::devices::{self, TrainDevice};
use crate::config::{DeviceName, Precision};

/// How long one size is tried.
const PATIENCE: Duration = Duration::from_millis(200);
/// Least products of one size, the first of which is not counted.
const LEAST: usize = 4;

/// The best product.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Peak {
    /// A multiplication and an addition are two.
    pub flops_per_second: f64,
    /// Rows and columns of both matrices.
    pub size: usize,
}

/// Measures products of square matrices in that type, each from its start until its result can be read, and takes the
/// fastest. Takes about half a second, and nothing else should compute meanwhile.
pub fn measure(device: &TrainDevice, precision: Precision, tf32: bool) -> Peak {
    devices::use_tf32(tf32);
    let sizes: [usize; 2] = match device.name {
        DeviceName::LibtorchCuda(_) => [4096, 8192],
        _ => [512, 1024],
    };
    let mut best = Peak { flops_per_second: 0.0, size: 0 };
    for size in sizes {
        let seconds = fastest(device, precision, size).as_secs_f64();
        let flops_per_second = 2.0 * (size as f64).powi(3) / seconds.max(f64::MIN_POSITIVE);
        if flops_per_second > best.flops_per_second {
            best = Peak { flops_per_second, size };
        }
    }
    devices::give_back_memory();
    best
}

fn fastest(device: &TrainDevice, precision: Precision, size: usize) -> Duration {
    let dtype = match precision {
        Precision::F32 => DType::F32,
        Precision::Bf16 => DType::BF16,
    };
    let matrix = || Tensor::<2>::ones([size, size], &device.device).mul_scalar(0.5).cast(dtype);
    let (a, b) = (matrix(), matrix());
    let mut fastest = Duration::MAX;
    let begun = Instant::now();
    for number in 0.. {
        let start = Instant::now();
        let product = a.clone().matmul(b.clone());
        // What is read must have been computed.
        let _ = product.slice([0..1, 0..1]).into_data();
        if number > 0 {
            fastest = fastest.min(start.elapsed());
        }
        if number >= LEAST && begun.elapsed() >= PATIENCE {
            break;
        }
    }
    fastest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_processor_multiplies_at_least_some_millions_a_second() {
        let device = devices::open(DeviceName::Flex).unwrap();
        let peak = measure(&device, Precision::F32, false);
        assert!(peak.flops_per_second > 1e8 && peak.flops_per_second < 1e14, "{peak:?}");
        assert!(peak.size == 512 || peak.size == 1024);
    }
}
