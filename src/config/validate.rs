//! Checks that concern more than one key.

use std::collections::BTreeMap;

use super::{
    Arch, BPE, Config, ConfigError, Layers, MOST_TOKENS, NamePattern, OptimizerName, ScheduleName, Source,
    Task, Tokenizer, fields, own, printed::Key,
};

/// Checks combinations of keys and returns what is worth saying about them.
///
/// # Errors
/// One sentence that names the keys and says what to change.
pub fn check(config: &Config, explicit: &BTreeMap<String, String>) -> Result<Vec<String>, ConfigError> {
    keys_of_another_arch(config, explicit)?;
    heads(config)?;
    data(config)?;
    sequence(config)?;
    if let Some(total) = config.train.max_updates {
        warmup(config, total)?;
    }
    decay(config)?;
    optimizer(config, explicit)
}

/// Whether there is a model to train, and not only to plan.
///
/// # Errors
/// The architecture is for planning alone.
pub fn trainable(config: &Config) -> Result<(), ConfigError> {
    own::present(config)?;
    if matches!(config.model.arch, Arch::Gpt2 | Arch::Loop) || config.optimizer.name == OptimizerName::Own {
        Err(only_planned(config))
    } else {
        Ok(())
    }
}

/// Says so.
pub fn only_planned(config: &Config) -> ConfigError {
    ConfigError::Conflict(format!(
        "model.arch = \"{}\" can be planned and not trained: `tui-train plan` counts its memory; choose a llama or \
         distilbert preset to train",
        config.model.arch.as_str()
    ))
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

/// Key of the warm-up's length.
const WARMUP: &str = "schedule.warmup_updates";

/// A warm-up that nobody set gives way to a short run of so many updates: it becomes a tenth of it, and that is said.
pub fn shorten_warmup(
    config: &mut Config,
    explicit: &BTreeMap<String, String>,
    total: u64,
) -> Option<String> {
    let before = config.schedule.warmup_updates;
    if before < total || explicit.contains_key(WARMUP) || relative_step(config) {
        return None;
    }
    let now = total / 10;
    config.schedule.warmup_updates = now;
    (now != before).then(|| {
        format!(
            "{WARMUP} = {now}, a tenth of the {total} updates of the run: the {before} that {} starts from would not end \
             before it does",
            config.model.name()
        )
    })
}

/// Whether the optimizer sets its own rate, so that the schedule has no effect.
pub fn relative_step(config: &Config) -> bool {
    config.optimizer.name == OptimizerName::Adafactor && config.optimizer.adafactor.relative_step
}

/// The keys whose values are not those of the preset: what is set to what it would be anyway asks for nothing, so that a
/// resolved configuration can be read again.
fn changed_from_preset(config: &Config) -> Result<Vec<Key>, ConfigError> {
    let preset = config.model.preset.iter().map(|name| format!("model.preset={name}"));
    let plain = Layers::new().with_assignments(preset)?.resolve()?.config;
    Ok(config.differences(&plain).into_iter().map(|(key, ..)| key).collect())
}

/// A key that the architecture does not have would be ignored without a word.
fn keys_of_another_arch(config: &Config, explicit: &BTreeMap<String, String>) -> Result<(), ConfigError> {
    let arch = config.model.arch;
    // A key that is set to what it would be anyway asks for nothing: so a resolved configuration can be read again.
    let asks = |key: &str, value: &str| fields::find(key).is_none_or(|field| !field.is_default(value));
    let another = explicit.iter().find(|(key, value)| !fields::applies(key, arch) && asks(key, value));
    let Some((key, _)) = another else { return Ok(()) };
    if arch == Arch::Own {
        return Err(ConfigError::Conflict(format!(
            "{key} has no effect on the task `{}`, which brings its model and its data along: remove it",
            config.model.name()
        )));
    }
    if key.starts_with("task.") {
        return Err(ConfigError::Conflict(format!(
            "{key} has no effect on a built-in model: remove it, or choose model.preset = \"{}\"",
            own::registered().map_or("", |task| task.preset.name)
        )));
    }
    let others: Vec<_> = fields::arches(key).unwrap_or_default().iter().map(|arch| arch.as_str()).collect();
    Err(ConfigError::Conflict(format!(
        "{key} has no effect on a {} model, only on {}: remove it, or choose another model.preset or model.arch",
        arch.as_str(),
        others.join(" and ")
    )))
}

/// A sequence must fit into the position embedding.
fn sequence(config: &Config) -> Result<(), ConfigError> {
    let (longest, rows) = (config.train.seq_len, config.model.max_position_embeddings);
    if fields::applies("model.max_position_embeddings", config.model.arch) && longest > rows {
        return Err(ConfigError::Conflict(format!(
            "train.seq_len = {longest} is above model.max_position_embeddings = {rows}: lower the one or raise the other"
        )));
    }
    Ok(())
}

fn heads(config: &Config) -> Result<(), ConfigError> {
    let model = &config.model;
    let (width, heads, shared) = (model.hidden_size, model.num_attention_heads, model.num_key_value_heads);
    if width % heads != 0 {
        return Err(ConfigError::Conflict(format!(
            "model.hidden_size = {width} cannot be divided by model.num_attention_heads = {heads}: choose a multiple"
        )));
    }
    if model.arch != Arch::Llama {
        return Ok(());
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
    let (data, model) = (&config.data, &config.model);
    let task = model.arch.task();
    let conflict = |text: String| Err(ConfigError::Conflict(text));
    if task == Task::Own {
        return Ok(());
    }
    match (data.source, task) {
        (Source::Path, _) if data.path.is_none() => {
            let kind = match task {
                Task::LanguageModel => "a UTF-8 text, .jsonl, .csv or .tsv file, or a folder of them",
                Task::Classification | Task::Own => "a .csv, .tsv or .jsonl file, or a folder of them",
            };
            return conflict(format!("data.source = \"path\" needs data.path: {kind}"));
        }
        (Source::Stories | Source::SentencePairs, _) if data.path.is_some() => {
            return conflict(format!(
                "data.path is set but data.source = \"{}\": remove one of the two",
                if data.source == Source::Stories { "stories" } else { "sentence-pairs" }
            ));
        }
        (Source::Stories, Task::Classification) => {
            return conflict(
                "data.source = \"stories\" has no labels to classify: use \"sentence-pairs\" or data.path"
                    .into(),
            );
        }
        (Source::SentencePairs, Task::LanguageModel) => {
            return conflict(
                "data.source = \"sentence-pairs\" is for models that classify: use \"stories\" or data.path"
                    .into(),
            );
        }
        _ => {}
    }
    if !data.columns.is_empty() && data.source != Source::Path {
        return conflict("data.columns names the columns of data.path, which is not set: remove it".into());
    }
    if let Some(twice) = data
        .columns
        .iter()
        .enumerate()
        .find_map(|(at, name)| data.columns[..at].contains(name).then_some(name))
    {
        return conflict(format!("data.columns names `{twice}` twice: each column has one part"));
    }
    if !matches!(data.columns.len(), 0 | 2 | 3) {
        return conflict(format!(
            "data.columns names {} columns: name one or two sentences and then the label",
            data.columns.len()
        ));
    }
    let needed = match task {
        Task::LanguageModel => 256,
        // Bytes, and the marks before and after a sentence.
        Task::Classification | Task::Own => 258,
    };
    match &data.tokenizer {
        // Bytes, and what ends a document; of a row the marks, too.
        Tokenizer::Bpe(size) if *size < needed + 1 => {
            return conflict(format!(
                "data.tokenizer = \"bpe:{size}\" is too small: all bytes and the marks are {} tokens",
                needed + 1
            ));
        }
        Tokenizer::Bpe(size) if *size > MOST_TOKENS => {
            return conflict(format!(
                "data.tokenizer = \"bpe:{size}\" has more tokens than model.vocab_size can have rows: give at most \
                 {MOST_TOKENS}, as in \"bpe:4096\""
            ));
        }
        Tokenizer::Bpe(size) if model.vocab_size < *size => {
            return conflict(format!(
                "data.tokenizer = \"bpe:{size}\" needs more rows than model.vocab_size = {}: set model.vocab_size = {size}, or a \
                 smaller bpe",
                model.vocab_size
            ));
        }
        Tokenizer::File(text) if text.starts_with(BPE) || *text == BPE.trim_end_matches(':') => {
            return conflict(format!(
                "data.tokenizer = \"{text}\" has no size: write the number of tokens, as in \"bpe:4096\""
            ));
        }
        _ => {}
    }
    if data.tokenizer == Tokenizer::Bytes && model.vocab_size < needed {
        return conflict(format!(
            "model.vocab_size = {} is too small for data.tokenizer = \"bytes\": it needs {needed}",
            model.vocab_size
        ));
    }
    Ok(())
}

/// Keys set by hand that another key leaves without effect.
fn without_effect(config: &Config, explicit: &BTreeMap<String, String>) -> Vec<String> {
    let (schedule, optimizer) = (&config.schedule, &config.optimizer);
    let is = |name| optimizer.name == name;
    let cases = [
        ("schedule.min_lr", schedule.name == ScheduleName::Constant, "schedule.name = \"constant\""),
        ("schedule.start_factor", schedule.warmup_updates == 0, "schedule.warmup_updates = 0"),
        (
            "optimizer.sgd.dampening",
            is(OptimizerName::Sgd) && optimizer.sgd.momentum == 0.0,
            "optimizer.sgd.momentum = 0",
        ),
    ];
    let said = cases.into_iter().filter(|(key, idle, _)| *idle && explicit.contains_key(*key));
    said.map(|(key, _, because)| format!("{key} has no effect with {because}")).collect()
}

fn optimizer(config: &Config, explicit: &BTreeMap<String, String>) -> Result<Vec<String>, ConfigError> {
    let mut notes = Vec::new();
    if let Some((pattern, error)) = config
        .optimizer
        .no_decay
        .iter()
        .find_map(|pattern| NamePattern::new(pattern).err().map(|error| (pattern, error)))
    {
        return Err(ConfigError::Conflict(format!(
            "optimizer.no_decay has `{pattern}`, which is no pattern ({}): write names with * for anything",
            error.kind()
        )));
    }
    let eps = match config.optimizer.name {
        OptimizerName::AdamW => config.optimizer.adamw.eps,
        OptimizerName::AdamW8bit => config.optimizer.adamw8bit.eps,
        OptimizerName::Adafactor => config.optimizer.adafactor.eps[0],
        OptimizerName::Muon => config.optimizer.muon.eps.min(config.optimizer.muon.adamw_eps),
        OptimizerName::Sgd | OptimizerName::Lion | OptimizerName::Own => f64::MAX,
    };
    if eps < f64::from(f32::MIN_POSITIVE) {
        return Err(ConfigError::Conflict(format!(
            "optimizer.{}.eps = {eps:e} is zero in f32: a row without gradient would become NaN, use at least 1.2e-38",
            config.optimizer.name
        )));
    }
    if config.optimizer.name == OptimizerName::Muon && config.optimizer.muon.lr == 0.0 {
        return Err(ConfigError::Conflict(
            "optimizer.muon.lr must be above 0: adamw_lr follows the schedule in proportion to it".into(),
        ));
    }
    notes.extend(without_effect(config, explicit));
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
        let a_rate = |key: &str| key == "optimizer.adafactor.lr" || key.starts_with("schedule.");
        let changed = changed_from_preset(config)?;
        if let Some(key) =
            explicit.keys().find(|key| a_rate(key) && changed.iter().any(|other| other == key.as_str()))
        {
            return Err(ConfigError::Conflict(format!(
                "optimizer.adafactor.relative_step sets its own rate, and {key} sets one too: remove one of the two"
            )));
        }
        notes.push("relative_step: Adafactor sets its own rate, the schedule has no effect".to_owned());
    }
    Ok(notes)
}
