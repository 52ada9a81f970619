//! Commands that are given at fixed updates, so that a run which a person drove can be trained again without one: read
//! off a record, written as TOML, and read back.

mod recorded;

use serde::{Deserialize, Serialize};

pub use recorded::{Recorded, recorded};

use super::{RunDir, RunError, atomic, own, text::plain};
use crate::{
    config::{ConfigError, Layers, Resolved, layers},
    protocol::{Command, event},
};

/// The name of [`Deed::Settings`] in a file.
const SETTINGS: &str = "settings";
/// The key of [`Script::trained_on`].
pub(super) const TRAINED_ON: &str = "trained_on";

/// Something that is done to a run, and when.
#[derive(Debug, Clone, PartialEq)]
pub struct Given {
    /// Updates made by then.
    pub at_update: u64,
    /// Micro-batches of the next update made by then.
    pub micro_batches: u64,
    pub deed: Deed,
}

/// What is done.
#[derive(Debug, Clone, PartialEq)]
pub enum Deed {
    Command(Command),
    /// From here on these settings hold, each `key=value`: the run goes on from its checkpoint as one that was resumed or
    /// forked with them.
    Settings(Vec<String>),
}

impl Deed {
    /// The name in files and messages.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Command(command) => command.name(),
            Self::Settings(_) => SETTINGS,
        }
    }
}

/// One `[[command]]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    at_update: u64,
    #[serde(default, skip_serializing_if = "event::is_zero")]
    micro_batches: u64,
    name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    value: Option<f64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    set: Vec<String>,
}

/// A file of commands: they stand behind the configuration, which is the rest.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Rows {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    command: Vec<Row>,
}

/// What a file of commands holds.
#[derive(Debug, Clone, PartialEq)]
pub struct Script {
    /// What is neither of the two below, as TOML.
    pub config: String,
    pub commands: Vec<Given>,
    /// What told the data apart that the commands were given on, as [`crate::protocol::DataReport::content`] does.
    pub trained_on: Option<String>,
}

/// Takes such a file apart.
///
/// # Errors
/// It is no TOML, or one of its commands cannot be given.
pub fn split(text: &str, origin: &str) -> Result<Script, ConfigError> {
    let wrong = |problem: String| ConfigError::File { path: origin.to_owned(), problem };
    let in_words = |error: &dyn std::fmt::Display| error.to_string().trim().replace('\n', " ");
    let mut table: toml::Table =
        text.parse().map_err(|error: toml::de::Error| wrong(layers::toml_problem(text, &error)))?;
    let commands = match table.remove("command") {
        None => Vec::new(),
        Some(rows) => {
            let rows: Vec<Row> = rows.try_into().map_err(|error: toml::de::Error| {
                wrong(format!(
                    "[[command]] needs at_update, name, for a learning rate its value and for settings `set`: {}",
                    in_words(&error)
                ))
            })?;
            rows.into_iter().map(|row| given(row).map_err(&wrong)).collect::<Result<Vec<_>, _>>()?
        }
    };
    if let Some(pair) = commands.windows(2).find(|pair| pair[1].at_update < pair[0].at_update) {
        let (before, after) = (pair[0].at_update, pair[1].at_update);
        return Err(wrong(format!(
            "a [[command]] at update {after} stands behind one at update {before}: sort them"
        )));
    }
    let trained_on = match table.remove(TRAINED_ON) {
        None => None,
        Some(toml::Value::String(data)) => Some(data),
        Some(_) => return Err(wrong(format!("{TRAINED_ON} is no text: write it as it was, or remove it"))),
    };
    Ok(Script { config: table.to_string(), commands, trained_on })
}

fn given(row: Row) -> Result<Given, String> {
    let Row { at_update, micro_batches, name, value, set } = row;
    if name == SETTINGS {
        return settings(set, value).map(|deed| Given { at_update, micro_batches, deed });
    }
    let command = match &*name {
        "pause" => Command::Pause,
        "resume" => Command::Resume,
        "step" => Command::Step,
        "step_micro_batch" => Command::StepMicroBatch,
        "stop" => Command::Stop,
        "checkpoint" => Command::Checkpoint,
        "learning_rate" => Command::LearningRate { value },
        _ => {
            return Err(format!(
                "[[command]] name = \"{}\" is no command: pause, resume, step, step_micro_batch, stop, checkpoint, \
                 learning_rate or settings",
                plain(&name)
            ));
        }
    };
    match value {
        _ if !set.is_empty() => Err(format!("[[command]] `{name}` sets nothing: remove `set`")),
        Some(value) if name != "learning_rate" => {
            Err(format!("[[command]] `{name}` takes no value: remove {value}"))
        }
        Some(value) if !value.is_finite() => Err(format!("[[command]] learning_rate: {value} is no rate")),
        _ => Ok(Given { at_update, micro_batches, deed: Deed::Command(command) }),
    }
}

fn settings(set: Vec<String>, value: Option<f64>) -> Result<Deed, String> {
    if let Some(value) = value {
        return Err(format!("[[command]] `settings` takes no value but `set`: remove {value}"));
    }
    if set.is_empty() {
        return Err(
            "[[command]] `settings` needs what it sets, such as set = [\"train.accumulate=2\"]".to_owned()
        );
    }
    let fixed = |text: &&String| text.split('=').next().is_some_and(|key| key.trim() == "train.device");
    if set.iter().any(|text| fixed(&text)) {
        return Err("[[command]] `settings`: train.device holds for the whole run, set it above".to_owned());
    }
    Layers::new().with_assignments(&set).map_err(|error| format!("[[command]] `settings`: {error}"))?;
    Ok(Deed::Settings(set))
}

