//! The process of a run: `tui-train worker RUNDIR`.

use std::{
    collections::BTreeMap,
    io,
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
        mpsc::Receiver,
    },
    time::{Duration, Instant},
};

use anyhow::Context;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};

use super::{
    commands::Turn,
    control::{self, Incoming, Status},
    engine::{self, Ending, Surroundings},
    event_log::{EventLog, Files},
    leave,
    nvml::Gpu,
    over::{self, Over},
    recorder, restore,
    resume::Beginning,
    telemetry::{self, Telemetry},
    trainer,
};
use crate::{
    backend::{
        allocator,
        devices::{self, TrainDevice},
    },
    config::{Config, validate},
    data::{Dataset, Prefetch, Windows, total_updates},
    ledger,
    protocol::{
        Alert, Command, DataReport, Event, Header, Level, MatmulPeak, Reason, SCHEMA, summary::Measured,
    },
    run::{
        Home, RunDir,
        checkpoint::Good,
        death,
        dir::Meta,
        lock::RunLock,
        own, peaks, preparing,
        record::Record,
        script::{self, Deed, Given},
        socket,
    },
};

/// Time between two words about how far the data is.
const TELL_EVERY: Duration = Duration::from_millis(300);
/// Exit code after a signal that asked the run to end.
const INTERRUPTED: i32 = 130;

/// Trains the run of that directory to its end; with `resume` it goes on where it stood, with these settings changed.
///
/// # Errors
/// The directory is not a run's, another worker holds it, or its record cannot be written. Whatever goes wrong with the
/// training itself is in the record, and only the exit code tells of it.
pub fn main(path: &Path, resume: Option<&[String]>) -> anyhow::Result<i32> {
    detach();
    let begun = Instant::now();
    let run = RunDir::open(path)?;
    own::refuse_links(&run)?;
    let lock = RunLock::acquire(&run)?;
    death::born(&run);
    let meta = run.meta()?;
    let mut script = script::read(&run)?;
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

    let mut beginning = match resume {
        Some(set) => Beginning::resumed(&run, set)?,
        None => Beginning::new(&run, &meta)?,
    };
    let from = beginning.from;
    status.update.store(from.update, Relaxed);
    // It has obeyed that already, and is to go on all the same.
    let holds = |deed: &Deed| matches!(deed, Deed::Command(Command::Stop | Command::Pause));
    script.retain(|given| resume.is_none() || given.at_update > from.update || !holds(&given.deed));
    // Of a run that goes on, as long ago as it had run.
    let before = Duration::try_from_secs_f64(from.progress.time).unwrap_or_default();
    let started = begun.checked_sub(before).unwrap_or(begun);
    let prepared = Prepared::new(&beginning.config, &run).and_then(|prepared| {
        if resume.is_none() {
            beginning.fit_warmup(&run, prepared.total_updates).map_err(|error| format!("{error:#}"))?;
        }
        prepared.checked(&beginning.config)
    });
    if resume.is_some() {
        // The record stays as it is when it cannot go on.
        match &prepared {
            Ok(prepared) => beginning.same_data(prepared.dataset.report())?,
            Err(message) => anyhow::bail!("{message}"),
        }
        beginning.settle(&run)?;
    }
    let process = Process { run: run.clone(), meta, status, stop, started };
    allocator::reset_peak();
    let baseline = allocator::live_bytes();
    let mut part = process.part(beginning, prepared, requests, script)?;
    while let Some(turn) = part.over.turn.take() {
        match process.turn(&turn) {
            Ok((beginning, prepared)) => {
                let written = part.written;
                part = process.part(beginning, Ok(prepared), part.requests, turn.script)?;
                part.written = written.and(part.written);
            }
            Err(error) => {
                let message =
                    Some(format!("the settings of update {} cannot be changed: {error:#}", turn.update));
                part.over = Over { reason: Reason::Failed, message, ..part.over };
            }
        }
    }
    let Part { over, writer, record, written, .. } = part;
    let finish = over::finish(&run, &record, &over, started.elapsed(), baseline);
    let Over { reason, message, .. } = over;
    let closed = recorder::close(&run, writer, &record, written, finish, message);
    leave::soon();
    closed?;
    drop(lock);
    Ok(if reason == Reason::Stopped && interrupted.load(Relaxed) { INTERRUPTED } else { reason.exit_code() })
}

/// What stays while a run's commands change its settings.
struct Process {
    run: RunDir,
    meta: Meta,
    status: Arc<Status>,
    stop: Arc<AtomicBool>,
    started: Instant,
}

/// A part of a run that had the same settings all the way, and its record so far.
struct Part {
    over: Over,
    requests: Receiver<Incoming>,
    writer: Files,
    record: Record,
    written: io::Result<()>,
}

impl Process {
    /// Trains with these settings to the end, or to where the script changes them.
    fn part(
        &self,
        mut beginning: Beginning,
        prepared: Result<Prepared, String>,
        requests: Receiver<Incoming>,
        script: Vec<Given>,
    ) -> anyhow::Result<Part> {
        let Self { run, meta, status, stop, started } = self;
        let (config, from) = (beginning.config.clone(), beginning.from);
        status.update.store(from.update, Relaxed);
        let gpu = Gpu::open(config.train.device);
        let header = header(run, meta, &beginning, &prepared, &gpu);
        let matmul_peak = header.matmul_peak.as_ref().map(|peak| peak.flops_per_second);
        let log = match beginning.event(&header) {
            Some((record, resumed)) => EventLog::resume(run, record, resumed, Arc::clone(stop)),
            None => EventLog::start(run, &header, Arc::clone(stop)),
        };
        let log = log.context("the record of the run cannot be written")?;
        let events = log.sender().context("the writer has ended")?;
        for message in std::mem::take(&mut beginning.warnings) {
            let _ = events.send(alert(from.update, *started, Level::Warning, message));
        }
        let telemetry = Telemetry::start(gpu, Arc::clone(status), *started, events.clone())?;
        let (over, requests) = match prepared {
            Err(message) => (Over::failed(message), requests),
            Ok(Prepared { dataset, .. }) => {
                let around = Surroundings {
                    run: run.clone(),
                    config,
                    dataset,
                    total_updates: header.total_updates,
                    matmul_peak,
                    events: events.clone(),
                    requests,
                    script,
                    status: Arc::clone(status),
                    stop: Arc::clone(stop),
                    started: *started,
                    from,
                };
                (train(&around, beginning.good.as_ref()), around.requests)
            }
        };
        drop(telemetry);
        drop(events);
        let (writer, record, written) = log.finish().context("the record of the run could not be written")?;
        Ok(Part { over, requests, writer, record, written })
    }

