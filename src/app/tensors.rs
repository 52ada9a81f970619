//! The table of state tensors: rows, order, filter, selection, and one tensor opened.

use std::{
    cmp::Ordering,
    collections::{BTreeMap, BTreeSet},
};

use globset::{GlobBuilder, GlobMatcher};

use crate::protocol::{StateReport, StateTensor, TensorState, state::figures};

use super::input::TextLine;
pub use super::opened::{Beside, History, Opened, View};

/// A column of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Column {
    Name,
    State,
    Shape,
    Step,
    Bytes,
    Rms,
    /// How far the RMS has come since the statistics before these.
    Change,
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
    pub const ALL: [Self; 15] = [
        Self::Name,
        Self::State,
        Self::Shape,
        Self::Step,
        Self::Bytes,
        Self::Rms,
        Self::Change,
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
            Self::Change => "rms +-",
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

/// One line: a state tensor of a parameter; a parameter that keeps none has one line without. With layers as groups
/// there is a line over each of them, too, which carries its first parameter.
#[derive(Debug, Clone, Copy)]
pub struct Line<'a> {
    pub parameter: &'a TensorState,
    pub state: Option<(&'a str, &'a StateTensor)>,
    /// This line's RMS at the statistics before these.
    pub rms_before: Option<f64>,
    pub group: Option<Group<'a>>,
}

/// What a layer's line says of the lines below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Group<'a> {
    pub layer: &'a str,
    pub parameters: usize,
    pub elements: u64,
    pub bytes: u64,
    pub nonfinite: u64,
    /// The lines below it are hidden.
    pub folded: bool,
}

/// The layer that a parameter belongs to: its name up to the first number, or without its last part.
pub fn layer(name: &str) -> &str {
    let mut end = 0;
    for part in name.split('.') {
        end += part.len();
        if !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()) {
            return &name[..end];
        }
        end += 1;
    }
    name.rsplit_once('.').map_or(name, |(layer, _)| layer)
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

    /// How far the RMS has come since the statistics before these, as a share of what it was.
    pub fn change(&self) -> Option<f64> {
        let now = self.state.and_then(|(_, state)| state.stats).map(|stats| stats.rms)?;
        self.rms_before.filter(|before| *before > 0.0).map(|before| now / before - 1.0)
    }

    /// Rows of the parameter that no gradient has touched.
    pub fn untouched(&self) -> Option<f64> {
        self.parameter.figures.get(figures::ROWS_NEVER_TOUCHED).copied()
    }
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
    /// Lines are grouped by layer.
    pub grouped: bool,
    /// Layers whose lines are hidden.
    pub folded: BTreeSet<String>,
    /// RMS of each state tensor at the statistics before these, by parameter.
    before: BTreeMap<String, BTreeMap<String, f64>>,
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
            before: BTreeMap::new(),
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
                                self.before.insert(known.name.clone(), rms_of(known));
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
        for parameter in report.tensors.iter().filter(|tensor| filter.passes(&tensor.name)) {
            let (first, earlier) = (lines.len(), self.before.get(&parameter.name));
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
        if self.sort != Column::Name {
            lines.sort_by(|a, b| compare(self.sort, a, b));
        }
        if self.reverse {
            lines.reverse();
        }
        lines
    }

    /// Layers in the model's order, each with its lines in the table's.
    fn by_layer<'a>(&self, lines: &[Line<'a>]) -> Vec<Line<'a>> {
        let mut all = Vec::with_capacity(lines.len());
        for part in lines.chunk_by(|a, b| layer(&a.parameter.name) == layer(&b.parameter.name)) {
            let layer = layer(&part[0].parameter.name);
            let folded = self.folded.contains(layer);
            let states = || part.iter().filter_map(|line| line.state.map(|(_, state)| state));
            let group = Group {
                layer,
                parameters: part.chunk_by(|a, b| a.parameter.name == b.parameter.name).count(),
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
    fn state<'a>(line: &Line<'a>) -> Option<&'a StateTensor> {
        line.state.map(|(_, state)| state)
    }
    let measured = |figure: Option<f64>| figure.unwrap_or(f64::NEG_INFINITY);
    match column {
        Column::Name => Ordering::Equal,
        Column::State => a.state.map(|s| s.0).cmp(&b.state.map(|s| s.0)),
        Column::Shape => elements(a).cmp(&elements(b)),
        Column::Step => a.parameter.step.cmp(&b.parameter.step),
        Column::Bytes => state(a).map(|s| s.bytes).cmp(&state(b).map(|s| s.bytes)),
        Column::Rms => by(|stats| stats.rms),
        Column::Change => measured(a.change()).total_cmp(&measured(b.change())),
        Column::Min => by(|stats| stats.min),
        Column::Max => by(|stats| stats.max),
        Column::Zeros => by(|stats| stats.zeros as f64),
        Column::NonFinite => by(|stats| stats.nonfinite as f64),
        Column::Ratio => measured(a.parameter.update_ratio).total_cmp(&measured(b.parameter.update_ratio)),
        Column::Error => measured(a.error()).total_cmp(&measured(b.error())),
        Column::Untouched => measured(a.untouched()).total_cmp(&measured(b.untouched())),
        Column::Dtype => state(a).map(|s| &s.dtype).cmp(&state(b).map(|s| &s.dtype)),
    }
}

