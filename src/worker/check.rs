//! The check of accumulation: one window's gradient taken as one batch, and summed over micro-batches of one row.
//!
//! Both are divided by the window's targets, so that they are the same number but for the order in which f32 sums are
//! taken. What the order can do follows from the longest sum behind an element: `n` roundings of relative size
//! `u = 2^-24` add up like a random walk, to `u sqrt(n)` of the largest summand. Summands can cancel, so that theirs is not
//! the size of the sum: it is measured, as the largest sum of absolute gradients over the rows. Two orders are compared, and each layer
//! hands its roundings on to the layers before it: [`ROUNDINGS`] of that is what is allowed. A wrong weighting is off by a
//! share of the gradient itself, thousands of times more.

use std::collections::BTreeMap;

use anyhow::{Context, ensure};

use super::trainer::{self, Training};
use crate::{
    backend::devices,
    config::{Arch, Config, ConfigError, fields},
    data::{Batch, Cursor, Dataset, Pass, Window, Windows},
    protocol::{AccumulationCheck, Deviation, SCHEMA},
};

/// Half the distance of neighbouring f32 numbers, relative: the largest error of one rounding.
const ROUNDING: f64 = 1.0 / (1 << 24) as f64;
/// How many times `u sqrt(n)` the two gradients may be apart.
pub const ROUNDINGS: f64 = 8.0;
/// Parameters that are named.
const NAMED: usize = 5;

/// What has been accumulated since the last update, on the host.
#[derive(Debug, Clone, PartialEq)]
pub struct Accumulated {
    /// Nats a target; not a number when there was no target.
    pub loss: f64,
    /// Global norm.
    pub grad_norm: f64,
    /// Flat gradients by parameter, sorted by name; a parameter that the loss does not depend on has none.
    pub gradients: Vec<(String, Vec<f32>)>,
}

/// Compares 1 x B with B x 1 on the first window of this configuration, B being its effective batch.
///
/// # Errors
/// The configuration, its data or its device cannot be used.
pub fn accumulation(config: &Config) -> anyhow::Result<AccumulationCheck> {
    let (config, mut notes) = without_dropout(config);
    let device = devices::open(config.train.device)?;
    let mut training = trainer::build(&config, &device.device)?;
    let dataset = Dataset::open(&config)?;
    let rows = config.train.effective_batch();
    let whole = first_window(&dataset, &config, (rows, 1))?;
    let parts = first_window(&dataset, &config, (1, rows))?;
    ensure!(whole.target_count > 0, "the first window has no targets: give more text");
    if parts.micro_batches.len() == 1 {
        notes.push(
            "the effective batch is one sequence: raise train.micro_batch or train.accumulate to compare something"
                .into(),
        );
    }
    let at_once = accumulate(&mut *training, whole.passes(1));
    let in_parts = accumulate(&mut *training, parts.passes(1));
    let naive = accumulate(&mut *training, mean_of_means(&parts));
    let summands = largest_sum_of_parts(&mut *training, &parts);

    let mut deviations = deviations(&at_once.gradients, &in_parts.gradients);
    let largest_gradient = largest(deviations.iter().map(|deviation| deviation.gradient));
    let largest_difference = largest(deviations.iter().map(|deviation| deviation.difference));
    let axes = training.parameters().into_iter().flat_map(|(_, shape)| shape);
    let positions: usize = whole.micro_batches.iter().map(|batch| batch.rows * batch.seq_len).sum();
    let terms = axes.chain([positions]).max().unwrap_or(1) as u64;
    let tolerance = tolerance(terms, largest_gradient.max(summands));
    let holds = largest_difference.is_finite() && largest_difference <= tolerance;
    if !holds && config.model.arch == Arch::Own {
        // As another update of the run the same batch has other draws, and nothing else that differs.
        let again = accumulate(&mut *training, whole.passes(2));
        let apart = self::deviations(&at_once.gradients, &again.gradients);
        if largest(apart.iter().map(|deviation| deviation.difference)) > tolerance {
            return Err(draws_of_its_own(&config).into());
        }
    }
    let naive = self::deviations(&at_once.gradients, &naive.gradients);
    deviations.sort_by(|a, b| b.difference.total_cmp(&a.difference));
    deviations.truncate(NAMED);
    Ok(AccumulationCheck {
        schema: SCHEMA,
        model: config.model.name().to_owned(),
        device: device.name.to_string(),
        rows: parts.micro_batches.iter().map(|batch| batch.rows as u64).sum(),
        targets: whole.target_count,
        loss: [at_once.loss, in_parts.loss],
        grad_norm: [at_once.grad_norm, in_parts.grad_norm],
        largest_difference,
        largest_gradient,
        terms,
        tolerance,
        holds,
        naive_largest_difference: largest(naive.iter().map(|deviation| deviation.difference)),
        worst: deviations,
        notes,
    })
}

