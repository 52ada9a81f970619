//! A run that a person drove, as settings and commands: read off its record, and off those of the runs that it was
//! forked from.

use std::collections::{BTreeMap, HashSet};

use super::{Deed, Given, Row, given};
use crate::{
    config::{Config, change},
    protocol::{Command, CommandRecord, Event, Reason, Resumed},
    run::{Meta, Record, RunDir, RunError},
};

/// What trains a run again, from its first update.
#[derive(Debug)]
pub struct Recorded {
    /// What was set by hand when the run was made, or the one that it comes from; nothing where that is not known.
    pub explicit: Option<BTreeMap<String, String>>,
    /// All settings that held then.
    pub made_with: Config,
    pub given: Vec<Given>,
    /// What tells its data apart, where that is known.
    pub trained_on: Option<String>,
    /// Another device from that update on, which is no command.
    pub devices: Vec<(u64, String)>,
}

/// The settings of a run and the commands that it obeyed, each with the updates made when it was given. What a
/// resumption or a fork changed is a command like the others.
///
/// # Errors
/// A record cannot be read, or the run was forked from one that is not here.
pub fn recorded(run: &RunDir) -> Result<Recorded, RunError> {
    let (root, history) = history(run, &mut HashSet::new())?;
    let explicit = root.meta_json().exists().then(|| root.meta()).transpose()?.map(|meta| meta.explicit);
    let made_with = root.made_with()?;
    let History { given, data, devices, .. } = history;
    let trained_on = data.filter(|data| !data.is_empty());
    Ok(Recorded { explicit, made_with, given, trained_on, devices })
}

/// The run at the beginning of the line, and what happened since.
fn history(run: &RunDir, seen: &mut HashSet<String>) -> Result<(RunDir, History), RunError> {
    let Meta { forked_from, .. } = run.meta()?;
    let (root, mut history) = match forked_from {
        None => (run.clone(), History::default()),
        Some(from) => {
            let parent = run
                .path()
                .parent()
                .map(|runs| RunDir::open(runs.join(&from.run)))
                .and_then(Result::ok)
                .filter(|parent| parent.id() == from.run && seen.insert(from.run.clone()))
                .ok_or_else(|| RunError::NoParent { run: run.id().to_owned(), parent: from.run.clone() })?;
            let (root, mut history) = self::history(&parent, seen)?;
            history.forks_at(from.update, run.made_with()?);
            (root, history)
        }
    };
    Record::read_with(run, |event| history.apply(event))?;
    Ok((root, history))
}

#[derive(Default)]
struct History {
    given: Vec<Given>,
    total: u64,
    /// The update and the micro-batch at which a paused run stands: a step is given there, and recorded when it is done.
    standing: Option<(u64, u64)>,
    /// The settings from an update on, the first ones first.
    settings: Vec<(u64, Config)>,
    devices: Vec<(u64, String)>,
    /// What tells the data apart that it began with.
    data: Option<String>,
}

impl History {
    fn apply(&mut self, event: &Event) {
        match event {
            Event::Header(header) => {
                self.total = header.total_updates;
                self.data.get_or_insert_with(|| header.data.content.clone());
                if self.settings.is_empty() {
                    self.settings.push((0, header.config.clone()));
                }
            }
            Event::Command(record) if record.outcome == "applied" => self.command(record),
            Event::Resumed(resumed) => self.resumed(resumed),
            Event::RunEnded(ended) => {
                let update = ended.summary.updates;
                let told = self.given.last().is_some_and(|given| given.deed == Deed::Command(Command::Stop));
                // A signal stops a run as the command does.
                if ended.reason == Reason::Stopped && !told && update < self.total {
                    self.give(update, Command::Stop);
                }
            }
            _ => {}
        }
    }

    fn give(&mut self, at_update: u64, command: Command) {
        self.given.push(Given { at_update, micro_batches: 0, deed: Deed::Command(command) });
    }

    fn command(&mut self, record: &CommandRecord) {
        let row = Row {
            at_update: record.update,
            micro_batches: record.micro_batches,
            name: record.name.clone(),
            value: record.value,
            set: Vec::new(),
        };
        // What a newer version records cannot be given here.
        let Ok(mut given) = given(row) else { return };
        let Deed::Command(command) = &given.deed else { return };
        let here = (record.update, record.micro_batches);
        match command {
            Command::Pause => self.standing = Some(here),
            Command::Step | Command::StepMicroBatch => {
                (given.at_update, given.micro_batches) = self.standing.unwrap_or(here);
                self.standing = Some(here);
            }
            Command::Resume => self.standing = None,
            // After the last update nothing is left to be stopped.
            Command::Stop if record.update >= self.total => return,
            _ => {}
        }
        self.given.push(given);
    }

