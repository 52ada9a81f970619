//! The list of runs, the marked ones, and their comparison.

use std::{cmp::Ordering, collections::BTreeMap, sync::Arc};

use crate::{
    config::Config,
    protocol::{Event, Lineage},
};

use super::{
    State,
    filter::Filter,
    form::Earlier,
    input::TextLine,
    run::RunView,
    series::{Place, Series},
};

/// What the list is ordered by.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Order {
    /// The time at which they were made.
    #[default]
    Newest,
    Name,
    State,
    Optimizer,
    ValLoss,
    Updates,
    StateBytes,
    Batch,
    TrainLoss,
    Speed,
    Peak,
}

impl Order {
    /// Every order, in the order of the keys.
    pub const ALL: [Self; 11] = [
        Self::Newest,
        Self::Name,
        Self::State,
        Self::Optimizer,
        Self::ValLoss,
        Self::Updates,
        Self::StateBytes,
        Self::Batch,
        Self::TrainLoss,
        Self::Speed,
        Self::Peak,
    ];

    /// The head of the column, or what it is.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Newest => "newest",
            Self::Name => "name",
            Self::State => "state",
            Self::Optimizer => "optimizer",
            Self::ValLoss => "val loss",
            Self::Updates => "updates",
            Self::StateBytes => "state mem",
            Self::Batch => "batch",
            Self::TrainLoss => "train loss",
            Self::Speed => "tok/s",
            Self::Peak => "peak",
        }
    }
}

/// The best first: losses and bytes from the smallest, updates and speeds from the largest; what is not known last.
fn compare(order: Order, a: &RunRow, b: &RunRow) -> Ordering {
    let small = |value: Option<f64>| value.filter(|value| !value.is_nan()).unwrap_or(f64::INFINITY);
    let bytes = |value: Option<u64>| value.unwrap_or(u64::MAX);
    match order {
        Order::Newest => Ordering::Equal,
        Order::Name => a.name.cmp(&b.name),
        Order::State => a.state.cmp(&b.state),
        Order::Optimizer => a.optimizer.cmp(&b.optimizer),
        Order::ValLoss => small(a.val_loss).total_cmp(&small(b.val_loss)),
        Order::Updates => b.update.cmp(&a.update),
        Order::StateBytes => bytes(a.state_bytes).cmp(&bytes(b.state_bytes)),
        Order::Batch => {
            let batch = |row: &RunRow| row.batch.map_or(usize::MAX, |(micro, accumulate)| micro * accumulate);
            batch(a).cmp(&batch(b))
        }
        Order::TrainLoss => small(a.train_loss).total_cmp(&small(b.train_loss)),
        Order::Speed => {
            let speed = |row: &RunRow| small(row.tokens_per_second.map(|speed| -speed));
            speed(a).total_cmp(&speed(b))
        }
        Order::Peak => {
            let peak = |row: &RunRow| bytes(row.peak.as_ref().map(|(bytes, _)| *bytes));
            peak(a).cmp(&peak(b))
        }
    }
}

/// Indices of the points that no other point beats in both coordinates, by the first coordinate.
pub fn pareto(points: &[(f64, f64)]) -> Vec<usize> {
    let mut order: Vec<usize> =
        (0..points.len()).filter(|at| points[*at].0.is_finite() && points[*at].1.is_finite()).collect();
    order.sort_by(|a, b| points[*a].0.total_cmp(&points[*b].0).then(points[*a].1.total_cmp(&points[*b].1)));
    let mut least = f64::INFINITY;
    order.retain(|at| {
        let better = points[*at].1 < least;
        least = least.min(points[*at].1);
        better
    });
    order
}

/// Most runs that can be overlaid: as many as there are colours that can be told apart.
pub const MOST_MARKED: usize = 6;

