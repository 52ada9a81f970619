//! A state tensor as rows of values that fit a screen.

use crate::protocol::Strip;

/// Builds the strips of one tensor from its elements in order, without keeping them.
#[derive(Debug)]
pub struct StripBuilder {
    name: String,
    /// Averages are of sizes: of a matrix, and of long vectors whose values have a sign.
    sizes: bool,
    /// Rows and columns; a vector has one row.
    columns: usize,
    axes: Vec<Axis>,
    at: usize,
}

/// One axis of the tensor, cut into equal groups.
#[derive(Debug)]
struct Axis {
    /// What one position along the axis is: `row`, `column` or `element`.
    unit: &'static str,
    length: usize,
    /// Positions in one group; the last group may hold fewer.
    group: usize,
    along_rows: bool,
    sums: Vec<f64>,
    counts: Vec<u64>,
}

impl Axis {
    fn new(unit: &'static str, length: usize, width: usize, along_rows: bool) -> Self {
        let group = length.div_ceil(width.max(1)).max(1);
        let groups = length.div_ceil(group);
        Self { unit, length, group, along_rows, sums: vec![0.0; groups], counts: vec![0; groups] }
    }
}

impl StripBuilder {
    /// For the state tensor `name` of that shape, with strips of at most `width` values. A number has no strip; a
    /// tensor of more than two axes is taken as a matrix with its last axis as columns.
    pub fn new(name: &str, shape: &[usize], width: usize) -> Self {
        let columns = shape.last().copied().unwrap_or(0);
        let rows: usize = shape.iter().rev().skip(1).product();
        let axes = match shape.len() {
            0 => Vec::new(),
            1 => vec![Axis::new("element", columns, width, false)],
            _ => vec![Axis::new("row", rows, width, true), Axis::new("column", columns, width, false)],
        };
        let signed = matches!(name, "exp_avg" | "momentum_buffer" | "state1");
        // A vector that is shown element by element keeps its signs.
        let sizes = axes.len() > 1 || (signed && axes.iter().any(|axis| axis.group > 1));
        Self { name: name.to_owned(), sizes, columns: columns.max(1), axes, at: 0 }
    }

    /// Takes the next elements, in row-major order.
    pub fn push(&mut self, values: impl IntoIterator<Item = f64>) {
        for value in values {
            let value = if self.sizes { value.abs() } else { value };
            for axis in &mut self.axes {
                let place = if axis.along_rows { self.at / self.columns } else { self.at % self.columns };
                if let Some(sum) = axis.sums.get_mut(place / axis.group) {
                    *sum += value;
                    axis.counts[place / axis.group] += 1;
                }
            }
            self.at += 1;
        }
    }

    /// The strips: one for a vector, rows then columns for a matrix.
    pub fn finish(self) -> Vec<Strip> {
        let what = if self.sizes { ", mean |x|" } else { "" };
        let strip = |axis: Axis| Strip {
            name: self.name.clone(),
            axis: match axis.group {
                1 => format!("{}{what}", axis.unit),
                group => format!("{}{what}; {group} to a cell", axis.unit),
            },
            length: axis.length as u64,
            values: axis
                .sums
                .iter()
                .zip(&axis.counts)
                .map(|(&sum, &count)| sum / count.max(1) as f64)
                .collect(),
        };
        self.axes.into_iter().map(strip).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strips(name: &str, shape: &[usize], width: usize, values: &[f64]) -> Vec<(String, Vec<f64>)> {
        let mut builder = StripBuilder::new(name, shape, width);
        // In two pieces, as a file is read.
        let (first, second) = values.split_at(values.len() / 2);
        builder.push(first.iter().copied());
        builder.push(second.iter().copied());
        builder.finish().into_iter().map(|strip| (strip.axis, strip.values)).collect()
    }

    #[test]
    fn a_vector_that_fits_is_shown_as_it_is() {
        assert_eq!(strips("exp_avg", &[3], 3, &[1.0, -2.0, 3.0]), [("element".into(), vec![1.0, -2.0, 3.0])]);
        assert_eq!(strips("exp_avg_sq_row", &[2], 9, &[1.0, 2.0]), [("element".into(), vec![1.0, 2.0])]);
        assert_eq!(strips("step", &[], 9, &[1.0]), []);
    }

    #[test]
    fn a_long_axis_is_averaged_in_equal_groups_and_the_rest() {
        let values = [1.0, -3.0, 5.0, 7.0, 9.0];
        assert_eq!(
            strips("exp_avg", &[5], 3, &values),
            [("element, mean |x|; 2 to a cell".into(), vec![2.0, 6.0, 9.0])]
        );
        assert_eq!(
            strips("exp_avg_sq_col", &[5], 3, &values),
            [("element; 2 to a cell".into(), vec![-1.0, 6.0, 9.0])]
        );
    }

    #[test]
    fn a_matrix_is_averaged_over_each_axis() {
        let values = [1.0, -2.0, 3.0, -4.0, 5.0, -6.0];
        assert_eq!(
            strips("momentum_buffer", &[2, 3], 8, &values),
            [("row, mean |x|".into(), vec![2.0, 5.0]), ("column, mean |x|".into(), vec![2.5, 3.5, 4.5])]
        );
        let rows = StripBuilder::new("exp_avg_sq", &[2, 5, 3], 4).finish();
        assert_eq!(
            (rows[0].length, rows[0].values.len(), rows[0].axis.as_str()),
            (10, 4, "row, mean |x|; 3 to a cell")
        );
    }
}
