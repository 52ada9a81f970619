//! The table of state tensors: rows, order, filter, selection, and one tensor opened.

use std::cmp::Ordering;

use globset::{GlobBuilder, GlobMatcher};

use crate::protocol::{StateDetail, StateReport, StateTensor, TensorState, state::figures};

use super::input::TextLine;

/// A column of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Column {
    Name,
    State,
    Shape,
    Step,
    Bytes,
    Rms,
    Min,
    Max,
    Zeros,
    NonFinite,
    Ratio,
    /// What factoring or 8-bit codes lose.
    Error,
    /// Rows that no gradient has touched.
    Untouched,
    Dtype,
}

impl Column {
    /// Every column, from left to right.
    pub const ALL: [Self; 14] = [
        Self::Name,
        Self::State,
        Self::Shape,
        Self::Step,
        Self::Bytes,
        Self::Rms,
        Self::Min,
        Self::Max,
        Self::Zeros,
        Self::NonFinite,
        Self::Ratio,
        Self::Error,
        Self::Untouched,
        Self::Dtype,
    ];

    /// The head of the column.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Name => "tensor",
            Self::State => "state",
            Self::Shape => "shape",
            Self::Step => "step",
            Self::Bytes => "bytes",
            Self::Rms => "rms",
            Self::Min => "min",
            Self::Max => "max",
            Self::Zeros => "zeros",
            Self::NonFinite => "nan/inf",
            Self::Ratio => "update/param",
            Self::Error => "error",
            Self::Untouched => "untouched",
            Self::Dtype => "dtype",
        }
    }
}

/// One line: a state tensor of a parameter; a parameter that keeps none has one line without.
#[derive(Debug, Clone, Copy)]
pub struct Line<'a> {
    pub parameter: &'a TensorState,
    pub state: Option<(&'a str, &'a StateTensor)>,
}

impl Line<'_> {
    /// What factoring or 8-bit codes lost at the last update that was measured: of codes for each of the two moments.
    pub fn error(&self) -> Option<f64> {
        let name = match self.state.map(|(name, _)| name) {
            Some("state1") => figures::QUANTIZATION_ERROR_1,
            Some("state2") => figures::QUANTIZATION_ERROR_2,
            Some("exp_avg_sq_row" | "exp_avg_sq_col") => figures::FACTORIZATION_ERROR,
            _ => return None,
        };
        self.parameter.figures.get(name).copied()
    }

    /// Rows of the parameter that no gradient has touched.
    pub fn untouched(&self) -> Option<f64> {
        self.parameter.figures.get(figures::ROWS_NEVER_TOUCHED).copied()
    }
}

/// One parameter opened.
#[derive(Debug, Clone, PartialEq)]
pub struct Opened {
    pub tensor: String,
    pub detail: Option<Box<StateDetail>>,
    /// Index into the values of the strips.
    pub cursor: usize,
}

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
            asked: None,
        }
    }
}

impl Tensors {
    /// Forgets the run, keeps order and filter.
    pub fn clear(&mut self) {
        (self.report, self.opened, self.asked) = (None, None, None);
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
                for mut tensor in report.tensors {
                    match old.tensors.iter_mut().find(|known| known.name == tensor.name) {
                        Some(known) => {
                            keep_measured(known, &mut tensor);
                            *known = tensor;
                        }
                        None => old.tensors.push(tensor),
                    }
                }
            }
            old => *old = Some(report),
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
        let mut lines = Vec::new();
        for parameter in report.tensors.iter().filter(|tensor| filter.passes(&tensor.name)) {
            let before = lines.len();
            let states = parameter.state.iter().filter(|(_, state)| !state.shape.is_empty());
            lines.extend(states.map(|(name, state)| Line { parameter, state: Some((name.as_str(), state)) }));
            if lines.len() == before {
                lines.push(Line { parameter, state: None });
            }
        }
        if self.sort != Column::Name {
            lines.sort_by(|a, b| compare(self.sort, a, b));
        }
        if self.reverse {
            lines.reverse();
        }
        lines
    }

    /// The columns that this optimizer has something to say in.
    pub fn columns(&self) -> Vec<Column> {
        let any = |names: &[&str]| {
            self.report.as_ref().is_some_and(|report| {
                report
                    .tensors
                    .iter()
                    .any(|tensor| names.iter().any(|name| tensor.figures.contains_key(*name)))
            })
        };
        let errors =
            [figures::FACTORIZATION_ERROR, figures::QUANTIZATION_ERROR_1, figures::QUANTIZATION_ERROR_2];
        let here = |column: &Column| match column {
            Column::Error => any(&errors),
            Column::Untouched => any(&[figures::ROWS_NEVER_TOUCHED]),
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
        self.sort = all[if forward { at + 1 } else { at + all.len() - 1 } % all.len()];
        // Numbers are wanted largest first, words from A.
        self.reverse = !matches!(self.sort, Column::Name | Column::State | Column::Shape | Column::Dtype);
    }
}

