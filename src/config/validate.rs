//! Checks that concern more than one key.

use std::collections::BTreeMap;

use super::{Config, ConfigError, OptimizerName, ScheduleName, Tokenizer};

/// Checks combinations of keys and returns what is worth saying about them.
///
/// # Errors
/// One sentence that names the keys and says what to change.
pub fn check(config: &Config, explicit: &BTreeMap<String, String>) -> Result<Vec<String>, ConfigError> {
    heads(config)?;
    data(config)?;
    if let Some(total) = config.train.max_updates {
        warmup(config, total)?;
    }
    if !matches!(&*config.train.device, "auto" | "flex") {
        return Err(ConfigError::Conflict(format!(
            "train.device = \"{}\" is not available here: this build trains on `flex` (`tui-train devices` lists them)",
            config.train.device
        )));
    }
    decay(config)?;
    optimizer(config, explicit)
}

/// A decay that ends above the base rate would rise.
fn decay(config: &Config) -> Result<(), ConfigError> {
    let (least, base) = (config.schedule.min_lr, config.optimizer.lr());
    let decays = config.schedule.name != ScheduleName::Constant && !relative_step(config);
    if decays && least > base {
        return Err(ConfigError::Conflict(format!(
            "schedule.min_lr = {least} is above optimizer.{}.lr = {base}: the rate would rise, lower min_lr",
            config.optimizer.name
        )));
    }
    Ok(())
}

/// The warm-up must end before the run does; also called once the length of an `epochs` run is known.
pub fn warmup(config: &Config, total: u64) -> Result<(), ConfigError> {
    let warmup = config.schedule.warmup_updates;
    if warmup >= total && !relative_step(config) {
        return Err(ConfigError::Conflict(format!(
            "schedule.warmup_updates = {warmup} is not below the {total} updates of the run: lower it or train longer"
        )));
    }
    Ok(())
}

/// Whether the optimizer sets its own rate, so that the schedule has no effect.
pub fn relative_step(config: &Config) -> bool {
    config.optimizer.name == OptimizerName::Adafactor && config.optimizer.adafactor.relative_step
}

fn heads(config: &Config) -> Result<(), ConfigError> {
    let model = &config.model;
    let (width, heads, shared) = (model.hidden_size, model.num_attention_heads, model.num_key_value_heads);
    if width % heads != 0 {
        return Err(ConfigError::Conflict(format!(
            "model.hidden_size = {width} cannot be divided by model.num_attention_heads = {heads}: choose a multiple"
        )));
    }
    if !model.head_dim().is_multiple_of(2) {
        return Err(ConfigError::Conflict(format!(
            "model.hidden_size / model.num_attention_heads = {} is odd: rotary embedding turns pairs, choose an even head width",
            model.head_dim()
        )));
    }
    if heads % shared != 0 {
        return Err(ConfigError::Conflict(format!(
            "model.num_attention_heads = {heads} cannot be divided by model.num_key_value_heads = {shared}: choose a divisor"
        )));
    }
    Ok(())
}

fn data(config: &Config) -> Result<(), ConfigError> {
    let source_is_path = config.data.source == super::Source::Path;
    if source_is_path && config.data.path.is_none() {
        return Err(ConfigError::Conflict(
            "data.source = \"path\" needs data.path: a UTF-8 text file or a folder of them".into(),
        ));
    }
    if !source_is_path && config.data.path.is_some() {
        return Err(ConfigError::Conflict(
            "data.path is set but data.source = \"stories\": remove one of the two".into(),
        ));
    }
    if config.data.tokenizer == Tokenizer::Bytes && config.model.vocab_size < 256 {
        return Err(ConfigError::Conflict(format!(
            "model.vocab_size = {} is too small for data.tokenizer = \"bytes\": it needs 256",
            config.model.vocab_size
        )));
    }
    Ok(())
}

fn optimizer(config: &Config, explicit: &BTreeMap<String, String>) -> Result<Vec<String>, ConfigError> {
    let mut notes = Vec::new();
    let eps = match config.optimizer.name {
        OptimizerName::AdamW => config.optimizer.adamw.eps,
        OptimizerName::Adafactor => config.optimizer.adafactor.eps[0],
        OptimizerName::Sgd => f64::MAX,
    };
    if eps < f64::from(f32::MIN_POSITIVE) {
        return Err(ConfigError::Conflict(format!(
            "optimizer.{}.eps = {eps:e} is zero in f32: a row without gradient would become NaN, use at least 1.2e-38",
            config.optimizer.name
        )));
    }
    let sgd = &config.optimizer.sgd;
    if config.optimizer.name == OptimizerName::Sgd
        && sgd.nesterov
        && (sgd.momentum <= 0.0 || sgd.dampening != 0.0)
    {
        return Err(ConfigError::Conflict(
            "optimizer.sgd.nesterov needs a momentum above 0 and a dampening of 0".into(),
        ));
    }
    let adafactor = &config.optimizer.adafactor;
    if config.optimizer.name == OptimizerName::Adafactor && adafactor.warmup_init && !adafactor.relative_step
    {
        return Err(ConfigError::Conflict(
            "optimizer.adafactor.warmup_init needs optimizer.adafactor.relative_step = true".into(),
        ));
    }
    if relative_step(config) {
        let rates = ["optimizer.adafactor.lr"]
            .into_iter()
            .chain(explicit.keys().map(String::as_str).filter(|key| key.starts_with("schedule.")));
        if let Some(key) = rates.into_iter().find(|key| explicit.contains_key(*key)) {
            return Err(ConfigError::Conflict(format!(
                "optimizer.adafactor.relative_step sets its own rate, and {key} sets one too: remove one of the two"
            )));
        }
        notes.push("relative_step: Adafactor sets its own rate, the schedule has no effect".to_owned());
    }
    Ok(notes)
}
