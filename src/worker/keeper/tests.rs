//! A fault at any step of writing, in a run that trains: what is on the disk is whole, and the run that goes on is the
//! one that never was disturbed.

use std::collections::BTreeMap;

use anyhow::Context;

use super::{
    super::{restore, resume::Beginning, trainer},
    *,
};
use crate::{
    backend::devices,
    config::schedule,
    data::{Dataset, Windows},
    protocol::Update,
    run::{
        EventWriter, Record, Tail,
        checkpoint::{FileHash, Progress, checkpoints},
        fault::{self, Fault, Outcome},
        list::Lister,
        sample,
    },
    worker::checkpoint::Position,
};

const UPDATES: u64 = 6;
/// Every second update has a checkpoint, and two of them are kept.
const EVERY: u64 = 2;

const SETTINGS: [&str; 11] = [
    "train.max_updates=6",
    "train.seq_len=8",
    "train.micro_batch=1",
    "train.device=flex",
    "model.hidden_size=8",
    "model.intermediate_size=8",
    "model.num_attention_heads=2",
    "model.num_key_value_heads=2",
    "model.num_hidden_layers=1",
    "schedule.warmup_updates=2",
    "checkpoint.keep_last=2",
];

/// What the process of a run does with its record and its checkpoints, in one thread: an event that cannot be written
/// ends it, a checkpoint that cannot be does not.
fn train(run: &RunDir, resume: bool, until: u64) -> anyhow::Result<()> {
    let mut beginning =
        if resume { Beginning::resumed(run, &[])? } else { Beginning::new(run, &run.meta()?)? };
    let (config, from, header) = (beginning.config.clone(), beginning.from, sample::header(run));
    if resume {
        beginning.settle(run)?;
    }
    let mut writer = match beginning.event(&header) {
        None => EventWriter::create(run, &header)?,
        Some((_, resumed)) => {
            let mut writer = EventWriter::reopen(run)?;
            writer.append(&Event::Resumed(Box::new(resumed)))?;
            writer
        }
    };
    let device = devices::open(config.train.device)?.device;
    let mut training = match &beginning.good {
        Some(good) => restore::build(&config, &device, good)?.0,
        None => trainer::build(&config, &device)?,
    };
    let mut windows = Windows::new(Dataset::open(&config)?, &config, from.cursor)?;
    let mut tokens = from.tokens;
    for update in from.update + 1..=until {
        let window = windows.next_window().context("the stream has no end")?;
        for (batch, pass) in window.passes(update) {
            training.micro_batch(batch, pass);
        }
        let learning_rate = schedule::of(&config, UPDATES, update);
        let outcome = training.update(learning_rate, false);
        tokens += window.tokens();
        writer.append(&Event::Update(Update {
            update,
            time: update as f64,
            tokens,
            micro_batches: 1,
            loss: outcome.loss,
            learning_rate,
            grad_norm: outcome.grad_norm,
            tokens_per_second: 1.0,
            flops_per_second: None,
            mfu: None,
            skipped: false,
        }))?;
        if update.is_multiple_of(EVERY) {
            let progress = Progress { time: update as f64, ..Progress::default() };
            let position = Position { update, tokens, config: &config, cursor: window.after, progress };
            let snapshot = Snapshot::take(run, &*training, position)?;
            let (events, told) = Events::kept();
            let written = write(run, &config.checkpoint, &events, snapshot, update as f64, None);
            drop(events);
            let told: Vec<Event> = told.iter().collect();
            let alerts = told.iter().filter(|event| matches!(event, Event::Alert(_))).count();
            assert!(written.is_ok() || alerts == 1, "a checkpoint that fails is told: {told:?}");
            told.iter().try_for_each(|event| writer.append(event))?;
        }
    }
    writer.sync()?;
    Ok(())
}

/// Loss and norm of every update that counts, to the bit.
fn trace(run: &RunDir) -> BTreeMap<u64, (u64, u64)> {
    let mut trace = BTreeMap::new();
    for event in Tail::open(run).poll().unwrap() {
        match event {
            Event::Resumed(resumed) => trace.retain(|update, _| *update <= resumed.from_update),
            Event::Update(update) => {
                trace.insert(update.update, (update.loss.to_bits(), update.grad_norm.to_bits()));
            }
            _ => {}
        }
    }
    trace
}

/// Hashes of everything in the last checkpoint but what names the run.
fn end(run: &RunDir) -> BTreeMap<String, FileHash> {
    let last = checkpoints(run).unwrap().pop().unwrap();
    assert_eq!(last.update, UPDATES);
    last.verified().unwrap().files
}

fn assert_readable(run: &RunDir) {
    let record = Record::read(run).unwrap();
    assert!(record.skipped_lines <= 1, "one line may be torn");
    for checkpoint in checkpoints(run).unwrap() {
        checkpoint.verified().unwrap();
    }
    assert_eq!(Lister::default().entry(run).run, run.id());
}

/// Puts a fault into every step of that work in a run of its own, one after another, and lets each run come to its end.
/// Returns the number of steps.
fn at_every_step(before: impl Fn(&RunDir), work: impl Fn(&RunDir) -> anyhow::Result<()>) -> u32 {
    let (_folder, straight) = sample::run_with("straight", &SETTINGS);
    train(&straight, false, UPDATES).unwrap();
    let (straight_trace, straight_end) = (trace(&straight), end(&straight));
    assert_eq!(straight_trace.len() as u64, UPDATES);
    let mut steps = 0;
    for fault in [Fault::Fails, Fault::Dies] {
        for number in 0.. {
            let (_folder, run) = sample::run_with("faulty", &SETTINGS);
            before(&run);
            let outcome = fault::at(number, fault, || work(&run));
            assert_readable(&run);
            match outcome {
                Outcome::NotReached => {
                    steps = number;
                    break;
                }
                Outcome::Died => assert_eq!(fault, Fault::Dies),
                Outcome::Returned(_) => assert_eq!(fault, Fault::Fails),
            }
            if trace(&run) != straight_trace
                || checkpoints(&run).unwrap().last().map(|last| last.update) != Some(UPDATES)
            {
                train(&run, true, UPDATES)
                    .unwrap_or_else(|error| panic!("{fault:?} at step {number}: {error:#}"));
            }
            assert_eq!(trace(&run), straight_trace, "{fault:?} at step {number}");
            assert_eq!(end(&run), straight_end, "{fault:?} at step {number}");
            assert_readable(&run);
        }
    }
    steps
}

#[test]
fn a_fault_at_any_step_of_a_run_costs_what_came_since_its_last_checkpoint_and_nothing_else() {
    let steps = at_every_step(|_| {}, |run| train(run, false, UPDATES));
    // Each checkpoint: its folder, two files of tensors begun and done, one of text, a sync of each and of the folder, the
    // new name, a sync of that; the first makes the folder of all of them, the last removes an old one.
    let checkpoint = 1 + 1 + 2 * 2 + 1 + 4 + 1 + 1;
    let once = 1 + 2;
    let events = 1 + UPDATES as u32 + UPDATES as u32 / EVERY as u32 + 1;
    assert_eq!(steps, 3 * checkpoint + once + events);
}

#[test]
fn a_fault_at_any_step_of_a_run_that_goes_on_is_no_other() {
    let killed = |run: &RunDir| train(run, false, UPDATES - 1).unwrap();
    let steps = at_every_step(killed, |run| train(run, true, UPDATES));
    assert!(steps > 12, "{steps}");
}