/// Checks that all settings go together that these commands change one after another.
///
/// # Errors
/// The first change that cannot be made; the sentence names its update.
pub fn check(resolved: &Resolved, commands: &[Given]) -> Result<(), ConfigError> {
    let mut now = resolved.clone();
    for Given { at_update, deed, .. } in commands {
        let Deed::Settings(set) = deed else { continue };
        now = now
            .config
            .changed(&now.explicit, set)
            .map_err(|error| ConfigError::Conflict(format!("[[command]] at update {at_update}: {error}")))?;
    }
    Ok(())
}

/// As TOML, to stand behind a configuration.
///
/// # Errors
/// None in practice: every command has a TOML form.
pub fn toml(commands: &[Given]) -> Result<String, toml::ser::Error> {
    let row = |given: &Given| Row {
        at_update: given.at_update,
        micro_batches: given.micro_batches,
        name: given.deed.name().to_owned(),
        value: if let Deed::Command(Command::LearningRate { value }) = given.deed { value } else { None },
        set: if let Deed::Settings(set) = &given.deed { set.clone() } else { Vec::new() },
    };
    toml::to_string(&Rows { command: commands.iter().map(row).collect() })
}

/// Writes the commands that a new run is to be given.
///
/// # Errors
/// The run's folder cannot be written.
pub fn write(run: &RunDir, commands: &[Given]) -> Result<(), RunError> {
    let path = run.commands_toml();
    let text = toml(commands)
        .map_err(|error| RunError::Damaged { path: path.clone(), problem: error.to_string() })?;
    atomic::write_file(&path, text.as_bytes()).map_err(RunError::io("cannot write", &path))
}

/// The commands that a run is to be given; none when there is no file of them.
///
/// # Errors
/// The file cannot be read or is damaged.
pub fn read(run: &RunDir) -> Result<Vec<Given>, RunError> {
    let path = run.commands_toml();
    if !path.exists() {
        return Ok(Vec::new());
    }
    let text = own::read_text(&path).map_err(RunError::io("cannot read", &path))?;
    Ok(split(&text, &path.display().to_string())?.commands)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(at_update: u64, deed: Deed) -> Given {
        Given { at_update, micro_batches: 0, deed }
    }

    #[test]
    fn commands_are_written_read_and_told_from_the_configuration() {
        let commands = [
            at(3, Deed::Command(Command::LearningRate { value: Some(1e-4) })),
            at(3, Deed::Command(Command::Pause)),
            Given { micro_batches: 2, ..at(3, Deed::Command(Command::Resume)) },
            at(
                4,
                Deed::Settings(vec!["optimizer.name=lion".into(), "optimizer.lion.betas=[0.8, 0.9]".into()]),
            ),
        ];
        let text = format!("trained_on = \"abc\"\ntrain.seed = 7\n\n{}", toml(&commands).unwrap());
        let Script { config, commands: read, trained_on } = split(&text, "file").unwrap();
        assert_eq!((read, trained_on.as_deref()), (commands.to_vec(), Some("abc")));
        assert_eq!(config.parse::<toml::Table>().unwrap(), "train.seed = 7".parse().unwrap());
        for (text, word) in [
            ("[[command]]\nat_update = 1\nname = \"dance\"", "dance"),
            ("[[command]]\nat_update = 1\nname = \"pause\"\nvalue = 1.0", "takes no value"),
            ("[[command]]\nname = \"pause\"", "at_update"),
            ("[[command]]\nat_update = 1\nname = \"pause\"\nset = [\"train.seed=1\"]", "sets nothing"),
            ("[[command]]\nat_update = 1\nname = \"settings\"", "needs what it sets"),
            ("[[command]]\nat_update = 1\nname = \"settings\"\nset = [\"train.sed=1\"]", "train.seed"),
            ("[[command]]\nat_update = 1\nname = \"settings\"\nset = [\"train.device=flex\"]", "whole run"),
            ("[[command]]\nat_update = 1\nname = \"pause\"\nwhen = 3", "when"),
            (
                "[[command]]\nat_update = 2\nname = \"pause\"\n[[command]]\nat_update = 1\nname = \"resume\"",
                "sort them",
            ),
            ("command = ", "not valid TOML"),
            ("trained_on = 3", "is no text"),
        ] {
            let told = split(text, "file").unwrap_err().to_string();
            assert!(told.contains("file") && told.contains(word) && !told.contains('\n'), "{told}");
        }
    }

    #[test]
    fn settings_that_do_not_go_together_are_told_with_their_update() {
        let resolved = Layers::new().resolve().unwrap();
        let set = |text: &str| Deed::Settings(vec![text.to_owned()]);
        check(&resolved, &[at(3, set("optimizer.name=adafactor")), at(4, set("optimizer.lr=1e-3"))]).unwrap();
        let wrong = [at(3, set("optimizer.name=sgd")), at(7, set("schedule.warmup_updates=600"))];
        let told = check(&resolved, &wrong).unwrap_err().to_string();
        assert!(told.contains("at update 7") && told.contains("warmup"), "{told}");
    }
}