/// One run in the list.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunRow {
    /// Name of its directory.
    pub id: String,
    pub name: String,
    /// What somebody wrote down about it.
    pub note: Option<String>,
    /// The checkpoint of another run that it started from.
    pub forked_from: Option<Lineage>,
    /// `queued`, `live`, `paused`, `done`, `stopped`, `failed`, `crashed`.
    pub state: String,
    pub update: u64,
    pub total: Option<u64>,
    pub optimizer: Option<String>,
    /// Micro-batch and accumulation.
    pub batch: Option<(usize, usize)>,
    /// Of the newest run alone: the next draft is held against it.
    pub config: Option<Config>,
    pub train_loss: Option<f64>,
    pub val_loss: Option<f64>,
    /// What its losses are measured on: they compare where it is the same.
    pub measured_on: Option<String>,
    pub state_bytes: Option<u64>,
    /// Bytes, and what measured them.
    pub peak: Option<(u64, String)>,
    pub tokens_per_second: Option<f64>,
    /// Why the run cannot be read, if it cannot.
    pub problem: Option<String>,
    /// The command that goes on with it, as its summary says.
    pub resume_command: Option<String>,
}

impl RunRow {
    /// Whether a worker is training it.
    pub fn is_live(&self) -> bool {
        matches!(&*self.state, "live" | "paused")
    }
}

/// The curves of one run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Curves {
    pub loss: Series,
    pub val: Series,
}

impl Curves {
    /// Reads the curves off a run's events.
    pub fn of(events: &[Event]) -> Self {
        let mut view = RunView::default();
        events.iter().for_each(|event| view.apply(event));
        Self { loss: view.loss, val: view.val }
    }
}

/// What differs between the marked runs, and what came of it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Comparison {
    pub runs: Vec<String>,
    pub differences: Vec<(String, Vec<String>)>,
    pub verdict: String,
}

/// The list and what is marked in it.
#[derive(Debug, Clone, Default)]
pub struct Runs {
    /// Those that pass the filter, in the order of the list.
    pub rows: Vec<Arc<RunRow>>,
    /// All of them, newest first.
    pub all: Vec<Arc<RunRow>>,
    pub order: Order,
    pub reverse: bool,
    pub filter: TextLine,
    pub filtering: bool,
    /// Memory against loss is shown in place of the curves.
    pub scatter: bool,
    /// The curves begin at each run's fork point.
    pub from_fork: bool,
    pub loaded: bool,
    pub selected: usize,
    /// Somebody chose it; until then the newest run is selected.
    chosen: bool,
    /// Ids, in the order in which they were marked.
    pub marked: Vec<String>,
    pub curves: BTreeMap<String, Curves>,
    pub comparison: Option<Comparison>,
    /// Why the last comparison could not be made.
    pub problem: Option<String>,
    /// When the list was last asked for, in seconds of the UI's clock.
    pub asked: Option<f64>,
    /// First line shown of the comparison.
    pub scroll: usize,
}

impl Runs {
    /// Whether a run waits in the queue, as of the newest list.
    pub fn any_queued(&self) -> bool {
        self.all.iter().any(|row| row.state == "queued")
    }

