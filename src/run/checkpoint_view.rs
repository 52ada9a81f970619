//! The optimizer's state as a checkpoint holds it: statistics of all tensors, and one tensor opened.

use std::{collections::BTreeMap, path::PathBuf};

use safetensors::{Dtype, tensor::TensorInfo};

use super::{
    RunError,
    checkpoint::{Checkpoint, CheckpointInfo},
    strips::StripBuilder,
    tensorboard::histogram::Histogram,
    tensors::{Decoder, StatsBuilder, TensorFile, UntouchedRows, dtype_name},
};
use crate::{
    config::{Config, OptimizerName},
    ledger,
    protocol::{
        CodeUse, Heat, HistogramBuilder, StateDetail, StateReport, StateTensor, TensorState, state::figures,
    },
};

/// A checkpoint whose headers have been read; tensors are read when they are asked for.
#[derive(Debug)]
pub struct CheckpointView {
    info: CheckpointInfo,
    optimizer: TensorFile,
    path: PathBuf,
    /// The one in force when it was written.
    config: Config,
    /// Names of the state that all parameters share.
    shared: Vec<String>,
    /// Every parameter with its shape and the names of its state, in the model's order.
    parameters: Vec<(String, Vec<usize>, Vec<String>)>,
}

impl CheckpointView {
    /// Opens a checkpoint.
    ///
    /// # Errors
    /// A file is missing or damaged, or holds state of a parameter that the model does not have.
    pub fn open(checkpoint: &Checkpoint) -> Result<Self, RunError> {
        let info = checkpoint.info()?;
        let model = TensorFile::open(&checkpoint.model())?;
        let optimizer = TensorFile::open(&checkpoint.optimizer())?;
        let mut states: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let mut shared = Vec::new();
        for key in optimizer.names() {
            let Some((parameter, state)) = key.rsplit_once('.') else {
                shared.push(key);
                continue;
            };
            if model.info(parameter).is_none() {
                return Err(RunError::Damaged {
                    path: checkpoint.optimizer(),
                    problem: format!("`{key}` belongs to no parameter of model.safetensors"),
                });
            }
            states.entry(parameter.to_owned()).or_default().push(state.to_owned());
        }
        // The file's order is by size; people know the model's.
        let config = info.config.clone();
        let order: Vec<String> = ledger::parameters(&config.model).into_iter().map(|p| p.name).collect();
        let mut parameters: Vec<_> = model
            .names()
            .into_iter()
            .map(|name| {
                let shape = model.info(&name).map(|info| info.shape.clone()).unwrap_or_default();
                let state = states.remove(&name).unwrap_or_default();
                (name, shape, state)
            })
            .collect();
        parameters.sort_by_key(|(name, ..)| {
            (order.iter().position(|known| known == name).unwrap_or(order.len()), name.clone())
        });
        Ok(Self { info, optimizer, path: checkpoint.optimizer(), config, shared, parameters })
    }

    /// What `checkpoint.json` says.
    pub const fn info(&self) -> &CheckpointInfo {
        &self.info
    }

