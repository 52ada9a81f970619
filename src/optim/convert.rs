//! State of one optimizer as state of another, where that means something: for a run forked with another optimizer.
//!
//! ```text
//! AdamW -> 8-bit AdamW     both moments are quantised, those of small tensors and embeddings stay f32
//! 8-bit AdamW -> AdamW     both moments are what their codes stand for
//! either -> Adafactor      v / (1 - beta2^t) by its means over columns and over rows; of fewer than two axes itself
//! AdamW <-> Muon           what Muon leaves to AdamW goes on; the matrices start empty
//! ```
//! Everything else starts empty: a momentum of SGD or Lion is no average that another rule could use. Nothing happens
//! without a word: [`Conversion::told`].

use std::collections::BTreeMap;

use super::{
    StateError, Stored, Values,
    quantize::{self, DynamicMap},
};
use crate::{
    config::{OptimizerConfig, OptimizerName},
    ledger,
};

/// Turns the state of one parameter after the other, and counts what became of them.
#[derive(Debug)]
pub struct Conversion<'a> {
    from: &'a OptimizerConfig,
    to: &'a OptimizerConfig,
    /// Tensors by what became of their state.
    counts: BTreeMap<&'static str, u64>,
}

/// What AdamW knows of a parameter, flat, before it is corrected for its zero beginning.
struct Moments {
    step: f64,
    first: Vec<f32>,
    second: Vec<f32>,
    /// The largest second moment seen, with `amsgrad`.
    largest: Option<Vec<f32>>,
}

impl<'a> Conversion<'a> {
    /// From the optimizer that wrote the state to the one that goes on with it.
    pub const fn new(from: &'a OptimizerConfig, to: &'a OptimizerConfig) -> Self {
        Self { from, to, counts: BTreeMap::new() }
    }

    /// The state of one parameter for the other optimizer; `None` when it starts empty. `rms` is the root mean square
    /// of the parameter.
    ///
    /// # Errors
    /// The state is not what the optimizer that wrote it keeps.
    pub fn apply(
        &mut self,
        name: &str,
        shape: &[usize],
        values: Values,
        rms: impl FnOnce() -> f64,
    ) -> Result<Option<Values>, StateError> {
        if self.from.name == self.to.name && !self.has_another_layout(name, shape, &values) {
            return Ok(self.fitted(values));
        }
        let converted = match self.moments(shape, values)? {
            Some(moments) => self.encoded(name, shape, moments, rms),
            None => None,
        };
        if converted.is_none() {
            self.count("starts empty");
        }
        Ok(converted)
    }

    /// What became of the state, in one sentence; nothing when it is as it was.
    pub fn told(&self) -> Option<String> {
        if self.counts.is_empty() {
            return None;
        }
        let parts: Vec<String> =
            self.counts.iter().map(|(what, count)| format!("{what} ({count})")).collect();
        Some(format!(
            "optimizer state from {} to {}, by the number of tensors: {}",
            self.from.name,
            self.to.name,
            parts.join(", ")
        ))
    }

    fn count(&mut self, what: &'static str) {
        *self.counts.entry(what).or_default() += 1;
    }

    /// Whether 8-bit state is cut or chosen in another way.
    fn has_another_layout(&self, name: &str, shape: &[usize], values: &Values) -> bool {
        if self.to.name != OptimizerName::AdamW8bit {
            return false;
        }
        let was = values.contains_key("absmax1");
        let is = ledger::is_quantized(&self.to.adamw8bit, name, count(shape) as u64);
        was != is || (is && self.from.adamw8bit.blocksize != self.to.adamw8bit.blocksize)
    }

    /// State of the same optimizer under other settings.
    fn fitted(&mut self, mut values: Values) -> Option<Values> {
        let mut drop = |values: &mut Values, name: &str, what| {
            if values.remove(name).is_some() {
                *self.counts.entry(what).or_default() += 1;
            }
        };
        match self.to.name {
            OptimizerName::AdamW if !self.to.adamw.amsgrad => {
                drop(&mut values, "max_exp_avg_sq", "largest second moment dropped, as amsgrad is off");
            }
            OptimizerName::AdamW if !values.contains_key("max_exp_avg_sq") => {
                if let Some(second) = values.get("exp_avg_sq").cloned() {
                    values.insert("max_exp_avg_sq".into(), second);
                    self.count("largest second moment begins with the present one");
                }
            }
            OptimizerName::Adafactor if self.to.adafactor.beta1.is_none() => {
                drop(&mut values, "exp_avg", "first moment dropped, as beta1 is not set");
            }
            OptimizerName::Adafactor if !values.contains_key("exp_avg") => {
                self.count("first moment starts empty");
            }
            OptimizerName::Sgd if self.to.sgd.momentum == 0.0 => {
                drop(&mut values, "momentum_buffer", "momentum dropped, as it is 0");
            }
            OptimizerName::Sgd if !values.contains_key("momentum_buffer") => {
                self.count("momentum starts empty");
                return None;
            }
            _ => {}
        }
        Some(values)
    }

