//! `tui-train bench`: measures updates in this process, without a run.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{output, settings::Settings};
use crate::{
    backend::{allocator, devices},
    config::{Config, schedule},
    data::{Cursor, Dataset, Windows},
    protocol::SCHEMA,
    run::text,
    worker::{telemetry, trainer},
};

/// What to measure.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    settings: Settings,
    /// Updates to measure, after three that warm up
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..))]
    updates: u64,
    /// As JSON
    #[arg(long)]
    json: bool,
}

const WARM_UP: u64 = 3;

/// The phases of one update.
#[derive(Debug, Default, Clone, Copy)]
struct Phases {
    data: Duration,
    forward: Duration,
    backward: Duration,
    optimizer: Duration,
}

impl Phases {
    fn total(&self) -> Duration {
        self.data + self.forward + self.backward + self.optimizer
    }
}

/// Trains `WARM_UP + updates` updates and prints medians.
///
/// # Errors
/// The configuration or its data cannot be used.
pub fn run(args: Args) -> anyhow::Result<i32> {
    let config = args.settings.resolve()?.config;
    let report = measure(&config, args.updates)?;
    if args.json { output::json(&report) } else { output::text(&as_text(&report)) }
}

fn measure(config: &Config, updates: u64) -> anyhow::Result<Value> {
    // The stream must not end before the measurement does.
    let mut config = config.clone();
    config.train.epochs = None;
    config.train.max_updates = Some(WARM_UP + updates);
    config.schedule.warmup_updates = 0;
    let device = devices::open(&config.train.device)?;
    let mut windows = Windows::new(Dataset::open(&config)?, &config, Cursor::default())?;
    allocator::reset_peak();
    let baseline = allocator::live_bytes();
    let mut training = trainer::build(&config, &device.device)?;
    let (mut all, mut tokens) = (Vec::new(), 0);
    for update in 1..=WARM_UP + updates {
        let mut phases = Phases::default();
        let start = Instant::now();
        let Some(window) = windows.next_window() else { break };
        phases.data = start.elapsed();
        for (batch, pass) in window.passes(update) {
            let times = training.micro_batch(batch, pass);
            phases.forward += times.forward;
            phases.backward += times.backward;
        }
        let start = Instant::now();
        training.update(schedule::of(&config, WARM_UP + updates, update), false);
        phases.optimizer = start.elapsed();
        if update > WARM_UP {
            tokens += window.tokens();
            all.push(phases);
        }
    }
    let busy: f64 = all.iter().map(|phases| phases.total().as_secs_f64()).sum();
    let phase = |of: fn(&Phases) -> Duration| quantile(all.iter().map(of).collect(), 0.5);
    Ok(json!({
        "schema": SCHEMA,
        "model": config.model.preset,
        "optimizer": config.optimizer.name.as_str(),
        "device": device.name,
        "threads": device.threads,
        "updates": updates,
        "tokens_per_update": tokens / all.len().max(1) as u64,
        "tokens_per_second": tokens as f64 / busy,
        "ms_per_update": {
            "median": phase(Phases::total),
            "p95": quantile(all.iter().map(Phases::total).collect(), 0.95),
        },
        "ms_by_phase": {
            "data": phase(|phases| phases.data),
            "forward": phase(|phases| phases.forward),
            "backward": phase(|phases| phases.backward),
            "optimizer": phase(|phases| phases.optimizer),
        },
        "peak_bytes": {
            "host_rss": telemetry::resident_peak(),
            "allocator": allocator::peak_bytes(),
            "before_training": baseline,
        },
        "ledger_bytes_estimated": crate::ledger::ledger(&config).total_bytes_estimated,
    }))
}

/// Milliseconds.
fn quantile(mut times: Vec<Duration>, share: f64) -> f64 {
    times.sort_unstable();
    let at = ((times.len().saturating_sub(1)) as f64 * share).round() as usize;
    times.get(at).map_or(f64::NAN, |time| time.as_secs_f64() * 1e3)
}

fn as_text(report: &Value) -> String {
    let number = |pointer: &str| report.pointer(pointer).and_then(Value::as_f64).unwrap_or(f64::NAN);
    let bytes =
        |pointer: &str| report.pointer(pointer).and_then(Value::as_u64).map_or("n/a".into(), text::bytes);
    let word = |pointer: &str| report.pointer(pointer).and_then(Value::as_str).unwrap_or("-").to_owned();
    format!(
        "{} with {} on {}, {} threads, {} updates of {} tokens\n\n\
         tokens/s       {:.0}\n\
         ms an update   {:.1} median, {:.1} at the 95th percentile\n\
         by phase       data {:.1}, forward {:.1}, backward {:.1}, clip and optimizer {:.1}\n\
         peak memory    {} in the allocator, {} of it before training; {} resident; ledger ~{}\n",
        word("/model"),
        word("/optimizer"),
        word("/device"),
        number("/threads"),
        number("/updates"),
        number("/tokens_per_update"),
        number("/tokens_per_second"),
        number("/ms_per_update/median"),
        number("/ms_per_update/p95"),
        number("/ms_by_phase/data"),
        number("/ms_by_phase/forward"),
        number("/ms_by_phase/backward"),
        number("/ms_by_phase/optimizer"),
        bytes("/peak_bytes/allocator"),
        bytes("/peak_bytes/before_training"),
        bytes("/peak_bytes/host_rss"),
        bytes("/ledger_bytes_estimated"),
    )
}
