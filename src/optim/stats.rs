//! Statistics and strips of state tensors, reduced on the device and read together.

use burn::tensor::{DType, Device, Int, Tensor, TensorData, Transaction};

use super::{Entry, Value};
use crate::protocol::{Heat, StateTensor, Strip, TensorStats};

/// Numbers one tensor is reduced to.
const FIELDS: usize = 6;

/// What the entries hold, each with its statistics; those of codes are of the values they stand for. One read for all
/// that is on a device.
pub fn describe(entries: &[Entry]) -> Vec<StateTensor> {
    let reduced: Vec<Tensor<1>> = entries
        .iter()
        .filter_map(|entry| match &entry.value {
            Value::Tensor { values, .. } => Some(reduce(values)),
            _ => None,
        })
        .collect();
    let read = if reduced.is_empty() { Vec::new() } else { read_all(Tensor::cat(reduced, 0)) };
    let mut rows = read.chunks_exact(FIELDS);
    entries
        .iter()
        .map(|entry| StateTensor {
            shape: entry.shape().to_vec(),
            dtype: entry.dtype(),
            elements: entry.elements(),
            bytes: entry.bytes(),
            stats: match &entry.value {
                Value::Tensor { .. } => rows.next().map(from_row),
                Value::Host { values, .. } => Some(of_values(values)),
                Value::Codes(codes) => Some(of_values(&codes.values())),
                Value::Number(number) => Some(of_values(&[*number as f32])),
            },
        })
        .collect()
}

/// Values of a state tensor as f32, flat; none of a number.
pub(super) fn values_of(entry: &Entry) -> Option<Tensor<1>> {
    let on_host = |values: Vec<f32>| {
        let count = values.len();
        Tensor::from_data(TensorData::new(values, [count]), &Device::flex())
    };
    match &entry.value {
        Value::Tensor { values, .. } => Some(values.clone().cast(DType::F32)),
        Value::Host { values, .. } => Some(on_host(values.to_vec())),
        Value::Codes(codes) => Some(on_host(codes.values())),
        Value::Number(_) => None,
    }
}

/// `[min, max, mean, rms, zeros, non-finite]`. Counts are exact up to 2^24 and rounded to f32 above.
fn reduce(values: &Tensor<1>) -> Tensor<1> {
    let values = values.clone().cast(DType::F32);
    let count = |marks: Tensor<1, Int>| marks.sum().float().cast(DType::F32);
    let zeros = count(values.clone().equal_elem(0.0).int());
    let nonfinite = count(values.clone().is_finite().bool_not().int());
    let rms = root_mean_square(values.clone());
    Tensor::cat(vec![values.clone().min(), values.clone().max(), values.mean(), rms, zeros, nonfinite], 0)
}

/// Of values of any size: in units of the largest, since the square of a small second moment is zero in f32.
fn root_mean_square(values: Tensor<1>) -> Tensor<1> {
    let unit = values.clone().abs().max().clamp_min(f64::from(f32::MIN_POSITIVE));
    (values / unit.clone()).square().mean().sqrt() * unit
}

fn from_row(row: &[f32]) -> TensorStats {
    let at = |index: usize| row.get(index).map_or(f64::NAN, |&value| f64::from(value));
    TensorStats {
        min: at(0),
        max: at(1),
        mean: at(2),
        rms: at(3),
        zeros: at(4) as u64,
        nonfinite: at(5) as u64,
    }
}

fn of_values(values: &[f32]) -> TensorStats {
    let (mut sum, mut squares) = (0.0, 0.0);
    let (mut min, mut max) = (f64::INFINITY, f64::NEG_INFINITY);
    for value in values.iter().map(|&value| f64::from(value)) {
        sum += value;
        squares += value * value;
        // NaN is passed over, as in a checkpoint's statistics: it is counted.
        min = min.min(value);
        max = max.max(value);
    }
    let count = values.len().max(1) as f64;
    TensorStats {
        min,
        max,
        mean: sum / count,
        rms: (squares / count).sqrt(),
        zeros: values.iter().filter(|value| **value == 0.0).count() as u64,
        nonfinite: values.iter().filter(|value| !value.is_finite()).count() as u64,
    }
}

pub(super) fn read_all(values: Tensor<1>) -> Vec<f32> {
    let data = Transaction::default().register(values).execute();
    data.iter().flat_map(|data| data.iter::<f32>().collect::<Vec<_>>()).collect()
}

