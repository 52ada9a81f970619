//! The table of state tensors: rows, order, filter, selection, and one tensor opened.

use std::collections::{BTreeMap, BTreeSet};

use crate::protocol::{StateReport, TensorState, state::figures};

use super::{filter::Filter, input::TextLine};

pub use super::opened::{Beside, History, Opened, View};
use lines::compare;
pub use lines::{Column, Group, Line, layer};

mod lines;
#[cfg(test)]
mod tests;

/// The table.
#[derive(Debug, Clone)]
pub struct Tensors {
    /// Statistics read from a checkpoint or over the socket; newer than the log's where there are any.
    pub report: Option<StateReport>,
    /// Where `report` comes from, or why there is none.
    pub source: String,
    pub sort: Column,
    pub reverse: bool,
    pub filter: TextLine,
    pub filtering: bool,
    pub selected: usize,
    pub opened: Option<Opened>,
    /// Lines are grouped by layer.
    pub grouped: bool,
    /// Layers whose lines are hidden.
    pub folded: BTreeSet<String>,
    /// RMS of each state tensor at the statistics before these, of every parameter of the report.
    before: Vec<BTreeMap<String, f64>>,
    /// The run to hold the opened parameter against.
    pub beside: Option<Beside>,
    /// When the last question was sent, in seconds of the UI's clock.
    pub asked: Option<f64>,
}

impl Default for Tensors {
    fn default() -> Self {
        Self {
            report: None,
            source: String::new(),
            sort: Column::Name,
            reverse: false,
            filter: TextLine::default(),
            filtering: false,
            selected: 0,
            opened: None,
            grouped: false,
            folded: BTreeSet::new(),
            before: Vec::new(),
            beside: None,
            asked: None,
        }
    }
}

impl Tensors {
    /// Forgets the run, keeps order and filter.
    pub fn clear(&mut self) {
        (self.report, self.opened, self.asked) = (None, None, None);
        self.beside = None;
        self.before.clear();
        self.source = String::new();
        self.selected = 0;
    }

    /// The run has ended: what is here was read while it went on, and its last checkpoint is to be read instead.
    pub fn outdated(&mut self) {
        self.asked = None;
        "reading the last checkpoint".clone_into(&mut self.source);
    }

    /// Takes statistics of some or all parameters.
    pub fn merge(&mut self, report: StateReport, source: &str) {
        source.clone_into(&mut self.source);
        match &mut self.report {
            Some(old) if old.optimizer == report.optimizer && report.update >= old.update => {
                old.update = report.update;
                if !report.shared.is_empty() {
                    old.shared = report.shared;
                }
                // Both follow the model's order: the next one is most often where the search goes on.
                let mut next = 0;
                for mut tensor in report.tensors {
                    let (start, end) = old.tensors.split_at(next.min(old.tensors.len()));
                    let same = |known: &TensorState| known.name == tensor.name;
                    let later = end.iter().position(same).map(|at| start.len() + at);
                    match later.or_else(|| start.iter().position(same)) {
                        Some(at) => {
                            let known = &mut old.tensors[at];
                            keep_measured(known, &mut tensor);
                            if known.step < tensor.step {
                                self.before.resize_with(self.before.len().max(at + 1), BTreeMap::new);
                                self.before[at] = rms_of(known);
                            }
                            *known = tensor;
                            next = at + 1;
                        }
                        None => old.tensors.push(tensor),
                    }
                }
            }
            old => {
                self.before.clear();
                *old = Some(report);
            }
        }
    }

    /// Adds to a parameter what is known of its last measured update and what it does not say itself.
    pub fn complete(&self, tensor: &mut TensorState) {
        let mut all = self.report.iter().flat_map(|report| &report.tensors);
        if let Some(known) = all.find(|known| known.name == tensor.name) {
            keep_measured(known, tensor);
        }
    }

