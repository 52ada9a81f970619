//! A checkpoint: weights and optimizer state as safetensors, the rest as JSON, all of it or nothing.
//!
//! Training waits while a [`Snapshot`] copies the tensors to the host; writing it is somebody else's time.

use std::{borrow::Cow, collections::BTreeMap, io, path::Path, sync::Arc};

use burn::tensor::{DType, TensorData};
use rayon::prelude::*;
use safetensors::{Dtype, View};

use super::trainer::Training;
use crate::{
    config::Config,
    data::Cursor,
    optim::{Entry, Value},
    protocol::SCHEMA,
    run::{
        RunDir, atomic,
        checkpoint::{CheckpointInfo, FORMAT, FileHash, Progress},
        fault::step,
    },
};

/// What a checkpoint says besides tensors.
#[derive(Debug, Clone, Copy)]
pub struct Position<'a> {
    pub update: u64,
    pub tokens: u64,
    /// The configuration in force.
    pub config: &'a Config,
    /// The first sequence of the next update.
    pub cursor: Cursor,
    pub progress: Progress,
}

/// Everything that goes into a checkpoint, in host memory.
#[derive(Debug)]
pub struct Snapshot {
    info: CheckpointInfo,
    weights: Vec<(String, Host)>,
    state: Vec<(String, Host)>,
}

impl Snapshot {
    /// Copies weights and state to the host, on all cores: most of it is the first touch of fresh memory.
    ///
    /// # Errors
    /// The cursor has no JSON form, which it always has.
    pub fn take(run: &RunDir, training: &dyn Training, position: Position<'_>) -> io::Result<Self> {
        let mut steps = BTreeMap::new();
        let mut entries = Vec::new();
        let optimizer = training.optimizer();
        for name in optimizer.names() {
            if let Some((_, updates)) = optimizer.slot(&name) {
                steps.insert(name.clone(), updates);
            }
            let of_parameter = optimizer.entries(&name);
            entries.extend(of_parameter.into_iter().map(|entry| (format!("{name}.{}", entry.name), entry)));
        }
        entries.extend(optimizer.shared().into_iter().map(|entry| (entry.name.to_owned(), entry)));
        let state = entries.into_par_iter().map(|(name, entry)| (name, host(&entry)));
        let weights = training.weights().into_iter().map(|tensor| {
            let content = Content::Data(tensor.data);
            (tensor.name, Host { dtype: Dtype::F32, shape: tensor.shape, content })
        });
        Ok(Self {
            weights: weights.collect(),
            state: state.collect(),
            info: CheckpointInfo {
                format: FORMAT,
                schema: SCHEMA,
                run: run.id().to_owned(),
                update: position.update,
                tokens: position.tokens,
                optimizer: position.config.optimizer.name.as_str().to_owned(),
                cursor: serde_json::to_value(position.cursor)?,
                steps,
                progress: position.progress,
                config: position.config.clone(),
                files: BTreeMap::new(),
            },
        })
    }

    /// The updates that had been made.
    pub const fn update(&self) -> u64 {
        self.info.update
    }

    /// Writes `checkpoints/<update>/` under a temporary name, waits until it is on the disk and renames it; returns its
    /// bytes, and what stands in `checkpoint.json`.
    ///
    /// # Errors
    /// Nothing is left behind under the final name when a write fails.
    pub fn write(mut self, run: &RunDir) -> io::Result<(u64, CheckpointInfo)> {
        let folder = run.checkpoint(self.info.update);
        // Not its parents: a folder that was deleted under the run does not come back.
        step()?;
        match std::fs::create_dir(run.checkpoints()) {
            Ok(()) => atomic::sync_folder(run.path())?,
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            Err(_) => {}
        }
        let mut bytes = 0;
        atomic::write_folder(&folder, |temporary: &Path| -> io::Result<()> {
            for (name, tensors) in
                [("model.safetensors", &self.weights), ("optimizer.safetensors", &self.state)]
            {
                let path = temporary.join(name);
                write_tensors(&path, tensors)?;
                let hash = FileHash::of(&path)?;
                bytes += hash.bytes;
                self.info.files.insert(name.to_owned(), hash);
            }
            let info = serde_json::to_vec_pretty(&self.info)?;
            bytes += info.len() as u64;
            step()?;
            std::fs::write(temporary.join("checkpoint.json"), info)
        })?;
        Ok((bytes, self.info))
    }
}

fn write_tensors(path: &Path, tensors: &[(String, Host)]) -> io::Result<()> {
    let metadata = Some([("format".to_owned(), "pt".to_owned())].into());
    step()?;
    safetensors::serialize_to_file(tensors.iter().map(|(name, tensor)| (name, tensor)), metadata, path)
        .map_err(io::Error::other)?;
    // As if it had failed in the middle: the file is there.
    step()
}

/// A tensor on the host as safetensors stores it.
#[derive(Debug)]
struct Host {
    dtype: Dtype,
    shape: Vec<usize>,
    content: Content,
}

/// In the form in which it came, so that taking it is one copy; bytes are made of it when it is written.
#[derive(Debug)]
enum Content {
    Data(TensorData),
    Floats(Arc<Vec<f32>>),
    Codes(Arc<Vec<u8>>),
}

fn host(entry: &Entry) -> Host {
    let (dtype, content) = match &entry.value {
        Value::Tensor { values, .. } => {
            let dtype = match values.dtype() {
                DType::BF16 => Dtype::BF16,
                DType::F16 => Dtype::F16,
                DType::F64 => Dtype::F64,
                _ => Dtype::F32,
            };
            let values = if dtype == Dtype::F32 { values.clone().cast(DType::F32) } else { values.clone() };
            (dtype, Content::Data(values.into_data()))
        }
        Value::Host { values, .. } => (Dtype::F32, Content::Floats(Arc::clone(values))),
        Value::Codes(codes) => (Dtype::U8, Content::Codes(codes.codes.read())),
        Value::Number(number) => (Dtype::F32, Content::Floats(Arc::new(vec![*number as f32]))),
    };
    Host { dtype, shape: entry.shape().to_vec(), content }
}

impl View for &Host {
    fn dtype(&self) -> Dtype {
        self.dtype
    }

    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn data(&self) -> Cow<'_, [u8]> {
        match &self.content {
            // Burn's own bytes are in the order of the machine, which is little-endian wherever it runs.
            Content::Data(data) => data.as_bytes().into(),
            Content::Floats(values) => {
                let mut bytes = Vec::with_capacity(4 * values.len());
                values.iter().for_each(|value| bytes.extend_from_slice(&value.to_le_bytes()));
                bytes.into()
            }
            Content::Codes(codes) => codes.as_slice().into(),
        }
    }

    fn data_len(&self) -> usize {
        match &self.content {
            Content::Data(data) => data.as_bytes().len(),
            Content::Floats(values) => 4 * values.len(),
            Content::Codes(codes) => codes.len(),
        }
    }
}
