//! What a process goes on with: nothing, the checkpoint a run was forked from, or the newest one of its own.

use std::{collections::BTreeMap, fs, io};

use anyhow::Context;

use super::engine::Start;
use crate::{
    config::{Config, change, printed::Key, validate},
    data::Cursor,
    protocol::{DataReport, Header, Resumed},
    run::{
        Meta, Record, RunDir, atomic,
        checkpoint::{self, Good},
    },
};

/// How a process begins.
#[derive(Debug)]
pub struct Beginning {
    /// The configuration in force from now on.
    pub config: Config,
    /// Keys set by hand, with their values.
    pub explicit: BTreeMap<String, String>,
    /// The checkpoint to load.
    pub good: Option<Good>,
    pub from: Start,
    /// What the record says so far; nothing when there is none.
    pub record: Option<Record>,
    changed: Vec<[String; 3]>,
    /// What a person should know, once there is a record to say it in.
    pub warnings: Vec<String>,
}

impl Beginning {
    /// Of a run that has not been trained yet.
    ///
    /// # Errors
    /// Its configuration or the checkpoint that it was forked from cannot be read.
    pub fn new(run: &RunDir, meta: &Meta) -> anyhow::Result<Self> {
        let config = run.config()?;
        let good = if meta.forked_from.is_some() { checkpoint::newest_good(run)? } else { None };
        Self::from(run, config, meta.explicit.clone(), good, None)
    }

    /// Of a run that goes on, with these settings changed.
    ///
    /// # Errors
    /// A setting cannot be changed, no checkpoint can be used, or the record cannot be read.
    pub fn resumed(run: &RunDir, set: &[String]) -> anyhow::Result<Self> {
        let record = Record::read(run)?;
        let record = Some(record).filter(|record| record.header.is_some());
        let before = run.config()?;
        let header = record.as_ref().and_then(|record| record.header.as_ref());
        let now = before.changed(&run.explicit()?, set)?;
        change::on_resume(&before, &now.config)?;
        // Against the record rather than the file: a process that died between the two said nothing yet.
        let changed = change::on_resume(header.map_or(&before, |header| &header.config), &now.config)?;
        let good = checkpoint::newest_good(run)?;
        let mut beginning = Self::from(run, now.config, now.explicit, good, record)?;
        beginning.warnings.extend(other_settings(&changed));
        beginning.knows_its_validation();
        Ok(Self { changed, ..beginning })
    }

    /// The last checkpoint stands before the last validation is told: where the process died behind both, the record knows what
    /// the checkpoint does not say yet, and nothing is validated twice.
    fn knows_its_validation(&mut self) {
        let told = self.record.as_ref().and_then(Record::last_validation);
        let Some(told) = told.filter(|told| told.update == self.from.update) else { return };
        let progress = &mut self.from.progress;
        (progress.last_validation, progress.val_loss) = (told.update, Some(told.loss));
    }

    /// Of a run whose commands change these settings at that update, where it has just written a checkpoint: any of them, as
    /// for a fork.
    ///
    /// # Errors
    /// The settings do not go together, the checkpoint is not there, or the record cannot be read.
    pub fn turned(run: &RunDir, set: &[String], update: u64) -> anyhow::Result<Self> {
        let before = run.config()?;
        let now = before.changed(&run.explicit()?, set)?;
        let changed = before.differences(&now.config);
        let changed: Vec<_> = changed.into_iter().map(|(key, was, is)| [key.into_owned(), was, is]).collect();
        let good = checkpoint::newest_good(run)?;
        let found = good.as_ref().map_or(0, |good| good.info.update);
        anyhow::ensure!(found == update, "the checkpoint of update {update} could not be written");
        let mut beginning = Self::from(run, now.config, now.explicit, good, Some(Record::read(run)?))?;
        beginning.warnings.extend(other_settings(&changed));
        Ok(Self { changed, ..beginning })
    }

    /// How many updates epochs make is known once the data is read: a warm-up that nobody set gives way to a run that has so
    /// few, from its first line on.
    ///
    /// # Errors
    /// The file of the settings cannot be written.
    pub fn fit_warmup(&mut self, run: &RunDir, total: u64) -> anyhow::Result<()> {
        let Some(note) = validate::shorten_warmup(&mut self.config, &self.explicit, total) else {
            return Ok(());
        };
        let path = run.run_toml();
        atomic::write_file(&path, self.config.to_toml()?.as_bytes())
            .with_context(|| format!("cannot write {}", path.display()))?;
        self.warnings.push(note);
        Ok(())
    }

