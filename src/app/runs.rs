//! The list of runs, the marked ones, and their comparison.

use std::collections::BTreeMap;

use crate::{config::Config, protocol::Event};

use super::{run::RunView, series::Series};

/// Most runs that can be overlaid: as many as there are colours that can be told apart.
pub const MOST_MARKED: usize = 6;

/// One run in the list.
#[derive(Debug, Clone, PartialEq)]
pub struct RunRow {
    /// Name of its directory.
    pub id: String,
    pub name: String,
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
    pub state_bytes: Option<u64>,
    /// Bytes, and what measured them.
    pub peak: Option<(u64, String)>,
    pub tokens_per_second: Option<f64>,
    /// Why the run cannot be read, if it cannot.
    pub problem: Option<String>,
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
    /// Newest first.
    pub rows: Vec<RunRow>,
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
    /// Takes a new list; selection and marks stay with their runs.
    pub fn load(&mut self, rows: Vec<RunRow>) {
        let id = self.selected_id().filter(|_| self.chosen);
        self.rows = rows;
        self.loaded = true;
        self.marked.retain(|id| self.rows.iter().any(|row| row.id == *id));
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
        self.comparison = None;
        self.problem = None;
        self.scroll = 0;
        Ok(())
    }

    /// The marked runs, or the selected one when none is marked.
    pub fn shown(&self) -> Vec<&RunRow> {
        let find = |id: &String| self.rows.iter().find(|row| row.id == *id);
        if self.marked.is_empty() {
            self.rows.get(self.selected).into_iter().collect()
        } else {
            self.marked.iter().filter_map(find).collect()
        }
    }

    /// The last run that has a configuration, for the draft to be held against.
    pub fn newest_config(&self) -> Option<(String, Config)> {
        let row = self.rows.first()?;
        row.config.clone().map(|config| (row.name.clone(), config))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::recorded;

    #[test]
    fn marks_and_selection_stay_with_their_runs_when_the_list_changes() {
        let mut runs = Runs::default();
        runs.load(recorded::run_rows());
        runs.step(1);
        runs.mark().unwrap();
        let id = runs.selected_id().unwrap();
        let mut more = recorded::run_rows();
        more.insert(0, RunRow { id: "20270101T000000-new".into(), ..more[0].clone() });
        runs.load(more);
        assert_eq!(runs.selected_id().unwrap(), id);
        assert_eq!(runs.marked, vec![id]);
        runs.load(Vec::new());
        assert!(runs.marked.is_empty() && runs.selected_id().is_none());
    }

    #[test]
    fn the_newest_run_is_selected_until_somebody_chooses() {
        let (mut runs, rows) = (Runs::default(), recorded::run_rows());
        runs.load(rows[1..].to_vec());
        runs.load(rows.clone());
        assert_eq!(runs.selected_id().unwrap(), rows[0].id);
    }

    #[test]
    fn marking_twice_takes_the_mark_away_and_the_number_is_bounded() {
        let mut runs = Runs::default();
        let row = recorded::run_rows().remove(0);
        runs.load((0..8).map(|i| RunRow { id: format!("r{i}"), ..row.clone() }).collect());
        runs.mark().unwrap();
        runs.mark().unwrap();
        assert!(runs.marked.is_empty());
        for _ in 0..MOST_MARKED {
            runs.mark().unwrap();
            runs.step(1);
        }
        assert!(runs.mark().unwrap_err().contains("6 runs"));
    }

    #[test]
    fn curves_are_read_off_events() {
        let curves = Curves::of(&recorded::demo(120));
        assert_eq!(curves.loss.len(), 120);
        assert!(!curves.val.is_empty());
    }
}
