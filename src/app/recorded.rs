//! A synthetic recording of a run, for tests: the same every time.

use std::collections::BTreeMap;

use crate::{
    config::{Config, Layers, schedule},
    ledger,
    protocol::{
        Alert, CheckpointWritten, CommandRecord, Continuation, DataReport, Event, Header, Host, Level,
        Reason, RunEnded, Summary, TextSample, Update, Validation, Window, summary::Measured,
    },
};

mod state;
mod views;

pub(crate) use state::{check, detail, state_report};
pub(crate) use views::{classifying, on_gpu, run_rows, short, watching};

const MIB: u64 = 1024 * 1024;

/// A number in [0, 1) that looks random and is the same every time.
fn noise(at: u64) -> f64 {
    let mut x = at.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0x5851_F42D_4C95_7F2D;
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    ((x ^ (x >> 31)) >> 11) as f64 / (1u64 << 53) as f64
}

/// The demo's configuration with some settings changed.
pub(crate) fn config(assignments: &[&str]) -> Config {
    let layers = Layers::new().with_assignments(assignments).unwrap();
    layers.resolve().unwrap().config
}

fn header(config: Config) -> Header {
    let ledger = ledger::ledger(&config);
    Header {
        schema: 1,
        run: "20260301T101500-demo".into(),
        name: "demo".into(),
        started: "2026-03-01T10:15:00Z".into(),
        total_updates: config.train.max_updates.unwrap_or(600),
        config,
        explicit: BTreeMap::new(),
        device: "flex".into(),
        threads: 2,
        version: "0.1.0".into(),
        git: None,
        hardware: BTreeMap::from([("cpu".into(), "a processor".into())]),
        data: DataReport { source: "stories".into(), ..DataReport::default() },
        ledger,
        notes: Vec::new(),
        forked_from: None,
        matmul_peak: None,
    }
}

fn update(config: &Config, total: u64, at: u64) -> Update {
    let x = at as f64;
    let loss = 1.1 + 4.4 * (-x / 70.0).exp() + 0.25 * (noise(at) - 0.5);
    Update {
        update: at,
        time: x * 0.1,
        tokens: at * (config.train.effective_batch() * config.train.seq_len) as u64,
        micro_batches: config.train.accumulate as u64,
        loss,
        learning_rate: schedule::of(config, total, at),
        grad_norm: 0.4 + 2.0 * (-x / 50.0).exp() + 0.3 * noise(at + 7777),
        tokens_per_second: 9800.0 + 600.0 * noise(at + 99),
        flops_per_second: None,
        mfu: None,
        skipped: false,
    }
}

/// The first `updates` updates of a run of 600, with all that goes with them.
pub(crate) fn demo(updates: u64) -> Vec<Event> {
    long(updates, config(&["train.accumulate=2"]), updates.max(600))
}

/// The first `updates` updates of a run of `total`.
pub(crate) fn long(updates: u64, config: Config, total: u64) -> Vec<Event> {
    let mut header = header(config.clone());
    header.total_updates = total;
    let mut events = vec![Event::Header(Box::new(header))];
    for at in 1..=updates {
        let mut update = update(&config, total, at);
        if at == 140 {
            (update.loss, update.grad_norm, update.skipped) = (f64::NAN, f64::INFINITY, true);
        }
        let time = update.time;
        events.push(Event::Update(update));
        if at % 10 == 0 {
            events.push(host(at, time));
        }
        if at % 50 == 0 {
            let loss = 1.2 + 4.3 * (-(at as f64) / 72.0).exp();
            events.push(Event::Validation(Validation {
                update: at,
                time,
                loss,
                tokens: 4096,
                ..Default::default()
            }));
            if at <= 600 {
                events.push(Event::State(state::report_of(
                    &config.model,
                    config.optimizer.name.as_str(),
                    at,
                )));
            }
        }
        match at {
            140 => events.push(Event::Alert(Alert {
                update: at,
                time,
                level: Level::Warning,
                message: "gradient is not finite: update skipped".into(),
            })),
            200 => events.push(Event::Checkpoint(CheckpointWritten {
                update: at,
                time,
                path: "checkpoints/200".into(),
                bytes: 1_384_448,
            })),
            220 => events.push(command("learning_rate", at, Some(2e-3))),
            260 => events.push(command("learning_rate", at, None)),
            _ => {}
        }
    }
    if updates > 0 {
        events.push(Event::Window(Window { update: updates + 1, micro_batches: 1, of: 2 }));
    }
    events
}

fn host(update: u64, time: f64) -> Event {
    Event::Host(Host {
        update,
        time,
        host_rss: Some(61 * MIB + update * 100),
        allocator: Some(9 * MIB + (noise(update) * 4e6) as u64),
        allocator_peak: Some(14 * MIB),
        cpu_percent: Some(91.5),
        gpu_note: Some("no NVIDIA driver: libnvidia-ml.so was not found".into()),
        ..Host::default()
    })
}

/// A text that the model wrote after that update.
pub(crate) fn sample(update: u64) -> TextSample {
    let text = |temperature, text: &str| Continuation { temperature, tokens: 48, text: text.into() };
    TextSample {
        update,
        time: update as f64 * 0.1,
        seconds: 0.041,
        prompt: "Mira found a sm".into(),
        texts: vec![
            text(0.0, "all boat by the river. She was the the the the"),
            text(0.8, "ole lanp\u{fffd}\n\n  and the  wind\nsang to her. The e"),
        ],
    }
}

/// A command that was applied.
pub(crate) fn command(name: &str, update: u64, value: Option<f64>) -> Event {
    Event::Command(CommandRecord {
        micro_batches: 0,
        id: 1,
        name: name.into(),
        outcome: "applied".into(),
        update,
        time: update as f64 * 0.1,
        value,
        why: None,
    })
}

/// The end of a run.
pub(crate) fn ended(reason: Reason, updates: u64) -> Event {
    let header = header(config(&[]));
    Event::RunEnded(Box::new(RunEnded {
        reason,
        message: None,
        summary: Summary {
            schema: 1,
            run: header.run,
            name: header.name,
            reason,
            started: header.started,
            version: header.version,
            git: None,
            device: header.device,
            threads: 2,
            hardware: BTreeMap::new(),
            config: header.config,
            differences_from_default: BTreeMap::new(),
            seed: 1,
            data: DataReport::default(),
            updates,
            skipped_updates: 0,
            tokens: updates * 512,
            wall_seconds: updates as f64 * 0.1,
            final_train_loss: Some(1.2),
            best_train_loss: Some(1.1),
            final_val_loss: Some(1.3),
            best_val_loss: Some(1.3),
            eval_accuracy: None,
            eval_f1: None,
            eval_f1_macro: None,
            tokens_per_second: Some(10_000.0),
            flops_per_second: None,
            mfu: None,
            matmul_peak: None,
            gpu_energy_joules: None,
            gpu_joules_per_token: None,
            sample: None,
            ledger: header.ledger,
            measured: Measured::default(),
            interventions: Vec::new(),
            warnings: Vec::new(),
            notes: Vec::new(),
            note: None,
            show_command: "tui-train show 20260301T101500-demo".into(),
            resume_command: None,
            forked_from: None,
        },
    }))
}