fn elements(line: &Line<'_>) -> u64 {
    line.state.map_or(0, |(_, state)| state.elements)
}

/// A part of a name, or a glob when it has a star, a question mark or brackets.
#[derive(Debug)]
pub(super) struct Filter {
    text: String,
    glob: Option<GlobMatcher>,
    error: Option<String>,
}

impl Filter {
    pub(super) fn new(text: &str) -> Self {
        let (mut glob, mut error) = (None, None);
        if text.contains(['*', '?', '[', '{']) {
            match GlobBuilder::new(text).case_insensitive(true).build() {
                Ok(built) => glob = Some(built.compile_matcher()),
                Err(mistake) => error = Some(format!("not a glob: {}", mistake.kind())),
            }
        }
        Self { text: text.to_lowercase(), glob, error }
    }

    pub(super) fn passes(&self, name: &str) -> bool {
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
    fn layers_are_groups_that_can_be_folded_and_order_holds_within_them() {
        assert_eq!(layer("model.layers.11.mlp.up_proj.weight"), "model.layers.11");
        assert_eq!((layer("model.norm.weight"), layer("weight")), ("model.norm", "weight"));
        let mut table = table("adafactor");
        let flat = table.lines().len();
        table.grouped = true;
        let layers: Vec<String> =
            table.lines().iter().filter_map(|line| line.group.map(|group| group.layer.to_owned())).collect();
        assert_eq!(layers, ["model.embed_tokens", "model.layers.0", "model.layers.1", "model.norm"]);
        assert_eq!(table.lines().len(), flat + layers.len());
        let report = table.report.clone().unwrap();
        let told: u64 = table.lines().iter().filter_map(|line| line.group.map(|group| group.bytes)).sum();
        let numbers = |tensor: &TensorState| -> u64 {
            tensor.state.values().filter(|state| state.shape.is_empty()).map(|state| state.bytes).sum()
        };
        assert_eq!(told + report.tensors.iter().map(numbers).sum::<u64>(), report.bytes());
        while table.sort != Column::Rms {
            table.sort_step(true);
        }
        let lines = table.lines();
        let within = lines.split(|line| line.group.is_some()).map(|part| {
            part.iter()
                .filter_map(|line| line.state.and_then(|(_, state)| state.stats))
                .map(|stats| stats.rms)
        });
        assert!(within.clone().all(|part| part.is_sorted_by(|a, b| a >= b)));
        assert_eq!(within.map(Iterator::count).sum::<usize>(), flat);
        assert!(
            !{
                table.selected = 1;
                table.fold()
            },
            "a tensor's line"
        );
        table.selected = 0;
        assert!(table.fold());
        let folded = table.lines();
        assert!(folded[0].group.unwrap().folded && folded[1].group.is_some());
        assert!(table.fold() && table.lines().len() == flat + layers.len());
    }

    #[test]
    fn how_far_an_rms_has_come_is_told_after_the_next_update() {
        let mut table = table("adamw");
        assert!(!table.columns().contains(&Column::Change));
        let mut next = recorded::state_report("adamw", 51);
        for tensor in &mut next.tensors {
            tensor
                .state
                .values_mut()
                .filter_map(|state| state.stats.as_mut())
                .for_each(|stats| stats.rms *= 1.5);
        }
        table.merge(next.clone(), "live");
        // The same update again changes nothing.
        table.merge(next, "live");
        assert!(table.columns().contains(&Column::Change));
        assert!(table.lines().iter().all(|line| (line.change().unwrap() - 0.5).abs() < 1e-9));
    }

    #[test]
    fn a_table_of_thousands_of_tensors_is_put_in_order_without_delay() {
        let mut table = table("adamw");
        let report = table.report.as_mut().unwrap();
        let some = report.tensors.clone();
        report.tensors = (0..4000)
            .map(|at| TensorState {
                name: format!("model.layers.{at}.weight"),
                ..some[at % some.len()].clone()
            })
            .collect();
        let newest = StateReport { update: 60, ..report.clone() };
        let start = std::time::Instant::now();
        table.merge(newest, "log");
        for column in Column::ALL {
            table.sort = column;
            assert_eq!(table.lines().len(), 8000);
        }
        // A debug build on a busy machine; quadratic work would take minutes.
        assert!(start.elapsed().as_secs() < 20, "{:?}", start.elapsed());
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
