//! The optimizer's state as a checkpoint holds it: statistics of all tensors, and one tensor opened.

use std::collections::BTreeMap;

use super::{
    RunDir, RunError,
    checkpoint::{Checkpoint, CheckpointInfo},
    strips::StripBuilder,
    tensors::{StatsBuilder, TensorFile, dtype_name},
};
use crate::{
    ledger,
    protocol::{StateDetail, StateReport, StateTensor, TensorState},
};

/// A checkpoint whose headers have been read; tensors are read when they are asked for.
#[derive(Debug)]
pub struct CheckpointView {
    info: CheckpointInfo,
    optimizer: TensorFile,
    /// Every parameter with its shape and the names of its state, in the model's order.
    parameters: Vec<(String, Vec<usize>, Vec<String>)>,
}

impl CheckpointView {
    /// Opens a checkpoint of the run.
    ///
    /// # Errors
    /// A file is missing or damaged, or holds state of a parameter that the model does not have.
    pub fn open(run: &RunDir, checkpoint: &Checkpoint) -> Result<Self, RunError> {
        let info = checkpoint.info()?;
        let model = TensorFile::open(&checkpoint.model())?;
        let optimizer = TensorFile::open(&checkpoint.optimizer())?;
        let mut states: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for key in optimizer.names() {
            let (parameter, state) = key.rsplit_once('.').unwrap_or((&key, ""));
            if model.info(parameter).is_none() || state.is_empty() {
                return Err(RunError::Damaged {
                    path: checkpoint.optimizer(),
                    problem: format!("`{key}` belongs to no parameter of model.safetensors"),
                });
            }
            states.entry(parameter.to_owned()).or_default().push(state.to_owned());
        }
        // The file's order is by size; people know the model's.
        let order: Vec<String> = run
            .config()
            .map(|config| ledger::parameters(&config.model).into_iter().map(|p| p.name).collect())
            .unwrap_or_default();
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
        Ok(Self { info, optimizer, parameters })
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
        Ok(StateReport {
            update: self.info.update,
            optimizer: self.info.optimizer.clone(),
            tensors: tensors.collect::<Result<_, _>>()?,
            shared: BTreeMap::new(),
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
        let tensor = self.tensor(name, shape, states, |state, values| {
            if let Some(builder) = builders.get_mut(state) {
                builder.push(values.iter().copied());
            }
        })?;
        let strips = builders.into_values().flat_map(StripBuilder::finish).collect();
        Ok(StateDetail { update: self.info.update, tensor, strips, reconstructed: None })
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
        let mut state = BTreeMap::new();
        let mut counted = None;
        for part in states {
            let key = format!("{name}.{part}");
            let Some(info) = self.optimizer.info(&key) else { continue };
            let mut stats = StatsBuilder::default();
            let numbers = self.optimizer.each(&key, |values| {
                stats.push(values);
                look(part, values);
            })?;
            let stats = numbers.then(|| stats.finish());
            if part == "step" {
                counted = stats.map(|stats| stats.max.max(0.0) as u64);
            }
            let (from, to) = info.data_offsets;
            let tensor = StateTensor {
                shape: info.shape.clone(),
                dtype: dtype_name(info.dtype),
                elements: info.shape.iter().map(|&length| length as u64).product(),
                bytes: (to - from) as u64,
                stats,
            };
            state.insert(part.clone(), tensor);
        }
        let step = self.info.steps.get(name).copied().or(counted).unwrap_or(0);
        Ok(TensorState {
            name: name.to_owned(),
            shape: shape.to_vec(),
            step,
            update_ratio: None,
            figures: BTreeMap::new(),
            state,
        })
    }
}

/// The name that is written most like `text`.
pub fn nearest<'a>(text: &str, names: impl Iterator<Item = &'a str>) -> Option<String> {
    names
        .map(|name| (strsim::jaro_winkler(text, name), name))
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, name)| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::{checkpoint::latest_checkpoint, sample};

    fn view(run: &RunDir) -> CheckpointView {
        CheckpointView::open(run, &latest_checkpoint(run).unwrap().unwrap()).unwrap()
    }

    #[test]
    fn every_parameter_is_reported_in_the_models_order_with_its_state() {
        let (_folder, run) = sample::run("view");
        sample::checkpoint(&run, 12);
        let view = view(&run);
        let report = view.report(|_| true).unwrap();
        let ledger = ledger::ledger(&run.config().unwrap());
        assert_eq!((report.update, report.optimizer.as_str()), (12, "adamw"));
        assert_eq!(report.tensors.len() as u64, ledger.parameter_tensors);
        assert_eq!(report.tensors[0].name, "model.embed_tokens.weight");
        assert_eq!(report.tensors.iter().map(TensorState::bytes).sum::<u64>(), ledger.state_bytes);
        assert_eq!(report.tensors.iter().map(TensorState::elements).sum::<u64>(), ledger.state_elements);
        let norm = report.tensors.iter().find(|t| t.name == "model.norm.weight").unwrap();
        assert_eq!((norm.step, &norm.shape[..]), (12, &[64][..]));
        let moment = &norm.state["exp_avg"];
        // Element i of every tensor is i - 1.
        let stats = moment.stats.unwrap();
        assert_eq!((stats.min, stats.max, stats.mean, stats.zeros), (-1.0, 62.0, 30.5, 1));
        assert_eq!((moment.dtype.as_str(), norm.state["step"].shape.len()), ("f32", 0));
    }

    #[test]
    fn one_tensor_opens_into_strips() {
        let (_folder, run) = sample::run("open");
        sample::checkpoint(&run, 3);
        let view = view(&run);
        let detail = view.detail("model.norm.weight", 64).unwrap();
        assert_eq!(detail.strips.len(), 2, "two moments, and no strip of a number");
        assert_eq!((detail.strips[0].name.as_str(), detail.strips[0].values[0]), ("exp_avg", -1.0));
        let matrix = view.detail("model.embed_tokens.weight", 16).unwrap();
        assert_eq!(matrix.strips.iter().map(|strip| strip.values.len()).collect::<Vec<_>>(), [16; 4]);
        assert_eq!((matrix.strips[0].length, matrix.strips[1].length), (256, 64));
        let text = view.detail("model.nrom.weight", 64).unwrap_err().to_string();
        assert!(text.contains("`model.norm.weight`"), "{text}");
    }

    #[test]
    fn state_of_no_parameter_is_an_error() {
        let (_folder, run) = sample::run("stray");
        sample::checkpoint(&run, 3);
        let checkpoint = latest_checkpoint(&run).unwrap().unwrap();
        std::fs::copy(checkpoint.model(), checkpoint.optimizer()).unwrap();
        let text = CheckpointView::open(&run, &checkpoint).unwrap_err().to_string();
        assert!(text.contains("belongs to no parameter"), "{text}");
    }
}