/// The largest difference that rounding explains, for sums of so many terms of that size together.
fn tolerance(terms: u64, summands: f64) -> f64 {
    ROUNDINGS * ROUNDING * (terms as f64).sqrt() * summands
}

/// The largest sum over the micro-batches of the absolute value of one element of their gradients.
fn largest_sum_of_parts(training: &mut dyn Training, parts: &Window) -> f64 {
    let mut sums: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for part in parts.passes(1) {
        for (name, gradient) in accumulate(training, std::iter::once(part)).gradients {
            let sums = sums.entry(name).or_insert_with(|| vec![0.0; gradient.len()]);
            sums.iter_mut().zip(gradient).for_each(|(sum, part)| *sum += f64::from(part).abs());
        }
    }
    largest(sums.into_values().flatten())
}

/// Dropout draws other masks for other micro-batches, so that the two gradients would differ for good reason.
fn without_dropout(config: &Config) -> (Config, Vec<String>) {
    let (mut config, mut notes) = (config.clone(), Vec::new());
    let model = &mut config.model;
    let shares = [&mut model.dropout, &mut model.attention_dropout, &mut model.seq_classif_dropout];
    let dropped = shares.iter().any(|share| **share > 0.0);
    shares.into_iter().for_each(|share| *share = 0.0);
    if dropped && fields::applies("model.dropout", model.arch) {
        notes.push("dropout was switched off: it draws other masks for other micro-batches".to_owned());
    }
    (config, notes)
}

/// Two passes of a task's own model over one batch differ, so that a difference says nothing of accumulation.
fn draws_of_its_own(config: &Config) -> ConfigError {
    let name = config.model.name();
    ConfigError::Conflict(format!(
        "accumulation cannot be judged: the model of the task `{name}` draws random numbers of its own, as dropout does, \
         and one batch passed twice has two gradients; switch them off for the check, by a setting of the task such as \
         task.dropout = 0"
    ))
}

/// The first window of the run, in so many rows a micro-batch and so many micro-batches.
fn first_window(
    dataset: &Dataset,
    config: &Config,
    (micro_batch, accumulate): (usize, usize),
) -> anyhow::Result<Window> {
    let mut config = config.clone();
    (config.train.micro_batch, config.train.accumulate) = (micro_batch, accumulate);
    let mut windows = Windows::new(dataset.clone(), &config, Cursor::default())?;
    let window = windows.next_window();
    dataset.fault()?;
    window.context("the data has no window")
}

/// Weights that divide each micro-batch by its own targets and average the micro-batches: what goes wrong elsewhere. A
/// micro-batch without targets has no mean and is left out.
fn mean_of_means(window: &Window) -> impl Iterator<Item = (&Batch, Pass)> {
    let count = window.micro_batches.iter().filter(|batch| batch.target_count > 0).count() as u64;
    window
        .passes(1)
        .map(move |(batch, pass)| (batch, Pass { target_count: batch.target_count * count, ..pass }))
}

