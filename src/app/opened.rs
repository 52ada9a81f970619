//! One parameter opened: which side of it is shown, what it was before a step, and its history over the run.

use std::collections::BTreeMap;

use crate::protocol::{StateDetail, StateReport, TensorState};

use super::{
    Effect, State,
    messages::STRIP,
    runs::RunRow,
    series::{Place, Series},
};

/// A side of the opened parameter.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum View {
    /// Rows and columns of the state, and what the factors multiply to.
    #[default]
    Strips,
    /// How the values are spread, and how 8-bit codes are used.
    Spread,
    /// The second moment beside the squared gradient of the same update.
    Gradient,
    /// RMS and update ratio over the run.
    History,
    /// Another run's state of the same parameter.
    Beside,
}

impl View {
    /// Every side, in the order of the key.
    pub const ALL: [Self; 5] = [Self::Strips, Self::Spread, Self::Gradient, Self::History, Self::Beside];

    /// The word on the screen.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Strips => "values",
            Self::Spread => "spread",
            Self::Gradient => "squared gradient",
            Self::History => "history",
            Self::Beside => "beside",
        }
    }

    /// The next one, round and round.
    pub fn next(self) -> Self {
        let at = Self::ALL.iter().position(|view| *view == self).unwrap_or(0);
        Self::ALL[(at + 1) % Self::ALL.len()]
    }
}

/// One parameter opened.
#[derive(Debug, Clone, PartialEq)]
pub struct Opened {
    pub tensor: String,
    pub detail: Option<Box<StateDetail>>,
    /// Why nothing of it could be read.
    pub problem: Option<String>,
    /// What it was at the update before the one shown, as far as it was seen.
    pub before: Option<Box<StateDetail>>,
    /// Index into the values of the strips.
    pub cursor: usize,
    pub view: View,
    pub history: History,
}

impl Opened {
    /// Nothing is known of it yet.
    pub fn new(tensor: impl Into<String>) -> Self {
        Self {
            tensor: tensor.into(),
            detail: None,
            problem: None,
            before: None,
            cursor: 0,
            view: View::default(),
            history: History::default(),
        }
    }

    /// Takes a newer state; the one it replaces is kept when an update lies between them.
    pub fn show(&mut self, detail: Box<StateDetail>) {
        if let Some(old) = self.detail.take()
            && old.update < detail.update
        {
            self.before = Some(old);
        }
        self.detail = Some(detail);
        self.problem = None;
    }
}

/// What was measured of one parameter every time the record says something of it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct History {
    /// RMS of each state tensor.
    pub rms: BTreeMap<String, Series>,
    pub update_ratio: Series,
    last: Option<u64>,
    /// The record is being read, or has been.
    pub asked: bool,
    /// The record has been read up to now.
    pub loaded: bool,
    /// What came while it was being read.
    waiting: Vec<(u64, TensorState)>,
}

impl History {
    /// Takes a report, if it says anything of `tensor`.
    pub fn push(&mut self, tensor: &str, report: &StateReport) {
        if let Some(found) = report.tensors.iter().find(|found| found.name == tensor) {
            self.add(report.update, found);
        }
    }

    /// The same of a live run's newest report, while the record before it may still be being read.
    pub fn live(&mut self, tensor: &str, report: &StateReport) {
        match report.tensors.iter().find(|found| found.name == tensor) {
            Some(found) if self.loaded => self.add(report.update, found),
            Some(found) if self.asked => self.waiting.push((report.update, found.clone())),
            _ => {}
        }
    }

    /// Takes what was read of the record.
    pub fn load(&mut self, read: Self) {
        let waiting = std::mem::take(&mut self.waiting);
        *self = Self { asked: true, loaded: true, ..read };
        for (update, tensor) in waiting {
            self.add(update, &tensor);
        }
    }

    /// Forgets what a resumed run makes again.
    pub fn truncate(&mut self, update: u64) {
        self.rms.values_mut().for_each(|series| series.truncate(update));
        self.update_ratio.truncate(update);
        self.last = self.last.filter(|last| *last <= update);
    }

    fn add(&mut self, update: u64, tensor: &TensorState) {
        if self.last.is_some_and(|last| update <= last) {
            return;
        }
        self.last = Some(update);
        let place = Place { update, ..Place::default() };
        for (name, state) in tensor.state.iter().filter(|(_, state)| !state.shape.is_empty()) {
            if let Some(stats) = state.stats {
                self.rms.entry(name.clone()).or_default().push(place, stats.rms);
            }
        }
        if let Some(ratio) = tensor.update_ratio {
            self.update_ratio.push(place, ratio);
        }
    }
}

/// Another run whose state of the opened parameter is shown beside it.
#[derive(Debug, Clone, PartialEq)]
pub struct Beside {
    /// Name of its directory.
    pub run: String,
    pub name: String,
    /// What its last checkpoint holds of the parameter, or why there is nothing.
    pub detail: Option<Result<Box<StateDetail>, String>>,
}

impl State {
    /// Shows the next side of the opened parameter.
    pub(super) fn next_view(&mut self) -> Vec<Effect> {
        let Some(opened) = &mut self.tensors.opened else {
            self.say("open a tensor first: {key:open} on the State screen", true);
            return Vec::new();
        };
        opened.view = opened.view.next();
        match opened.view {
            View::History => self.ask_history(),
            View::Beside if self.tensors.beside.is_none() => self.next_beside(),
            _ => Vec::new(),
        }
    }