/// A checkpoint does not tell what was measured of an update: what the log told of it stays.
fn keep_measured(known: &TensorState, tensor: &mut TensorState) {
    tensor.update_ratio = tensor.update_ratio.or(known.update_ratio);
    for (name, value) in &known.figures {
        tensor.figures.entry(name.clone()).or_insert(*value);
    }
}

/// First line of a list that keeps the selection in its middle where it can.
pub fn first_visible(selected: usize, length: usize, height: usize) -> usize {
    selected.saturating_sub(height / 2).min(length.saturating_sub(height))
}

fn compare(column: Column, a: &Line<'_>, b: &Line<'_>) -> Ordering {
    let stat = |line: &Line<'_>, pick: fn(&crate::protocol::TensorStats) -> f64| {
        // What was not measured sorts below everything, what is not a number above.
        line.state.and_then(|(_, state)| state.stats.as_ref()).map_or(f64::NEG_INFINITY, pick)
    };
    let by = |pick: fn(&crate::protocol::TensorStats) -> f64| stat(a, pick).total_cmp(&stat(b, pick));
    let state = |line: &Line<'_>| line.state.map(|(_, state)| state.clone());
    let measured = |figure: Option<f64>| figure.unwrap_or(f64::NEG_INFINITY);
    match column {
        Column::Name => Ordering::Equal,
        Column::State => a.state.map(|s| s.0).cmp(&b.state.map(|s| s.0)),
        Column::Shape => elements(a).cmp(&elements(b)),
        Column::Step => a.parameter.step.cmp(&b.parameter.step),
        Column::Bytes => state(a).map(|s| s.bytes).cmp(&state(b).map(|s| s.bytes)),
        Column::Rms => by(|stats| stats.rms),
        Column::Min => by(|stats| stats.min),
        Column::Max => by(|stats| stats.max),
        Column::Zeros => by(|stats| stats.zeros as f64),
        Column::NonFinite => by(|stats| stats.nonfinite as f64),
        Column::Ratio => measured(a.parameter.update_ratio).total_cmp(&measured(b.parameter.update_ratio)),
        Column::Error => measured(a.error()).total_cmp(&measured(b.error())),
        Column::Untouched => measured(a.untouched()).total_cmp(&measured(b.untouched())),
        Column::Dtype => state(a).map(|s| s.dtype).cmp(&state(b).map(|s| s.dtype)),
    }
}

fn elements(line: &Line<'_>) -> u64 {
    line.state.map_or(0, |(_, state)| state.elements)
}

/// A part of a name, or a glob when it has a star, a question mark or brackets.
#[derive(Debug)]
struct Filter {
    text: String,
    glob: Option<GlobMatcher>,
    error: Option<String>,
}

impl Filter {
    fn new(text: &str) -> Self {
        let (mut glob, mut error) = (None, None);
        if text.contains(['*', '?', '[', '{']) {
            match GlobBuilder::new(text).case_insensitive(true).build() {
                Ok(built) => glob = Some(built.compile_matcher()),
                Err(mistake) => error = Some(format!("not a glob: {}", mistake.kind())),
            }
        }
        Self { text: text.to_lowercase(), glob, error }
    }