    /// Takes a new list; selection and marks stay with their runs. Returns whether a marked one is not in it any more.
    pub fn load(&mut self, rows: Vec<RunRow>) -> bool {
        // What was read of a run that waited or was live is not all that there is once it has moved on.
        fn state<'a>(rows: &'a [Arc<RunRow>], id: &str) -> Option<&'a str> {
            rows.iter().find(|row| row.id == id).map(|row| &*row.state)
        }
        let rows: Vec<_> = rows.into_iter().map(Arc::new).collect();
        self.curves.retain(|id, _| state(&self.all, id) == state(&rows, id));
        self.all = rows;
        self.loaded = true;
        let marked = self.marked.len();
        self.marked.retain(|id| self.all.iter().any(|row| row.id == *id));
        let fewer = self.marked.len() != marked;
        if fewer {
            self.forget_comparison();
        }
        self.arrange();
        fewer
    }

    /// Other runs are marked than those that were compared.
    fn forget_comparison(&mut self) {
        (self.comparison, self.problem, self.scroll) = (None, None, 0);
    }

    /// Orders by the next column, or the one before.
    pub fn order_step(&mut self, forward: bool) {
        let at = Order::ALL.iter().position(|order| *order == self.order).unwrap_or(0);
        let count = Order::ALL.len();
        self.order = Order::ALL[if forward { at + 1 } else { at + count - 1 } % count];
        self.reverse = false;
        self.arrange();
    }

    /// Orders by that column; the other way round when it is ordered by it already.
    pub fn sort_by(&mut self, order: Order) {
        self.reverse = self.order == order && !self.reverse;
        self.order = order;
        self.arrange();
    }

    /// Where the curves of a run begin when they are aligned by the fork point: where it was forked; of another run,
    /// where the first of the runs shown was forked from it; else at its start.
    pub fn fork_point(&self, row: &RunRow) -> Option<Place> {
        let child = || self.shown().into_iter().filter_map(|row| row.forked_from.as_ref());
        let own = row.forked_from.as_ref();
        let from = own.or_else(|| child().find(|from| from.run == row.id))?;
        Some(Place { update: from.update, tokens: from.tokens, time: from.time })
    }

    /// Puts the list in order again after filter or order have changed; the selection stays with its run.
    pub fn arrange(&mut self) {
        let id = self.selected_id().filter(|_| self.chosen);
        let filter = Filter::new(self.filter.text());
        let passes = |row: &&Arc<RunRow>| {
            [&row.id, &row.name, &row.state]
                .into_iter()
                .chain(&row.optimizer)
                .chain(&row.note)
                .any(|text| filter.passes(text))
        };
        self.rows = self.all.iter().filter(passes).cloned().collect();
        self.rows.sort_by(|a, b| compare(self.order, a, b));
        if self.reverse {
            self.rows.reverse();
        }
        let at = id.and_then(|id| self.rows.iter().position(|row| row.id == id));
        let before = if self.chosen { self.selected } else { 0 };
        self.selected = at.unwrap_or(before).min(self.rows.len().saturating_sub(1));
    }

    /// The run under the selection.
    pub fn selected_id(&self) -> Option<String> {
        self.rows.get(self.selected).map(|row| row.id.clone())
    }

    /// Moves the selection.
    pub fn step(&mut self, by: isize) {
        let last = self.rows.len().saturating_sub(1);
        self.select(self.selected.saturating_add_signed(by).min(last));
    }

    /// Selects the run at that place.
    pub const fn select(&mut self, at: usize) {
        self.selected = at;
        self.chosen = true;
    }

    /// Marks the selected run or takes its mark away.
    ///
    /// # Errors
    /// When as many are marked as can be told apart.
    pub fn mark(&mut self) -> Result<(), String> {
        let Some(id) = self.selected_id() else { return Ok(()) };
        self.chosen = true;
        if let Some(at) = self.marked.iter().position(|marked| *marked == id) {
            self.marked.remove(at);
        } else if self.marked.len() == MOST_MARKED {
            return Err(format!("{MOST_MARKED} runs are marked: take a mark away first"));
        } else {
            self.marked.push(id);
        }
        self.forget_comparison();
        Ok(())
    }

    /// The marked runs, or the selected one when none is marked.
    pub fn shown(&self) -> Vec<&Arc<RunRow>> {
        let find = |id: &String| self.all.iter().find(|row| row.id == *id);
        if self.marked.is_empty() {
            self.rows.get(self.selected).into_iter().collect()
        } else {
            self.marked.iter().filter_map(find).collect()
        }
    }

    /// The last run that has a configuration, for the draft to be held against.
    pub fn newest_config(&self) -> Option<Earlier> {
        let row = self.all.first()?;
        row.config.as_ref().map(|config| Earlier::new(&*row.id, &*row.name, config))
    }
}

impl State {
    /// Aligns the curves of the Runs screen by the fork point, or no more.
    pub(super) fn align_fork(&mut self) -> Vec<super::Effect> {
        self.runs.from_fork = !self.runs.from_fork;
        // It is about the curves: they are what is shown.
        self.runs.scatter = false;
        if self.runs.from_fork && self.runs.shown().iter().all(|row| self.runs.fork_point(row).is_none()) {
            self.say("none of these runs is a fork of another: all begin at 0", false);
        }
        if self.screen == super::action::Screen::Runs {
            Vec::new()
        } else {
            self.show(super::action::Screen::Runs)
        }
    }
}

#[cfg(test)]
mod tests;
