//! Layering: flag > environment > file > preset > default.
//!
//! Each layer is a flat map from a full key to a value with its origin, checked against the field table as
//! it is added, so that a mistake is told with the place it was written.

use std::{collections::BTreeMap, io::Read};

use toml::Value;

use super::{
    Config, ConfigError,
    fields::{self, Kind},
    own, presets, validate,
};

/// Variables of ours that say where things are and how the screens look.
const NO_SETTINGS: [&str; 5] =
    ["TUI_TRAIN_HOME", "TUI_TRAIN_LIBTORCH", "TUI_TRAIN_THEME", "TUI_TRAIN_SIGNS", "TUI_TRAIN_UI"];

/// Longest configuration file that is read, in bytes.
const LONGEST: u64 = 1 << 20;

/// Where a value came from, in the words of an error message.
type Origin = String;

/// Collects what was set and where, and resolves it into a [`Config`].
#[derive(Debug, Clone, Default)]
pub struct Layers {
    /// Lowest precedence first.
    set: Vec<(String, Value, Origin)>,
}

/// A resolved configuration and what was set by hand.
#[derive(Debug, Clone, PartialEq)]
pub struct Resolved {
    pub config: Config,
    /// Full key and value of everything that a file, the environment or a flag set.
    pub explicit: BTreeMap<String, String>,
    /// Things worth saying that are no errors, such as a schedule that has no effect.
    pub notes: Vec<String>,
}

impl Layers {
    /// Nothing set: resolves to the demo.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a TOML text, every key of which must be known.
    pub fn with_toml(mut self, text: &str, origin: &str) -> Result<Self, ConfigError> {
        let table: toml::Table = text.parse().map_err(|error: toml::de::Error| ConfigError::File {
            path: origin.to_owned(),
            problem: toml_problem(text, &error),
        })?;
        let mut flat = Vec::new();
        flatten("", &table, &mut flat);
        for (key, value) in flat {
            check(&key, &value, origin)?;
            self.set.push((key, value, origin.to_owned()));
        }
        Ok(self)
    }

    /// Adds a configuration file.
    pub fn with_file(self, path: &std::path::Path) -> Result<Self, ConfigError> {
        self.with_toml(&read(path)?, &path.display().to_string())
    }

