//! Weights and optimizer state from a checkpoint into a model under training.

use anyhow::Context;
use burn::tensor::{DType, Device};
use safetensors::Dtype;

use super::trainer::{self, Training};
use crate::{
    config::Config,
    optim::{Stored, Values, convert::Conversion},
    run::{checkpoint::Good, tensors::TensorFile},
};

/// Builds the model and the optimizer that the configuration names with what the checkpoint holds. Returns what became
/// of state that was another optimizer's, in a sentence.
///
/// # Errors
/// The weights are not the model's, or the state is not the optimizer's; the sentence names the file.
pub fn build(
    config: &Config,
    device: &Device,
    good: &Good,
) -> anyhow::Result<(Box<dyn Training>, Option<String>)> {
    let mut from = config.clone();
    from.model.weights = Some(good.checkpoint.model().display().to_string());
    let mut training = trainer::build(&from, device)?;
    let (path, model) = (good.checkpoint.optimizer(), TensorFile::open(&good.checkpoint.model())?);
    let file = TensorFile::open(&path)?;
    let mut conversion = Conversion::new(&good.info.config.optimizer, &config.optimizer);
    for (name, shape) in training.parameters() {
        let Some(&updates) = good.info.steps.get(&name) else { continue };
        let values = values(&file, &name)?;
        let what = || format!("{}: the state of `{name}` cannot be used", path.display());
        let rms = || root_mean_square(&model, &name);
        let Some(values) = conversion.apply(&name, &shape, values, rms).with_context(what)? else { continue };
        training.optimizer_mut().restore(&name, &shape, updates, values, device).with_context(what)?;
    }
    Ok((training, conversion.told()))
}

/// Of a parameter; it has been read already.
fn root_mean_square(model: &TensorFile, name: &str) -> f64 {
    let (mut sum, mut count) = (0.0, 0_u64);
    let read = model.each(name, |values| {
        sum += values.iter().map(|value| value * value).sum::<f64>();
        count += values.len() as u64;
    });
    if read.is_ok() && count > 0 { (sum / count as f64).sqrt() } else { f64::NAN }
}

/// The state of one parameter.
fn values(file: &TensorFile, parameter: &str) -> anyhow::Result<Values> {
    let mut values = Values::new();
    for key in file.names() {
        let Some(name) = key.strip_prefix(parameter).and_then(|rest| rest.strip_prefix('.')) else {
            continue;
        };
        let Some(info) = file.info(&key).filter(|_| !name.contains('.')) else { continue };
        let dtype = match info.dtype {
            Dtype::F32 => DType::F32,
            Dtype::BF16 => DType::BF16,
            Dtype::F16 => DType::F16,
            Dtype::U8 => DType::U8,
            other => {
                anyhow::bail!("`{key}` of optimizer.safetensors is of type {other:?}, which no state has")
            }
        };
        values.insert(name.to_owned(), Stored { dtype, shape: info.shape.clone(), bytes: file.bytes(&key)? });
    }
    Ok(values)
}
