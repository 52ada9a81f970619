//! Two or more runs side by side: what differs, and a verdict that says what it rests on.

mod figures;

use serde::Serialize;
use serde_json::Value;

use super::{RunDir, RunError, record::SettingChange, seeds, summary::Standing, text, verdict};
use crate::{
    config::layers,
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
    let caveats = caveats(&all, &figures, over_seeds.is_some());
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
    layers::keys_of(entries.iter().map(Vec::as_slice))
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

fn caveats(all: &[Standing], figures: &[Figures], over_seeds: bool) -> Vec<String> {
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
    if over_seeds {
        return caveats;
    }
    let mut seeds: Vec<u64> = all.iter().map(|standing| standing.summary.seed).collect();
    seeds.dedup();
    match &seeds[..] {
        [seed] => caveats.push(format!("one seed each ({seed}): small differences may be chance")),
        several => {
            let several: Vec<_> = several.iter().map(u64::to_string).collect();
            caveats.push(format!("one seed each, and not the same ({})", several.join(", ")));
        }
    }
    caveats
}

/// Whether a key that was changed on the way has a part in what is learned, or how fast.
fn matters(key: &str) -> bool {
    let only_kept = key.starts_with("checkpoint.") || key.starts_with("log.");
    !only_kept && !matches!(key, "train.validate_every" | "train.max_skipped")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        protocol::{Event, Host, Resumed},
        run::{EventWriter, sample},
    };

    /// A run of `updates` updates with a validation every 10 that starts at `loss`, and a peak.
    fn made(
        name: &str,
        set: &[&str],
        updates: u64,
        loss: f64,
        peak: Option<u64>,
    ) -> (tempfile::TempDir, RunDir) {
        let (folder, run) = sample::run_with(name, set);
        let mut writer = EventWriter::create(&run, &sample::header(&run)).unwrap();
        for update in 1..=updates {
            writer.append(&sample::update(update, loss)).unwrap();
            if update % 10 == 0 {
                writer.append(&sample::validation(update, loss - update as f64 / 100.0)).unwrap();
            }
        }
        if peak.is_some() {
            let host = Host { update: updates, host_rss: Some(900), allocator_peak: peak, ..Host::default() };
            writer.append(&Event::Host(host)).unwrap();
        }
        writer.append(&sample::run_ended(&run)).unwrap();
        (folder, run)
    }

    fn of(runs: &[&(tempfile::TempDir, RunDir)]) -> Comparison {
        compare(&runs.iter().map(|(_, run)| run.clone()).collect::<Vec<_>>()).unwrap()
    }

    #[test]
    fn two_runs_make_one_honest_sentence() {
        let base = made("base", &[], 20, 3.0, Some(4 << 20));
        let other = made("other", &["optimizer.name=adafactor"], 20, 3.5, Some(1 << 20));
        let compared = of(&[&base, &other]);
        assert_eq!(
            compared.verdict.text,
            "Against base (adamw), other (adafactor) needs 0.25x the memory (1.00 MiB against 4.00 MiB, peak of \
             the allocator), is 0.5000 higher in loss (3.3000 against 2.8000, final validation loss at update 20) \
             and trains at 1.00x the speed (1,024 against 1,024 tokens/s); one seed each (1): small differences \
             may be chance."
        );
        assert_eq!(compared.verdict.memory_ratio, Some(0.25));
        assert_eq!(compared.differences.len(), 1);
        assert_eq!(compared.differences[0].values, ["adamw", "adafactor"]);
        let json = serde_json::to_value(&compared).unwrap();
        assert_eq!(json["verdict"]["speed_ratio"], 1.0);
        assert_eq!(json["runs"][1]["config"]["optimizer"]["name"], "adafactor");
    }

    #[test]
    fn runs_of_different_lengths_are_compared_where_both_have_been() {
        let long = made("long", &[], 50, 3.0, None);
        let short = made("short", &["train.max_updates=25"], 25, 2.9, None);
        let verdict = of(&[&long, &short]).verdict;
        assert_eq!(verdict.loss_source, "validation loss at update 20");
        assert!((verdict.loss_difference.unwrap() + 0.1).abs() < 1e-12, "{verdict:?}");
        assert_eq!(verdict.memory_source, "~ledger", "neither has a reading");
        // The last validation of this one is at update 25, which the other one passed unvalidated.
        let (_folder, odd) = sample::run("odd");
        let mut writer = EventWriter::create(&odd, &sample::header(&odd)).unwrap();
        for update in [10, 20, 25] {
            writer.append(&sample::update(update, 3.0)).unwrap();
            writer.append(&sample::validation(update, 2.0)).unwrap();
        }
        let verdict = compare(&[long.1, odd]).unwrap().verdict;
        assert_eq!(verdict.loss_source, "validation loss at update 20");
    }

    #[test]
    fn only_a_rate_by_hand_is_an_intervention() {
        let base = made("base", &[], 20, 3.0, None);
        let (_folder, run) = sample::run("driven");
        let mut writer = EventWriter::create(&run, &sample::header(&run)).unwrap();
        writer.append(&sample::update(1, 3.0)).unwrap();
        for name in ["pause", "step", "resume", "checkpoint", "stop"] {
            let value = Some(1e-4).filter(|_| name == "learning_rate");
            writer.append(&sample::command(name, 1, value)).unwrap();
        }
        let told = |run: &RunDir| compare(&[base.1.clone(), run.clone()]).unwrap().verdict.caveats.join("; ");
        assert!(!told(&run).contains("by hand"), "{}", told(&run));
        writer.append(&sample::command("learning_rate", 1, Some(1e-4))).unwrap();
        assert!(told(&run).contains("driven got a learning rate by hand at update 1"), "{}", told(&run));
    }

    #[test]
    fn a_setting_changed_on_resume_is_told_with_the_update_from_which_it_holds() {
        let base = made("base", &["train.max_updates=1200"], 20, 3.0, None);
        let (_folder, run) = sample::run("longer");
        let mut writer = EventWriter::create(&run, &sample::header(&run)).unwrap();
        (1..=30).for_each(|update| writer.append(&sample::update(update, 3.0)).unwrap());
        let mut header = sample::header(&run);
        header.config.train.max_updates = Some(1200);
        let resumed = Resumed {
            from_update: 25,
            changed: vec![["train.max_updates", "600", "1200"].map(str::to_owned)],
            header: Some(Box::new(header)),
            ..Resumed::default()
        };
        writer.append(&Event::Resumed(Box::new(resumed))).unwrap();
        let compared = compare(&[base.1, run]).unwrap();
        let [difference] = &compared.differences[..] else { panic!("{:?}", compared.differences) };
        assert_eq!(difference.values, ["1200", "1200"], "both end with the same value");
        assert_eq!(difference.told(), ["1200", "1200 since update 25, 600 before"]);
        let json = serde_json::to_value(difference).unwrap();
        assert_eq!(json["changed"], serde_json::json!([null, {"from_update": 25, "before": "600"}]));
        let caveats = compared.verdict.caveats.join("; ");
        assert!(
            caveats.contains("longer went on from update 25 with another train.max_updates"),
            "{caveats}"
        );
    }

    #[test]
    fn losses_on_different_text_are_not_compared() {
        let one = made("one", &[], 20, 3.0, None);
        let two = made("two", &["data.validation_fraction=0.1", "train.seed=2"], 20, 3.0, None);
        let verdict = of(&[&one, &two]).verdict;
        assert_eq!(verdict.loss_difference, None);
        assert!(verdict.text.contains("data.validation_fraction differs"), "{}", verdict.text);
        assert!(verdict.text.contains("not the same (1, 2)"), "{}", verdict.text);
        let none = made("none", &[], 5, 3.0, None);
        let verdict = of(&[&one, &none]).verdict;
        assert!(verdict.text.contains("no validation loss to compare"), "{}", verdict.text);
    }

    #[test]
    fn several_seeds_give_the_verdict_its_uncertainty() {
        let run = |name: &str, optimizer: &str, seed: u64, loss: f64, peak: u64| {
            let set = [format!("optimizer.name={optimizer}"), format!("train.seed={seed}")];
            made(name, &set.each_ref().map(String::as_str), 20, loss, Some(peak))
        };
        let runs = [
            run("a", "adamw", 1, 3.0, 4000),
            run("b", "adafactor", 1, 3.028, 1000),
            run("c", "adamw", 2, 3.2, 4000),
            run("d", "adafactor", 2, 3.2, 1000),
        ];
        let text = of(&runs.iter().collect::<Vec<_>>()).verdict.text;
        assert!(
            text.starts_with("adafactor against adamw: -75.0 % memory (peak of the allocator), "),
            "{text}"
        );
        // 1 % and 0 % above 2.8 and 3.0: their mean, and their standard deviation.
        assert!(
            text.contains("+0.50 % loss (final validation loss at update 20; 2 seeds, +-0.71)"),
            "{text}"
        );
        assert!(!text.contains("one seed"), "{text}");
        // Anything else that differs makes them no pairs.
        let odd = made("odd", &["train.seed=2", "train.micro_batch=4"], 20, 3.0, None);
        let text = of(&[&runs[0], &odd]).verdict.text;
        assert!(text.contains("one seed each, and not the same"), "{text}");
    }

    #[test]
    fn several_runs_name_the_best_of_each_kind() {
        let runs = [
            made("a", &[], 20, 3.0, Some(3000)),
            made("b", &["optimizer.name=sgd"], 20, 2.0, Some(2000)),
            made("c", &["optimizer.name=adafactor"], 20, 2.5, Some(1000)),
        ];
        let text = of(&runs.iter().collect::<Vec<_>>()).verdict.text;
        assert!(text.starts_with("Of 3 runs, b (sgd) has the lowest loss (1.8000"), "{text}");
        assert!(text.contains("c (adafactor) needs the least memory (1000 B"), "{text}");
    }

    #[test]
    fn a_run_that_has_not_ended_is_said_so() {
        let base = made("base", &[], 20, 3.0, None);
        let (_folder, run) = sample::run("dead");
        EventWriter::create(&run, &sample::header(&run)).unwrap().append(&sample::update(7, 3.0)).unwrap();
        let compared = compare(&[base.1, run]).unwrap();
        assert!(compared.verdict.text.contains("dead is crashed at update 7"), "{}", compared.verdict.text);
        assert_eq!(compared.runs[1]["state"], "crashed");
    }
}