    /// The moments that some optimizers keep, however they keep them.
    fn moments(&self, shape: &[usize], values: Values) -> Result<Option<Moments>, StateError> {
        let stored = |name: &str| values.get(name).ok_or_else(|| StateError::Missing(name.to_owned()));
        let floats = |name: &str| -> Result<Vec<f32>, StateError> {
            let value = stored(name)?;
            value.floats().ok_or_else(|| StateError::Element {
                name: name.to_owned(),
                found: value.dtype.name().to_owned(),
            })
        };
        let moments = match self.from.name {
            OptimizerName::Muon if values.contains_key("momentum_buffer") => return Ok(None),
            OptimizerName::AdamW | OptimizerName::Muon => Moments {
                first: floats("exp_avg")?,
                second: floats("exp_avg_sq")?,
                largest: floats("max_exp_avg_sq").ok(),
                step: number(&floats("step")?),
            },
            OptimizerName::AdamW8bit => {
                let step = number(&floats("step")?);
                let blocksize = self.from.adamw8bit.blocksize;
                let moment = |state: &str, absmax: &str, map: &DynamicMap| {
                    let Ok(scales) = floats(absmax) else { return floats(state) };
                    Ok(quantize::values(map, &stored(state)?.bytes, &scales, blocksize))
                };
                Moments {
                    first: moment("state1", "absmax1", DynamicMap::signed())?,
                    second: moment("state2", "absmax2", DynamicMap::unsigned())?,
                    largest: None,
                    step,
                }
            }
            OptimizerName::Adafactor | OptimizerName::Sgd | OptimizerName::Lion | OptimizerName::Own => {
                return Ok(None);
            }
        };
        let due = count(shape);
        if moments.first.len() != due || moments.second.len() != due {
            return Err(StateError::Missing("a moment of the parameter's size".into()));
        }
        Ok(Some(moments))
    }

    fn encoded(
        &mut self,
        name: &str,
        shape: &[usize],
        moments: Moments,
        rms: impl FnOnce() -> f64,
    ) -> Option<Values> {
        let mut values = Values::new();
        let mut put = |name: &str, value| drop(values.insert(name.to_owned(), value));
        put("step", Stored::number(moments.step));
        match self.to.name {
            OptimizerName::Sgd | OptimizerName::Lion | OptimizerName::Own => return None,
            OptimizerName::Muon if ledger::takes_muon(name, shape) => return None,
            OptimizerName::AdamW | OptimizerName::Muon => {
                put("exp_avg", Stored::f32(shape, &moments.first));
                put("exp_avg_sq", Stored::f32(shape, &moments.second));
                if self.to.name == OptimizerName::AdamW && self.to.adamw.amsgrad {
                    put(
                        "max_exp_avg_sq",
                        Stored::f32(shape, moments.largest.as_ref().unwrap_or(&moments.second)),
                    );
                }
                self.count("both moments carried over in f32");
            }
            OptimizerName::AdamW8bit => {
                let config = &self.to.adamw8bit;
                if !ledger::is_quantized(config, name, count(shape) as u64) {
                    put("state1", Stored::f32(shape, &moments.first));
                    put("state2", Stored::f32(shape, &moments.second));
                    self.count("both moments carried over in f32");
                    return Some(values);
                }
                for (of, map, (state, absmax)) in [
                    (&moments.first, DynamicMap::signed(), ("state1", "absmax1")),
                    (&moments.second, DynamicMap::unsigned(), ("state2", "absmax2")),
                ] {
                    let (codes, scales) = quantize::codes(map, of, config.blocksize);
                    put(state, Stored::codes(shape, codes));
                    put(absmax, Stored::f32(&[scales.len()], &scales));
                }
                self.count("both moments quantised to 8 bits");
            }
            OptimizerName::Adafactor => {
                let corrected = 1.0 - self.second_decay().powf(moments.step);
                if corrected <= 0.0 {
                    return None;
                }
                put("RMS", Stored::number(rms()));
                let eps = self.to.adafactor.eps[0];
                let second = |index: usize| f64::from(moments.second[index]) / corrected + eps;
                if let Some((lead, [rows, columns])) = shape.split_last_chunk::<2>() {
                    let (row, col) = means(lead.iter().product(), *rows, *columns, second);
                    put("exp_avg_sq_row", Stored::f32(&[lead, &[*rows]].concat(), &row));
                    put("exp_avg_sq_col", Stored::f32(&[lead, &[*columns]].concat(), &col));
                    self.count("second moment by its row and column means, first moment dropped");
                } else {
                    let full: Vec<f32> = (0..count(shape)).map(|index| second(index) as f32).collect();
                    put("exp_avg_sq", Stored::f32(shape, &full));
                    self.count("second moment carried over, first moment dropped");
                }
            }
        }
        Some(values)
    }

    /// How fast the second moment forgets, for the optimizer that wrote it.
    const fn second_decay(&self) -> f64 {
        match self.from.name {
            OptimizerName::AdamW8bit => self.from.adamw8bit.betas[1],
            OptimizerName::Muon => self.from.muon.adamw_betas[1],
            _ => self.from.adamw.betas[1],
        }
    }
}

/// Means over the columns, one a row, and over the rows, one a column, of `lead` matrices.
fn means(lead: usize, rows: usize, columns: usize, value: impl Fn(usize) -> f64) -> (Vec<f32>, Vec<f32>) {
    let (mut row, mut col) = (vec![0.0_f64; lead * rows], vec![0.0_f64; lead * columns]);
    for matrix in 0..lead {
        for r in 0..rows {
            for c in 0..columns {
                let value = value((matrix * rows + r) * columns + c);
                row[matrix * rows + r] += value;
                col[matrix * columns + c] += value;
            }
        }
    }
    let mean = |sums: Vec<f64>, of: usize| sums.into_iter().map(|sum| (sum / of as f64) as f32).collect();
    (mean(row, columns), mean(col, rows))
}

fn count(shape: &[usize]) -> usize {
    shape.iter().product()
}

fn number(values: &[f32]) -> f64 {
    values.first().map_or(0.0, |&value| f64::from(value))
}

#[cfg(test)]
mod tests;
