//! A verdict over several seeds: what one optimizer costs and brings against another, with the spread between seeds.

use super::{
    compare::{Difference, Figures},
    summary::Standing,
};

/// Runs that share everything but their seed.
struct Group<'a> {
    label: String,
    /// Seed and figures, in the order of the runs.
    runs: Vec<(u64, &'a Figures)>,
}

impl Group<'_> {
    /// Its seeds, from the smallest.
    fn seeds(&self) -> Vec<u64> {
        let mut seeds: Vec<u64> = self.runs.iter().map(|(seed, _)| *seed).collect();
        seeds.sort_unstable();
        seeds
    }

    /// Seeds that both were trained with.
    fn shared(&self, other: &Self) -> usize {
        self.runs.iter().filter(|(seed, _)| other.runs.iter().any(|(known, _)| known == seed)).count()
    }
}

/// Seeds that both ways must have been trained with for a spread.
const PAIRS: usize = 2;

/// One sentence about runs that differ in the optimizer's settings and in the seed alone, when two seeds or more have
/// been trained both ways; otherwise nothing. The others are held against the optimizer of the first run, or where that
/// one shares too few seeds with any of them against the first that does not; who is left out is said.
pub(super) fn sentence(
    all: &[Standing],
    differences: &[Difference],
    figures: &[Figures],
    (memory, loss): (&str, &str),
) -> Option<String> {
    let ours = |key: &str| key == "train.seed" || key.starts_with("optimizer.");
    if !differences.iter().all(|difference| ours(&difference.key)) {
        return None;
    }
    over(groups(all, differences, figures), memory, loss)
}

fn over(mut groups: Vec<Group<'_>>, memory: &str, loss: &str) -> Option<String> {
    let partnered = |at: &usize| {
        let mut others = groups.iter().enumerate().filter(|(other, _)| other != at);
        others.any(|(_, other)| groups[*at].shared(other) >= PAIRS)
    };
    let at = (0..groups.len()).find(partnered)?;
    let base = groups.remove(at);
    let mut told = Vec::new();
    let mut left = Vec::new();
    for other in &groups {
        match against(&base, other, memory, loss) {
            Some(text) => told.push(text),
            None => left.push(format!("{} ({})", other.label, named(&other.seeds()))),
        }
    }
    if !left.is_empty() {
        let left = left.join(", ");
        told.push(format!("Left out, for fewer than {PAIRS} seeds in common with {}: {left}.", base.label));
    }
    Some(told.join(" "))
}

/// What must be known of the seeds where no spread can be told.
pub(super) fn caveat(all: &[Standing], differences: &[Difference], figures: &[Figures]) -> String {
    let groups = groups(all, differences, figures);
    let mut seeds: Vec<u64> = groups.iter().flat_map(Group::seeds).collect();
    seeds.sort_unstable();
    seeds.dedup();
    if let [seed] = seeds[..] {
        return format!("one seed each ({seed}): small differences may be chance");
    }
    if groups.len() == 1 {
        return format!("they differ in the seed alone ({})", listed(&seeds));
    }
    if groups.iter().all(|group| group.runs.len() == 1) {
        return format!("one seed each, and not the same ({})", listed(&seeds));
    }
    if groups.iter().all(|group| group.seeds() == seeds) {
        return format!(
            "{} each: the spread between them is told where nothing but the optimizer differs",
            named(&seeds)
        );
    }
    let each: Vec<String> =
        groups.iter().map(|group| format!("{} with {}", group.label, named(&group.seeds()))).collect();
    format!("not the same seeds ({}): small differences may be chance", each.join("; "))
}

fn listed(seeds: &[u64]) -> String {
    seeds.iter().map(u64::to_string).collect::<Vec<_>>().join(", ")
}

/// `seed 1`, `seeds 1, 2`.
fn named(seeds: &[u64]) -> String {
    format!("{} {}", if seeds.len() == 1 { "seed" } else { "seeds" }, listed(seeds))
}

fn groups<'a>(all: &[Standing], differences: &[Difference], figures: &'a [Figures]) -> Vec<Group<'a>> {
    let settings = |at: usize| -> Vec<(&str, &str)> {
        let own = differences.iter().filter(|difference| difference.key != "train.seed");
        own.filter_map(|one| Some((one.key.as_str(), one.values.get(at)?.as_str()))).collect()
    };
    let mut found: Vec<(Vec<(&str, &str)>, Group<'a>)> = Vec::new();
    for (at, (standing, figures)) in all.iter().zip(figures).enumerate() {
        let settings = settings(at);
        let seed = standing.summary.seed;
        if let Some((_, group)) = found.iter_mut().find(|(known, _)| *known == settings) {
            // The same seed twice says nothing new.
            if !group.runs.iter().any(|(known, _)| *known == seed) {
                group.runs.push((seed, figures));
            }
            continue;
        }
        let label = standing.summary.config.optimizer.name.to_string();
        found.push((settings, Group { label, runs: vec![(seed, figures)] }));
    }
    // Where the optimizer's name does not say which is meant, what differs does.
    let names: Vec<String> = found.iter().map(|(_, group)| group.label.clone()).collect();
    for (settings, group) in &mut found {
        let told: Vec<String> = settings
            .iter()
            .filter(|(key, _)| *key != "optimizer.name")
            .map(|(key, value)| format!("{} {value}", key.rsplit('.').next().unwrap_or(key)))
            .collect();
        if names.iter().filter(|name| **name == group.label).count() > 1 && !told.is_empty() {
            group.label = format!("{} ({})", group.label, told.join(", "));
        }
    }
    found.into_iter().map(|(_, group)| group).collect()
}

