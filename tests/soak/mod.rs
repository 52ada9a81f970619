//! Runs survive: whatever happens to a worker, the run that went on is the run that was never disturbed.
//!
//! `SOAK_KILLS=200 cargo test --release --test e2e soak -- --ignored --nocapture` kills two hundred workers, of every
//! optimizer; `SOAK_SEED` chooses the moments.

mod far;
mod limits;
pub(crate) mod victim;

use std::collections::BTreeMap;

use rand_chacha::ChaCha8Rng;
use tui_train::data::random::below;

use crate::support::{Sandbox, device_name};
use victim::{Moment, Straight, Victim};

/// Nothing is left out: accumulation, shuffling, validations, a schedule that moves, statistics, and a checkpoint every
/// third update.
const WHOLE: [&str; 10] = [
    "train.seq_len=16",
    "train.micro_batch=2",
    "train.accumulate=2",
    "train.max_updates=90",
    "train.validate_every=20",
    "schedule.warmup_updates=10",
    "checkpoint.every_updates=3",
    "checkpoint.keep_last=2",
    "log.state_every=25",
    "model.num_hidden_layers=1",
];

/// Every optimizer, and a model with dropout.
const KINDS: [(&str, &[&str]); 7] = [
    ("adamw", &["optimizer.name=adamw", "optimizer.adamw.amsgrad=true"]),
    ("adamw8bit", &["optimizer.name=adamw8bit", "optimizer.min_8bit_size=1024"]),
    ("adafactor", &["optimizer.name=adafactor", "optimizer.adafactor.beta1=0.9"]),
    ("sgd", &["optimizer.name=sgd", "optimizer.sgd.momentum=0.9"]),
    ("lion", &["optimizer.name=lion"]),
    ("muon", &["optimizer.name=muon"]),
    ("dropout", &["model.preset=distilbert-nano", "data.source=sentence-pairs", "train.seq_len=32"]),
];

fn settings(kind: &[&'static str]) -> Vec<&'static str> {
    WHOLE.iter().chain(kind).copied().collect()
}

fn any_moment(dice: &mut ChaCha8Rng) -> Moment {
    match below(dice, 10) {
        0..2 => Moment::Start,
        2..5 => Moment::Event(1 + below(dice, 60)),
        5..8 => Moment::Writing,
        _ => Moment::End,
    }
}

const fn word(moment: Moment) -> &'static str {
    match moment {
        Moment::Start => "while starting or resuming",
        Moment::Event(_) => "between events",
        Moment::Writing => "while a checkpoint is written",
        Moment::End => "at the end",
    }
}

#[test]
fn workers_killed_at_ten_moments_leave_the_run_that_never_was_disturbed() {
    // The same numbers to the bit are a promise of flex alone.
    if device_name() != "flex" {
        return;
    }
    let settings = settings(KINDS[0].1);
    let (straight, sandbox, mut dice) = (Straight::train(&settings), Sandbox::new(), victim::dice(1));
    let moments = [
        Moment::Start,
        Moment::Event(5),
        Moment::Writing,
        Moment::Start,
        Moment::Event(40),
        Moment::Writing,
        Moment::End,
        Moment::Start,
        Moment::End,
        Moment::Writing,
        Moment::Event(2),
        Moment::End,
    ];
    let (mut kills, mut runs) = (0, 0);
    while kills < 10 {
        runs += 1;
        let mut victim = Victim::new(&sandbox, format!("victim-{runs}"), &settings, &straight);
        let mut ended = false;
        for moment in moments.iter().cycle().skip(kills).take(10 - kills) {
            if !victim.kill_at(*moment, &mut dice) {
                ended = true;
                break;
            }
            kills += 1;
        }
        if !ended {
            victim.finish();
        }
        assert!(runs < 10, "{kills} kills in {runs} runs");
    }
}

#[test]
#[ignore = "takes minutes: SOAK_KILLS=200 cargo test --release --test e2e soak -- --ignored --nocapture"]
fn workers_killed_by_the_hundred_leave_the_runs_that_never_were_disturbed() {
    let number = |name: &str, default: u64| {
        std::env::var(name).map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name}={text}")))
    };
    let (wanted, seed) = (number("SOAK_KILLS", 200), number("SOAK_SEED", 1));
    println!("SOAK_SEED={seed} SOAK_KILLS={wanted}");
    let mut dice = victim::dice(seed);
    let kinds: Vec<_> = KINDS.iter().map(|(name, kind)| (*name, settings(kind))).collect();
    let straight: Vec<_> = kinds.iter().map(|(_, settings)| Straight::train(settings)).collect();
    let (mut kills, mut ends, mut runs) = (BTreeMap::new(), 0_u64, 0_u64);
    let total = |kills: &BTreeMap<_, u64>| kills.values().sum::<u64>();
    while total(&kills) < wanted {
        for ((name, settings), straight) in kinds.iter().zip(&straight) {
            let sandbox = Sandbox::new();
            let mut victim = Victim::new(&sandbox, format!("{name}-{runs}"), settings, straight);
            let mut ended = false;
            for _ in 0..1 + below(&mut dice, 9) {
                let moment = any_moment(&mut dice);
                if !victim.kill_at(moment, &mut dice) {
                    ended = true;
                    break;
                }
                *kills.entry(word(moment)).or_default() += 1;
            }
            if !ended {
                victim.finish();
            }
            ends += 1;
            runs += 1;
            println!("{runs}: {name} is the same; {} kills so far", total(&kills));
            if total(&kills) >= wanted {
                break;
            }
        }
    }
    println!("{} kills in {ends} runs, no difference: {kills:?}", total(&kills));
}
