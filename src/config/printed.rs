//! A configuration as text: as TOML, and setting by setting.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};

use toml::Value;

use super::{
    Arch, Config, ConfigError,
    fields::{self, FIELDS, Kind},
    layers, own,
};

/// A full key. Those of a task that another program has are known from its runs alone.
pub type Key = Cow<'static, str>;

/// Every key that has an entry in one of these, in the order of the field table, those of tasks last.
pub fn keys_of<'a>(entries: impl IntoIterator<Item = &'a [(Key, String)]>) -> Vec<Key> {
    let all: BTreeSet<&Key> = entries.into_iter().flatten().map(|(key, _)| key).collect();
    let known = FIELDS.iter().map(|field| Key::from(field.key)).filter(|key| all.contains(key));
    let others = all.iter().filter(|key| key.starts_with("task.")).map(|key| (*key).clone());
    known.chain(others).collect()
}

impl Config {
    /// The configuration as TOML, the form in which `run.toml` keeps it.
    ///
    /// # Errors
    /// None in practice: every field has a TOML form.
    pub fn to_toml(&self) -> Result<String, ConfigError> {
        toml::to_string(self).map_err(|error| ConfigError::Conflict(error.to_string()))
    }

    /// What a person can set of it, as TOML: a file that makes this configuration again.
    ///
    /// # Errors
    /// None in practice: every field has a TOML form.
    pub fn to_settings(&self) -> Result<String, ConfigError> {
        if self.model.arch != Arch::Own {
            return self.to_toml();
        }
        let wrong = |error: toml::ser::Error| ConfigError::Conflict(error.to_string());
        let (mut flat, mut settings) = (Vec::new(), toml::Table::new());
        layers::flatten("", &toml::Table::try_from(self).map_err(wrong)?, &mut flat);
        for (key, value) in flat {
            if fields::find(&key).is_some() && fields::applies(&key, self.model.arch) {
                layers::insert(&mut settings, &key, value);
            }
        }
        toml::to_string(&settings).map_err(wrong)
    }

    /// Checks what was read from a file that this program did not have to write: every value must be one that the field
    /// can be set to, so that sizes can be multiplied and counted.
    ///
    /// # Errors
    /// The first value that is out of its range.
    pub fn in_range(&self) -> Result<(), ConfigError> {
        let table = toml::Table::try_from(self).map_err(|error| ConfigError::Conflict(error.to_string()))?;
        let mut flat = Vec::new();
        layers::flatten("", &table, &mut flat);
        own::in_range(&self.model.parameters)?;
        flat.iter().try_for_each(|(key, value)| match fields::find(key) {
            // What an example of a task is, nobody sets.
            Some(_)
                if key == "train.seq_len"
                    && value.as_integer() == Some(1)
                    && !fields::applies(key, self.model.arch) =>
            {
                Ok(())
            }
            // Which words there are the type has checked; some of them can be recorded and not chosen.
            Some(field) if !matches!(field.kind, Kind::Choice(_)) => {
                layers::check(key, value, "as it is recorded")
            }
            _ => Ok(()),
        })
    }

    /// Full key and printed value of every setting that this architecture has, in the order of the field table; those of
    /// a task last, of one that this program does not have, too.
    pub fn entries(&self) -> Vec<(Key, String)> {
        let Ok(table) = toml::Table::try_from(self) else { return Vec::new() };
        let mut flat = Vec::new();
        layers::flatten("", &table, &mut flat);
        let values: BTreeMap<String, Value> = flat.into_iter().collect();
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let known = FIELDS.iter().filter(|field| fields::applies(field.key, self.model.arch));
        let known = known.filter_map(|field| Some((Key::from(field.key), text(values.get(field.key)?))));
        let of_task = self.task.iter().map(|(name, value)| (Key::from(format!("task.{name}")), text(value)));
        known.chain(of_task).collect()
    }

    /// The keys whose values differ, with both values (`-` where a key is absent).
    pub fn differences(&self, other: &Self) -> Vec<(Key, String, String)> {
        Self::differing(&self.entries(), &other.entries())
    }

    /// The same of two lists of [`Config::entries`].
    pub fn differing(ours: &[(Key, String)], theirs: &[(Key, String)]) -> Vec<(Key, String, String)> {
        let value = |entries: &[(Key, String)], key: &str| {
            entries.iter().find(|(name, _)| name == key).map_or_else(|| "-".to_owned(), |(_, v)| v.clone())
        };
        let keys = keys_of([ours, theirs]);
        keys.into_iter()
            .map(|key| (value(ours, &key), value(theirs, &key), key))
            .filter(|(a, b, _)| a != b)
            .map(|(a, b, key)| (key, a, b))
            .collect()
    }
}
