//! The UI on recorded runs, as tests of screens want it.

use super::{MIB, config, ended, long};
use crate::{
    app::{
        Msg, Options, RunRef, State,
        action::Screen,
        link::Control,
        room::Room,
        runs::{Comparison, Curves, RunRow},
    },
    config::{DeviceName, Layers, OptimizerName},
    protocol::{Event, Host, Reason},
};

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
        ..RunRow::default()
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
    let room = Some(Room { total: 16 * 1024 * MIB, free: 11_400 * MIB });
    state.update(Msg::Room { asked: DeviceName::Auto, device: DeviceName::Flex, room });
    let config = config(&["train.accumulate=2", &setting]);
    state.update(Msg::Events(long(300, config, 600)));
    state.update(Msg::Runs(run_rows()));
    state.screen = screen;
    if screen == Screen::Runs {
        for row in run_rows().iter().rev().take(2) {
            let shift =
                if row.config.as_ref().unwrap().optimizer.name == OptimizerName::AdamW { 0 } else { 3 };
            let events = long(300, super::config(&[&format!("train.seed={shift}")]), 600);
            state.update(Msg::Curves { run: row.id.clone(), curves: Curves::of(&events[shift..]) });
            state.runs.marked.push(row.id.clone());
        }
        state.update(Msg::Comparison(Ok(comparison(&state.runs.marked))));
    }
    state
}

/// What a comparison of two runs says.
fn comparison(runs: &[String]) -> Comparison {
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
