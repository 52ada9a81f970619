//! Commands that are given at fixed updates, so that a run which a person drove can be trained again without one: read
//! off a record, written as TOML, and read back.

use serde::{Deserialize, Serialize};

use super::{Record, RunDir, RunError, atomic, own, text::plain};
use crate::{
    config::{ConfigError, layers},
    protocol::{Command, CommandRecord, Event, Reason},
};

/// A command and when it is given.
#[derive(Debug, Clone, PartialEq)]
pub struct Given {
    /// Updates made by then.
    pub at_update: u64,
    pub command: Command,
}

/// One `[[command]]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    at_update: u64,
    name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    value: Option<f64>,
}

/// A file of commands: they stand behind the configuration, which is the rest.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Rows {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    command: Vec<Row>,
}

/// The commands of a file and its configuration, which is the rest.
///
/// # Errors
/// It is no TOML, or one of its commands cannot be given.
pub fn split(text: &str, origin: &str) -> Result<(String, Vec<Given>), ConfigError> {
    let wrong = |problem: String| ConfigError::File { path: origin.to_owned(), problem };
    let in_words = |error: &dyn std::fmt::Display| error.to_string().trim().replace('\n', " ");
    let mut table: toml::Table =
        text.parse().map_err(|error: toml::de::Error| wrong(layers::toml_problem(text, &error)))?;
    let commands = match table.remove("command") {
        None => Vec::new(),
        Some(rows) => {
            let rows: Vec<Row> = rows.try_into().map_err(|error: toml::de::Error| {
                wrong(format!(
                    "[[command]] needs at_update, name and for a learning rate its value: {}",
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
    Ok((table.to_string(), commands))
}

fn given(row: Row) -> Result<Given, String> {
    let Row { at_update, name, value } = row;
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
                "[[command]] name = \"{}\" is no command: pause, resume, step, step_micro_batch, stop, checkpoint or learning_rate",
                plain(&name)
            ));
        }
    };
    match value {
        Some(value) if name != "learning_rate" => {
            Err(format!("[[command]] `{name}` takes no value: remove {value}"))
        }
        Some(value) if !value.is_finite() => Err(format!("[[command]] learning_rate: {value} is no rate")),
        _ => Ok(Given { at_update, command }),
    }
}

/// As TOML, to stand behind a configuration.
///
/// # Errors
/// None in practice: every command has a TOML form.
pub fn toml(commands: &[Given]) -> Result<String, toml::ser::Error> {
    let row = |given: &Given| Row {
        at_update: given.at_update,
        name: given.command.name().to_owned(),
        value: if let Command::LearningRate { value } = given.command { value } else { None },
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
    Ok(split(&text, &path.display().to_string())?.1)
}

/// The record of a run, and the commands that it obeyed, each with the updates made when it was given.
///
/// # Errors
/// The record cannot be read.
pub fn recorded(run: &RunDir) -> Result<(Record, Vec<Given>), RunError> {
    let mut history = History::default();
    let record = Record::read_with(run, |event| history.apply(event))?;
    Ok((record, history.given))
}

#[derive(Default)]
struct History {
    given: Vec<Given>,
    total: u64,
    /// The update at which a paused run stands: a step is given there, and recorded when it is done.
    standing: Option<u64>,
}

impl History {
    fn apply(&mut self, event: &Event) {
        match event {
            Event::Header(header) => self.total = header.total_updates,
            Event::Command(record) if record.outcome == "applied" => self.command(record),
            // What came after the checkpoint did not happen, and an override ends with the worker.
            Event::Resumed(resumed) => {
                if let Some(header) = &resumed.header {
                    self.total = header.total_updates;
                }
                self.resumed(resumed.from_update);
            }
            Event::RunEnded(ended) => {
                let update = ended.summary.updates;
                let told = self.given.last().is_some_and(|given| given.command == Command::Stop);
                // A signal stops a run as the command does.
                if ended.reason == Reason::Stopped && !told && update < self.total {
                    self.given.push(Given { at_update: update, command: Command::Stop });
                }
            }
            _ => {}
        }
    }

    fn command(&mut self, record: &CommandRecord) {
        let row = Row { at_update: record.update, name: record.name.clone(), value: record.value };
        // What a newer version records cannot be given here.
        let Ok(mut given) = given(row) else { return };
        match given.command {
            Command::Pause => self.standing = Some(record.update),
            Command::Step | Command::StepMicroBatch => {
                given.at_update = self.standing.unwrap_or(record.update);
                self.standing = Some(record.update);
            }
            Command::Resume => self.standing = None,
            // After the last update nothing is left to be stopped.
            Command::Stop if record.update >= self.total => return,
            _ => {}
        }
        self.given.push(given);
    }

    fn resumed(&mut self, from: u64) {
        self.standing = None;
        self.given.retain(|given| given.at_update <= from && given.command != Command::Stop);
        let paused =
            self.given.iter().rev().find(|given| matches!(given.command, Command::Pause | Command::Resume));
        if paused.is_some_and(|given| given.command == Command::Pause) {
            self.given.push(Given { at_update: from, command: Command::Resume });
        }
        let rate =
            self.given.iter().rev().find(|given| matches!(given.command, Command::LearningRate { .. }));
        if rate.is_some_and(|given| given.command != Command::LearningRate { value: None }) {
            self.given.push(Given { at_update: from, command: Command::LearningRate { value: None } });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        protocol::{Header, Resumed},
        run::{EventWriter, sample},
    };

    fn at(at_update: u64, command: Command) -> Given {
        Given { at_update, command }
    }

    #[test]
    fn commands_are_written_read_and_told_from_the_configuration() {
        let commands = [at(3, Command::LearningRate { value: Some(1e-4) }), at(3, Command::Pause)];
        let text = format!("train.seed = 7\n\n{}", toml(&commands).unwrap());
        let (config, read) = split(&text, "file").unwrap();
        assert_eq!(read, commands);
        assert_eq!(config.parse::<toml::Table>().unwrap(), "train.seed = 7".parse().unwrap());
        for (text, word) in [
            ("[[command]]\nat_update = 1\nname = \"dance\"", "dance"),
            ("[[command]]\nat_update = 1\nname = \"pause\"\nvalue = 1.0", "takes no value"),
            ("[[command]]\nname = \"pause\"", "at_update"),
            ("[[command]]\nat_update = 1\nname = \"pause\"\nwhen = 3", "when"),
            (
                "[[command]]\nat_update = 2\nname = \"pause\"\n[[command]]\nat_update = 1\nname = \"resume\"",
                "sort them",
            ),
            ("command = ", "not valid TOML"),
        ] {
            let told = split(text, "file").unwrap_err().to_string();
            assert!(told.contains("file") && told.contains(word) && !told.contains('\n'), "{told}");
        }
    }

    #[test]
    fn a_step_is_given_where_the_run_stood_and_a_signal_counts_as_a_stop() {
        let (_folder, run) = sample::run("obeyed");
        let mut writer = EventWriter::create(&run, &sample::header(&run)).unwrap();
        let mut told = |event: Event| writer.append(&event).unwrap();
        (1..=9).for_each(|update| told(sample::update(update, 2.0)));
        told(sample::command("pause", 9, None));
        told(sample::update(10, 2.0));
        told(sample::command("step", 10, None));
        told(sample::command("learning_rate", 10, Some(0.5)));
        told(sample::command("resume", 10, None));
        (11..=20).for_each(|update| told(sample::update(update, 2.0)));
        told(sample::run_ended(&run));
        let expected = [
            at(9, Command::Pause),
            at(9, Command::Step),
            at(10, Command::LearningRate { value: Some(0.5) }),
            at(10, Command::Resume),
        ];
        assert_eq!(recorded(&run).unwrap().1, expected);
        let mut history = History::default();
        for event in [
            sample::command("pause", 9, None),
            sample::command("learning_rate", 12, Some(0.5)),
            sample::command("stop", 14, None),
        ] {
            history.total = 100;
            history.apply(&event);
        }
        assert_eq!(history.given.last().unwrap(), &at(14, Command::Stop));
        history.apply(&Event::resumed(12));
        let longer = Header { total_updates: 500, ..sample::header(&run) };
        history.apply(&Event::Resumed(Box::new(Resumed {
            from_update: 12,
            header: Some(Box::new(longer)),
            ..Resumed::default()
        })));
        history.apply(&sample::command("stop", 300, None));
        assert_eq!(history.given.pop(), Some(at(300, Command::Stop)), "the run that goes on is longer");
        let back = Command::LearningRate { value: None };
        assert_eq!(history.given[2..], [at(12, Command::Resume), at(12, back)]);
    }
}
