//! What to change when memory does not suffice, in the words of the configuration.

use crate::config::{Config, DeviceName, OptimizerName, Precision};

use super::ledger;

/// A change of settings and what it is estimated to come to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Advice {
    /// Assignments as `--set` takes them.
    pub settings: Vec<(&'static str, String)>,
    /// Estimated bytes less.
    pub saves: u64,
    /// Estimated bytes of the whole run with it.
    pub total: u64,
    /// Whether it trains on the same batches, and differs in rounding alone.
    pub same_batch: bool,
    /// Whether it saves what it has to and the whole run has room.
    pub fits: bool,
}

/// What a change has to come to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Need {
    /// Least bytes less.
    pub saves: u64,
    /// Bytes that the whole run can have, where that is known.
    pub room: Option<u64>,
}

/// The accumulation that can be set.
const MOST_ACCUMULATION: usize = 4096;

/// The smallest change that fits, or else the one that saves most: first a smaller micro-batch with the same effective batch,
/// then bf16 where the device has it, then the optimizer with the least state, and these with the smallest micro-batch.
/// `None` when nothing that can be set would save anything.
pub fn to_fit(config: &Config, need: Need) -> Option<Advice> {
    // The estimate is one: a run that takes the last tenth may run out again.
    let room = need.room.map(|room| room - room / 10);
    let mut best: Option<Advice> = None;
    for advice in changes(config) {
        if advice.saves >= need.saves.max(1) && room.is_none_or(|room| advice.total <= room) {
            return Some(Advice { fits: true, ..advice });
        }
        if advice.saves > best.as_ref().map_or(0, |best| best.saves) {
            best = Some(advice);
        }
    }
    best
}

/// Every change there is, from the least to the furthest.
fn changes(config: &Config) -> Vec<Advice> {
    let now = ledger(config).total_bytes_estimated;
    let advice = |changed: &Config, settings: &[(&'static str, String)], same_batch| {
        let total = ledger(changed).total_bytes_estimated;
        let settings = settings.to_vec();
        Advice { settings, saves: now.saturating_sub(total), total, same_batch, fits: false }
    };
    let mut all = Vec::new();
    let (micro, batch) = (config.train.micro_batch, config.train.effective_batch());
    // The smallest micro-batch, and how it is set.
    let (mut smallest, mut settings) = (config.clone(), Vec::new());
    for smaller in (1..micro).rev().filter(|smaller| micro.is_multiple_of(*smaller)) {
        let accumulate = batch / smaller;
        if accumulate > MOST_ACCUMULATION {
            break;
        }
        (smallest.train.micro_batch, smallest.train.accumulate) = (smaller, accumulate);
        settings =
            vec![("train.micro_batch", smaller.to_string()), ("train.accumulate", accumulate.to_string())];
        all.push(advice(&smallest, &settings, true));
    }
    let bases = [(config, Vec::new()), (&smallest, settings)];
    for (base, settings) in &bases[..if all.is_empty() { 1 } else { 2 }] {
        let with = |key, value: String| [&settings[..], &[(key, value)]].concat();
        let cuda = matches!(config.train.device, DeviceName::LibtorchCuda(_));
        let mut changed = Config::clone(base);
        if cuda && config.train.precision == Precision::F32 {
            changed.train.precision = Precision::Bf16;
            all.push(advice(&changed, &with("train.precision", "bf16".to_owned()), false));
        }
        changed = Config::clone(base);
        for name in [OptimizerName::AdamW8bit, OptimizerName::Adafactor] {
            changed.optimizer.name = name;
            all.push(advice(&changed, &with("optimizer.name", name.to_string()), false));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Layers;

    fn config(settings: &[&str]) -> Config {
        Layers::new().with_assignments(settings).unwrap().resolve().unwrap().config
    }

    fn to_save(config: &Config, saves: u64) -> Option<Advice> {
        to_fit(config, Need { saves, room: None })
    }

    fn named(advice: &Advice) -> Vec<String> {
        advice.settings.iter().map(|(key, value)| format!("{key}={value}")).collect()
    }

    #[test]
    fn the_effective_batch_is_kept_and_no_more_is_given_up_than_is_needed() {
        let config = config(&["train.micro_batch=12", "train.accumulate=2", "model.preset=llama-tiny"]);
        let per_row = super::super::activations::estimate(&config) / 12;
        let halved = to_save(&config, 5 * per_row).unwrap();
        assert_eq!(named(&halved), ["train.micro_batch=6", "train.accumulate=4"]);
        assert_eq!(halved.saves, 6 * per_row);
        let more = to_save(&config, 9 * per_row).unwrap();
        assert_eq!(named(&more), ["train.micro_batch=3", "train.accumulate=8"]);
        assert!(more.same_batch);
    }

    #[test]
    fn the_first_accumulation_costs_its_buffer() {
        let config = config(&["train.micro_batch=8", "train.accumulate=1", "model.preset=llama-tiny"]);
        let advice = to_save(&config, 1).unwrap();
        let mut changed = config.clone();
        (changed.train.micro_batch, changed.train.accumulate) = (4, 2);
        let totals = [&config, &changed].map(|config| ledger(config).total_bytes_estimated);
        assert_eq!(advice.saves, totals[0] - totals[1]);
        assert!(advice.saves < super::super::activations::estimate(&config) / 2);
    }

    #[test]
    fn the_whole_run_has_to_fit_and_not_only_what_was_asked_for_last() {
        // A micro-batch of 1024 is estimated at hundreds of times of what there is.
        let config = config(&["train.micro_batch=1024", "model.preset=llama-tiny", "train.seq_len=128"]);
        let total = |micro_batch: usize| {
            let mut changed = config.clone();
            (changed.train.micro_batch, changed.train.accumulate) =
                (micro_batch, config.train.effective_batch() / micro_batch);
            ledger(&changed).total_bytes_estimated
        };
        let room = total(4) * 10 / 9 + 16;
        let advice = to_fit(&config, Need { saves: 1, room: Some(room) }).unwrap();
        assert_eq!(named(&advice)[0], "train.micro_batch=4");
        assert_eq!((advice.total, advice.fits, advice.same_batch), (total(4), true, true));
        // Not even one row has room: then the furthest there is, and it is said not to fit.
        let advice = to_fit(&config, Need { saves: 1, room: Some(1 << 20) }).unwrap();
        assert!(!advice.fits && advice.total < total(1), "{advice:?}");
        assert_eq!(named(&advice)[0], "train.micro_batch=1");
        assert_eq!(named(&advice)[2], "optimizer.name=adafactor");
    }

    #[test]
    fn with_one_row_the_state_is_what_can_shrink() {
        let one = ["train.micro_batch=1", "model.preset=llama-tiny"];
        let state = ledger(&config(&one)).state_bytes;
        let advice = to_save(&config(&one), state * 9 / 10).unwrap();
        assert_eq!(named(&advice), ["optimizer.name=adafactor"]);
        assert!(!advice.same_batch);
        let cuda = config(&[&one[..], &["train.device=libtorch-cuda:0"]].concat());
        assert_eq!(named(&to_save(&cuda, 1).unwrap())[..1], ["optimizer.name=adamw8bit"][..]);
        let least = config(&[&one[..], &["optimizer.name=sgd"]].concat());
        assert_eq!(to_save(&least, 1), None, "nothing can be saved any more");
    }
}
