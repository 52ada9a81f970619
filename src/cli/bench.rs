//! `tui-train bench`: measures updates in this process, without a run.

use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    output,
    progress::{Bar, Waiting, open_data},
    settings::Settings,
};
use crate::{
    backend::{
        allocator,
        devices::{self, TrainDevice},
        memory, peak,
    },
    config::{Config, schedule},
    data::{Cursor, Windows},
    ledger,
    protocol::{MatmulPeak, SCHEMA},
    run::{Home, export::markdown, peaks, text},
    worker::{nvml::Gpu, telemetry, trainer},
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

/// Bytes in the allocator, each the difference between two moments when nothing else lives.
#[derive(Debug, Default, Clone, Copy)]
struct Memory {
    /// Once the model is made.
    parameters: u64,
    /// From the start of a window to its last backward pass.
    gradients: u64,
    /// Once an update is done and its gradients are gone.
    state: u64,
    /// The most beyond what was alive when the optimizer began.
    temporaries: u64,
    /// The most at any time.
    peak: u64,
    started: u64,
}

impl Memory {
    fn start_of_update(&mut self) {
        self.peak = self.peak.max(allocator::peak_bytes());
        allocator::reset_peak();
        self.started = allocator::live_bytes();
    }

    /// The first updates make the state; only later ones show what an update needs for itself.
    fn end_of_update(&mut self, counts: bool) {
        self.peak = self.peak.max(allocator::peak_bytes());
        if counts {
            self.temporaries = self.temporaries.max(allocator::peak_bytes().saturating_sub(self.started));
        }
        allocator::reset_peak();
    }
}

/// Trains `WARM_UP + updates` updates and prints medians.
///
/// # Errors
/// The configuration or its data cannot be used.
pub fn run(args: Args) -> anyhow::Result<i32> {
    let mut config = args.settings.resolve()?.config;
    if let Some(code) = super::elsewhere(&mut config)? {
        return Ok(code);
    }
    let report = measure(&config, args.updates)?;
    let counted = config.model.arch.counted().as_str();
    if args.json { output::json(&report) } else { output::text(&as_text(&report, counted)) }
}

fn measure(config: &Config, updates: u64) -> anyhow::Result<Value> {
    // The stream must not end before the measurement does.
    let mut config = config.clone();
    config.train.epochs = None;
    config.train.max_updates = Some(WARM_UP + updates);
    config.schedule.warmup_updates = 0;
    let device = devices::open(config.train.device)?;
    let mut windows = Windows::new(open_data(&config)?, &config, Cursor::default())?;
    allocator::reset_peak();
    let baseline = allocator::live_bytes();
    let mut training = trainer::build(&config, &device.device)?;
    let mut held =
        Memory { parameters: allocator::live_bytes().saturating_sub(baseline), ..Memory::default() };
    // One pass without an update: what the products keep for themselves is there from now on and is nobody's state.
    if let Some(window) = windows.next_window() {
        for (batch, pass) in window.passes(1) {
            training.micro_batch(batch, pass);
        }
        training.discard_window();
    }
    let settled = allocator::live_bytes();
    let flops = training.flops();
    let (mut all, mut tokens, mut operations) = (Vec::new(), 0, 0.0);
    let mut bar = Bar::count("measuring updates");
    for update in 1..=WARM_UP + updates {
        bar.at(update - 1, WARM_UP + updates);
        let mut phases = Phases::default();
        let start = Instant::now();
        let Some(window) = windows.next_window() else { break };
        phases.data = start.elapsed();
        let empty = allocator::live_bytes();
        for (batch, pass) in window.passes(update) {
            let times = training.micro_batch(batch, pass);
            phases.forward += times.forward;
            phases.backward += times.backward;
        }
        held.gradients = allocator::live_bytes().saturating_sub(empty);
        held.start_of_update();
        let start = Instant::now();
        training.update(schedule::of(&config, WARM_UP + updates, update), false);
        phases.optimizer = start.elapsed();
        held.end_of_update(update > WARM_UP);
        if update > WARM_UP {
            tokens += window.tokens();
            operations += flops.map_or(0.0, |flops| flops.rows(window.lengths()));
        }
        drop(window);
        held.state = allocator::live_bytes().saturating_sub(settled);
        if update > WARM_UP {
            all.push(phases);
        }
    }
    let on_device = memory::device(device.name);
    let resident = telemetry::resident_peak();
    drop(bar);
    drop(training);
    let peak = flops.map(|_| matmul_peak(&config, &device));
    let seconds =
        |of: fn(&Phases) -> Duration| all.iter().map(of).map(|time| time.as_secs_f64()).sum::<f64>();
    let busy = seconds(Phases::total);
    let ledger = ledger::ledger(&config);
    let largest = ledger::parameters(&config.model).iter().map(|p| p.elements() * ledger::F32).max();
    // The program's allocator does not see libtorch's tensors.
    let measured = |bytes: u64| (held.peak > 0).then_some(bytes);
    let pair = |ledger: u64, bytes: u64| json!({"ledger": ledger, "measured": measured(bytes)});
    let phase = |of: fn(&Phases) -> Duration| quantile(all.iter().map(of).collect(), 0.5);
    let speed = (operations > 0.0).then(|| operations / busy);
    let best = peak.as_ref().map(|(best, _)| best);
    Ok(json!({
        "schema": SCHEMA,
        "model": config.model.preset,
        "precision": config.train.precision,
        "optimizer": config.optimizer.name.as_str(),
        "device": device.name.to_string(),
        "threads": device.threads,
        "updates": updates,
        "tokens_per_update": tokens / all.len().max(1) as u64,
        "tokens_per_second": tokens as f64 / busy,
        "flops_per_second": speed,
        "mfu": speed.zip(best).map(|(speed, best)| speed / best.flops_per_second),
        "matmul_peak": best,
        "matmul_now": peak.as_ref().map(|(_, now)| now),
        "ms_per_update": {
            "median": phase(Phases::total),
            "p95": quantile(all.iter().map(Phases::total).collect(), 0.95),
        },
        "waiting_for_data": seconds(|phases| phases.data) / busy,
        "ms_by_phase": {
            "data": phase(|phases| phases.data),
            "forward": phase(|phases| phases.forward),
            "backward": phase(|phases| phases.backward),
            "optimizer": phase(|phases| phases.optimizer),
        },
        "peak_bytes": {
            "host_rss": resident,
            "allocator": measured(held.peak),
            "before_training": measured(baseline),
            "gpu_allocated": on_device.map(|memory| memory.allocated_peak),
            "gpu_reserved": on_device.map(|memory| memory.reserved_peak),
        },
        "memory": {
            "parameters": pair(ledger.parameter_bytes, held.parameters),
            "gradients": pair(ledger.gradient_bytes, held.gradients),
            "optimizer_state": pair(ledger.state_bytes, held.state),
            "optimizer_temporaries": {"largest_parameter": largest, "measured": measured(held.temporaries)},
        },
        "ledger_bytes_estimated": ledger.total_bytes_estimated,
    }))
}

/// The best that was ever measured of the device, which is kept for the runs to come, and what it is now.
fn matmul_peak(config: &Config, device: &TrainDevice) -> (MatmulPeak, f64) {
    let _waiting = Waiting::on("measuring products of matrices");
    let found = peak::measure(device, config.train.precision, config.train.tf32);
    let measured = MatmulPeak {
        device: device.name.to_string(),
        hardware: telemetry::of_device(&telemetry::hardware(&Gpu::open(device.name)), device.name),
        threads: device.threads,
        precision: peaks::precision(&config.train).to_owned(),
        flops_per_second: found.flops_per_second,
        size: found.size,
        measured: jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    let kept = Home::from_env().ok().map(|home| peaks::keep(&home, measured.clone()));
    let best = match kept {
        Some(Ok(best)) => best,
        Some(Err(error)) => {
            output::message(&format!("the matmul peak cannot be kept for the runs to come: {error}"));
            measured
        }
        None => measured,
    };
    (best, found.flops_per_second)
}

/// Milliseconds.
fn quantile(mut times: Vec<Duration>, share: f64) -> f64 {
    times.sort_unstable();
    let at = ((times.len().saturating_sub(1)) as f64 * share).round() as usize;
    times.get(at).map_or(f64::NAN, |time| time.as_secs_f64() * 1e3)
}

/// The report with figures of so called things: tokens, or a task's examples.
fn as_text(report: &Value, counted: &str) -> String {
    let number = |pointer: &str| report.pointer(pointer).and_then(Value::as_f64).unwrap_or(f64::NAN);
    let bytes =
        |pointer: &str| report.pointer(pointer).and_then(Value::as_u64).map_or("n/a".into(), text::bytes);
    let word = |pointer: &str| report.pointer(pointer).and_then(Value::as_str).unwrap_or("-").to_owned();
    let peak = MatmulPeak::deserialize(&report["matmul_peak"]).ok().map(|peak| {
        let share = text::percent(number("/mfu"));
        let speed = text::flops(number("/flops_per_second"));
        format!("model's speed  {speed}, {share} of the matmul peak: {}\n", markdown::measured(&peak))
    });
    format!(
        "{} with {} on {}, {} threads, {} updates of {} {counted}\n\n\
         {:<15}{:.0}\n\
         {}\
         ms an update   {:.1} median, {:.1} at the 95th percentile\n\
         by phase       data {:.1}, forward {:.1}, backward {:.1}, clip and optimizer {:.1}\n\
         waiting        for data {} of the time\n\
         peak memory    {} in the allocator, {} of it before training; {} resident; ledger ~{}\n\
         parameters     {} in the allocator, {} in the ledger\n\
         gradients      {} in the allocator, {} in the ledger\n\
         state          {} in the allocator, {} in the ledger\n\
         temporaries    {} of the optimizer; the largest parameter has {}\n",
        word("/model"),
        word("/optimizer"),
        word("/device"),
        number("/threads"),
        number("/updates"),
        number("/tokens_per_update"),
        format!("{counted}/s"),
        number("/tokens_per_second"),
        peak.unwrap_or_default(),
        number("/ms_per_update/median"),
        number("/ms_per_update/p95"),
        number("/ms_by_phase/data"),
        number("/ms_by_phase/forward"),
        number("/ms_by_phase/backward"),
        number("/ms_by_phase/optimizer"),
        text::percent(number("/waiting_for_data")),
        bytes("/peak_bytes/allocator"),
        bytes("/peak_bytes/before_training"),
        bytes("/peak_bytes/host_rss"),
        bytes("/ledger_bytes_estimated"),
        bytes("/memory/parameters/measured"),
        bytes("/memory/parameters/ledger"),
        bytes("/memory/gradients/measured"),
        bytes("/memory/gradients/ledger"),
        bytes("/memory/optimizer_state/measured"),
        bytes("/memory/optimizer_state/ledger"),
        bytes("/memory/optimizer_temporaries/measured"),
        bytes("/memory/optimizer_temporaries/largest_parameter"),
    )
}
