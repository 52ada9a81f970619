//! Changing the configuration of a run that exists: when it is resumed, and when another run is forked from it.

use std::collections::BTreeMap;

use toml::{Table, Value};

use super::{
    Config, ConfigError, Resolved, fields,
    layers::{as_kind, flatten, full_key, insert, parse},
    own, validate,
};

impl Config {
    /// This configuration with `key=value` changes on top. `explicit` are the keys that were set by hand before. A key
    /// that is not changed keeps its value, whatever the defaults have become.
    ///
    /// # Errors
    /// A change that cannot be used, or that does not go together with the rest.
    pub fn changed<S: AsRef<str>>(
        &self,
        explicit: &BTreeMap<String, String>,
        changes: &[S],
    ) -> Result<Resolved, ConfigError> {
        let mut set = Vec::new();
        for text in changes {
            let text = text.as_ref();
            let (key, value) =
                text.split_once('=').ok_or_else(|| ConfigError::NotAnAssignment { text: text.to_owned() })?;
            set.push((key.trim(), parse(key.trim(), value.trim(), "--set")?));
        }
        let table = Table::try_from(self).map_err(|error| ConfigError::Conflict(error.to_string()))?;
        let mut flat = Vec::new();
        flatten("", &table, &mut flat);
        let mut values: BTreeMap<String, Value> = flat.into_iter().collect();

        let optimizer = set.iter().rev().find(|(key, _)| *key == "optimizer.name");
        let optimizer = optimizer
            .and_then(|(_, value)| value.as_str())
            .unwrap_or_else(|| self.optimizer.name.as_str())
            .to_owned();
        let mut by_hand = BTreeMap::new();
        for (key, value) in set {
            let key = full_key(key, &optimizer, "--set")?;
            // The short form of a key is checked once it is known whose it is.
            let value = parse(&key, &text_of(&value), "--set")?;
            by_hand.insert(key.clone(), value.to_string());
            values.insert(key, value);
        }
        let is_set = |key: &str| by_hand.contains_key(key);
        if is_set("model.preset") {
            return Err(ConfigError::Conflict(
                "model.preset cannot be changed, because it stands for many keys: set the keys themselves, or start a \
                 new run"
                    .into(),
            ));
        }
        match (is_set("train.max_updates"), is_set("train.epochs")) {
            (true, true) => {
                return Err(ConfigError::Conflict(
                    "train.max_updates and train.epochs are both set: keep the one that should end the run"
                        .into(),
                ));
            }
            (true, false) => drop(values.remove("train.epochs")),
            (false, true) => drop(values.remove("train.max_updates")),
            (false, false) => {}
        }
        if is_set("data.path") && !is_set("data.source") {
            values.insert("data.source".into(), Value::String("path".into()));
        }
        let mut table = Table::new();
        for (key, value) in values {
            insert(&mut table, &key, as_kind(&key, value));
        }
        let mut config: Self = table
            .try_into()
            .map_err(|error: toml::de::Error| ConfigError::Conflict(error.message().to_owned()))?;
        own::complete(&mut config)?;
        let mut explicit = explicit.clone();
        explicit.retain(|key, _| match key.as_str() {
            "train.max_updates" => !is_set("train.epochs"),
            "train.epochs" => !is_set("train.max_updates"),
            _ => true,
        });
        explicit.extend(by_hand);
        let notes = validate::check(&config, &explicit)?;
        Ok(Resolved { config, explicit, notes })
    }
}

/// As a flag would be written.
fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// The keys that `now` has another value of, with that value in TOML.
pub fn literals(before: &Config, now: &Config) -> BTreeMap<String, String> {
    others(before, now).into_iter().map(|(key, value)| (key, value.to_string())).collect()
}

/// The same as `key=value`, as [`Config::changed`] takes them.
pub fn assignments(before: &Config, now: &Config) -> Vec<String> {
    others(before, now).into_iter().map(|(key, value)| format!("{key}={}", text_of(&value))).collect()
}

