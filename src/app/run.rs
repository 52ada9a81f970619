//! One run as its events tell it: a fold, the same whether the run is live, finished or read in pieces.

use std::{collections::VecDeque, ops::RangeInclusive};

use crate::{
    config::{Arch, Counted},
    protocol::{
        CheckpointWritten, CommandRecord, Event, Header, Host, Level, Lineage, Reason, Resumed, RunEnded,
        StateReport, TextSample, Update, Validation, Window,
    },
    run::{pulse::Pulse, record::Peaks},
};

use super::series::{Place, Series};
pub use super::{
    marker::{Marker, MarkerKind},
    status::{Status, Waiting},
};

/// Most lines the journal keeps.
const JOURNAL: usize = 500;
/// Most markers a chart can carry.
const MARKERS: usize = 400;
/// Most texts that are kept of those that the model wrote.
const SAMPLES: usize = 500;

/// How a line of the journal about the learning rate begins.
const RATE: &str = "learning rate";

/// One line of the journal.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    pub update: u64,
    pub time: f64,
    pub level: Level,
    pub text: String,
}

/// A run as its events tell it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunView {
    pub header: Option<Box<Header>>,
    /// How far its data is, as long as it has not begun.
    pub preparing: Option<String>,
    /// The newest update.
    pub update: Option<Update>,
    pub window: Option<Window>,
    pub validation: Option<Validation>,
    pub host: Option<Host>,
    /// The most that was measured: by the readings in the record, which are seconds apart and may miss a short run
    /// altogether, and by the summaries of its processes that have ended.
    pub peaks: Peaks,
    pub checkpoint: Option<CheckpointWritten>,
    /// The newest statistics of all state.
    pub state: Option<StateReport>,
    pub ended: Option<Box<RunEnded>>,
    pub loss: Series,
    pub val: Series,
    pub grad_norm: Series,
    pub speed: Series,
    pub rate: Series,
    pub journal: VecDeque<Entry>,
    pub markers: VecDeque<Marker>,
    /// Texts that the model wrote, oldest first.
    pub samples: VecDeque<TextSample>,
    pub paused: bool,
    /// The learning rate that overrides the schedule.
    pub rate_override: Option<f64>,
    /// Updates skipped for a gradient that was not finite.
    pub skipped: u64,
    pub best_val: Option<f64>,
    /// Seconds since the start, of the newest event that has a time.
    pub time: f64,
    /// What the engine did last, and when the machine was read last.
    pub pulse: Pulse,
}

impl RunView {
    /// Folds one event in.
    pub fn apply(&mut self, event: &Event) {
        match event {
            Event::Header(header) => self.header(header),
            Event::Update(update) => self.updated(update),
            Event::Window(window) => self.window = Some(*window),
            Event::Validation(validation) => self.validated(validation),
            Event::Sample(sample) => self.wrote(sample),
            Event::Host(host) => self.measured(host),
            Event::Alert(alert) => {
                if alert.level != Level::Info {
                    self.mark(alert.update, alert.time, MarkerKind::Alert);
                }
                self.log(alert.update, alert.time, alert.level, alert.message.clone());
            }
            Event::State(report) => self.state = Some(report.clone()),
            Event::Checkpoint(checkpoint) => {
                self.mark(checkpoint.update, checkpoint.time, MarkerKind::Checkpoint);
                let text = format!("checkpoint written: {}", checkpoint.path);
                self.log(checkpoint.update, checkpoint.time, Level::Info, text);
                self.checkpoint = Some(checkpoint.clone());
            }
            Event::Snapshot(_) => {}
            Event::Resumed(resumed) => self.resumed(resumed),
            Event::Command(record) => self.commanded(record),
            Event::RunEnded(ended) => self.end(ended),
        }
    }