    /// The lines that pass the filter, in order.
    pub fn lines(&self) -> Vec<Line<'_>> {
        let Some(report) = &self.report else { return Vec::new() };
        let filter = Filter::new(self.filter.text());
        let mut lines = Vec::with_capacity(3 * report.tensors.len());
        let all = report.tensors.iter().enumerate();
        for (at, parameter) in all.filter(|(_, tensor)| filter.passes(&tensor.name)) {
            let (first, earlier) = (lines.len(), self.before.get(at));
            let states = parameter.state.iter().filter(|(_, state)| !state.shape.is_empty());
            lines.extend(states.map(|(name, state)| Line {
                parameter,
                state: Some((name.as_str(), state)),
                rms_before: earlier.and_then(|earlier| earlier.get(name).copied()),
                group: None,
            }));
            if lines.len() == first {
                lines.push(Line { parameter, state: None, rms_before: None, group: None });
            }
        }
        if self.grouped { self.by_layer(&lines) } else { self.ordered(lines) }
    }

    fn ordered<'a>(&self, mut lines: Vec<Line<'a>>) -> Vec<Line<'a>> {
        // What is alike stays in the model's order, whichever end comes first.
        match (self.sort, self.reverse) {
            (Column::Name, false) => {}
            (Column::Name, true) => lines.reverse(),
            (column, false) => lines.sort_by(|a, b| compare(column, a, b)),
            (column, true) => lines.sort_by(|a, b| compare(column, b, a)),
        }
        lines
    }

    /// Layers in the model's order, each with its lines in the table's.
    fn by_layer<'a>(&self, lines: &[Line<'a>]) -> Vec<Line<'a>> {
        let mut all = Vec::with_capacity(lines.len());
        let one = |a: &Line<'_>, b: &Line<'_>| std::ptr::eq(a.parameter, b.parameter);
        for part in lines.chunk_by(|a, b| one(a, b) || layer(&a.parameter.name) == layer(&b.parameter.name)) {
            let layer = layer(&part[0].parameter.name);
            let folded = self.folded.contains(layer);
            let parameters = || part.chunk_by(one);
            // All that is kept, the numbers that have no line of their own included: layers add up to the whole.
            let states = || parameters().flat_map(|lines| lines[0].parameter.state.values());
            let group = Group {
                layer,
                parameters: parameters().count(),
                elements: states().map(|state| state.elements).sum(),
                bytes: states().map(|state| state.bytes).sum(),
                nonfinite: states().filter_map(|state| state.stats).map(|stats| stats.nonfinite).sum(),
                folded,
            };
            all.push(Line { group: Some(group), state: None, rms_before: None, ..part[0] });
            if !folded {
                all.extend(self.ordered(part.to_vec()));
            }
        }
        all
    }

    /// Hides or shows the lines of the layer whose line is selected. Returns whether one is.
    pub fn fold(&mut self) -> bool {
        let lines = self.lines();
        let at = self.selected.min(lines.len().saturating_sub(1));
        let Some(layer) = lines.get(at).and_then(|line| line.group).map(|group| group.layer.to_owned())
        else {
            return false;
        };
        if !self.folded.remove(&layer) {
            self.folded.insert(layer);
        }
        true
    }

    /// The columns that this optimizer has something to say in.
    pub fn columns(&self) -> Vec<Column> {
        let Some(report) = &self.report else { return Column::ALL.to_vec() };
        let (mut errors, mut untouched) = (false, false);
        for tensor in report.tensors.iter().filter(|tensor| !tensor.figures.is_empty()) {
            untouched |= tensor.figures.contains_key(figures::ROWS_NEVER_TOUCHED);
            errors |=
                [figures::FACTORIZATION_ERROR, figures::QUANTIZATION_ERROR_1, figures::QUANTIZATION_ERROR_2]
                    .iter()
                    .any(|name| tensor.figures.contains_key(*name));
            if errors && untouched {
                break;
            }
        }
        let here = |column: &Column| match column {
            Column::Error => errors,
            Column::Untouched => untouched,
            Column::Change => !self.before.is_empty(),
            _ => true,
        };
        Column::ALL.into_iter().filter(here).collect()
    }

    /// The filter's mistake, if it has one.
    pub fn filter_error(&self) -> Option<String> {
        Filter::new(self.filter.text()).error
    }

    /// Moves the selection.
    pub fn step(&mut self, by: isize) {
        let last = self.lines().len().saturating_sub(1);
        self.selected = self.selected.min(last).saturating_add_signed(by).min(last);
    }

    /// The parameter under the selection.
    pub fn selected_name(&self) -> Option<String> {
        let lines = self.lines();
        let line = lines.get(self.selected.min(lines.len().saturating_sub(1)))?;
        Some(line.parameter.name.clone())
    }

    /// Names of the parameters on `height` lines round the selection, each once.
    pub fn in_view(&self, height: usize) -> Vec<String> {
        let lines = self.lines();
        let first = first_visible(self.selected, lines.len(), height);
        let mut names: Vec<String> = Vec::new();
        for line in lines.iter().skip(first).take(height) {
            if !names.contains(&line.parameter.name) {
                names.push(line.parameter.name.clone());
            }
        }
        names
    }

    /// Sorts by the next or previous column.
    pub fn sort_step(&mut self, forward: bool) {
        let all = self.columns();
        let at = all.iter().position(|column| *column == self.sort).unwrap_or(0);
        self.order_by(all[if forward { at + 1 } else { at + all.len() - 1 } % all.len()]);
    }

    /// Sorts by that column; by the one it is sorted by already, the other way round.
    pub fn sort_by(&mut self, column: Column) {
        if self.sort == column {
            self.reverse = !self.reverse;
        } else {
            self.order_by(column);
        }
    }

    fn order_by(&mut self, column: Column) {
        self.sort = column;
        // Numbers are wanted largest first, words from A.
        self.reverse = !matches!(self.sort, Column::Name | Column::State | Column::Shape | Column::Dtype);
    }
}

fn rms_of(tensor: &TensorState) -> BTreeMap<String, f64> {
    tensor.state.iter().filter_map(|(name, state)| Some((name.clone(), state.stats?.rms))).collect()
}

/// A checkpoint does not tell what was measured of an update: what the log told of it stays.
fn keep_measured(known: &TensorState, tensor: &mut TensorState) {
    if tensor.update_ratio.is_none() {
        (tensor.update_ratio, tensor.measured_at) = (known.update_ratio, known.measured_at);
    }
    for (name, value) in &known.figures {
        tensor.figures.entry(name.clone()).or_insert(*value);
    }
}

/// First line of a list that keeps the selection in its middle where it can.
pub fn first_visible(selected: usize, length: usize, height: usize) -> usize {
    selected.saturating_sub(height / 2).min(length.saturating_sub(height))
}
