//! A synthetic recording of a run, for tests: the same every time.

use std::collections::BTreeMap;

use crate::{
    config::{Config, Layers, ModelConfig, OptimizerName, schedule},
    ledger::{self, Element},
    protocol::{
        AccumulationCheck, Alert, CheckpointWritten, CodeUse, CommandRecord, Continuation, DataReport,
        Deviation, Event, Header, Heat, Histogram, Host, Level, Reason, RunEnded, StateDetail, StateReport,
        StateTensor, Strip, Summary, TensorState, TensorStats, TextSample, Update, UpdateLook, Validation,
        Window, state::figures, summary::Measured,
    },
};

use super::{
    Msg, Options, RunRef, State,
    action::Screen,
    link::Control,
    runs::{Comparison, Curves, RunRow},
};

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
                events.push(Event::State(report_of(&config.model, config.optimizer.name.as_str(), at)));
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
            show_command: "tui-train show 20260301T101500-demo".into(),
            resume_command: None,
            forked_from: None,
        },
    }))
}

/// Statistics of every state tensor of the demo.
pub(crate) fn state_report(optimizer: &str, update: u64) -> StateReport {
    report_of(&config(&[]).model, optimizer, update)
}

/// Statistics of every state tensor of that model.
fn report_of(model: &ModelConfig, optimizer: &str, update: u64) -> StateReport {
    let config = config(&[&format!("optimizer.name={optimizer}"), "optimizer.sgd.momentum=0.0"]);
    let tensors = ledger::parameters(model)
        .into_iter()
        .enumerate()
        .map(|(at, parameter)| {
            let state = ledger::state_of(&config.optimizer, &parameter)
                .into_iter()
                .map(|shape| {
                    let size = 1e-4 * (1.0 + noise(at as u64 * 31 + shape.name.len() as u64));
                    let signed = matches!(shape.name, "exp_avg" | "state1");
                    let stats = TensorStats {
                        min: if signed { -4.0 * size } else { size * 1e-6 },
                        max: size * 4.0,
                        mean: size * 0.3,
                        rms: size,
                        zeros: if at == 0 { 512 } else { 0 },
                        nonfinite: 0,
                    };
                    let tensor = StateTensor {
                        elements: shape.elements(),
                        bytes: shape.bytes(),
                        dtype: dtype(shape.element),
                        shape: shape.shape,
                        stats: Some(stats),
                    };
                    (shape.name.to_owned(), tensor)
                })
                .collect::<BTreeMap<_, _>>();
            TensorState {
                figures: figures_of(at as u64, &parameter.shape, &state),
                name: parameter.name,
                shape: parameter.shape,
                step: update,
                update_ratio: Some(1e-3 * (0.5 + noise(at as u64))),
                state,
            }
        })
        .collect();
    let shared = ledger::shared_state(&config.optimizer, &ledger::parameters(model))
        .into_iter()
        .map(|shape| {
            let tensor = StateTensor {
                elements: shape.elements(),
                bytes: shape.bytes(),
                dtype: dtype(shape.element),
                shape: shape.shape,
                stats: None,
            };
            (shape.name.to_owned(), tensor)
        })
        .collect();
    StateReport { update, optimizer: optimizer.to_owned(), tensors, shared }
}

fn dtype(element: Element) -> String {
    match element {
        Element::F32 => "f32",
        Element::U8 => "u8",
    }
    .to_owned()
}

/// The figures that the optimizer would have measured, by what it keeps.
fn figures_of(at: u64, shape: &[usize], state: &BTreeMap<String, StateTensor>) -> BTreeMap<String, f64> {
    let mut found = BTreeMap::new();
    let mut add = |name: &str, value: f64| {
        found.insert(name.to_owned(), value);
    };
    let untouched = if at == 0 { 187.0 } else { 0.0 };
    if state.contains_key("exp_avg_sq_row") {
        add(figures::FACTORIZATION_ERROR, 0.2 + 0.6 * noise(at + 5));
        add(figures::ROWS_NEVER_TOUCHED, untouched);
    } else if state.get("state1").is_some_and(|state| state.dtype == "u8") {
        add(figures::QUANTIZATION_ERROR_1, 0.003 + 0.004 * noise(at + 5));
        add(figures::QUANTIZATION_ERROR_2, 0.008 + 0.009 * noise(at + 6));
    } else if shape.len() == 2 && (state.contains_key("exp_avg_sq") || state.contains_key("state2")) {
        add(figures::ROWS_NEVER_TOUCHED, untouched);
    }
    found
}