    /// The parameters' names, in the model's order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.parameters.iter().map(|(name, ..)| name.as_str())
    }

    /// Statistics of the state of the parameters that `wanted` chooses.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn report(&self, wanted: impl Fn(&str) -> bool) -> Result<StateReport, RunError> {
        let chosen = self.parameters.iter().filter(|(name, ..)| wanted(name));
        let tensors = chosen.map(|(name, shape, states)| self.tensor(name, shape, states, |_, _| {}));
        let shared = self.shared.iter().map(|key| Ok((key.clone(), self.stored(key, None, |_| {})?)));
        Ok(StateReport {
            update: self.info.update,
            optimizer: self.info.optimizer.clone(),
            tensors: tensors.collect::<Result<_, _>>()?,
            shared: shared.collect::<Result<_, RunError>>()?,
        })
    }

    /// One parameter's state opened, with strips of at most `width` values.
    ///
    /// # Errors
    /// There is no such parameter, or the file cannot be read.
    pub fn detail(&self, parameter: &str, width: usize) -> Result<StateDetail, RunError> {
        let found = self.parameters.iter().find(|(name, ..)| name == parameter);
        let Some((name, shape, states)) = found else {
            return Err(RunError::NoTensor {
                pattern: parameter.to_owned(),
                nearest: nearest(parameter, self.names()),
            });
        };
        let mut builders: BTreeMap<&str, StripBuilder> = states
            .iter()
            .map(|state| {
                let shape = self.shape_of(name, state);
                (state.as_str(), StripBuilder::new(state, shape, width))
            })
            .collect();
        let mut histograms: BTreeMap<&str, HistogramBuilder> = states
            .iter()
            .filter(|state| !self.shape_of(name, state).is_empty())
            .map(|state| (state.as_str(), HistogramBuilder::new(state)))
            .collect();
        let (mut row, mut col) = (Vec::new(), Vec::new());
        let tensor = self.tensor(name, shape, states, |state, values| {
            match state {
                "exp_avg_sq_row" => row.extend_from_slice(values),
                "exp_avg_sq_col" => col.extend_from_slice(values),
                _ => {}
            }
            if let Some(builder) = builders.get_mut(state) {
                builder.push(values.iter().copied());
            }
            if let Some(histogram) = histograms.get_mut(state) {
                values.iter().for_each(|value| histogram.push(*value));
            }
        })?;
        let codes = states.iter().filter_map(|state| self.code_use(name, state).transpose());
        let codes = codes.collect::<Result<_, _>>()?;
        let strips = builders.into_values().flat_map(StripBuilder::finish).collect();
        // More than two axes are several matrices.
        let reconstructed = (shape.len() == 2 && !row.is_empty() && !col.is_empty())
            .then(|| Heat::reconstructed(&row, &col, width));
        let histograms = histograms.into_values().map(HistogramBuilder::finish).collect();
        let update = self.info.update;
        Ok(StateDetail { update, tensor, strips, reconstructed, histograms, codes, look: None })
    }

    /// How the codes of a state tensor are used; nothing where it has none.
    fn code_use(&self, parameter: &str, part: &str) -> Result<Option<CodeUse>, RunError> {
        let key = format!("{parameter}.{part}");
        let coded = self.optimizer.info(&key).is_some_and(|info| info.dtype == Dtype::U8);
        let Some(which) = part.strip_prefix("state").filter(|_| coded) else { return Ok(None) };
        let mut counts = [0; 256];
        self.optimizer.each(&key, |codes| codes.iter().for_each(|code| counts[*code as usize % 256] += 1))?;
        let (map, scales) =
            (self.all(&format!("qmap{which}"))?, self.all(&format!("{parameter}.absmax{which}"))?);
        let blocksize = self.config.optimizer.adamw8bit.blocksize;
        Ok(Some(CodeUse::of(part, &counts, &map, &scales, blocksize)))
    }

    fn all(&self, key: &str) -> Result<Vec<f64>, RunError> {
        let mut all = Vec::new();
        self.optimizer.each(key, |values| all.extend_from_slice(values))?;
        Ok(all)
    }

    /// How the elements of one parameter's state lie, by its name; a number is no distribution.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn histograms(&self, parameter: &str) -> Result<BTreeMap<String, Histogram>, RunError> {
        let mut found: BTreeMap<String, Histogram> = BTreeMap::new();
        for (name, shape, states) in self.parameters.iter().filter(|(name, ..)| name == parameter) {
            self.tensor(name, shape, states, |state, values| {
                if !self.shape_of(name, state).is_empty() {
                    found.entry(state.to_owned()).or_default().push(values);
                }
            })?;
        }
        Ok(found)
    }

    fn shape_of(&self, parameter: &str, state: &str) -> &[usize] {
        self.optimizer.info(&format!("{parameter}.{state}")).map_or(&[], |info| &info.shape)
    }

    /// Reads the state of one parameter, showing its elements to `look`.
    fn tensor(
        &self,
        name: &str,
        shape: &[usize],
        states: &[String],
        mut look: impl FnMut(&str, &[f64]),
    ) -> Result<TensorState, RunError> {
        let (mut state, mut figures) = (BTreeMap::new(), BTreeMap::new());
        let mut counted = None;
        for part in states {
            let key = format!("{name}.{part}");
            let Some(info) = self.optimizer.info(&key) else { continue };
            let mut untouched = self.untouched(part, info);
            let tensor = self.stored(&key, self.codes(name, part, info)?, |values| {
                if let Some(rows) = &mut untouched {
                    rows.push(values);
                }
                look(part, values);
            })?;
            if let Some(rows) = untouched {
                figures.insert(figures::ROWS_NEVER_TOUCHED.to_owned(), rows.finish() as f64);
            }
            if part == "step" {
                counted = tensor.stats.map(|stats| stats.max.max(0.0) as u64);
            }
            state.insert(part.clone(), tensor);
        }
        let step = self.info.steps.get(name).copied().or(counted).unwrap_or(0);
        Ok(TensorState {
            name: name.to_owned(),
            shape: shape.to_vec(),
            step,
            update_ratio: None,
            measured_at: None,
            figures,
            state,
        })
    }

    /// Reads one tensor, showing its elements, or what they stand for when they are codes, to `look`.
    fn stored(
        &self,
        key: &str,
        mut codes: Option<Decoder>,
        mut look: impl FnMut(&[f64]),
    ) -> Result<StateTensor, RunError> {
        let mut stats = StatsBuilder::default();
        let numbers = self.optimizer.each(key, |values| {
            let values = match &mut codes {
                Some(codes) => codes.decode(values),
                None => values,
            };
            stats.push(values);
            look(values);
        })?;
        // Known to the file, or it could not have been read.
        let info = self.optimizer.info(key);
        let (from, to) = info.map_or((0, 0), |info| info.data_offsets);
        let shape = info.map(|info| info.shape.clone()).unwrap_or_default();
        Ok(StateTensor {
            dtype: info.map(|info| dtype_name(info.dtype)).unwrap_or_default(),
            elements: shape.iter().map(|&length| length as u64).product(),
            bytes: (to - from) as u64,
            stats: numbers.then(|| stats.finish()),
            shape,
        })
    }

    /// What the codes of 8-bit AdamW stand for; nothing for any other state.
    fn codes(&self, parameter: &str, part: &str, info: &TensorInfo) -> Result<Option<Decoder>, RunError> {
        let Some(which) = part.strip_prefix("state").filter(|_| info.dtype == Dtype::U8) else {
            return Ok(None);
        };
        let damaged = |problem: String| RunError::Damaged { path: self.path.clone(), problem };
        let (map, absmax) =
            (self.all(&format!("qmap{which}"))?, self.all(&format!("{parameter}.absmax{which}"))?);
        let (blocksize, elements) = (self.config.optimizer.adamw8bit.blocksize, info.shape.iter().product());
        let decoder = Decoder::new(map, absmax, blocksize, elements).ok_or_else(|| {
            damaged(format!("`absmax{which}` of `{parameter}` does not fit blocks of {blocksize} elements"))
        })?;
        Ok(Some(decoder))
    }

    /// Counts a matrix's rows that no gradient has touched, where this part of the state tells. Codes do not: small
    /// values are zeros, too.
    fn untouched(&self, part: &str, info: &TensorInfo) -> Option<UntouchedRows> {
        let optimizer = &self.config.optimizer;
        match (part, &info.shape[..]) {
            // One element a row, which begins with the first `eps`; averages of it are off by a rounding.
            ("exp_avg_sq_row", _) => Some(UntouchedRows::new(1, optimizer.adafactor.eps[0] * (1.0 + 1e-4))),
            ("exp_avg_sq", [_, .., columns]) => Some(UntouchedRows::new(*columns, 0.0)),
            ("state2", [_, .., columns])
                if optimizer.name == OptimizerName::AdamW8bit && info.dtype != Dtype::U8 =>
            {
                Some(UntouchedRows::new(*columns, 0.0))
            }
            _ => None,
        }
    }
}

/// The name that is written most like `text`, if one is like it at all.
pub fn nearest<'a>(text: &str, names: impl Iterator<Item = &'a str>) -> Option<String> {
    names
        .map(|name| (strsim::jaro_winkler(text, name), name))
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .filter(|(likeness, _)| *likeness > 0.6)
        .map(|(_, name)| name.to_owned())
}

#[cfg(test)]
mod tests;
