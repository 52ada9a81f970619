//! Writing a checkpoint: weights and optimizer state as safetensors, the rest as JSON, all of it or nothing.

use std::{collections::BTreeMap, io, path::Path};

use burn::tensor::DType;
use safetensors::{Dtype, View};

use super::trainer::Training;
use crate::{
    data::Cursor,
    optim::{Entry, Value},
    protocol::SCHEMA,
    run::{RunDir, atomic, checkpoint::CheckpointInfo},
};

/// What a checkpoint says besides tensors.
#[derive(Debug, Clone, Copy)]
pub struct Position<'a> {
    pub update: u64,
    pub tokens: u64,
    pub optimizer: &'a str,
    /// The first sequence of the next update.
    pub cursor: Cursor,
}

/// Writes `checkpoints/<update>/` under a temporary name and renames it; returns its bytes.
///
/// # Errors
/// Nothing is left behind under the final name when a write fails.
pub fn write(run: &RunDir, training: &dyn Training, position: Position<'_>) -> io::Result<u64> {
    let folder = run.checkpoint(position.update);
    // Not its parents: a folder that was deleted under the run does not come back.
    match std::fs::create_dir(run.checkpoints()) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let mut steps = BTreeMap::new();
    let mut state = Vec::new();
    for name in training.optimizer().names() {
        if let Some((_, updates)) = training.optimizer().slot(&name) {
            steps.insert(name.clone(), updates);
        }
        for entry in training.optimizer().entries(&name) {
            state.push((format!("{name}.{}", entry.name), host(&entry)));
        }
    }
    state.extend(training.optimizer().shared().iter().map(|entry| (entry.name.to_owned(), host(entry))));
    let weights: Vec<(String, Host)> = training
        .weights()
        .into_iter()
        .map(|tensor| (tensor.name, Host::f32(&tensor.shape, &tensor.values)))
        .collect();
    let info = CheckpointInfo {
        schema: SCHEMA,
        run: run.id().to_owned(),
        update: position.update,
        tokens: position.tokens,
        optimizer: position.optimizer.to_owned(),
        cursor: serde_json::to_value(position.cursor)?,
        steps,
    };
    let mut bytes = 0;
    atomic::write_folder(&folder, |temporary: &Path| -> io::Result<()> {
        let files = [
            ("model.safetensors", serialize(&weights)?),
            ("optimizer.safetensors", serialize(&state)?),
            ("checkpoint.json", serde_json::to_vec_pretty(&info)?),
        ];
        for (name, content) in files {
            bytes += content.len() as u64;
            let file = temporary.join(name);
            std::fs::write(&file, content)?;
            std::fs::File::open(&file)?.sync_all()?;
        }
        Ok(())
    })?;
    Ok(bytes)
}

fn serialize(tensors: &[(String, Host)]) -> io::Result<Vec<u8>> {
    let metadata = Some([("format".to_owned(), "pt".to_owned())].into());
    safetensors::serialize(tensors.iter().map(|(name, tensor)| (name, tensor)), metadata)
        .map_err(io::Error::other)
}

/// A tensor on the host as safetensors stores it.
struct Host {
    dtype: Dtype,
    shape: Vec<usize>,
    bytes: Vec<u8>,
}

impl Host {
    fn f32(shape: &[usize], values: &[f32]) -> Self {
        Self { dtype: Dtype::F32, shape: shape.to_vec(), bytes: to_bytes(values) }
    }
}

fn host(entry: &Entry) -> Host {
    let shape = entry.shape();
    match &entry.value {
        Value::Tensor { values, .. } => {
            let values: Vec<f32> = values.clone().cast(DType::F32).into_data().iter::<f32>().collect();
            Host::f32(shape, &values)
        }
        Value::Host { values, .. } => Host::f32(shape, values),
        Value::Codes(codes) => Host { dtype: Dtype::U8, shape: shape.to_vec(), bytes: codes.codes.to_vec() },
        Value::Number(number) => Host::f32(shape, &[*number as f32]),
    }
}

fn to_bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

impl View for &Host {
    fn dtype(&self) -> Dtype {
        self.dtype
    }

    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn data(&self) -> std::borrow::Cow<'_, [u8]> {
        self.bytes.as_slice().into()
    }

    fn data_len(&self) -> usize {
        self.bytes.len()
    }
}