/// A root mean square over a root mean square, `[1]`: how far an update moved a parameter.
pub fn ratio_of_rms(part: &Tensor<1>, whole: &Tensor<1>) -> Tensor<1> {
    let rms = |values: &Tensor<1>| root_mean_square(values.clone().cast(DType::F32));
    rms(part) / rms(whole)
}

/// Reads several `[1]` tensors at once.
pub fn read_scalars(scalars: Vec<Tensor<1>>) -> Vec<f64> {
    if scalars.is_empty() {
        return Vec::new();
    }
    read_all(Tensor::cat(scalars, 0)).into_iter().map(f64::from).collect()
}

/// The tensors of one parameter as strips of at most `width` values, reduced on the device: a vector as it is, a
/// matrix as the mean of absolute values of its rows and of its columns.
pub fn strips(entries: &[Entry], width: usize) -> Vec<Strip> {
    let width = width.max(1);
    let mut strips = Vec::new();
    for entry in entries {
        let Some(values) = values_of(entry) else { continue };
        let shape = entry.shape();
        match shape[..] {
            [] => {}
            [length] => strips.push(strip(entry.name, "element", values, length, width)),
            [.., columns] => {
                let rows = values.dims()[0] / columns.max(1);
                let matrix = values.abs().reshape([rows, columns]);
                let by_row = matrix.clone().mean_dim(1).reshape([rows]);
                let by_col = matrix.mean_dim(0).reshape([columns]);
                strips.push(strip(entry.name, "row, mean |x|", by_row, rows, width));
                strips.push(strip(entry.name, "column, mean |x|", by_col, columns, width));
            }
        }
    }
    strips
}

fn strip(name: &str, axis: &str, values: Tensor<1>, length: usize, width: usize) -> Strip {
    let group = length.div_ceil(width).max(1);
    let whole = length / group;
    if group == 1 {
        let values = read_all(values).into_iter().map(f64::from).collect();
        return Strip { name: name.to_owned(), axis: axis.to_owned(), length: length as u64, values };
    }
    // An average of signed values would hide them.
    let values = values.abs();
    let grouped = values.clone().narrow(0, 0, whole * group).reshape([whole, group]);
    let mut parts = vec![grouped.mean_dim(1).reshape([whole])];
    if whole * group < length {
        parts.push(values.narrow(0, whole * group, length - whole * group).mean());
    }
    let of = if axis.contains("|x|") { "" } else { ", mean |x|" };
    let axis = format!("{axis}{of}; {group} to a cell");
    let values = read_all(Tensor::cat(parts, 0)).into_iter().map(f64::from).collect();
    Strip { name: name.to_owned(), axis, length: length as u64, values }
}

/// Adafactor's reconstructed second moment of a matrix in at most `width` by `width / 2` cells; none where the state is
/// not factored or has more than two axes.
pub fn reconstructed(entries: &[Entry], width: usize) -> Option<Heat> {
    let vector = |name: &str| -> Option<Vec<f64>> {
        let entry = entries.iter().find(|entry| entry.name == name)?;
        let [_] = entry.shape() else { return None };
        Some(read_all(values_of(entry)?).into_iter().map(f64::from).collect())
    };
    Some(Heat::reconstructed(&vector("exp_avg_sq_row")?, &vector("exp_avg_sq_col")?, width))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tensor(values: &[f32]) -> Tensor<1> {
        Tensor::from_data(TensorData::new(values.to_vec(), [values.len()]), &Device::flex())
    }

    #[test]
    fn the_root_mean_square_of_what_has_no_square_in_f32() {
        for scale in [1e-35_f32, 1e-24, 1.0, 1e30] {
            let values = [3.0 * scale, 4.0 * scale];
            let entry = Entry::tensor("exp_avg_sq", &tensor(&values), &[2]);
            let rms = describe(&[entry])[0].stats.unwrap().rms;
            let expected = f64::from(scale) * 12.5_f64.sqrt();
            assert!((rms - expected).abs() <= 1e-6 * expected, "{rms:e}, expected {expected:e}");
        }
        let ratio = read_scalars(vec![ratio_of_rms(&tensor(&[1e-30]), &tensor(&[1e-28]))])[0];
        assert!((ratio - 0.01).abs() < 1e-6, "{ratio}");
        let zeros = describe(&[Entry::tensor("exp_avg", &tensor(&[0.0, 0.0]), &[2])]);
        assert_eq!(zeros[0].stats.unwrap().rms, 0.0);
    }
}
