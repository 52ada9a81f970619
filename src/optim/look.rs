//! One update of one parameter looked into, and how the values of its state are spread.

use burn::tensor::{DType, Tensor};

use super::{
    Entry, Value,
    driver::Looked,
    stats::{read_all, reconstructed, values_of},
};
use crate::protocol::{CodeUse, Heat, Histogram, UpdateLook};

/// Most elements that are read for one histogram; of a larger tensor some at equal distances.
const MOST_READ: usize = 1 << 20;

/// What an update told, `entries` being the state after it. Maps have at most `width / 2` rows of `width` cells.
pub fn reduce(looked: &Looked, entries: &[Entry], step: u64, width: usize) -> UpdateLook {
    let mut look = UpdateLook {
        step,
        gradient: histogram("gradient", &looked.gradient),
        update: histogram("update", &looked.change),
        second_moment: None,
        squared_gradient: None,
        error: None,
        factorization_error: None,
    };
    let [rows, columns] = looked.shape[..] else { return look };
    let groups = [rows.div_ceil((width / 2).max(1)).max(1), columns.div_ceil(width.max(1)).max(1)];
    let squared = looked.gradient.clone().cast(DType::F32).square().reshape([rows, columns]);
    let counts = cell_sizes([rows, columns], groups);
    let heat = |name: &str, values: Vec<f64>| Heat {
        name: name.to_owned(),
        shape: [rows, columns],
        rows: rows.div_ceil(groups[0]),
        columns: columns.div_ceil(groups[1]),
        values,
    };
    let sums = block_sums(squared.clone(), groups);
    let means = sums.iter().zip(&counts).map(|(sum, count)| sum / count).collect();
    look.squared_gradient = Some(heat("gradient^2", means));
    let find = |name: &str| entries.iter().find(|entry| entry.name == name).and_then(values_of);
    look.second_moment = reconstructed(entries, width);
    if let (Some(row), Some(col)) = (find("exp_avg_sq_row"), find("exp_avg_sq_col")) {
        let share = row.clone() / row.mean();
        let ours = share.reshape([rows, 1]) * col.reshape([1, columns]);
        // In units of the largest value: the square of a square would leave the range of f32.
        let unit = squared.clone().max().max_pair(ours.clone().max()).clamp_min(f64::from(f32::MIN_POSITIVE));
        let unit = unit.reshape([1, 1]);
        let truth = squared / unit.clone();
        let off = block_sums((ours / unit - truth.clone()).square(), groups);
        let whole = block_sums(truth.square(), groups);
        let share = |off: f64, whole: f64| if whole > 0.0 { (off / whole).sqrt() } else { f64::NAN };
        look.factorization_error = Some(share(off.iter().sum(), whole.iter().sum()));
        let cells = off.iter().zip(&whole).map(|(off, whole)| share(*off, *whole)).collect();
        look.error = Some(heat("|row x column / mean(row) - gradient^2| / |gradient^2|", cells));
    }
    look
}

/// Elements in each cell.
fn cell_sizes(shape: [usize; 2], groups: [usize; 2]) -> Vec<f64> {
    let sizes = |length: usize, group: usize| {
        (0..length.div_ceil(group)).map(move |at| group.min(length - at * group) as f64)
    };
    sizes(shape[0], groups[0])
        .flat_map(|rows| sizes(shape[1], groups[1]).map(move |columns| rows * columns))
        .collect()
}

/// Sums over blocks of so many rows and columns, row after row; summed on the device, the last block may be smaller.
fn block_sums(values: Tensor<2>, [down, across]: [usize; 2]) -> Vec<f64> {
    let [rows, columns] = values.dims();
    let whole = columns / across;
    let mut parts = Vec::new();
    if whole > 0 {
        let part = values.clone().narrow(1, 0, whole * across).reshape([rows * whole, across]);
        parts.push(part.sum_dim(1).reshape([rows, whole]));
    }
    if whole * across < columns {
        parts.push(values.narrow(1, whole * across, columns - whole * across).sum_dim(1));
    }
    let narrow = Tensor::cat(parts, 1);
    let cells = narrow.dims()[1];
    let whole = rows / down;
    let mut parts = Vec::new();
    if whole > 0 {
        let part: Tensor<3> = narrow.clone().narrow(0, 0, whole * down).reshape([whole, down, cells]);
        parts.push(part.sum_dim(1).reshape([whole * cells]));
    }
    if whole * down < rows {
        let part = narrow.narrow(0, whole * down, rows - whole * down).sum_dim(0);
        parts.push(part.reshape([cells]));
    }
    read_all(Tensor::cat(parts, 0)).into_iter().map(f64::from).collect()
}

/// How the values of a flat tensor are spread.
fn histogram(name: &str, values: &Tensor<1>) -> Histogram {
    let count = values.dims()[0];
    let every = count.div_ceil(MOST_READ).max(1);
    let values = values.clone().cast(DType::F32);
    let read = if every == 1 {
        values
    } else {
        let whole = count / every;
        values.narrow(0, 0, whole * every).reshape([whole, every]).narrow(1, 0, 1).reshape([whole])
    };
    Histogram::of(name, every as u64, read_all(read).into_iter().map(f64::from))
}