fn accumulate<'a>(
    training: &mut dyn Training,
    passes: impl Iterator<Item = (&'a Batch, Pass)>,
) -> Accumulated {
    training.discard_window();
    for (batch, pass) in passes {
        training.micro_batch(batch, pass);
    }
    let accumulated = training.accumulated();
    training.discard_window();
    accumulated
}

/// Largest difference and largest element of each parameter that either side has; the side that lacks it counts as 0.
fn deviations(ours: &[(String, Vec<f32>)], theirs: &[(String, Vec<f32>)]) -> Vec<Deviation> {
    let mut pairs: BTreeMap<&str, [&[f32]; 2]> = BTreeMap::new();
    for (side, gradients) in [ours, theirs].into_iter().enumerate() {
        for (name, gradient) in gradients {
            pairs.entry(name).or_default()[side] = gradient;
        }
    }
    let pairs = pairs.into_iter().map(|(name, [ours, theirs])| {
        let at = |gradient: &[f32], index: usize| gradient.get(index).map_or(0.0, |&g| f64::from(g));
        let indices = 0..ours.len().max(theirs.len());
        let sizes = ours.iter().chain(theirs).map(|&g| f64::from(g).abs());
        Deviation {
            name: name.to_owned(),
            difference: largest(indices.map(|index| (at(ours, index) - at(theirs, index)).abs())),
            gradient: largest(sizes),
        }
    });
    pairs.collect()
}

/// The largest of these, 0 at least; not a number when one of them is none.
fn largest(values: impl Iterator<Item = f64>) -> f64 {
    // Not `f64::max`, which passes over NaN.
    values.fold(0.0, |most, value| if most.is_nan() || most >= value { most } else { value })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Layers;

    fn gradients(of: &[(&str, &[f32])]) -> Vec<(String, Vec<f32>)> {
        of.iter().map(|(name, values)| ((*name).to_owned(), values.to_vec())).collect()
    }

    #[test]
    fn the_largest_difference_is_found_and_what_is_missing_is_zero() {
        let ours = gradients(&[("a", &[1.0, -2.0]), ("b", &[0.5])]);
        let theirs = gradients(&[("a", &[1.0, -1.75]), ("c", &[-3.0])]);
        let found = deviations(&ours, &theirs);
        let figures: Vec<_> =
            found.iter().map(|found| (found.name.as_str(), found.difference, found.gradient)).collect();
        assert_eq!(figures, [("a", 0.25, 2.0), ("b", 0.5, 0.5), ("c", 3.0, 3.0)]);
        let broken = deviations(&gradients(&[("a", &[f32::NAN, 1.0])]), &gradients(&[("a", &[0.0, 9.0])]));
        assert!(broken[0].difference.is_nan() && broken[0].gradient.is_nan());
        assert!(largest([1.0, f64::NAN, 2.0].into_iter()).is_nan());
    }

    #[test]
    fn rounding_is_allowed_and_a_wrong_weighting_is_not() {
        // One part in a thousand of the largest gradient is no rounding, even over a million terms.
        assert!(tolerance(1 << 20, 1.0) < 1e-3);
        assert!((1e-5..1.1e-5).contains(&tolerance(512, 1.0)));
    }

    #[test]
    fn dropout_is_switched_off_and_that_is_said_where_there_is_any() {
        let of = |settings: &[&str]| {
            without_dropout(&Layers::new().with_assignments(settings).unwrap().resolve().unwrap().config)
        };
        assert!(of(&[]).1.is_empty());
        let (config, notes) = of(&["model.preset=distilbert-nano"]);
        assert_eq!((config.model.dropout, config.model.attention_dropout), (0.0, 0.0));
        assert_eq!(config.model.seq_classif_dropout, 0.0);
        assert!(notes[0].contains("dropout"));
        let off = ["model.dropout=0", "model.attention_dropout=0", "model.seq_classif_dropout=0"];
        assert!(of(&[&["model.preset=distilbert-nano"][..], &off].concat()).1.is_empty());
    }
}