    fn ask_history(&mut self) -> Vec<Effect> {
        let (Some(opened), Some(run)) = (&mut self.tensors.opened, &self.watching) else { return Vec::new() };
        if std::mem::replace(&mut opened.history.asked, true) {
            return Vec::new();
        }
        vec![Effect::LoadHistory { run: run.id.clone(), tensor: opened.tensor.clone() }]
    }

    pub(super) fn history_read(&mut self, tensor: &str, history: Result<Box<History>, String>) {
        let opened = self.tensors.opened.as_mut().filter(|opened| opened.tensor == tensor);
        match (opened, history) {
            (Some(opened), Ok(history)) => opened.history.load(*history),
            (Some(_), Err(problem)) => self.say(problem, true),
            (None, _) => {}
        }
    }

    /// Holds the opened parameter against the next run, the marked ones first.
    pub(super) fn next_beside(&mut self) -> Vec<Effect> {
        let fits = |row: &RunRow| row.update > 0 && !self.is_watched(&row.id);
        let marked = self.runs.marked.iter().filter_map(|id| self.runs.all.iter().find(|row| row.id == *id));
        let mut all: Vec<_> = marked.filter(|row| fits(row)).collect();
        for row in self.runs.all.iter().filter(|row| fits(row)) {
            if !all.iter().any(|known| known.id == row.id) {
                all.push(row);
            }
        }
        let now =
            self.tensors.beside.as_ref().and_then(|beside| all.iter().position(|row| row.id == beside.run));
        let at = now.map_or(0, |at| (at + 1) % all.len().max(1));
        match all.get(at).map(|row| (row.id.clone(), row.name.clone())) {
            Some((run, name)) => self.hold_beside(run, name),
            None => {
                self.say("there is no other run that has made an update", true);
                Vec::new()
            }
        }
    }

    /// Holds the opened parameter against that run's.
    pub(super) fn hold_beside(&mut self, run: String, name: String) -> Vec<Effect> {
        let Some(opened) = &mut self.tensors.opened else {
            self.say("open a tensor first: {key:open} on the State screen", true);
            return Vec::new();
        };
        opened.view = View::Beside;
        self.tensors.beside = Some(Beside { run, name, detail: None });
        self.ask_beside()
    }

    /// Asks for the opened parameter of the run beside.
    pub(super) fn ask_beside(&mut self) -> Vec<Effect> {
        let (Some(opened), Some(beside)) = (&self.tensors.opened, &mut self.tensors.beside) else {
            return Vec::new();
        };
        beside.detail = None;
        vec![Effect::LoadDetail { run: beside.run.clone(), tensor: opened.tensor.clone(), width: STRIP }]
    }

    pub(super) fn beside_read(&mut self, run: &str, detail: Result<Box<StateDetail>, String>) {
        let wanted = self.tensors.opened.as_ref().map(|opened| &opened.tensor);
        if let Some(beside) = self.tensors.beside.as_mut().filter(|beside| beside.run == run)
            && detail.as_ref().map_or(true, |detail| Some(&detail.tensor.name) == wanted)
        {
            beside.detail = Some(detail);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::recorded;

    const NAME: &str = "model.norm.weight";

    #[test]
    fn what_comes_while_the_record_is_read_is_neither_lost_nor_there_twice() {
        let mut history = History { asked: true, ..History::default() };
        for update in [150, 200] {
            history.live(NAME, &recorded::state_report("adamw", update));
        }
        assert!(history.rms.is_empty());
        let mut read = History::default();
        for update in [50, 100, 150] {
            read.push(NAME, &recorded::state_report("adamw", update));
        }
        history.load(read);
        history.live(NAME, &recorded::state_report("adamw", 250));
        assert_eq!(history.rms.keys().collect::<Vec<_>>(), ["exp_avg", "exp_avg_sq"]);
        let updates = |series: &Series| -> Vec<f64> {
            series.points(crate::app::series::XAxis::Update).iter().map(|point| point.0).collect()
        };
        assert_eq!(updates(&history.rms["exp_avg"]), [50.0, 100.0, 150.0, 200.0, 250.0]);
        assert_eq!(updates(&history.update_ratio), [50.0, 100.0, 150.0, 200.0, 250.0]);
        history.truncate(120);
        history.live(NAME, &recorded::state_report("adamw", 130));
        assert_eq!(updates(&history.update_ratio), [50.0, 100.0, 130.0]);
        history.live("another", &recorded::state_report("adamw", 300));
        assert_eq!(updates(&history.update_ratio).len(), 3);
    }

    #[test]
    fn the_state_before_an_update_is_kept() {
        let mut opened = Opened::new(NAME);
        let at = |update| Box::new(StateDetail { update, ..recorded::detail("adamw", NAME) });
        opened.show(at(4));
        opened.show(at(4));
        assert!(opened.before.is_none());
        opened.show(at(5));
        opened.show(at(5));
        assert_eq!(opened.before.as_ref().map(|detail| detail.update), Some(4));
    }
}