/// One parameter opened.
pub(crate) fn detail(optimizer: &str, name: &str) -> StateDetail {
    let report = state_report(optimizer, 300);
    let tensor = report.tensors.into_iter().find(|tensor| tensor.name == name).unwrap();
    let strips: Vec<Strip> = tensor
        .state
        .iter()
        .filter(|(_, state)| !state.shape.is_empty())
        .map(|(name, state)| {
            let length = *state.shape.last().unwrap();
            let value = |i: u64| 1e-6 * (12.0 * noise(i + name.len() as u64 * 1000) - 4.0).exp2();
            Strip {
                name: name.clone(),
                axis: if name.ends_with("_row") { "row" } else { "column" }.into(),
                length: length as u64,
                values: (0..length as u64).map(|i| if i == 5 { 1e-30 } else { value(i) }).collect(),
            }
        })
        .collect();
    let vector = |name: &str| {
        let strip = strips.iter().find(|strip| strip.name == name);
        strip.map(|strip| strip.values.clone())
    };
    let factors = vector("exp_avg_sq_row").zip(vector("exp_avg_sq_col"));
    let reconstructed = factors.map(|(row, col)| Heat::reconstructed(&row, &col, 256));
    let spread = |name: &str, length: u64, signed: bool| {
        let value = |i: u64| 1e-6 * (12.0 * noise(i + name.len() as u64 * 77) - 4.0).exp2();
        Histogram::of(name, 1, (0..length).map(|i| if signed && i % 2 == 1 { -value(i) } else { value(i) }))
    };
    let histograms =
        strips.iter().map(|strip| spread(&strip.name, strip.length, strip.name == "exp_avg")).collect();
    let codes = tensor.state.iter().filter(|(_, state)| state.dtype == "u8").map(|(name, state)| CodeUse {
        name: name.clone(),
        elements: state.elements,
        blocksize: 256,
        blocks: state.elements.div_ceil(256),
        empty_blocks: 0,
        smallest_scale: 1.3e-6,
        largest_scale: 4.7e-4,
        at_ends: state.elements / 128,
        at_zero: state.elements / 40,
        used: 211,
    });
    let codes = codes.collect();
    let squared_gradient = reconstructed.as_ref().map(|heat: &Heat| {
        let values = heat.values.iter().enumerate().map(|(i, v)| v * (0.4 + 1.2 * noise(i as u64))).collect();
        Heat { name: "gradient^2".into(), values, ..heat.clone() }
    });
    let error = reconstructed.as_ref().zip(squared_gradient.as_ref()).map(|(ours, truth)| {
        let values = ours.values.iter().zip(&truth.values).map(|(a, b)| (a - b).abs() / b).collect();
        Heat { name: "error".into(), values, ..truth.clone() }
    });
    let look = UpdateLook {
        step: 300,
        gradient: spread("gradient", 4096, true),
        update: spread("update", 4096, true),
        second_moment: reconstructed.clone(),
        squared_gradient,
        factorization_error: error.as_ref().map(|_| 0.412),
        error,
    };
    let look = Some(Box::new(look));
    StateDetail { update: 300, tensor, strips, reconstructed, histograms, codes, look }
}

/// What a check of accumulation found, of micro-batches with unequal targets.
pub(crate) fn check() -> AccumulationCheck {
    AccumulationCheck {
        schema: 1,
        model: "llama-nano".into(),
        device: "flex".into(),
        rows: 16,
        targets: 1_003,
        loss: [5.5476, 5.5476],
        grad_norm: [1.3121, 1.3121],
        largest_difference: 2.1e-8,
        largest_gradient: 0.0713,
        terms: 1024,
        tolerance: 1.09e-6,
        holds: true,
        naive_largest_difference: 4.02e-3,
        worst: vec![Deviation {
            name: "model.embed_tokens.weight".into(),
            difference: 2.1e-8,
            gradient: 0.0713,
        }],
        notes: vec!["dropout was switched off: it draws other masks for other micro-batches".into()],
    }
}

/// The UI on a recorded run that learns to classify.
pub(crate) fn classifying() -> State {
    let mut state = watching(Screen::Train, "adamw");
    state.update(Msg::Watching { run: RunRef { id: "c".into(), name: "judge".into(), ..RunRef::default() } });
    state.update(Msg::Connected(Control::Full));
    let mut events = long(120, config(&["model.preset=distilbert-nano"]), 168);
    for event in &mut events {
        if let Event::Validation(validation) = event {
            let share = 0.5 + 0.4 * validation.update as f64 / 120.0;
            validation.accuracy = Some(share);
            validation.f1 = Some(share - 0.013);
            validation.f1_macro = Some(share - 0.008);
        }
    }
    state.update(Msg::Events(events));
    state
}