    fn header(&mut self, header: &Header) {
        self.preparing = None;
        let lineage = header.forked_from.as_ref().map(Lineage::told);
        for note in lineage.iter().chain(&header.notes) {
            self.log(0, 0.0, Level::Info, note.clone());
        }
        for (why, times) in &header.data.left_out {
            self.log(0, 0.0, Level::Warning, format!("data left out: {why} ({times}x)"));
        }
        for name in &header.data.left_out_named {
            self.log(0, 0.0, Level::Info, format!("left out: {name}"));
        }
        if let Some(from) = &header.forked_from {
            let place = Place { update: from.update, tokens: from.tokens, time: from.time };
            self.markers.push_back(Marker { place, kind: MarkerKind::Forked });
        }
        self.pulse.worked = Some(header.forked_from.as_ref().map_or(0.0, |from| from.time));
        self.header = Some(Box::new(header.clone()));
    }

    fn updated(&mut self, update: &Update) {
        let place = Place { update: update.update, tokens: update.tokens, time: update.time };
        self.loss.push(place, update.loss);
        self.grad_norm.push(place, update.grad_norm);
        self.speed.push(place, update.tokens_per_second);
        self.rate.push(place, update.learning_rate);
        if update.skipped {
            self.skipped += 1;
            self.mark(update.update, update.time, MarkerKind::Skipped);
        }
        self.window = None;
        self.time = update.time;
        self.pulse.usual = self.update.as_ref().map(|before| update.time - before.time);
        self.pulse.worked = Some(update.time);
        self.update = Some(update.clone());
    }

    fn validated(&mut self, validation: &Validation) {
        let tokens = self.update.as_ref().map_or(0, |update| update.tokens);
        self.val.push(Place { update: validation.update, tokens, time: validation.time }, validation.loss);
        if validation.loss.is_finite() {
            self.best_val =
                Some(self.best_val.map_or(validation.loss, |best: f64| best.min(validation.loss)));
        }
        self.time = validation.time;
        self.pulse.worked = Some(validation.time);
        self.validation = Some(validation.clone());
    }

    fn wrote(&mut self, sample: &TextSample) {
        if self.samples.len() == SAMPLES {
            self.samples.pop_front();
        }
        self.samples.push_back(sample.clone());
        self.time = sample.time;
        self.pulse.worked = Some(sample.time);
    }

    fn measured(&mut self, host: &Host) {
        self.peaks.apply(host);
        self.time = self.time.max(host.time);
        self.pulse.heard = Some(host.time);
        self.host = Some(host.clone());
    }

    fn resumed(&mut self, resumed: &Resumed) {
        let from = resumed.from_update;
        self.pulse = Pulse { worked: Some(resumed.time), heard: None, usual: None };
        for series in [&mut self.loss, &mut self.val, &mut self.grad_norm, &mut self.speed, &mut self.rate] {
            series.truncate(from);
        }
        self.samples.retain(|sample| sample.update <= from);
        self.markers.retain(|marker| marker.place.update <= from);
        if self.update.as_ref().is_some_and(|update| update.update > from) {
            self.update = None;
        }
        if self.validation.as_ref().is_some_and(|validation| validation.update > from) {
            self.validation = None;
        }
        self.best_val = self.val.range().map(|(low, _)| low);
        (self.window, self.ended, self.paused) = (None, None, false);
        self.rate_override = resumed.learning_rate;
        let time = self.time;
        self.mark(from, time, MarkerKind::Resumed);
        self.log(from, time, Level::Info, format!("resumed from update {from}"));
        if self.header.as_ref().is_some_and(|header| !resumed.stays_on(&header.device)) {
            self.peaks = Peaks::default();
        }
        if let Some(header) = &resumed.header {
            self.header = Some(header.clone());
        }
    }

    fn commanded(&mut self, record: &CommandRecord) {
        self.pulse.worked = Some(record.time);
        if record.outcome == "applied" {
            match &*record.name {
                "pause" => {
                    self.paused = true;
                    self.mark(record.update, record.time, MarkerKind::Paused);
                }
                "resume" => self.paused = false,
                "stop" => self.mark(record.update, record.time, MarkerKind::Stopped),
                "learning_rate" => {
                    self.rate_override = record.value;
                    self.mark(record.update, record.time, MarkerKind::Rate);
                }
                _ => {}
            }
        }
        let name = record.name.replace('_', " ");
        let what = match (&*record.name, record.value) {
            ("learning_rate", Some(value)) => format!("{RATE} {value:e}"),
            ("learning_rate", None) => format!("{RATE} back to the schedule"),
            _ => name,
        };
        let level = if record.outcome == "rejected" { Level::Warning } else { Level::Info };
        let why = record.why.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
        self.log(record.update, record.time, level, format!("{what}: {}{why}", record.outcome));
    }