    fn resumed(&mut self, resumed: &Resumed) {
        let header = resumed.header.as_ref();
        self.total = header.map_or(self.total, |header| header.total_updates);
        self.goes_on(resumed.from_update, header.map(|header| header.config.clone()), resumed.learning_rate);
    }

    fn forks_at(&mut self, update: u64, config: Config) {
        self.goes_on(update, Some(config), None);
    }

    /// Goes on from a checkpoint: with these settings, if they are others, and with that rate given by hand. What came
    /// after the checkpoint did not happen, but what was set then holds all the same.
    fn goes_on(&mut self, from: u64, now: Option<Config>, rate: Option<f64>) {
        self.standing = None;
        let now = now.or_else(|| self.settings.last().map(|(_, config)| config.clone()));
        self.given.retain(|given| {
            let changes = matches!(given.deed, Deed::Settings(_)) && given.at_update == from;
            given.at_update <= from && given.deed != Deed::Command(Command::Stop) && !changes
        });
        let paused = |given: &&Given| matches!(given.deed, Deed::Command(Command::Pause | Command::Resume));
        if self.given.iter().rfind(paused).is_some_and(|last| last.deed == Deed::Command(Command::Pause)) {
            self.give(from, Command::Resume);
        }
        let changed = now.is_some_and(|now| self.settings_from(from, now));
        let before = self.given.iter().rev().find_map(|given| match given.deed {
            Deed::Command(Command::LearningRate { value }) => Some(value),
            _ => None,
        });
        // The checkpoint that other settings go on from may be older than the newest word on the rate.
        let again = changed && before.is_some();
        if again || before.flatten() != rate {
            self.give(from, Command::LearningRate { value: rate });
        }
    }

    /// Whether that changes anything.
    fn settings_from(&mut self, from: u64, now: Config) -> bool {
        let first = self.settings.first().map_or(from, |(at, _)| *at);
        self.settings.retain(|(at, _)| *at < from || *at == first);
        self.devices.retain(|(at, _)| *at < from);
        let Some((_, before)) = self.settings.last() else { return false };
        let mut set = change::assignments(before, &now);
        let device = set.iter().position(|text| text.starts_with("train.device="));
        if let Some(at) = device {
            set.remove(at);
            self.devices.push((from, now.train.device.to_string()));
        }
        if set.is_empty() && device.is_none() {
            return false;
        }
        self.settings.push((from, now));
        if set.is_empty() {
            return false;
        }
        self.given.push(Given { at_update: from, micro_batches: 0, deed: Deed::Settings(set) });
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        protocol::{Header, Lineage},
        run::{EventWriter, Home, sample},
    };

    fn at(at_update: u64, command: Command) -> Given {
        Given { at_update, micro_batches: 0, deed: Deed::Command(command) }
    }

    fn set(at_update: u64, set: &[&str]) -> Given {
        let deed = Deed::Settings(set.iter().map(|&text| text.to_owned()).collect());
        Given { at_update, micro_batches: 0, deed }
    }

    fn header(run: &RunDir, set: &[&str]) -> Box<Header> {
        let header = sample::header(run);
        let config = header.config.changed(&header.explicit, set).unwrap().config;
        Box::new(Header { total_updates: config.train.max_updates.unwrap(), config, ..header })
    }

