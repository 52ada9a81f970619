//! The process of a run: `tui-train worker RUNDIR`.

use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use anyhow::Context;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};

use super::{
    control::{self, Status},
    engine::{self, Done, Ending, Surroundings},
    event_log::EventLog,
    leave,
    nvml::Gpu,
    telemetry::{self, Telemetry},
    trainer::{self, Training},
};
use crate::{
    backend::{allocator, devices},
    config::{Config, validate},
    data::{Cursor, Dataset, Prefetch, Windows, total_updates},
    ledger,
    protocol::{DataReport, Event, Header, Reason, RunEnded, SCHEMA, summary::Measured},
    run::{
        RunDir, atomic, death,
        dir::Meta,
        export,
        lock::RunLock,
        own,
        record::{Peaks, Record},
        script, socket,
        summary::{self, Finish},
    },
};

/// Exit code after a signal that asked the run to end.
const INTERRUPTED: i32 = 130;

/// Trains the run of that directory to its end.
///
/// # Errors
/// The directory is not a run's, another worker holds it, or its record cannot be written. Whatever goes wrong with the
/// training itself is in the record, and only the exit code tells of it.
pub fn main(path: &Path) -> anyhow::Result<i32> {
    detach();
    let started = Instant::now();
    let run = RunDir::open(path)?;
    own::refuse_links(&run)?;
    let lock = RunLock::acquire(&run)?;
    death::born(&run);
    let config = run.config()?;
    let meta = run.meta()?;
    let script = script::read(&run)?;
    let (stop, interrupted) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    for signal in [SIGINT, SIGTERM] {
        // The second signal ends the process at once.
        signal_hook::flag::register_conditional_shutdown(signal, INTERRUPTED, Arc::clone(&stop))?;
        signal_hook::flag::register(signal, Arc::clone(&stop))?;
        signal_hook::flag::register(signal, Arc::clone(&interrupted))?;
    }
    // Bound before anything slow, so that whoever started the run can always reach it.
    // Beyond a limit of the size of files writing fails, instead of ending the process.
    signal_hook::flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false)))?;
    let listener = socket::bind(&run).context("the control socket cannot be made")?;
    let _socket = Socket(&run);
    let status = Arc::new(Status::default());
    let requests = control::serve(listener, Arc::clone(&status))?;

    let gpu = Gpu::open();
    let prepared = Prepared::new(&config);
    let header = header(&run, &meta, &config, &prepared, &gpu);
    let total = header.total_updates;
    let log = EventLog::start(&run, &header, Arc::clone(&stop))
        .context("the record of the run cannot be written")?;
    let events = log.sender().context("the writer has ended")?;
    let telemetry = Telemetry::start(gpu, Arc::clone(&status), started, events.clone())?;

    allocator::reset_peak();
    let baseline = allocator::live_bytes();
    let ending = match prepared {
        Err(message) => Over::failed(message),
        Ok(Prepared { dataset, .. }) => {
            let around = Surroundings {
                run: run.clone(),
                config,
                dataset,
                total_updates: total,
                events: events.clone(),
                requests,
                script,
                status,
                stop,
                started,
            };
            train(&around)
        }
    };
    drop(telemetry);
    drop(events);
    let (mut writer, record, written) = log.finish().context("the record of the run could not be written")?;
    let finish = finish(&record, &ending, started.elapsed(), baseline);
    let summary = summary::build(&record, finish).context("the record has no header")?;
    let json = serde_json::to_vec_pretty(&summary)?;
    let summed_up = atomic::write_file(&run.summary_json(), &json)
        .and_then(|()| atomic::write_file(&run.summary_md(), export::markdown::summary(&summary).as_bytes()));
    let reason = ending.reason;
    writer.append(&Event::RunEnded(Box::new(RunEnded { reason, message: ending.message, summary })))?;
    writer.sync()?;
    leave::soon();
    written.context("a part of the run's record could not be written")?;
    summed_up.context("the summary could not be written")?;
    drop(lock);
    Ok(if reason == Reason::Stopped && interrupted.load(Relaxed) { INTERRUPTED } else { reason.exit_code() })
}

/// A run outlives the terminal and the program that started it.
fn detach() {
    // Fails when this process already leads a group, as when a shell started it: then it is on its own already.
    let _ = rustix::process::setsid();
    // A run goes on when its terminal goes. The flag is never read.
    let _ = signal_hook::flag::register(SIGHUP, Arc::new(AtomicBool::new(false)));
}

/// What must be at hand before the first update.
struct Prepared {
    dataset: Dataset,
    total_updates: u64,
}

impl Prepared {
    /// The reason, in one sentence, when the run cannot start.
    fn new(config: &Config) -> Result<Self, String> {
        let dataset = Dataset::open(config).map_err(|error| error.to_string())?;
        let total_updates = total_updates(config, &dataset);
        validate::warmup(config, total_updates).map_err(|error| error.to_string())?;
        Ok(Self { dataset, total_updates })
    }
}