    /// Settles in the run's folder that it goes on: with which settings, from which checkpoint, and without an end.
    ///
    /// # Errors
    /// A file cannot be written or removed.
    pub fn settle(&self, run: &RunDir) -> anyhow::Result<()> {
        if self.config != run.config()? {
            atomic::write_file(&run.resumed_toml(), self.config.to_toml()?.as_bytes())
                .with_context(|| format!("cannot write {}", run.resumed_toml().display()))?;
        }
        checkpoint::sweep(run)?;
        for (checkpoint, _) in self.good.iter().flat_map(|good| &good.passed_over) {
            checkpoint::set_aside(checkpoint)?;
        }
        for path in [run.summary_json(), run.summary_md()] {
            match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(error).with_context(|| format!("cannot remove {}", path.display()));
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn from(
        run: &RunDir,
        config: Config,
        explicit: BTreeMap<String, String>,
        good: Option<Good>,
        record: Option<Record>,
    ) -> anyhow::Result<Self> {
        let (mut from, mut warnings) = (Start::default(), Vec::new());
        if let Some(good) = &good {
            let info = &good.info;
            let cursor: Cursor = serde_json::from_value(info.cursor.clone()).with_context(|| {
                format!("{}: `cursor` cannot be read", good.checkpoint.info_json().display())
            })?;
            from = Start { update: info.update, tokens: info.tokens, cursor, progress: info.progress };
            warnings.extend(good.passed_over.iter().map(|(_, why)| {
                format!("{why}; the run goes on from update {} instead, and that is set aside", info.update)
            }));
            let other: Vec<_> = info.config.differences(&config).into_iter().map(|(key, ..)| key).collect();
            let forks = run.meta()?.forked_from.is_some_and(|from| from.update == info.update);
            // The data of a run that goes on may lie elsewhere and be the same.
            let restarts = |key: &&Key| change::restarts_the_data(key) && (forks || **key != "data.path");
            if let Some(key) = other.iter().find(restarts) {
                from.cursor = Cursor::default();
                warnings.push(format!("{key} is another than before: the data begins at its beginning"));
            }
            if other.iter().any(|key| change::sets_the_rate(key)) {
                // The newer word counts.
                from.progress.learning_rate = None;
            }
            if forks {
                // What went wrong with the other run, or was given to it by hand, is not this one's; nor is its speed.
                let progress = &mut from.progress;
                (progress.learning_rate, progress.skipped_in_a_row, progress.busy) = (None, 0, 0.0);
            }
        }
        Ok(Self { config, explicit, good, from, record, changed: Vec::new(), warnings })
    }

    /// A run goes on with the data that it had.
    ///
    /// # Errors
    /// The data has become another since, wherever it lies.
    pub fn same_data(&self, now: &DataReport) -> anyhow::Result<()> {
        let header = self.record.as_ref().and_then(|record| record.header.as_ref());
        let Some(before) = header.map(|header| &header.data) else { return Ok(()) };
        let size = |data: &DataReport| (data.bytes, data.train_sequences, data.validation_sequences);
        let known = !before.content.is_empty() && !now.content.is_empty();
        let same = if known {
            before.content == now.content
        } else {
            before.source == now.source && size(before) == size(now)
        };
        if before.source.is_empty() || now.source.is_empty() || same {
            return Ok(());
        }
        let what = match (before.bytes, now.bytes) {
            (was, is) if was != is => format!("{was} bytes then, {is} now"),
            _ if known => "something else of the same size".to_owned(),
            _ => "what was in it had not been recorded".to_owned(),
        };
        anyhow::bail!(
            "{} is not what the run was trained on ({what}): put it back as it was, name the place where that lies now \
             with --set data.path=..., or start a new run from the checkpoint with `tui-train fork`",
            now.source
        )
    }

    /// The event that tells of it, and the record so far, if the run goes on; `header` is the one in force from now on.
    pub fn event(&mut self, header: &Header) -> Option<(Record, Resumed)> {
        let record = self.record.take()?;
        let progress = self.from.progress;
        let same = record.header.as_deref() == Some(header);
        let resumed = Resumed {
            from_update: self.from.update,
            time: progress.time,
            changed: std::mem::take(&mut self.changed),
            learning_rate: progress.learning_rate,
            header: (!same).then(|| Box::new(header.clone())),
        };
        Some((record, resumed))
    }
}

/// What changes, in a sentence, if anything does.
fn other_settings(changed: &[[String; 3]]) -> Option<String> {
    let list: Vec<String> = changed.iter().map(|[key, was, is]| format!("{key} {was} -> {is}")).collect();
    (!list.is_empty()).then(|| format!("the run goes on with other settings: {}", list.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        protocol::Event,
        run::{EventWriter, sample},
    };

    fn written(name: &str) -> (tempfile::TempDir, RunDir) {
        let (folder, run) = sample::run(name);
        let mut writer = EventWriter::create(&run, &sample::header(&run)).unwrap();
        writer.append(&sample::update(7, 2.0)).unwrap();
        (folder, run)
    }

    fn checkpoint(run: &RunDir, update: u64) {
        sample::checkpoint(run, update);
        let at = checkpoint::Checkpoint { update, path: run.checkpoint(update) };
        let mut info = at.info().unwrap();
        info.cursor = serde_json::json!({"epoch": 1, "position": update});
        info.progress.learning_rate = Some(5e-4);
        info.progress.time = 12.5;
        fs::write(at.info_json(), serde_json::to_vec(&info).unwrap()).unwrap();
    }

    #[test]
    fn a_run_without_a_checkpoint_starts_over_and_one_with_it_goes_on() {
        let (_folder, run) = written("resumed");
        let mut over = Beginning::resumed(&run, &[]).unwrap();
        assert_eq!(over.from, Start::default());
        let (_, event) = over.event(&sample::header(&run)).unwrap();
        assert_eq!(event, Resumed::default(), "nothing changed");
        checkpoint(&run, 5);
        let mut on = Beginning::resumed(&run, &[]).unwrap();
        assert_eq!((on.from.update, on.from.tokens), (5, 2560));
        assert_eq!(on.from.cursor, Cursor { epoch: 1, position: 5 });
        let (_, event) = on.event(&sample::header(&run)).unwrap();
        assert_eq!((event.from_update, event.time, event.learning_rate), (5, 12.5, Some(5e-4)));
        assert!(!run.resumed_toml().exists());
    }

    #[test]
    fn a_validation_that_is_told_and_not_in_the_checkpoint_yet_is_known() {
        let (_folder, run) = sample::run("validated");
        let mut writer = EventWriter::create(&run, &sample::header(&run)).unwrap();
        writer.append(&sample::update(7, 2.0)).unwrap();
        writer.append(&sample::validation(7, 1.5)).unwrap();
        checkpoint(&run, 5);
        let known = || Beginning::resumed(&run, &[]).unwrap().from.progress;
        assert_ne!(known().val_loss, Some(1.5), "that was of a later update");
        checkpoint(&run, 7);
        assert_eq!((known().last_validation, known().val_loss), (7, Some(1.5)));
    }

    #[test]
    fn a_rate_given_when_resuming_ends_the_one_given_by_hand_and_is_recorded() {
        let (_folder, run) = written("rate");
        checkpoint(&run, 5);
        let set = ["optimizer.lr=2e-3".to_owned()];
        let mut on = Beginning::resumed(&run, &set).unwrap();
        assert_eq!((on.from.progress.learning_rate, on.config.optimizer.lr()), (None, 2e-3));
        on.settle(&run).unwrap();
        assert_eq!(run.config().unwrap().optimizer.lr(), 2e-3, "in force for every later process");
        let mut header = sample::header(&run);
        header.config = on.config.clone();
        let (mut record, event) = on.event(&header).unwrap();
        assert_eq!(event.changed, [["optimizer.adamw.lr", "0.003", "0.002"].map(str::to_owned)]);
        record.apply(&Event::Resumed(Box::new(event)));
        assert_eq!(record.header.unwrap().config.optimizer.lr(), 2e-3, "readers know what holds now");
        // Died before it told: the next one tells it.
        let later = Beginning::resumed(&run, &[]).unwrap();
        assert_eq!(later.changed.len(), 1);
        assert_eq!(later.from.progress.learning_rate, None, "and the checkpoint is still of before");
        let refused = Beginning::resumed(&run, &["train.accumulate=3".to_owned()]).unwrap_err();
        assert!(refused.to_string().contains("fork"), "{refused:#}");
    }

    #[test]
    fn a_warm_up_that_nobody_set_gives_way_to_few_updates_in_the_file_of_settings_too() {
        let (_folder, run) = sample::run_with("epochs", &["train.epochs=1"]);
        let mut beginning = Beginning::new(&run, &run.meta().unwrap()).unwrap();
        beginning.fit_warmup(&run, 1000).unwrap();
        assert!(beginning.warnings.is_empty(), "there is room for it: {:?}", beginning.warnings);
        beginning.fit_warmup(&run, 10).unwrap();
        assert_eq!(run.config().unwrap(), beginning.config, "a resumption has the same");
        assert_eq!(beginning.config.schedule.warmup_updates, 1);
        assert!(beginning.warnings[0].contains("a tenth of the 10 updates"), "{:?}", beginning.warnings);
        let set = ["train.epochs=1", "schedule.warmup_updates=20"];
        let (_folder, by_hand) = sample::run_with("by hand", &set);
        let mut beginning = Beginning::new(&by_hand, &by_hand.meta().unwrap()).unwrap();
        beginning.fit_warmup(&by_hand, 10).unwrap();
        assert_eq!(beginning.config.schedule.warmup_updates, 20, "and one that somebody set is refused");
    }

    #[test]
    fn commands_may_change_any_setting_where_the_checkpoint_is_of_that_update() {
        let (_folder, run) = written("turned");
        checkpoint(&run, 7);
        let set = ["optimizer.name=lion".to_owned(), "train.accumulate=3".to_owned()];
        let turned = Beginning::turned(&run, &set, 7).unwrap();
        assert_eq!((turned.from.update, turned.config.train.accumulate), (7, 3));
        assert_eq!(turned.from.cursor, Cursor { epoch: 1, position: 7 }, "the data goes on");
        assert!(turned.warnings[0].contains("train.accumulate 1 -> 3"), "{:?}", turned.warnings);
        assert_eq!(turned.changed.len(), 2);
        let missing = Beginning::turned(&run, &set, 8).unwrap_err().to_string();
        assert!(missing.contains("checkpoint of update 8"), "{missing}");
    }
}