/// Mean and standard deviation between seeds.
struct Spread {
    mean: f64,
    deviation: f64,
}

fn spread(values: &[f64]) -> Spread {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    Spread { mean, deviation: (squares / (n - 1.0)).sqrt() }
}

/// Relative changes in percent, one a seed that was trained both ways; nothing where a figure is missing.
fn changes(base: &Group<'_>, other: &Group<'_>, value: fn(&Figures) -> Option<f64>) -> Option<Vec<f64>> {
    let pairs = base.runs.iter().filter_map(|(seed, ours)| {
        other.runs.iter().find(|(known, _)| known == seed).map(|(_, theirs)| (*ours, *theirs))
    });
    let change = |(ours, theirs): (&Figures, &Figures)| {
        let (from, to) = (value(ours)?, value(theirs)?);
        (from > 0.0 && to.is_finite()).then(|| 100.0 * (to / from - 1.0))
    };
    let all: Vec<f64> = pairs.map(change).collect::<Option<_>>()?;
    (all.len() > 1).then_some(all)
}

/// `adafactor against adamw: -48.0 % memory (..), +0.60 % loss (.., 3 seeds, +-0.40), 3 % slower.`
fn against(base: &Group<'_>, other: &Group<'_>, memory: &str, loss: &str) -> Option<String> {
    let shared = other.shared(base);
    if shared < PAIRS {
        return None;
    }
    let mut parts = Vec::new();
    if let Some(all) = changes(base, other, |figures| figures.memory_bytes.map(|bytes| bytes as f64)) {
        parts.push(format!("{:+.1} % memory ({memory})", spread(&all).mean));
    }
    parts.push(match changes(base, other, |figures| figures.loss) {
        Some(all) => {
            let Spread { mean, deviation } = spread(&all);
            format!("{mean:+.2} % loss ({loss}; {shared} seeds, +-{deviation:.2})")
        }
        None => format!("losses cannot be compared ({loss})"),
    });
    if let Some(all) = changes(base, other, |figures| figures.tokens_per_second) {
        let Spread { mean, deviation } = spread(&all);
        let word = if mean < 0.0 { "slower" } else { "faster" };
        parts.push(format!("{:.0} % {word} (+-{deviation:.0})", mean.abs()));
    }
    let left = base.runs.len() + other.runs.len() - 2 * shared;
    let left = match left {
        0 => String::new(),
        left => format!("; {left} without a partner of the same seed left out"),
    };
    Some(format!(
        "{} against {}: {}; +- is the standard deviation between seeds{left}.",
        other.label,
        base.label,
        parts.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_spread_is_that_of_a_sample() {
        let Spread { mean, deviation } = spread(&[1.0, 2.0, 3.0]);
        assert_eq!((mean, deviation), (2.0, 1.0));
    }

    fn figures(loss: f64, memory: u64, speed: f64) -> Figures {
        Figures {
            loss: Some(loss),
            memory_bytes: Some(memory),
            tokens_per_second: Some(speed),
            ..Figures::default()
        }
    }

    #[test]
    fn pairs_of_the_same_seed_make_the_sentence() {
        let ours: Vec<Figures> = [2.0, 2.5, 3.0].map(|loss| figures(loss, 1000, 100.0)).into();
        let theirs: Vec<Figures> = [2.02, 2.55, 3.0].map(|loss| figures(loss, 520, 97.0)).into();
        let group = |label: &str, all: &'static [u64], figures| Group {
            label: label.into(),
            runs: all.iter().copied().zip(figures).collect(),
        };
        let base = group("adamw", &[1, 2, 3], &ours);
        let other = group("adafactor", &[1, 2, 3], &theirs);
        assert_eq!(
            against(&base, &other, "peak", "final").unwrap(),
            "adafactor against adamw: -48.0 % memory (peak), +1.00 % loss (final; 3 seeds, +-1.00), 3 % slower (+-0); \
             +- is the standard deviation between seeds."
        );
        // Of the seeds 1 and 4 only the first was trained both ways: that is no spread.
        assert!(against(&base, &group("adafactor", &[1, 4], &theirs), "peak", "final").is_none());
        let text = against(&base, &group("adafactor", &[2, 3, 9], &theirs), "peak", "final").unwrap();
        assert!(text.contains("2 seeds") && text.contains("2 without a partner"), "{text}");
    }

    #[test]
    fn who_shares_too_few_seeds_is_left_out_and_is_not_what_the_others_are_held_against() {
        let all: Vec<Figures> = [2.0, 2.5].map(|loss| figures(loss, 1000, 100.0)).into();
        let group = |label: &str, seeds: &'static [u64]| Group {
            label: label.into(),
            runs: seeds.iter().copied().zip(&all).collect(),
        };
        let text = over(
            vec![group("adamw", &[2]), group("adafactor", &[2, 1]), group("sgd", &[1, 2])],
            "peak",
            "final",
        );
        let text = text.unwrap();
        assert!(text.starts_with("sgd against adafactor: +0.0 % memory"), "{text}");
        assert!(
            text.ends_with("Left out, for fewer than 2 seeds in common with adafactor: adamw (seed 2)."),
            "{text}"
        );
        assert!(over(vec![group("adamw", &[1]), group("sgd", &[1, 2])], "peak", "final").is_none());
        assert!(over(vec![group("adamw", &[1, 2])], "peak", "final").is_none());
    }
}
