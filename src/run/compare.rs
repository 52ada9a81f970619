//! Two or more runs side by side: what differs, and a verdict that says what it rests on.

pub mod figures;

use serde::Serialize;
use serde_json::Value;

use super::{RunDir, RunError, record::SettingChange, seeds, summary::Standing, text, verdict};
use crate::{
    config::printed,
    protocol::{CommandRecord, SCHEMA, number},
};

/// Runs side by side.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    pub schema: u32,
    /// The summaries, in the order in which the runs were named.
    pub runs: Vec<Value>,
    pub differences: Vec<Difference>,
    pub verdict: Verdict,
}

/// A setting that is not the same in all runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Difference {
    pub key: String,
    /// One value a run; `-` where the key is absent.
    pub values: Vec<String>,
    /// Where a resumption changed it: one entry a run, `null` for those that kept it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<Option<SettingChange>>,
}

impl Difference {
    /// One value a run in words: where it was changed, from which update it holds.
    pub fn told(&self) -> Vec<String> {
        let change = |at: usize| self.changed.get(at).and_then(Option::as_ref);
        let told = |(at, value): (usize, &String)| match change(at) {
            Some(change) => {
                format!("{value} since update {}, {} before", text::count(change.from_update), change.before)
            }
            None => value.clone(),
        };
        self.values.iter().enumerate().map(told).collect()
    }
}

/// What the comparison comes to. The ratios are of the second run over the first; differences likewise, second minus first.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Verdict {
    /// One sentence.
    pub text: String,
    #[serde(with = "number::optional")]
    pub memory_ratio: Option<f64>,
    /// What the memory figures are.
    pub memory_source: String,
    /// In nats; below 0: the second run is better.
    #[serde(with = "number::optional")]
    pub loss_difference: Option<f64>,
    /// Which losses were compared, or why none were.
    pub loss_source: String,
    #[serde(with = "number::optional")]
    pub speed_ratio: Option<f64>,
    /// The figures that were compared, one entry a run.
    pub figures: Vec<Figures>,
    /// What the reader must know before believing the verdict.
    pub caveats: Vec<String>,
}

/// The compared figures of one run.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Figures {
    pub run: String,
    /// How the sentence calls the run.
    pub label: String,
    pub memory_bytes: Option<u64>,
    #[serde(with = "number::optional")]
    pub loss: Option<f64>,
    /// The update of that loss.
    pub loss_update: Option<u64>,
    #[serde(with = "number::optional")]
    pub tokens_per_second: Option<f64>,
}

/// Compares runs, the first being the one that the others are held against.
///
/// # Errors
/// A run has no record that can be read.
pub fn compare(runs: &[RunDir]) -> Result<Comparison, RunError> {
    let all: Vec<Standing> = runs.iter().map(Standing::read).collect::<Result<_, _>>()?;
    let differences = differences(&all);
    let mut figures = labels(&all);
    let memory_source = figures::memory(&all, &mut figures);
    let loss_source = figures::losses(&all, &differences, &mut figures);
    for (standing, figures) in all.iter().zip(&mut figures) {
        figures.tokens_per_second = standing.summary.tokens_per_second;
    }
    let sources = (memory_source.as_str(), loss_source.as_str());
    let over_seeds = seeds::sentence(&all, &differences, &figures, sources);
    let seeds = over_seeds.is_none().then(|| seeds::caveat(&all, &differences, &figures));
    let caveats = caveats(&all, &figures, seeds);
    let ratio = |value: &dyn Fn(&Figures) -> Option<f64>| {
        let (first, second) = (value(figures.first()?)?, value(figures.get(1)?)?);
        (first > 0.0).then(|| second / first)
    };
    let difference =
        || Some(figures.get(1)?.loss? - figures.first()?.loss?).filter(|difference| !difference.is_nan());
    let verdict = Verdict {
        memory_ratio: ratio(&|f| f.memory_bytes.map(|bytes| bytes as f64)),
        loss_difference: difference(),
        speed_ratio: ratio(&|f| f.tokens_per_second),
        text: String::new(),
        memory_source,
        loss_source,
        figures,
        caveats,
    };
    let json = all.iter().map(|standing| {
        standing.json().map_err(|error| RunError::Damaged {
            path: runs[0].path().to_owned(),
            problem: error.to_string(),
        })
    });
    let text = match over_seeds {
        Some(text) if verdict.caveats.is_empty() => text,
        Some(text) => format!("{text} Mind: {}.", verdict.caveats.join("; ")),
        None => verdict::sentence(&verdict),
    };
    Ok(Comparison {
        schema: SCHEMA,
        runs: json.collect::<Result<_, _>>()?,
        differences,
        verdict: Verdict { text, ..verdict },
    })
}