/// How the values of each state tensor are spread; of codes those they stand for. Numbers have none.
pub fn histograms(entries: &[Entry]) -> Vec<Histogram> {
    let tensors = entries.iter().filter(|entry| !entry.shape().is_empty());
    tensors.filter_map(|entry| Some(histogram(entry.name, &values_of(entry)?))).collect()
}

/// How the codes of each 8-bit tensor are used.
pub fn codes(entries: &[Entry]) -> Vec<CodeUse> {
    let of = |entry: &Entry| {
        let Value::Codes(codes) = &entry.value else { return None };
        let mut counts = [0; 256];
        for code in codes.codes.read().iter() {
            counts[usize::from(*code)] += 1;
        }
        let map: Vec<f64> = codes.map.values().iter().map(|value| f64::from(*value)).collect();
        let scales: Vec<f64> = codes.absmax.read().iter().map(|scale| f64::from(*scale)).collect();
        Some(CodeUse::of(entry.name, &counts, &map, &scales, codes.blocksize))
    };
    entries.iter().filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use burn::tensor::{Device, TensorData};

    use super::*;

    fn tensor(values: &[f32]) -> Tensor<1> {
        Tensor::from_data(TensorData::new(values.to_vec(), [values.len()]), &Device::flex())
    }

    fn looked(shape: &[usize], gradient: &[f32]) -> Looked {
        let change = tensor(&gradient.iter().map(|value| -0.1 * value).collect::<Vec<_>>());
        Looked { shape: shape.to_vec(), gradient: tensor(gradient), change }
    }

    #[test]
    fn what_factors_lose_is_told_cell_by_cell() {
        // The square of the first two rows is an outer product, that of the third is not; the last row has no gradient.
        let gradient = [1.0, 2.0, 3.0, 6.0, 0.0, 9.0, 0.0, 0.0];
        let squared: Vec<f32> = gradient.iter().map(|value| value * value).collect();
        let row: Vec<f32> = squared.chunks(2).map(|row| (row[0] + row[1]) / 2.0).collect();
        let col = [0, 1].map(|at| squared.iter().skip(at).step_by(2).sum::<f32>() / 4.0);
        let entries = [
            Entry::tensor("exp_avg_sq_row", &tensor(&row), &[4]),
            Entry::tensor("exp_avg_sq_col", &tensor(&col), &[2]),
        ];
        let look = reduce(&looked(&[4, 2], &gradient), &entries, 7, 64);
        let heat = look.squared_gradient.unwrap();
        assert_eq!((look.step, heat.rows, heat.columns), (7, 4, 2));
        assert_eq!(heat.values, [1.0, 4.0, 9.0, 36.0, 0.0, 81.0, 0.0, 0.0]);
        let mean = row.iter().sum::<f32>() / 4.0;
        assert_eq!(look.second_moment.map(|heat| (heat.rows, heat.columns)), Some((4, 2)));
        let expected: Vec<f64> = (0..8)
            .map(|at| {
                let (ours, truth) = (row[at / 2] / mean * col[at % 2], squared[at]);
                if truth == 0.0 { f64::NAN } else { f64::from((ours - truth).abs() / truth) }
            })
            .collect();
        let error = look.error.unwrap();
        for (found, expected) in error.values.iter().zip(&expected) {
            let same = if expected.is_nan() { found.is_nan() } else { (found - expected).abs() < 1e-5 };
            assert!(same, "{error:?}");
        }
        let (mut off, mut whole) = (0.0, 0.0);
        for at in 0..8 {
            let ours = f64::from(row[at / 2] / mean * col[at % 2]);
            off += (ours - f64::from(squared[at])).powi(2);
            whole += f64::from(squared[at]).powi(2);
        }
        assert!((look.factorization_error.unwrap() - (off / whole).sqrt()).abs() < 1e-6);
        assert_eq!((look.update.negative, look.update.zeros, look.gradient.negative), (5, 3, 0));
    }

    #[test]
    fn blocks_that_do_not_divide_the_matrix_are_summed_whole() {
        let values: Vec<f32> = (0..15).map(|at| at as f32).collect();
        let sums = block_sums(tensor(&values).reshape([5, 3]), [2, 2]);
        assert_eq!(sums, [8.0, 7.0, 32.0, 19.0, 25.0, 14.0]);
        assert_eq!(cell_sizes([5, 3], [2, 2]), [4.0, 2.0, 4.0, 2.0, 2.0, 1.0]);
        let small = block_sums(tensor(&values).reshape([5, 3]), [8, 8]);
        assert_eq!(small, [105.0]);
    }

    #[test]
    fn a_vector_has_no_map_and_a_large_tensor_is_sampled() {
        let look = reduce(&looked(&[3], &[1.0, 0.0, -1.0]), &[], 1, 8);
        assert!(look.squared_gradient.is_none() && look.second_moment.is_none() && look.error.is_none());
        assert_eq!((look.gradient.zeros, look.gradient.negative, look.gradient.every), (1, 1, 1));
        let many = Tensor::<1>::ones([3 * MOST_READ + 1], &Device::flex());
        let found = histogram("x", &many);
        assert_eq!((found.every, found.first, found.counts.len()), (4, 0, 1));
        assert_eq!(found.counts[0], (3 * MOST_READ as u64 + 1) / 4);
    }
}
