//! The configuration as hyper-parameters, as TensorBoard's plugin for them stores it.

use super::{proto::Message, seconds};
use crate::{
    config::{Config, Task, fields, fields::FIELDS, printed::Key},
    protocol::{Header, Reason},
};

/// Tags of the plugin's three messages.
const EXPERIMENT: &str = "_hparams_/experiment";
const SESSION_START: &str = "_hparams_/session_start_info";
const SESSION_END: &str = "_hparams_/session_end_info";

/// Values of the plugin's enumerations.
mod kind {
    pub(super) const STRING: u64 = 1;
    pub(super) const BOOL: u64 = 2;
    pub(super) const FLOAT64: u64 = 3;
    pub(super) const SUCCESS: u64 = 1;
    pub(super) const FAILURE: u64 = 2;
}

/// What is tried out, and what comes of it: the summary value of the experiment.
pub(super) fn experiment(header: &Header) -> Message {
    let mut experiment = Message::default();
    experiment.double(3, seconds(&header.started));
    for (key, value) in settings(&header.config) {
        let kind = match value {
            toml::Value::Integer(_) | toml::Value::Float(_) => kind::FLOAT64,
            toml::Value::Boolean(_) => kind::BOOL,
            _ => kind::STRING,
        };
        let mut info = Message::default();
        info.text(1, &key).whole(4, kind);
        if let Some(field) = fields::find(&key) {
            info.text(3, field.help);
        }
        experiment.message(4, &info);
    }
    let mut metrics = vec!["val/loss", "train/loss", "perf/tokens_per_second"];
    if header.config.model.arch.task() == Task::Classification {
        metrics.extend(["val/accuracy", "val/f1"]);
    }
    for tag in metrics {
        let (mut name, mut info) = (Message::default(), Message::default());
        name.text(2, tag);
        info.message(1, &name);
        experiment.message(5, &info);
    }
    experiment.text(6, &header.name);
    value(EXPERIMENT, 2, &experiment)
}

/// The settings of this run: the summary value of the session's start.
pub(super) fn session_start(header: &Header) -> Message {
    let mut session = Message::default();
    for (key, setting) in settings(&header.config) {
        let mut inner = Message::default();
        match setting {
            toml::Value::Integer(number) => inner.double(2, number as f64),
            toml::Value::Float(number) => inner.double(2, number),
            toml::Value::Boolean(flag) => inner.whole(4, u64::from(flag)),
            toml::Value::String(text) => inner.text(3, &text),
            other => inner.text(3, &other.to_string()),
        };
        let mut entry = Message::default();
        entry.text(1, &key).message(2, &inner);
        session.message(1, &entry);
    }
    session.text(4, &header.run).double(5, seconds(&header.started));
    value(SESSION_START, 3, &session)
}

/// How it ended, and when: the summary value of the session's end.
pub(super) fn session_end(reason: Reason, time: f64) -> Message {
    let status = if reason.exit_code() == 0 { kind::SUCCESS } else { kind::FAILURE };
    let mut session = Message::default();
    session.whole(1, status).double(2, time);
    value(SESSION_END, 4, &session)
}

/// A summary value that the plugin reads: a message of its data, under that field.
fn value(tag: &str, field: u64, inner: &Message) -> Message {
    let mut data = Message::default();
    // Version 0 is what a field that is not there says.
    data.message(field, inner);
    let (mut plugin, mut metadata) = (Message::default(), Message::default());
    plugin.text(1, "hparams").message(2, &data);
    metadata.message(1, &plugin);
    // A number that nobody looks at: a value without one is not read. DT_FLOAT, no axis, 0.
    let mut tensor = Message::default();
    tensor.whole(1, 1).message(2, &Message::default()).float(5, 0.0);
    let mut value = Message::default();
    value.text(1, tag).message(8, &tensor).message(9, &metadata);
    value
}

/// The settings that have an effect on the run, in the order in which they are printed.
fn settings(config: &Config) -> Vec<(Key, toml::Value)> {
    let Ok(table) = toml::Table::try_from(config) else { return Vec::new() };
    let table = toml::Value::Table(table);
    let chosen = config.optimizer.name.as_str();
    let of_another = |key: &str| {
        let own = key.strip_prefix("optimizer.").and_then(|rest| rest.split_once('.'));
        own.is_some_and(|(optimizer, _)| optimizer != chosen)
    };
    let known = FIELDS
        .iter()
        .filter(|field| fields::applies(field.key, config.model.arch) && !of_another(field.key))
        .filter_map(|field| {
            let value = field.key.split('.').try_fold(&table, |at, name| at.get(name))?;
            Some((Key::from(field.key), value.clone()))
        });
    let of_task = config.task.iter().map(|(name, value)| (Key::from(format!("task.{name}")), value.clone()));
    known.chain(of_task).collect()
}