fn differences(all: &[Standing]) -> Vec<Difference> {
    let entries: Vec<_> = all.iter().map(|standing| standing.summary.config.entries()).collect();
    let values = |key: &str| -> Vec<String> {
        entries
            .iter()
            .map(|entries| {
                entries.iter().find(|(name, _)| name == key).map_or_else(text::dash, |(_, v)| v.clone())
            })
            .collect()
    };
    // Of several changes of one key the last counts: that is where its value begins.
    let changed = |key: &str| -> Vec<Option<SettingChange>> {
        let last = |standing: &Standing| standing.record.changed.iter().rev().find(|c| c.key == key).cloned();
        let changed: Vec<_> = all.iter().map(last).collect();
        if changed.iter().all(Option::is_none) { Vec::new() } else { changed }
    };
    let differ = |difference: &Difference| {
        difference.values.windows(2).any(|pair| pair[0] != pair[1])
            || (matters(&difference.key) && difference.changed.windows(2).any(|pair| pair[0] != pair[1]))
    };
    printed::keys_of(entries.iter().map(Vec::as_slice))
        .into_iter()
        .map(|key| Difference { values: values(&key), changed: changed(&key), key: key.into_owned() })
        .filter(differ)
        .collect()
}

/// A run is called by its name, with its optimizer where those differ; by its id where that is said of two.
fn labels(all: &[Standing]) -> Vec<Figures> {
    let optimizer = |standing: &Standing| standing.summary.config.optimizer.name;
    let differ = all.windows(2).any(|pair| optimizer(&pair[0]) != optimizer(&pair[1]));
    all.iter()
        .map(|standing| {
            let summary = &standing.summary;
            let called = |other: &&Standing| {
                other.summary.name == summary.name && optimizer(other) == optimizer(standing)
            };
            let name = if all.iter().filter(called).count() > 1 { &summary.run } else { &summary.name };
            let name = text::plain(name);
            let label = if differ { format!("{name} ({})", optimizer(standing)) } else { name };
            Figures { run: summary.run.clone(), label, ..Figures::default() }
        })
        .collect()
}

fn caveats(all: &[Standing], figures: &[Figures], seeds: Option<String>) -> Vec<String> {
    let mut caveats = Vec::new();
    for (standing, figures) in all.iter().zip(figures) {
        if !standing.has_ended() {
            let (state, update) = (standing.state, standing.summary.updates);
            caveats.push(format!("{} is {state} at update {update}", figures.label));
        } else if let Some(problem) = &standing.problem {
            caveats.push(format!("{} failed: {}", figures.label, text::plain(problem)));
        }
    }
    let differ = |of: &dyn Fn(&Standing) -> String| all.iter().any(|standing| of(standing) != of(&all[0]));
    if differ(&|s| format!("{} {} {:?}", s.summary.device, s.summary.threads, s.summary.hardware)) {
        caveats.push("device or machine differ, so the speeds do not compare".to_owned());
    }
    for (standing, figures) in all.iter().zip(figures) {
        // Pausing, stepping, saving and stopping leave what is learned alone.
        let by_hand =
            |command: &&CommandRecord| command.name == "learning_rate" && command.outcome == "applied";
        if let Some(command) = standing.summary.interventions.iter().find(by_hand) {
            let update = text::count(command.update);
            caveats.push(format!("{} got a learning rate by hand at update {update}", figures.label));
        }
        // What was changed after the losses that are compared has no part in them.
        let counts = |change: &&SettingChange| {
            matters(&change.key) && figures.loss_update.is_none_or(|update| update > change.from_update)
        };
        if let Some(change) = standing.record.changed.iter().find(counts) {
            let update = text::count(change.from_update);
            caveats
                .push(format!("{} went on from update {update} with another {}", figures.label, change.key));
        }
    }
    caveats.extend(seeds);
    caveats
}

/// Whether a key that was changed on the way has a part in what is learned, or how fast.
fn matters(key: &str) -> bool {
    let only_kept = key.starts_with("checkpoint.") || key.starts_with("log.");
    !only_kept && !matches!(key, "train.validate_every" | "train.max_skipped")
}

#[cfg(test)]
mod tests;