    /// Goes on from the checkpoint that the part before ended with.
    fn turn(&self, turn: &Turn) -> anyhow::Result<(Beginning, Prepared)> {
        let beginning = Beginning::turned(&self.run, &turn.set, turn.update)?;
        let prepared = Prepared::new(&beginning.config, &self.run)
            .and_then(|prepared| prepared.checked(&beginning.config))
            .map_err(anyhow::Error::msg)?;
        beginning.settle(&self.run)?;
        Ok((beginning, prepared))
    }
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
    fn new(config: &Config, run: &RunDir) -> Result<Self, String> {
        run.refuse_unknown_settings().map_err(|error| error.to_string())?;
        let mut told: Option<Instant> = None;
        let dataset = Dataset::open_watched(config, &mut |progress| {
            // The first word comes late: most data is there at once.
            if told.get_or_insert_with(Instant::now).elapsed() >= TELL_EVERY {
                told = Some(Instant::now());
                preparing::tell(run, &progress.to_string());
            }
        });
        preparing::over(run);
        let dataset = dataset.map_err(|error| error.to_string())?;
        let total_updates = total_updates(config, &dataset);
        Ok(Self { dataset, total_updates })
    }

    /// How long a run of epochs is decides whether its schedule is one.
    fn checked(self, config: &Config) -> Result<Self, String> {
        validate::warmup(config, self.total_updates).map_err(|error| error.to_string())?;
        Ok(self)
    }
}

fn header(
    run: &RunDir,
    meta: &Meta,
    beginning: &Beginning,
    prepared: &Result<Prepared, String>,
    gpu: &Gpu,
) -> Header {
    let config = &beginning.config;
    let device = devices::open(config.train.device);
    let (total_updates, mut data) = prepared.as_ref().map_or_else(
        |_| (config.train.max_updates.unwrap_or(0), DataReport::default()),
        |prepared| (prepared.total_updates, prepared.dataset.report().clone()),
    );
    let mut notes = meta.notes.clone();
    notes.append(&mut data.notes);
    let hardware = telemetry::hardware(gpu);
    Header {
        schema: SCHEMA,
        run: run.id().to_owned(),
        name: meta.name.clone(),
        started: meta.created.clone(),
        config: config.clone(),
        explicit: beginning.explicit.clone(),
        device: device.as_ref().map_or(config.train.device, |device| device.name).to_string(),
        threads: device.as_ref().map_or(0, |device| device.threads),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        git: option_env!("BUILD_GIT_REVISION").map(str::to_owned),
        total_updates,
        data,
        ledger: ledger::ledger(config),
        notes,
        forked_from: meta.forked_from.clone(),
        matmul_peak: device.as_ref().ok().and_then(|device| matmul_peak(config, device, &hardware)),
        hardware,
    }
}

/// What was measured of the run's device, if it was measured on this machine.
fn matmul_peak(
    config: &Config,
    device: &TrainDevice,
    hardware: &BTreeMap<String, String>,
) -> Option<MatmulPeak> {
    let home = Home::from_env().ok()?;
    let (name, hardware) = (device.name.to_string(), telemetry::of_device(hardware, device.name));
    peaks::find(&home, &name, &hardware, device.threads, peaks::precision(&config.train))
}

fn alert(update: u64, started: Instant, level: Level, message: String) -> Event {
    Event::Alert(Alert { update, time: started.elapsed().as_secs_f64(), level, message })
}

/// Removes the control socket whichever way the process ends.
struct Socket<'a>(&'a RunDir);

impl Drop for Socket<'_> {
    fn drop(&mut self) {
        socket::remove(self.0);
    }
}

/// Trains, and turns a panic into an ending: a library that fails by panicking must not lose the record.
fn train(around: &Surroundings, good: Option<&Good>) -> Over {
    let result = catch_unwind(AssertUnwindSafe(|| -> anyhow::Result<(Ending, Measured)> {
        let device = devices::open(around.config.train.device)?;
        let (mut training, converted) = match good {
            Some(good) => restore::build(&around.config, &device.device, good)?,
            None => (trainer::build(&around.config, &device.device)?, None),
        };
        if let Some(message) = converted {
            let _ = around.events.send(alert(around.from.update, around.started, Level::Info, message));
        }
        let windows = Windows::new(around.dataset.clone(), &around.config, around.from.cursor)?;
        let windows = Prefetch::new(windows)?;
        let ending = engine::train(around, &mut *training, windows)?;
        Ok((ending, over::measured(&*training)))
    }));
    match result {
        Ok(Ok((Ending { reason, message, done, turn, advised }, measured))) => {
            Over { reason, message, done: Some((done, measured)), turn, advised }
        }
        Ok(Err(error)) => Over::failed(format!("{error:#}")),
        Err(panic) => Over::panicked(&*panic, &around.config),
    }
}