    /// Adds `TUI_TRAIN_SECTION_KEY` variables; those of [`NO_SETTINGS`] are none.
    pub fn with_environment(
        mut self,
        variables: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self, ConfigError> {
        for (name, text) in variables {
            if !name.starts_with("TUI_TRAIN_") || NO_SETTINGS.contains(&&*name) {
                continue;
            }
            let known = fields::all().map(|field| (field.variable(), field.key.to_owned()));
            let short = fields::all().filter_map(|field| {
                let key = short_key(field.key)?;
                Some((format!("TUI_TRAIN_{}", key.replace('.', "_").to_uppercase()), key))
            });
            let key = known.chain(short).find(|(variable, _)| *variable == name).map(|(_, key)| key);
            let origin = format!("environment variable {name}");
            let Some(key) = key else {
                let guess = name["TUI_TRAIN_".len()..].to_lowercase().replacen('_', ".", 1);
                return Err(unknown(&guess, &origin));
            };
            let value = parse(&key, &text, &origin)?;
            self.set.push((key, value, origin));
        }
        Ok(self)
    }

    /// Adds one `key=value` of `--set`.
    pub fn with_assignment(self, text: &str) -> Result<Self, ConfigError> {
        self.with_assignment_of("--set", text)
    }

    /// Adds one `key=value`; `origin` is where a mistake in it is.
    fn with_assignment_of(mut self, origin: &str, text: &str) -> Result<Self, ConfigError> {
        let (key, value) =
            text.split_once('=').ok_or_else(|| ConfigError::NotAnAssignment { text: text.to_owned() })?;
        let (key, value) = (key.trim(), value.trim());
        let value = parse(key, value, origin)?;
        self.set.push((key.to_owned(), value, origin.to_owned()));
        Ok(self)
    }

    /// Adds several `key=value` of `--set`.
    pub fn with_assignments<S: AsRef<str>>(
        self,
        texts: impl IntoIterator<Item = S>,
    ) -> Result<Self, ConfigError> {
        self.with_assignments_of("--set", texts)
    }

    /// Adds several `key=value`; `origin` is where a mistake in them is.
    pub fn with_assignments_of<S: AsRef<str>>(
        self,
        origin: &str,
        texts: impl IntoIterator<Item = S>,
    ) -> Result<Self, ConfigError> {
        texts.into_iter().try_fold(self, |layers, text| layers.with_assignment_of(origin, text.as_ref()))
    }

    /// Puts the layers on top of the preset and the defaults and checks the whole.
    ///
    /// # Errors
    /// The first key or combination that cannot be used.
    pub fn resolve(&self) -> Result<Resolved, ConfigError> {
        let mut values: BTreeMap<String, (Value, Origin)> = BTreeMap::new();
        let preset = self.last("model.preset");
        let (name, origin) = preset.map_or((presets::first(), "default"), |(value, origin)| {
            (value.as_str().unwrap_or_default(), origin)
        });
        let preset = presets::find(name).ok_or_else(|| ConfigError::UnknownPreset {
            name: name.to_owned(),
            origin: origin.to_owned(),
            known: presets::all().map(|p| p.name).collect::<Vec<_>>().join(", "),
        })?;
        let of_task = own::is_task(name);
        for field in fields::all().filter(|field| !field.default.is_empty()) {
            if of_task || !field.key.starts_with("task.") {
                values.insert(field.key.to_owned(), (literal(field.default), "default".to_owned()));
            }
        }
        if of_task {
            values.insert("model.arch".into(), (Value::String("own".into()), "task".into()));
        }
        let from_preset = Self::new().with_toml(preset.text, &format!("preset {name}"))?;
        values.insert("model.preset".into(), (Value::String(name.to_owned()), origin.to_owned()));
        for (key, value, origin) in from_preset.set {
            values.insert(key, (value, origin));
        }

        let optimizer = self
            .last("optimizer.name")
            .map(|(value, _)| value)
            .or_else(|| values.get("optimizer.name").map(|(value, _)| value))
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned();
        let mut explicit = BTreeMap::new();
        for (key, value, origin) in &self.set {
            let key = full_key(key, &optimizer, origin)?;
            check(&key, value, origin)?;
            explicit.insert(key.clone(), value.to_string());
            values.insert(key, (value.clone(), origin.clone()));
        }
        if of_task && explicit.contains_key("model.arch") {
            return Err(ConfigError::Conflict(format!(
                "model.arch has no effect on the task `{name}`, which brings its model along: remove it, or choose another \
                 model.preset"
            )));
        }
        length_of_run(&mut values, &explicit)?;
        if explicit.contains_key("data.path") && !explicit.contains_key("data.source") {
            values.insert("data.source".into(), (Value::String("path".into()), "data.path".into()));
        }
        let mut table = toml::Table::new();
        for (key, (value, _)) in values {
            insert(&mut table, &key, as_kind(&key, value));
        }
        let mut config: Config = table
            .try_into()
            .map_err(|error: toml::de::Error| ConfigError::Conflict(error.message().to_owned()))?;
        own::complete(&mut config)?;
        let shortened = config
            .train
            .max_updates
            .and_then(|total| validate::shorten_warmup(&mut config, &explicit, total));
        let mut notes = validate::check(&config, &explicit)?;
        notes.extend(shortened);
        Ok(Resolved { config, explicit, notes })
    }

    /// The keys that were set, in the order in which they were.
    pub(super) fn keys(&self) -> impl Iterator<Item = &str> {
        self.set.iter().map(|(key, ..)| key.as_str())
    }

    fn last(&self, key: &str) -> Option<(&Value, &str)> {
        self.set
            .iter()
            .rev()
            .find(|(name, ..)| name == key)
            .map(|(_, value, origin)| (value, origin.as_str()))
    }
}

/// The text of a configuration file.
///
/// # Errors
/// It cannot be read.
pub fn read(path: &std::path::Path) -> Result<String, ConfigError> {
    let wrong = |problem: String| ConfigError::File { path: path.display().to_string(), problem };
    let mut text = String::new();
    // It may come through a pipe that has no end.
    let file = std::fs::File::open(path);
    file.and_then(|file| file.take(LONGEST + 1).read_to_string(&mut text))
        .map_err(|error| wrong(format!("cannot be read: {error}")))?;
    if text.len() as u64 > LONGEST {
        return Err(wrong(format!("is longer than {LONGEST} bytes: that is no configuration")));
    }
    Ok(text)
}

/// Where a text is no TOML, and why, in one line.
pub fn toml_problem(text: &str, error: &toml::de::Error) -> String {
    let message = error.message().replace('\n', " ");
    let Some(before) = error.span().and_then(|span| text.get(..span.start)) else {
        return format!("not valid TOML: {message}");
    };
    let line = before.matches('\n').count() + 1;
    let column = before.chars().rev().take_while(|sign| *sign != '\n').count() + 1;
    format!("not valid TOML, line {line}, column {column}: {message}")
}

/// `max_updates` and `epochs` exclude each other; what was set by hand beats the preset.
fn length_of_run(
    values: &mut BTreeMap<String, (Value, Origin)>,
    explicit: &BTreeMap<String, String>,
) -> Result<(), ConfigError> {
    let by_hand = |key| explicit.contains_key(key);
    if by_hand("train.max_updates") && by_hand("train.epochs") {
        return Err(ConfigError::Conflict(
            "train.max_updates and train.epochs are both set: keep the one that should end the run".into(),
        ));
    }
    if by_hand("train.epochs") {
        values.remove("train.max_updates");
    } else if by_hand("train.max_updates") {
        values.remove("train.epochs");
    } else if !values.contains_key("train.epochs") && !values.contains_key("train.max_updates") {
        values.insert("train.max_updates".into(), (Value::Integer(1000), "default".into()));
    }
    Ok(())
}

/// `optimizer.adamw.lr` -> `optimizer.lr`.
fn short_key(key: &str) -> Option<String> {
    let (_, rest) = key.strip_prefix("optimizer.")?.split_once('.')?;
    Some(format!("optimizer.{rest}"))
}

/// Whether `optimizer.KEY` is a short form of some optimizer's key.
fn is_short(key: &str) -> bool {
    fields::all().any(|field| short_key(field.key).as_deref() == Some(key))
}

/// `optimizer.lr` means the chosen optimizer's key.
pub(super) fn full_key(key: &str, optimizer: &str, origin: &str) -> Result<String, ConfigError> {
    if fields::find(key).is_some() {
        return Ok(key.to_owned());
    }
    let long = key.strip_prefix("optimizer.").map(|rest| format!("optimizer.{optimizer}.{rest}"));
    match long {
        Some(long) if fields::find(&long).is_some() => Ok(long),
        Some(long) => Err(ConfigError::UnknownKey {
            key: long.clone(),
            origin: origin.to_owned(),
            nearest: fields::nearest(&long),
        }),
        None => Err(unknown(key, origin)),
    }
}

fn unknown(key: &str, origin: &str) -> ConfigError {
    ConfigError::UnknownKey { key: key.to_owned(), origin: origin.to_owned(), nearest: fields::nearest(key) }
}

/// Type and range of one key; a short optimizer key is checked again once the optimizer is known.
pub(super) fn check(key: &str, value: &Value, origin: &str) -> Result<(), ConfigError> {
    let Some(field) = fields::find(key) else {
        return if is_short(key) { Ok(()) } else { Err(unknown(key, origin)) };
    };
    if field.kind.accepts(value) {
        return Ok(());
    }
    Err(ConfigError::Value {
        key: key.to_owned(),
        value: value.to_string(),
        origin: origin.to_owned(),
        expected: field.kind.expected(),
    })
}

/// Reads the text of a flag or a variable: TOML where the key asks for it, a bare text otherwise.
pub(super) fn parse(key: &str, text: &str, origin: &str) -> Result<Value, ConfigError> {
    let kind = fields::find(key).map(|field| field.kind);
    if kind.is_none() && !is_short(key) {
        return Err(unknown(key, origin));
    }
    let bare = || Value::String(text.to_owned());
    let value = match kind {
        Some(Kind::Text | Kind::Choice(_)) => bare(),
        Some(Kind::List) if !text.starts_with('[') => Value::Array(
            text.split(',')
                .map(str::trim)
                .filter(|part| !part.is_empty())
                .map(|part| Value::String(part.to_owned()))
                .collect(),
        ),
        Some(Kind::List) => literal(text),
        _ => format!("v = {}", text.replace(['_'], ""))
            .parse::<toml::Table>()
            .ok()
            .and_then(|mut t| t.remove("v"))
            .unwrap_or_else(bare),
    };
    check(key, &value, origin)?;
    Ok(value)
}

fn literal(text: &str) -> Value {
    let table: Result<toml::Table, _> = format!("v = {text}").parse();
    table.ok().and_then(|mut table| table.remove("v")).unwrap_or_else(|| Value::String(text.to_owned()))
}

/// A whole number written where a number with a fraction is meant is that number.
pub(super) fn as_kind(key: &str, value: Value) -> Value {
    let float = |value: Value| match value {
        Value::Integer(whole) => Value::Float(whole as f64),
        other => other,
    };
    match (fields::find(key).map(|field| field.kind), value) {
        (Some(Kind::Float { .. }), value) => float(value),
        (Some(Kind::Pair { .. }), Value::Array(pair)) => Value::Array(pair.into_iter().map(float).collect()),
        (_, value) => value,
    }
}

pub(super) fn flatten(prefix: &str, table: &toml::Table, out: &mut Vec<(String, Value)>) {
    for (name, value) in table {
        let key = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
        match value {
            Value::Table(inner) => flatten(&key, inner, out),
            other => out.push((key, other.clone())),
        }
    }
}

pub(super) fn insert(table: &mut toml::Table, key: &str, value: Value) {
    match key.split_once('.') {
        Some((head, rest)) => {
            let inner = table.entry(head).or_insert_with(|| Value::Table(toml::Table::new()));
            if let Value::Table(inner) = inner {
                insert(inner, rest, value);
            }
        }
        None => {
            table.insert(key.to_owned(), value);
        }
    }
}