fn others(before: &Config, now: &Config) -> Vec<(String, Value)> {
    let (Ok(before), Ok(now)) = (Table::try_from(before), Table::try_from(now)) else {
        return Vec::new();
    };
    let (mut were, mut are) = (Vec::new(), Vec::new());
    flatten("", &before, &mut were);
    flatten("", &now, &mut are);
    are.retain(|entry| !were.contains(entry));
    are
}

/// The first key of a configuration's text that is no setting of this program's: a newer one wrote it.
pub fn unknown(text: &str, read: &Config) -> Option<String> {
    let (Ok(written), Ok(read)) = (text.parse::<Table>(), Table::try_from(read)) else { return None };
    let (mut keys, mut known) = (Vec::new(), Vec::new());
    flatten("", &written, &mut keys);
    flatten("", &read, &mut known);
    keys.into_iter()
        .map(|(key, _)| key)
        .find(|key| fields::find(key).is_none() && known.iter().all(|(other, _)| other != key))
}

/// Checks that a run may go on with this configuration instead of that one: only what leaves the meaning of its state
/// and of its data alone. Returns what differs: key, value before, value from now on.
///
/// # Errors
/// The first key that may not change.
pub fn on_resume(before: &Config, now: &Config) -> Result<Vec<[String; 3]>, ConfigError> {
    let changed = before.differences(now);
    let another = changed.iter().find(|(key, was, is)| !may_change(key, before) || *was == "-" || *is == "-");
    if let Some((key, was, is)) = another {
        return Err(ConfigError::Conflict(format!(
            "{key} cannot change from {was} to {is} when a run is resumed, because its state and its data would mean \
             something else: start a new run from its checkpoint with `tui-train fork`"
        )));
    }
    Ok(changed.into_iter().map(|(key, was, is)| [key.into_owned(), was, is]).collect())
}

/// Whether a resumed run may have another value of this key.
fn may_change(key: &str, config: &Config) -> bool {
    let section = |name: &str| key.strip_prefix(name).is_some_and(|rest| rest.starts_with('.'));
    sets_the_rate(key)
        || section("checkpoint")
        || section("log")
        // The same data may lie elsewhere: whether it is the same is known once it has been read.
        || matches!(key, "train.validate_every" | "train.max_skipped" | "train.device" | "data.path")
        || (key == "train.max_updates" && config.train.max_updates.is_some())
        || (key == "train.epochs" && config.train.epochs.is_some())
}

/// Whether a key says at which learning rate to train.
pub fn sets_the_rate(key: &str) -> bool {
    let rate = key.starts_with("optimizer.") && (key.ends_with(".lr") || key.ends_with(".adamw_lr"));
    rate || key.starts_with("schedule.")
}

