//! Statistics and strips of state tensors, reduced on the device and read together.

use burn::tensor::{DType, Int, Tensor, Transaction};

use super::{Entry, Value};
use crate::protocol::{StateTensor, Strip, TensorStats};

/// Numbers one tensor is reduced to.
const FIELDS: usize = 6;

/// What the entries hold, each with its statistics. One read for all of them.
pub fn describe(entries: &[Entry]) -> Vec<StateTensor> {
    let tensors: Vec<&Tensor<1>> = entries.iter().filter_map(|entry| tensor(entry)).collect();
    let reduced: Vec<Tensor<1>> = tensors.iter().map(|values| reduce(values)).collect();
    let read = if reduced.is_empty() { Vec::new() } else { read_all(Tensor::cat(reduced, 0)) };
    let mut rows = read.chunks_exact(FIELDS);
    entries
        .iter()
        .map(|entry| StateTensor {
            shape: match &entry.value {
                Value::Tensor { shape, .. } => shape.clone(),
                Value::Number(_) => Vec::new(),
            },
            dtype: entry.dtype(),
            elements: entry.elements(),
            bytes: entry.bytes(),
            stats: match entry.value {
                Value::Tensor { .. } => rows.next().map(from_row),
                Value::Number(number) => Some(of_number(number)),
            },
        })
        .collect()
}

fn tensor(entry: &Entry) -> Option<&Tensor<1>> {
    match &entry.value {
        Value::Tensor { values, .. } => Some(values),
        Value::Number(_) => None,
    }
}

/// `[min, max, mean, rms, zeros, non-finite]`. Counts are exact up to 2^24 and rounded to f32 above.
fn reduce(values: &Tensor<1>) -> Tensor<1> {
    let values = values.clone().cast(DType::F32);
    let count = |marks: Tensor<1, Int>| marks.sum().float().cast(DType::F32);
    let zeros = count(values.clone().equal_elem(0.0).int());
    let nonfinite = count(values.clone().is_finite().bool_not().int());
    let mean_square = values.clone().square().mean();
    Tensor::cat(
        vec![values.clone().min(), values.clone().max(), values.mean(), mean_square.sqrt(), zeros, nonfinite],
        0,
    )
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

fn of_number(number: f64) -> TensorStats {
    TensorStats {
        min: number,
        max: number,
        mean: number,
        rms: number.abs(),
        zeros: u64::from(number == 0.0),
        nonfinite: u64::from(!number.is_finite()),
    }
}

fn read_all(values: Tensor<1>) -> Vec<f32> {
    let data = Transaction::default().register(values).execute();
    data.iter().flat_map(|data| data.iter::<f32>().collect::<Vec<_>>()).collect()
}

/// A root mean square over a root mean square, `[1]`: how far an update moved a parameter.
pub fn ratio_of_rms(part: &Tensor<1>, whole: &Tensor<1>) -> Tensor<1> {
    let mean_square = |values: &Tensor<1>| values.clone().cast(DType::F32).square().mean();
    (mean_square(part) / mean_square(whole)).sqrt()
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
        let Value::Tensor { values, shape } = &entry.value else { continue };
        let values = values.clone().cast(DType::F32);
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