    fn end(&mut self, ended: &RunEnded) {
        let level = match ended.reason {
            Reason::Finished | Reason::Stopped | Reason::DataEnded => Level::Info,
            Reason::NotFinite | Reason::OutOfMemory | Reason::Failed => Level::Error,
        };
        let word = ended.reason.as_str().replace('_', " ");
        let text = match &ended.message {
            // It begins with the reason itself.
            Some(message) if message.starts_with(&word) => message.clone(),
            Some(message) => format!("{word}: {message}"),
            None => word,
        };
        self.log(ended.summary.updates, self.time, level, text);
        (self.paused, self.window) = (false, None);
        self.peaks = self.peaks.most(Peaks::told(&ended.summary.measured));
        self.ended = Some(Box::new(ended.clone()));
    }

    /// Puts what is known about the worker's death into the journal.
    pub fn crashed(&mut self, lines: Vec<String>) {
        let update = self.done();
        for line in lines {
            self.log(update, self.time, Level::Error, line);
        }
    }

    /// Says how many lines of the record were left out, once.
    pub fn unreadable(&mut self, lines: u64) {
        const WHAT: &str = " of events.jsonl cannot be read and are left out";
        self.journal.retain(|entry| !entry.text.ends_with(WHAT));
        if lines > 0 {
            let counted = if lines == 1 { "1 line".to_owned() } else { format!("{lines} lines") };
            self.log(self.done(), self.time, Level::Warning, counted + WHAT);
        }
    }

    fn log(&mut self, update: u64, time: f64, level: Level, text: String) {
        if self.journal.len() == JOURNAL {
            self.journal.pop_front();
        }
        self.journal.push_back(Entry { update, time, level, text });
    }

    fn mark(&mut self, update: u64, time: f64, kind: MarkerKind) {
        let tokens = self.update.as_ref().map_or(0, |update| update.tokens);
        if self.markers.len() == MARKERS {
            self.markers.pop_front();
        }
        self.markers.push_back(Marker { place: Place { update, tokens, time }, kind });
    }

    /// What the journal says of those updates: what changes how it learns first, then what is amiss, then the rest.
    pub fn happened(&self, updates: RangeInclusive<u64>) -> Vec<&str> {
        let mut found: Vec<&Entry> =
            self.journal.iter().filter(|entry| updates.contains(&entry.update)).collect();
        let rank = |entry: &Entry| match entry.level {
            _ if entry.text.starts_with(RATE) => 0,
            Level::Warning | Level::Error => 1,
            Level::Info => 2,
        };
        found.sort_by_key(|entry| rank(entry));
        found.into_iter().map(|entry| &*entry.text).collect()
    }

    /// Where the run stands; `gone` says that its worker is known to be no more.
    pub fn status(&self, gone: bool) -> Status {
        match &self.ended {
            Some(ended) => Status::Ended(ended.reason),
            None if gone => Status::Crashed,
            None if self.header.is_none() => Status::Starting,
            None if self.paused => Status::Paused,
            None => Status::Live,
        }
    }

    /// What the run's counters count.
    pub fn counted(&self) -> Counted {
        self.header.as_ref().map_or(Arch::Llama, |header| header.config.model.arch).counted()
    }

    /// Updates done.
    pub fn done(&self) -> u64 {
        let logged = self.update.as_ref().map_or(0, |update| update.update);
        self.ended.as_ref().map_or(logged, |ended| ended.summary.updates)
    }

    /// Updates the run will make when nobody stops it.
    pub fn total(&self) -> Option<u64> {
        self.header.as_ref().map(|header| header.total_updates)
    }

    /// Seconds to the end at the recent speed, pauses left out.
    pub fn eta(&self) -> Option<f64> {
        let update = self.update.as_ref()?;
        let left = self.total()?.checked_sub(update.update)?;
        let speed = self.speed.recent(32).filter(|speed| *speed > 0.0)?;
        Some(left as f64 * (update.tokens as f64 / update.update.max(1) as f64) / speed)
    }
}

#[cfg(test)]
mod tests;