/// The UI on a run on a GPU: what libtorch's allocator and NVML tell of it.
pub(crate) fn on_gpu() -> State {
    let mut state = watching(Screen::Train, "adamw");
    state
        .update(Msg::Watching { run: RunRef { id: "g".into(), name: "on-gpu".into(), ..RunRef::default() } });
    let mut events = long(300, config(&["train.device=libtorch-cuda:0"]), 600);
    for event in &mut events {
        match event {
            Event::Header(header) => header.device = "libtorch-cuda:0".into(),
            Event::Host(host) => {
                *host = Host {
                    gpu_allocated: Some(9 * MIB),
                    gpu_allocated_peak: Some(14 * MIB),
                    gpu_reserved: Some(22 * MIB),
                    gpu_reserved_peak: Some(22 * MIB),
                    gpu_retries: Some(3),
                    gpu_process_used: Some(334 * MIB),
                    gpu_device_used: Some(1290 * MIB),
                    gpu_device_total: Some(24 * 1024 * MIB),
                    gpu_utilization: Some(87),
                    gpu_temperature: Some(61),
                    gpu_power: Some(212.5),
                    gpu_note: None,
                    allocator: Some(3 * MIB),
                    allocator_peak: Some(4 * MIB),
                    host_rss: Some(910 * MIB),
                    ..host.clone()
                };
            }
            _ => {}
        }
    }
    state.update(Msg::Events(events));
    state
}

/// The UI on a run of eight updates that has ended; its memory was read once, before the model was made.
pub(crate) fn short() -> State {
    let mut state = watching(Screen::Train, "adamw");
    state.update(Msg::Watching { run: RunRef { id: "s".into(), name: "short".into(), ..RunRef::default() } });
    let mut events = long(8, config(&[]), 8);
    let early = Host {
        host_rss: Some(9 * MIB),
        allocator: Some(2 * MIB),
        allocator_peak: Some(3 * MIB),
        ..Host::default()
    };
    events.insert(1, Event::Host(early));
    if let Event::RunEnded(mut ended) = ended(Reason::Finished, 8) {
        ended.summary.measured.peak_allocator_bytes = Some(14 * MIB);
        ended.summary.measured.peak_host_rss = Some(31 * MIB);
        events.push(Event::RunEnded(ended));
    }
    state.update(Msg::Events(events));
    state.update(Msg::Alive(false));
    state
}

/// Three runs.
pub(crate) fn run_rows() -> Vec<RunRow> {
    let row = |id: &str, name: &str, state: &str, optimizer: &str, update, val, bytes| RunRow {
        id: id.into(),
        name: name.into(),
        state: state.into(),
        update,
        total: Some(600),
        optimizer: Some(optimizer.into()),
        batch: Some((8, 1)),
        config: Some(config(&[&format!("optimizer.name={optimizer}")])),
        train_loss: Some(val - 0.05),
        val_loss: Some(val),
        state_bytes: Some(bytes),
        peak: Some((14 * MIB + bytes, "allocator".into())),
        tokens_per_second: Some(9_912.0),
        problem: None,
    };
    vec![
        row("20260301T103000-nano-sgd", "nano-sgd", "live", "sgd", 212, 2.35, 459_008),
        row("20260301T102000-nano-adafactor", "nano-adafactor", "done", "adafactor", 600, 1.241, 15_204),
        row("20260301T101500-demo", "demo", "done", "adamw", 600, 1.228, 918_096),
    ]
}

/// The UI on `screen` with a recorded run of 300 updates that is live.
pub(crate) fn watching(screen: Screen, optimizer: &str) -> State {
    let setting = format!("optimizer.name={optimizer}");
    let options = Options { readonly: false, host_memory: Some(16 * 1024 * MIB) };
    let mut state = State::new(Layers::new(), options, screen).unwrap();
    state.update(Msg::Watching {
        run: RunRef {
            id: "20260301T101500-demo".into(),
            name: "demo".into(),
            path: "/home/ada/.local/state/tui-train/runs/20260301T101500-demo".into(),
        },
    });
    state.update(Msg::Connected(Control::Full));
    let config = config(&["train.accumulate=2", &setting]);
    state.update(Msg::Events(long(300, config, 600)));
    state.update(Msg::Runs(run_rows()));
    state.screen = screen;
    if screen == Screen::Runs {
        for row in run_rows().iter().rev().take(2) {
            let shift =
                if row.config.as_ref().unwrap().optimizer.name == OptimizerName::AdamW { 0 } else { 3 };
            let events = long(300, self::config(&[&format!("train.seed={shift}")]), 600);
            state.update(Msg::Curves { run: row.id.clone(), curves: Curves::of(&events[shift..]) });
            state.runs.marked.push(row.id.clone());
        }
        state.update(Msg::Comparison(Ok(comparison(&state.runs.marked))));
    }
    state
}

/// What a comparison of two runs says.
pub(crate) fn comparison(runs: &[String]) -> Comparison {
    Comparison {
        runs: runs.to_vec(),
        differences: vec![
            ("optimizer.name".into(), vec!["adamw".into(), "adafactor".into()]),
            ("optimizer.lr".into(), vec!["0.003".into(), "0.01".into()]),
        ],
        verdict: "nano-adafactor keeps 60.4 times less optimizer state than demo, at a validation loss \
                  0.013 higher and the same speed."
            .into(),
    }
}