fn header(
    run: &RunDir,
    meta: &Meta,
    config: &Config,
    prepared: &Result<Prepared, String>,
    gpu: &Gpu,
) -> Header {
    let device = devices::open(config.train.device);
    let (total_updates, data) = prepared.as_ref().map_or_else(
        |_| (config.train.max_updates.unwrap_or(0), DataReport::default()),
        |prepared| (prepared.total_updates, prepared.dataset.report().clone()),
    );
    Header {
        schema: SCHEMA,
        run: run.id().to_owned(),
        name: meta.name.clone(),
        started: meta.created.clone(),
        config: config.clone(),
        explicit: meta.explicit.clone(),
        device: device.as_ref().map_or(config.train.device, |device| device.name).to_string(),
        threads: device.map_or(0, |device| device.threads),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        git: option_env!("BUILD_GIT_REVISION").map(str::to_owned),
        hardware: telemetry::hardware(gpu),
        total_updates,
        data,
        ledger: ledger::ledger(config),
        notes: meta.notes.clone(),
    }
}

/// Removes the control socket whichever way the process ends.
struct Socket<'a>(&'a RunDir);

impl Drop for Socket<'_> {
    fn drop(&mut self) {
        socket::remove(self.0);
    }
}

/// How the run ended, and what the engine could say about it; nothing when it failed half-way.
struct Over {
    reason: Reason,
    message: Option<String>,
    done: Option<(Done, Measured)>,
}

impl Over {
    const fn failed(message: String) -> Self {
        Self { reason: Reason::Failed, message: Some(message), done: None }
    }

    fn panicked(panic: &(dyn Any + Send)) -> Self {
        let words = panic
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| panic.downcast_ref::<&str>().copied())
            .unwrap_or("a panic without a message");
        let reason = if words.contains("out of memory") { Reason::OutOfMemory } else { Reason::Failed };
        Self { reason, message: Some(words.to_owned()), done: None }
    }
}

/// Trains, and turns a panic into an ending: a library that fails by panicking must not lose the record.
fn train(around: &Surroundings) -> Over {
    let result = catch_unwind(AssertUnwindSafe(|| -> anyhow::Result<(Ending, Measured)> {
        let device = devices::open(around.config.train.device)?;
        let mut training = trainer::build(&around.config, &device.device)?;
        let windows = Windows::new(around.dataset.clone(), &around.config, Cursor::default())?;
        let windows = Prefetch::new(windows)?;
        let ending = engine::train(around, &mut *training, windows)?;
        Ok((ending, measured(&*training)))
    }));
    match result {
        Ok(Ok((Ending { reason, message, done }, measured))) => {
            Over { reason, message, done: Some((done, measured)) }
        }
        Ok(Err(error)) => Over::failed(format!("{error:#}")),
        Err(panic) => Over::panicked(&*panic),
    }
}

fn measured(training: &dyn Training) -> Measured {
    let parameters = training.parameters();
    let elements: usize = parameters.iter().map(|(_, shape)| shape.iter().product::<usize>()).sum();
    let optimizer = training.optimizer();
    let own = optimizer.names().into_iter().flat_map(|name| optimizer.entries(&name));
    let entries: Vec<_> = own.chain(optimizer.shared()).collect();
    Measured {
        parameter_bytes: elements as u64 * ledger::F32,
        state_elements: entries.iter().map(crate::optim::Entry::elements).sum(),
        state_bytes: entries.iter().map(crate::optim::Entry::bytes).sum(),
        ..Measured::default()
    }
}

/// What the summary says beside the record; of a run that failed half-way, what the record tells.
fn finish(record: &Record, over: &Over, wall: Duration, baseline: u64) -> Finish {
    let so_far = Finish::so_far(record);
    let (counts, measured) = match &over.done {
        Some((done, measured)) => {
            let rate = (!done.busy.is_zero()).then(|| done.tokens as f64 / done.busy.as_secs_f64());
            ((done.updates, done.tokens, rate), measured.clone())
        }
        None => ((so_far.updates, so_far.tokens, so_far.tokens_per_second), so_far.measured),
    };
    let (updates, tokens, tokens_per_second) = counts;
    let measured = with_peaks(measured, record.totals.peaks, baseline);
    Finish {
        reason: over.reason,
        updates,
        tokens,
        wall_seconds: wall.as_secs_f64(),
        tokens_per_second,
        measured,
    }
}

/// The peaks that telemetry saw; the allocator's own is exact.
fn with_peaks(measured: Measured, peaks: Peaks, baseline: u64) -> Measured {
    let peak = allocator::peak_bytes();
    Measured {
        baseline_bytes: (peak > 0).then_some(baseline),
        peak_allocator_bytes: (peak > 0).then_some(peak),
        peak_host_rss: telemetry::resident_peak().or(peaks.host_rss),
        peak_gpu_device_bytes: peaks.gpu_device,
        peak_gpu_process_bytes: peaks.gpu_process,
        peak_source: "the worker's allocator, the operating system, NVML once a second".to_owned(),
        ..measured
    }
}
