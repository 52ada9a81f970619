//! All runs at a glance.

use std::fs;

use rayon::prelude::*;

pub use super::entry::{RunEntry, peak};
use super::{
    Home, RunDir, RunError,
    entry::{blank, read},
    label::Label,
    list_cache::{self, Known, Stamp},
};

/// So many runs that were not known are worth being kept for the next list.
const WORTH_KEEPING: usize = 32;

/// Every run, newest first.
///
/// # Errors
/// The folder of runs cannot be read. A run that cannot be read is listed with its problem.
pub fn list(home: &Home) -> Result<Vec<RunEntry>, RunError> {
    Lister::default().list(home)
}

/// Lists again and again, reading only what has changed.
#[derive(Debug, Default)]
pub struct Lister {
    /// Runs that have ended, by id, with the length and time of the record they were read from.
    ended: Known,
    /// What earlier lists have kept has been read.
    loaded: bool,
}

impl Lister {
    /// Every run, newest first.
    ///
    /// # Errors
    /// The folder of runs cannot be read.
    pub fn list(&mut self, home: &Home) -> Result<Vec<RunEntry>, RunError> {
        let runs = RunDir::all(home)?;
        if !std::mem::replace(&mut self.loaded, true) && runs.len() > WORTH_KEEPING {
            self.ended = list_cache::load(home);
        }
        let looked: Vec<_> = runs.par_iter().map(|run| (self.look(run), Label::read(run))).collect();
        let mut fresh = 0;
        let mut entries = Vec::with_capacity(looked.len());
        for ((entry, stamp), label) in looked {
            if let Some(stamp) = stamp {
                fresh += 1;
                self.ended.insert(entry.run.clone(), (stamp, entry.clone()));
            }
            // What is kept is what the record says: the label may change without it.
            entries.push(labelled(entry, label));
        }
        if fresh > WORTH_KEEPING {
            if self.ended.len() > runs.len() {
                let listed: std::collections::HashSet<&str> = runs.iter().map(RunDir::id).collect();
                self.ended.retain(|id, _| listed.contains(id.as_str()));
            }
            list_cache::save(home, &self.ended);
        }
        Ok(entries)
    }

    /// One run.
    pub fn entry(&mut self, run: &RunDir) -> RunEntry {
        labelled(self.look(run).0, Label::read(run))
    }

    /// One run, and the stamp of its record when it has ended and was not known.
    fn look(&self, run: &RunDir) -> (RunEntry, Option<Stamp>) {
        let metadata = fs::metadata(run.events()).ok();
        let stamp = metadata.as_ref().and_then(Stamp::of);
        if let Some((known, entry)) = self.ended.get(run.id())
            && Some(*known) == stamp
            && entry.path == run.path()
        {
            return (entry.clone(), None);
        }
        let entry = match metadata {
            // Opening a pipe would wait for somebody who writes into it.
            Some(metadata) if !metadata.is_file() => {
                let problem = Some(format!("{}: it is no file", run.events().display()));
                RunEntry { problem, ..blank(run, None) }
            }
            _ => read(run),
        };
        let stamp = stamp.filter(|_| entry.reason.is_some());
        (entry, stamp)
    }
}

/// The entry under the name that a person gave the run, with the note on it.
fn labelled(entry: RunEntry, label: Result<Label, RunError>) -> RunEntry {
    match label {
        Ok(Label { name, note, .. }) => RunEntry { name: name.unwrap_or(entry.name), note, ..entry },
        Err(error) => {
            let problem = entry.problem.unwrap_or_else(|| error.to_string());
            RunEntry { problem: Some(problem), ..entry }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        protocol::Event,
        run::{EventWriter, sample, standing::State},
    };

    #[test]
    fn many_ended_runs_are_kept_and_read_again_only_when_they_change() {
        let (_folder, run) = sample::run("first");
        let home = Home::at(run.path().parent().unwrap().parent().unwrap());
        let resolved = crate::config::Layers::new().resolve().unwrap();
        let made: Vec<_> =
            (0..=WORTH_KEEPING).map(|_| RunDir::create(&home, "many", &resolved).unwrap()).collect();
        for run in &made {
            let mut writer = EventWriter::create(run, &sample::header(run)).unwrap();
            writer.append(&sample::update(1, 2.0)).unwrap();
            writer.append(&sample::run_ended(run)).unwrap();
        }
        let first = list(&home).unwrap();
        assert!(home.path().join("list.json").exists());
        assert_eq!(list_cache::load(&home).len(), made.len(), "the run that has not ended is not kept");
        // What is kept is believed while the record stays as it was: without its end it would tell something else.
        std::fs::write(made[3].meta_json(), r#"{"schema":1,"name":"renamed","created":""}"#).unwrap();
        assert_eq!(list(&home).unwrap(), first);
        EventWriter::reopen(&made[3]).unwrap().append(&Event::resumed(1)).unwrap();
        let entry = list(&home).unwrap().into_iter().find(|entry| entry.run == made[3].id()).unwrap();
        assert_eq!((entry.state, &*entry.name), (State::Crashed, "renamed"));
        std::fs::write(home.path().join("list.json"), b"{").unwrap();
        assert_eq!(list(&home).unwrap().len(), first.len(), "a damaged file is no more than a missing one");
    }

    #[test]
    fn what_else_lies_among_the_runs_is_passed_over_and_what_vanishes_is_no_error() {
        let (_folder, run) = sample::run("real");
        let home = Home::at(run.path().parent().unwrap().parent().unwrap());
        let runs = home.runs();
        (0..10_000).for_each(|n| std::fs::write(runs.join(format!("notes-{n}.txt")), "").unwrap());
        std::fs::write(runs.join("20260101T000000Z-a-file"), "").unwrap();
        std::fs::create_dir_all(runs.join("20260101T000000Z-odd").join("events.jsonl")).unwrap();
        std::os::unix::fs::symlink("nowhere", runs.join("20260101T000000Z-link")).unwrap();
        let listed = list(&home).unwrap();
        assert_eq!(listed.iter().map(|entry| &*entry.run).collect::<Vec<_>>(), [run.id()]);
        // Between two looks somebody removes the folder.
        std::fs::remove_dir_all(run.path()).unwrap();
        let gone = Lister::default().entry(&run);
        assert!(gone.problem.unwrap().contains("cannot read"));
        assert!(list(&home).unwrap().is_empty());
    }
}
