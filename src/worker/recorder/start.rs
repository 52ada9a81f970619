//! A loop before it begins: what there is to say of it, and the run's folder with its first line.

use std::{
    collections::BTreeMap,
    sync::{Arc, atomic::AtomicBool},
    time::{Duration, Instant},
};

use anyhow::{Context, bail};
use signal_hook::consts::{SIGINT, SIGTERM};

use super::{Open, Recorder};
use crate::{
    backend::devices,
    config::{
        Arch, Config, DeviceName, Layers, OptimizerName, Resolved, ScheduleName,
        own::{self, Parameter},
        presets,
    },
    ledger,
    protocol::{DataReport, Header, Ledger, SCHEMA, StateReport},
    run::{Home, RunDir, death, lock::RunLock, socket},
    worker::{
        control::{self, Status},
        event_log::EventLog,
        nvml::Gpu,
        telemetry::{self, Telemetry},
    },
};

/// What there is to say of a loop before it begins.
#[derive(Debug, Clone, Default)]
pub struct Loop {
    name: String,
    device: Option<String>,
    updates: u64,
    settings: BTreeMap<String, toml::Value>,
    parameters: Vec<Parameter>,
    signals: bool,
}

impl Loop {
    /// A loop of that name; its runs are called so.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    /// Updates that it will make when nobody stops it; left out, nobody knows.
    #[must_use]
    pub const fn updates(mut self, updates: u64) -> Self {
        self.updates = updates;
        self
    }

    /// What it trains on, in a word. Of `cuda:1` that GPU's memory, load and energy are read; any other word is recorded as
    /// it is.
    #[must_use]
    pub fn device(mut self, device: impl Into<String>) -> Self {
        self.device = Some(device.into());
        self
    }

    /// A setting, recorded as `task.KEY`: two runs are compared by them.
    #[must_use]
    pub fn setting(mut self, key: impl Into<String>, value: impl Into<toml::Value>) -> Self {
        self.settings.insert(key.into(), value.into());
        self
    }

    /// A parameter that it trains, in f32.
    #[must_use]
    pub fn parameter(mut self, name: impl Into<String>, shape: &[usize]) -> Self {
        self.parameters.push(Parameter { name: name.into(), shape: shape.to_vec() });
        self
    }

    /// Ctrl+C and `kill` ask the loop to stop, as `tui-train stop` does; a second one ends the process. Without this they
    /// do what they did.
    #[must_use]
    pub const fn stop_on_signals(mut self) -> Self {
        self.signals = true;
        self
    }

