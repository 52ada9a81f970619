//! Which figures of runs can be held against each other.

use std::collections::BTreeMap;

use super::{Difference, Figures};
use crate::{
    config::{Config, Task},
    protocol::DataReport,
    run::{record::ValidationPoint, standing::State, summary::Standing, text},
};

/// Fills in memory from the best source that all runs have, and names it.
pub(super) fn memory(all: &[Standing], figures: &mut [Figures]) -> String {
    type Source = (fn(&Standing) -> Option<u64>, &'static str);
    let sources: [Source; 5] = [
        (|s| s.summary.measured.peak_gpu_process_bytes, "peak GPU memory of the process"),
        (|s| s.summary.measured.peak_gpu_allocated_bytes, "peak GPU memory of the tensors"),
        (|s| s.summary.measured.peak_allocator_bytes, "peak of the allocator"),
        (|s| s.summary.measured.peak_host_rss, "peak of resident memory"),
        (|s| Some(s.summary.ledger.total_bytes_estimated), "~ledger"),
    ];
    for (source, name) in sources {
        let values: Vec<_> = all.iter().map(|standing| source(standing).filter(|&b| b > 0)).collect();
        if values.iter().all(Option::is_some) {
            for (figures, value) in figures.iter_mut().zip(values) {
                figures.memory_bytes = value;
            }
            return name.to_owned();
        }
    }
    "no figure that all runs have".to_owned()
}

/// Tells apart what losses are measured on: the task, its text wherever that lies, the tokenizer and what is held out. They
/// compare only where this is the same.
pub fn measured_on(config: &Config, data: &DataReport) -> String {
    let kind = match config.model.arch.task() {
        Task::LanguageModel => "language model",
        Task::Classification => "classification",
        Task::Own => config.model.name(),
    };
    if data.content.is_empty() {
        let (tokenizer, held_out) = (&config.data.tokenizer, config.data.validation_fraction);
        return format!("{kind}: {} {tokenizer:?} {held_out}", data.source);
    }
    format!("{kind}: {}", data.content)
}

/// Fills in the losses that can be compared, and says which they are.
pub(super) fn losses(all: &[Standing], differences: &[Difference], figures: &mut [Figures]) -> String {
    let on: Vec<String> = all.iter().map(|s| measured_on(&s.summary.config, &s.summary.data)).collect();
    if on.iter().any(|other| *other != on[0]) {
        let text = ["model.arch", "data.source", "data.path", "data.tokenizer", "data.validation_fraction"];
        let found = differences.iter().find(|difference| text.contains(&&*difference.key));
        let own = |standing: &Standing| {
            let model = &standing.summary.config.model;
            (model.arch.task() == Task::Own).then(|| model.name().to_owned())
        };
        let unknown = all.iter().any(|standing| standing.summary.data.content.is_empty());
        let why = match found {
            _ if all.iter().any(|standing| own(standing) != own(&all[0])) => "the task differs".to_owned(),
            Some(difference) => format!("{} differs", difference.key),
            None if unknown => "what one of them was trained on is not recorded".to_owned(),
            None => "what the files hold differs".to_owned(),
        };
        return format!("losses on different text do not compare ({why})");
    }
    // A run that broke off would keep the others from being compared where they have come to.
    let failed = |at: &usize| all[*at].state == State::Failed;
    let (broken, whole): (Vec<usize>, Vec<usize>) = (0..all.len()).partition(failed);
    let counted = if whole.len() < 2 { (0..all.len()).collect() } else { whole };
    let standings: Vec<&Standing> = counted.iter().map(|&at| &all[at]).collect();
    let Some(points) = at_equal_tokens(&standings).or_else(|| at_most_equal_tokens(&standings)) else {
        return if standings.iter().any(|standing| standing.record.validations.is_empty()) {
            "no validation loss to compare".to_owned()
        } else {
            "no validation loss at an equal number of tokens to compare".to_owned()
        };
    };
    for (&at, point) in counted.iter().zip(&points) {
        figures[at].loss = Some(point.loss);
        figures[at].loss_update = Some(point.update);
    }
    let source = source(&standings, &points);
    let left: Vec<&str> =
        broken.iter().filter(|at| !counted.contains(at)).map(|&at| &*figures[at].label).collect();
    if left.is_empty() { source } else { format!("{source}, without {}", left.join(" and ")) }
}

/// Which losses these are.
fn source(all: &[&Standing], points: &[ValidationPoint]) -> String {
    let final_ones = all.iter().zip(points).all(|(s, p)| s.record.validations.last() == Some(p));
    let which = if final_ones { "final validation loss" } else { "validation loss" };
    let same = |value: &dyn Fn(usize) -> u64| (1..points.len()).all(|index| value(index) == value(0));
    let joined = |value: &dyn Fn(usize) -> u64| {
        (0..points.len()).map(|index| text::count(value(index))).collect::<Vec<_>>().join(" and ")
    };
    let (update, seen) = (|index: usize| points[index].update, |index: usize| points[index].tokens);
    match (same(&update), same(&seen)) {
        (true, true) => format!("{which} at update {}", text::count(points[0].update)),
        (false, true) => {
            format!("{which} at {} tokens (updates {})", text::count(points[0].tokens), joined(&update))
        }
        _ => format!("{which} at {} tokens", joined(&seen)),
    }
}

/// The newest validation of each run after a number of tokens at which every run was validated.
fn at_equal_tokens(all: &[&Standing]) -> Option<Vec<ValidationPoint>> {
    let by_tokens = |standing: &&Standing| -> BTreeMap<u64, ValidationPoint> {
        standing.record.validations.iter().map(|point| (point.tokens, *point)).collect()
    };
    let points: Vec<_> = all.iter().map(by_tokens).collect();
    let (first, others) = points.split_first()?;
    let shared = first.keys().rev().find(|tokens| others.iter().all(|other| other.contains_key(tokens)))?;
    points.iter().map(|points| points.get(shared).copied()).collect()
}

/// The newest validation of each run that had seen no more tokens than the shortest one has in the end.
fn at_most_equal_tokens(all: &[&Standing]) -> Option<Vec<ValidationPoint>> {
    let ends = all.iter().map(|standing| standing.record.validations.last().map(|point| point.tokens));
    let most = ends.min().flatten()?;
    all.iter()
        .map(|standing| standing.record.validations.iter().rev().find(|point| point.tokens <= most).copied())
        .collect()
}