    fn goes_on(from_update: u64, rate: Option<f64>, header: Option<Box<Header>>) -> Event {
        Event::Resumed(Box::new(Resumed { from_update, learning_rate: rate, header, ..Resumed::default() }))
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
        assert_eq!(recorded(&run).unwrap().given, expected);
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

    #[test]
    fn what_is_given_in_a_window_is_given_at_its_micro_batch() {
        let mut history = History { total: 100, ..History::default() };
        for (name, update, micro_batches) in [
            ("pause", 4, 1),
            ("step_micro_batch", 4, 2),
            ("step_micro_batch", 5, 0),
            ("step", 6, 0),
            ("resume", 6, 0),
        ] {
            let Event::Command(mut record) = sample::command(name, update, None) else { unreachable!() };
            record.micro_batches = micro_batches;
            history.apply(&Event::Command(record));
        }
        let inside = |micro_batches, command| Given { micro_batches, ..at(4, command) };
        let expected = [
            inside(1, Command::Pause),
            inside(1, Command::StepMicroBatch),
            inside(2, Command::StepMicroBatch),
            at(5, Command::Step),
            at(6, Command::Resume),
        ];
        assert_eq!(history.given, expected);
    }

    #[test]
    fn settings_that_a_resumption_changes_hold_from_there_and_the_rate_by_hand_after_them() {
        let (_folder, run) = sample::run("changed");
        let mut history = History::default();
        history.apply(&Event::Header(header(&run, &[])));
        history.apply(&sample::command("learning_rate", 20, Some(0.5)));
        // What was given by hand is still in force.
        history.apply(&goes_on(30, Some(0.5), Some(header(&run, &["train.max_updates=900"]))));
        let rate = |update| at(update, Command::LearningRate { value: Some(0.5) });
        assert_eq!(history.given, [rate(20), set(30, &["train.max_updates=900"]), rate(30)]);
        assert_eq!(history.total, 900);
        // Another one changes something else, and goes on from further back: both hold from there.
        history.apply(&goes_on(
            25,
            Some(0.5),
            Some(header(&run, &["train.max_updates=900", "log.state_every=7"])),
        ));
        let both = set(25, &["train.max_updates=900", "log.state_every=7"]);
        assert_eq!(history.given, [rate(20), both, rate(25)]);
        // Back to what it was made with, and once more without a change.
        history.apply(&goes_on(25, Some(0.5), Some(header(&run, &[]))));
        history.apply(&goes_on(25, None, None));
        let back = at(25, Command::LearningRate { value: None });
        assert_eq!(history.given, [rate(20), rate(25), back]);
    }

    #[test]
    fn a_device_is_told_and_is_no_command() {
        let (_folder, run) = sample::run("device");
        let mut history = History::default();
        history.apply(&Event::Header(header(&run, &[])));
        history.apply(&goes_on(5, None, Some(header(&run, &["train.device=libtorch-cpu"]))));
        assert_eq!((history.given.len(), &history.devices[..]), (0, &[(5, "libtorch-cpu".to_owned())][..]));
    }

    #[test]
    fn a_fork_is_the_run_it_comes_from_with_other_settings_and_is_not_told_without_it() {
        let (folder, parent) = sample::run_with("parent", &["optimizer.name=lion"]);
        let mut writer = EventWriter::create(&parent, &sample::header(&parent)).unwrap();
        for event in [
            sample::command("learning_rate", 4, Some(0.5)),
            sample::command("learning_rate", 8, Some(0.25)),
            sample::command("pause", 30, None),
        ] {
            writer.append(&event).unwrap();
        }
        let home = Home::at(folder.path());
        let from = Lineage { run: parent.id().into(), update: 8, tokens: 0, time: 1.0 };
        let set_now = ["train.accumulate=2", "optimizer.name=adafactor"];
        let resolved = parent.config().unwrap().changed(&parent.explicit().unwrap(), &set_now).unwrap();
        let fork = RunDir::create_fork(&home, "fork", &resolved, from.clone(), |_| Ok(())).unwrap();
        let header = Header { forked_from: Some(from), ..sample::header(&fork) };
        let mut writer = EventWriter::create(&fork, &header).unwrap();
        writer.append(&sample::command("learning_rate", 9, Some(0.1))).unwrap();
        let rate = |update, value| at(update, Command::LearningRate { value });
        let Recorded { explicit, made_with, given, .. } = recorded(&fork).unwrap();
        assert_eq!((explicit.unwrap(), made_with), (parent.explicit().unwrap(), parent.config().unwrap()));
        let expected =
            [rate(4, Some(0.5)), rate(8, Some(0.25)), set(8, &set_now), rate(8, None), rate(9, Some(0.1))];
        assert_eq!(given, expected);
        std::fs::remove_dir_all(parent.path()).unwrap();
        let told = recorded(&fork).unwrap_err().to_string();
        assert!(told.contains(parent.id()) && !told.contains('\n'), "{told}");
    }
}