    /// Makes the run's folder, takes its lock, writes the first line, and listens to `tui-train`.
    ///
    /// # Errors
    /// Two parameters have one name, or the folder cannot be written.
    pub fn start(self) -> anyhow::Result<Recorder> {
        let begun = Instant::now();
        own::without_commands();
        for (at, parameter) in self.parameters.iter().enumerate() {
            if self.parameters[..at].iter().any(|other| other.name == parameter.name) {
                bail!(
                    "`{}` has two parameters named `{}`: give each a name of its own",
                    self.name,
                    parameter.name
                );
            }
        }
        let config = self.config()?;
        let explicit = self.settings.iter().map(|(key, value)| (format!("task.{key}"), value.to_string()));
        let resolved = Resolved { config, explicit: explicit.collect(), notes: Vec::new() };
        let run = RunDir::create(&Home::from_env()?, &self.name, &resolved)?;
        let lock = RunLock::acquire(&run)?;
        death::born(&run);
        let stop = Arc::new(AtomicBool::new(false));
        if self.signals {
            for signal in [SIGINT, SIGTERM] {
                signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(&stop))?;
                signal_hook::flag::register(signal, Arc::clone(&stop))?;
            }
        }
        let status = Arc::new(Status::default());
        let listener = socket::bind(&run).context("the control socket cannot be made")?;
        let requests = control::serve(listener, Arc::clone(&status))?;
        let gpu = Gpu::open(self.device.as_deref().map_or(DeviceName::Flex, device));
        let header = self.header(&run, resolved, &gpu)?;
        let log = EventLog::start(&run, &header, Arc::clone(&stop))
            .context("the record of the run cannot be written")?;
        let events = log.sender().context("the writer has ended")?;
        let telemetry = Telemetry::start(gpu, Arc::clone(&status), begun, events.clone())?;
        let open = Open { log, telemetry, _lock: lock };
        Ok(Recorder {
            run,
            open: Some(open),
            events,
            requests,
            status,
            stop,
            started: begun,
            last: begun,
            idle: Duration::ZERO,
            made: 0,
            tokens: 0,
            paused: false,
            waiting: Vec::new(),
            state: Vec::new(),
            told: StateReport {
                update: 0,
                optimizer: OptimizerName::Own.to_string(),
                tensors: Vec::new(),
                shared: BTreeMap::new(),
            },
        })
    }

    /// A configuration of which only the name, the settings and the shapes say anything.
    fn config(&self) -> anyhow::Result<Config> {
        let base = Layers::new().with_assignment(&format!("model.preset={}", presets::DEMO))?;
        let mut config = base.resolve()?.config;
        (config.model.arch, config.model.preset) = (Arch::Loop, Some(self.name.clone()));
        config.model.parameters.clone_from(&self.parameters);
        config.optimizer.name = OptimizerName::Own;
        config.schedule.name = ScheduleName::Constant;
        (config.train.micro_batch, config.train.accumulate, config.train.seq_len) = (1, 1, 1);
        config.train.max_updates = Some(self.updates.max(1));
        config.task.clone_from(&self.settings);
        Ok(config)
    }

    fn header(&self, run: &RunDir, resolved: Resolved, gpu: &Gpu) -> anyhow::Result<Header> {
        let meta = run.meta()?;
        let parameters: u64 = ledger::parameters(&resolved.config.model).iter().map(|p| p.elements()).sum();
        let bytes = parameters * ledger::F32;
        Ok(Header {
            schema: SCHEMA,
            run: run.id().to_owned(),
            name: meta.name,
            started: meta.created,
            config: resolved.config,
            explicit: resolved.explicit,
            device: self.device.clone().unwrap_or_else(|| "own".to_owned()),
            threads: devices::threads(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            git: None,
            hardware: telemetry::hardware(gpu),
            total_updates: self.updates,
            data: DataReport { source: self.name.clone(), ..DataReport::default() },
            ledger: Ledger {
                parameters,
                parameter_tensors: self.parameters.len() as u64,
                parameter_bytes: bytes,
                total_bytes_estimated: bytes,
                ..Ledger::default()
            },
            notes: Vec::new(),
            forked_from: None,
            matmul_peak: None,
        })
    }
}

/// The device whose GPU is read, by the word that the loop has for it: `cuda`, `cuda:1`, or as this program calls it. Of
/// any other word no GPU is known to be the loop's.
fn device(word: &str) -> DeviceName {
    let word = word.trim().to_ascii_lowercase();
    let ours = if word.starts_with("cuda") { format!("libtorch-{word}") } else { word };
    match ours.parse() {
        Ok(gpu @ DeviceName::LibtorchCuda(_)) => gpu,
        _ => DeviceName::Flex,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gpu_of_a_loop_is_the_one_that_it_names() {
        for (word, name) in [
            ("cuda", DeviceName::LibtorchCuda(0)),
            ("cuda:1", DeviceName::LibtorchCuda(1)),
            ("CUDA:12", DeviceName::LibtorchCuda(12)),
            ("libtorch-cuda:3", DeviceName::LibtorchCuda(3)),
            ("libtorch-cpu", DeviceName::Flex),
            ("cpu", DeviceName::Flex),
            ("cuda:a", DeviceName::Flex),
            ("own", DeviceName::Flex),
            ("auto", DeviceName::Flex),
        ] {
            assert_eq!(device(word), name, "{word}");
        }
    }
}