/// Whether a change of this key leaves nothing to go on with in the data: other sequences, or another order.
pub fn restarts_the_data(key: &str) -> bool {
    key.starts_with("data.") || matches!(key, "train.seq_len" | "train.seed")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Layers;

    fn resolved(set: &[&str]) -> Resolved {
        Layers::new().with_assignments(set).unwrap().resolve().unwrap()
    }

    #[test]
    fn a_change_is_one_difference_and_everything_else_stays() {
        let before = resolved(&["optimizer.name=lion", "train.accumulate=4"]);
        let now = before.config.changed(&before.explicit, &["optimizer.lr=2e-4"]).unwrap();
        let differences = now.config.differences(&before.config);
        assert_eq!(
            differences.iter().map(|(key, ..)| key.as_ref()).collect::<Vec<_>>(),
            ["optimizer.lion.lr"]
        );
        assert_eq!(now.explicit.len(), 3);
        let same = before.config.changed::<&str>(&before.explicit, &[]).unwrap();
        assert_eq!(same, before);
        let longer = before.config.changed(&before.explicit, &["train.epochs=2"]).unwrap().config;
        assert_eq!((longer.train.epochs, longer.train.max_updates), (Some(2), None));
    }

    #[test]
    fn what_an_optimizer_sets_itself_survives_a_change() {
        let before = resolved(&["optimizer.name=adafactor", "optimizer.adafactor.relative_step=true"]);
        let now = before.config.changed(&before.explicit, &["train.max_updates=700"]).unwrap();
        assert_eq!(now.config.train.max_updates, Some(700));
        assert!(before.config.changed(&before.explicit, &["optimizer.lr=1e-2"]).is_err());
    }

    #[test]
    fn what_changed_is_written_as_it_would_be_in_a_file() {
        let before = resolved(&[]);
        let now = before
            .config
            .changed(&before.explicit, &["schedule.name=constant", "optimizer.lr=1e-3"])
            .unwrap();
        let literals = literals(&before.config, &now.config);
        assert_eq!(literals, now.explicit);
        let text: String = literals.iter().map(|(key, value)| format!("{key} = {value}\n")).collect();
        assert_eq!(Layers::new().with_toml(&text, "file").unwrap().resolve().unwrap().config, now.config);
        let set = ["optimizer.name=lion", "optimizer.lion.betas=[0.8,0.9]", "optimizer.no_decay=bias,norm"];
        let further = now.config.changed(&now.explicit, &set).unwrap().config;
        let assigned = assignments(&before.config, &further);
        assert!(assigned.contains(&"schedule.name=constant".to_owned()), "{assigned:?}");
        assert_eq!(before.config.changed(&before.explicit, &assigned).unwrap().config, further);
    }

    #[test]
    fn a_setting_of_another_version_is_found() {
        let config = resolved(&["optimizer.name=lion", "train.epochs=2"]).config;
        let text = config.to_toml().unwrap();
        assert_eq!(unknown(&text, &config), None);
        let newer = text.replace("[train]", "[train]\nlookahead = 3");
        assert_eq!(unknown(&newer, &config).as_deref(), Some("train.lookahead"));
        let section = format!("{text}\n[mixture]\nexperts = 8\n");
        assert_eq!(unknown(&section, &config).as_deref(), Some("mixture.experts"));
    }

    #[test]
    fn mistakes_are_told() {
        let before = resolved(&[]);
        let told = |set: &[&str]| before.config.changed(&before.explicit, set).unwrap_err().to_string();
        assert!(told(&["train.max_updtes=7"]).contains("did you mean"));
        assert!(told(&["optimizer.lr=-1"]).contains("expected"));
        assert!(told(&["optimizer.lr"]).contains("key=value"));
        assert!(told(&["model.preset=llama-tiny"]).contains("model.preset"));
        assert!(told(&["train.max_updates=7", "train.epochs=7"]).contains("both"));
    }

    #[test]
    fn a_resumed_run_may_change_its_pace_and_not_its_meaning() {
        let before = resolved(&[]);
        let check = |set: &[&str]| {
            on_resume(&before.config, &before.config.changed(&before.explicit, set).unwrap().config)
        };
        assert_eq!(check(&[]).unwrap(), Vec::<[String; 3]>::new());
        let allowed = [
            "optimizer.lr=4e-3",
            "schedule.name=constant",
            "train.max_updates=900",
            "train.validate_every=10",
            "checkpoint.every_updates=10",
            "log.state_every=0",
            "train.device=flex",
        ];
        assert_eq!(check(&allowed).unwrap().len(), allowed.len());
        assert_eq!(
            check(&["optimizer.lr=4e-3"]).unwrap(),
            [["optimizer.adamw.lr", "0.003", "0.004"].map(str::to_owned)]
        );
        for refused in [
            "optimizer.name=sgd",
            "optimizer.adamw.betas=[0.5,0.9]",
            "train.micro_batch=4",
            "train.accumulate=2",
            "train.seed=7",
            "train.epochs=3",
            "model.num_hidden_layers=3",
            "data.shuffle=false",
            "clip.max_norm=0.5",
        ] {
            let text = check(&[refused]).unwrap_err().to_string();
            assert!(text.contains("fork"), "{refused}: {text}");
        }
    }
}
