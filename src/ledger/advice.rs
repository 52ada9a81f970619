//! What to change when memory does not suffice, in the words of the configuration.

use crate::config::{Config, DeviceName, OptimizerName, Precision};

use super::ledger;

/// A change of settings and what it is estimated to save.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Advice {
    /// Assignments as `--set` takes them.
    pub settings: Vec<(&'static str, String)>,
    /// Estimated bytes less.
    pub saves: u64,
    /// Whether it trains on the same batches, and differs in rounding alone.
    pub same_batch: bool,
}

/// The accumulation that can be set.
const MOST_ACCUMULATION: usize = 4096;

/// The smallest change that saves so many bytes, or else the one that saves most: first a smaller micro-batch with the same
/// effective batch, then bf16 where the device has it, then the optimizer with the least state. `None` when nothing
/// that can be set would save anything.
pub fn to_save(config: &Config, bytes: u64) -> Option<Advice> {
    let mut best: Option<Advice> = None;
    for advice in changes(config) {
        if advice.saves >= bytes.max(1) {
            return Some(advice);
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
    let saves = |changed: &Config| now.saturating_sub(ledger(changed).total_bytes_estimated);
    let mut all = Vec::new();
    let (micro, batch) = (config.train.micro_batch, config.train.effective_batch());
    for smaller in (1..micro).rev().filter(|smaller| micro.is_multiple_of(*smaller)) {
        let accumulate = batch / smaller;
        if accumulate > MOST_ACCUMULATION {
            break;
        }
        let mut changed = config.clone();
        (changed.train.micro_batch, changed.train.accumulate) = (smaller, accumulate);
        let settings =
            vec![("train.micro_batch", smaller.to_string()), ("train.accumulate", accumulate.to_string())];
        all.push(Advice { settings, saves: saves(&changed), same_batch: true });
    }
    let mut changed = config.clone();
    let cuda = matches!(config.train.device, DeviceName::LibtorchCuda(_));
    if cuda && config.train.precision == Precision::F32 {
        changed.train.precision = Precision::Bf16;
        let settings = vec![("train.precision", "bf16".to_owned())];
        all.push(Advice { settings, saves: saves(&changed), same_batch: false });
    }
    changed = config.clone();
    for name in [OptimizerName::AdamW8bit, OptimizerName::Adafactor] {
        changed.optimizer.name = name;
        let settings = vec![("optimizer.name", name.to_string())];
        all.push(Advice { settings, saves: saves(&changed), same_batch: false });
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