    fn passes(&self, name: &str) -> bool {
        match &self.glob {
            Some(glob) => glob.is_match(name),
            None => self.error.is_some() || name.to_lowercase().contains(&self.text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::recorded;

    fn table(optimizer: &str) -> Tensors {
        let mut table = Tensors::default();
        table.merge(recorded::state_report(optimizer, 50), "log");
        table
    }

    #[test]
    fn a_parameter_has_a_line_for_every_state_tensor() {
        let table = table("adafactor");
        let lines = table.lines();
        let q_proj: Vec<_> = lines
            .iter()
            .filter(|line| line.parameter.name == "model.layers.0.self_attn.q_proj.weight")
            .filter_map(|line| line.state.map(|(name, _)| name))
            .collect();
        assert_eq!(q_proj, ["exp_avg_sq_col", "exp_avg_sq_row"]);
    }

    #[test]
    fn an_optimizer_without_state_still_lists_its_parameters() {
        let table = table("sgd");
        assert_eq!(table.lines().len(), 20);
        assert!(table.lines().iter().all(|line| line.state.is_none()));
    }

    #[test]
    fn the_filter_takes_text_and_globs() {
        let mut table = table("adamw");
        let count = |table: &mut Tensors, text: &str| {
            table.filter = TextLine::new(text);
            table.lines().len()
        };
        assert_eq!(count(&mut table, "Q_PROJ"), 4);
        assert_eq!(count(&mut table, "*layers.1*proj.weight"), 14);
        assert_eq!(count(&mut table, "nothing"), 0);
        count(&mut table, "[a");
        assert!(table.filter_error().unwrap().contains("glob"));
    }

    #[test]
    fn sorting_by_a_number_puts_the_largest_first() {
        let mut table = table("adamw");
        while table.sort != Column::Rms {
            table.sort_step(true);
        }
        let rms: Vec<f64> = table
            .lines()
            .iter()
            .filter_map(|line| line.state.and_then(|(_, state)| state.stats).map(|stats| stats.rms))
            .collect();
        assert!(rms.len() > 10 && rms.windows(2).all(|pair| pair[0] >= pair[1]));
    }

    #[test]
    fn new_statistics_of_some_tensors_leave_the_others() {
        let mut table = table("adamw");
        let before = table.lines().len();
        let mut some = recorded::state_report("adamw", 60);
        some.tensors.truncate(1);
        table.merge(some, "live");
        assert_eq!(table.lines().len(), before);
        let report = table.report.as_ref().unwrap();
        assert_eq!((report.update, report.tensors[0].step, report.tensors[1].step), (60, 60, 50));
    }

    #[test]
    fn columns_of_figures_are_there_where_the_optimizer_has_them() {
        let has = |optimizer: &str| {
            let columns = table(optimizer).columns();
            (columns.contains(&Column::Error), columns.contains(&Column::Untouched))
        };
        assert_eq!(has("adafactor"), (true, true));
        assert_eq!(has("adamw8bit"), (true, true));
        assert_eq!(has("adamw"), (false, true));
        assert_eq!(has("sgd"), (false, false));
        let mut table = table("adamw8bit");
        while table.sort != Column::Error {
            table.sort_step(true);
        }
        let errors: Vec<f64> = table.lines().iter().filter_map(Line::error).collect();
        assert!(errors.len() > 10 && errors.windows(2).all(|pair| pair[0] >= pair[1]));
        let mut without = self::table("sgd");
        (0..40).for_each(|_| without.sort_step(true));
        assert_ne!(without.sort, Column::Error, "no order by what is not there");
    }

    #[test]
    fn shared_state_stays_and_is_counted_once() {
        let mut table = table("adamw8bit");
        let all = table.report.as_ref().unwrap().bytes();
        let mut some = recorded::state_report("adamw8bit", 60);
        some.tensors.truncate(1);
        some.shared.clear();
        table.merge(some, "live");
        let report = table.report.as_ref().unwrap();
        assert_eq!((report.bytes(), report.shared.len(), report.update), (all, 2, 60));
    }

    #[test]
    fn what_was_measured_of_an_update_outlives_the_reading_of_a_checkpoint() {
        let mut table = table("adafactor");
        let mut stored = recorded::state_report("adafactor", 50);
        for tensor in &mut stored.tensors {
            (tensor.update_ratio, tensor.figures) =
                (None, [(figures::ROWS_NEVER_TOUCHED.into(), 3.0)].into());
        }
        let mut opened = stored.tensors[0].clone();
        table.merge(stored, "last checkpoint");
        let told = &recorded::state_report("adafactor", 50).tensors[0];
        let kept = &table.report.as_ref().unwrap().tensors[0];
        assert_eq!(kept.update_ratio, told.update_ratio);
        assert_eq!(kept.figures[figures::FACTORIZATION_ERROR], told.figures[figures::FACTORIZATION_ERROR]);
        assert_eq!(kept.figures[figures::ROWS_NEVER_TOUCHED], 3.0, "what the checkpoint says itself");
        table.complete(&mut opened);
        assert_eq!(&opened, kept);
    }

    #[test]
    fn only_the_names_in_view_are_asked_for() {
        let mut table = table("adamw");
        table.step(1000);
        assert_eq!(table.in_view(4).len(), 2);
        assert!(table.in_view(4).contains(&"model.norm.weight".to_owned()));
    }
}
