//! A run that is much longer than the demo, a table of a thousand parameters, and one of them opened.

use std::collections::BTreeMap;

use tui_train::{
    app::{
        Msg, Options, RunRef, State,
        action::Screen,
        link::Control,
        runs::{Comparison, Curves, RunRow},
        tensors::History,
    },
    config::Layers,
    ledger,
    protocol::{
        DataReport, Event, Header, Heat, Histogram, Host, SCHEMA, StateDetail, StateReport, StateTensor,
        Strip, TensorState, TensorStats, Update, UpdateLook, Validation,
    },
};

/// Updates of the run.
pub(crate) const UPDATES: u64 = 1_000_000;
/// Parameters of the table.
pub(crate) const TENSORS: usize = 1_000;
/// Runs of the list.
pub(crate) const RUNS: usize = 1_000;
/// Values of a strip, as the UI asks for them.
const STRIP: usize = 256;

/// The header of a run with the demo's configuration but for its length.
pub(crate) fn header(run: &str) -> Header {
    let resolved = Layers::new()
        .with_assignments([format!("train.max_updates={UPDATES}"), "train.accumulate=4".into()])
        .and_then(|layers| layers.resolve());
    let config = resolved.expect("the demo resolves").config;
    Header {
        schema: SCHEMA,
        run: run.into(),
        name: run.into(),
        started: "2026-01-01T00:00:00Z".into(),
        ledger: ledger::ledger(&config),
        config,
        explicit: BTreeMap::new(),
        device: "flex".into(),
        threads: 2,
        version: "0".into(),
        git: None,
        hardware: BTreeMap::new(),
        total_updates: 2 * UPDATES,
        data: DataReport::default(),
        notes: Vec::new(),
        forked_from: None,
        matmul_peak: None,
    }
}

/// One update, and what stands in a record beside some of them.
pub(crate) fn events(update: u64) -> Vec<Event> {
    let x = update as f64;
    let loss = 1.5 + 4.0 / x.sqrt() + 0.1 * (x * 0.7).sin();
    let time = x * 0.0864;
    let mut events = vec![Event::Update(Update {
        update,
        time,
        tokens: update * 2048,
        micro_batches: 4,
        loss,
        learning_rate: 1e-3,
        grad_norm: loss / 2.0,
        tokens_per_second: 25_000.0,
        flops_per_second: None,
        mfu: None,
        skipped: false,
    })];
    if update.is_multiple_of(50) {
        let validation = Validation { update, time, loss, tokens: 8192, ..Default::default() };
        events.push(Event::Validation(validation));
        events.push(Event::Host(Host {
            update,
            time,
            host_rss: Some(61 << 20),
            allocator: Some(9 << 20),
            allocator_peak: Some(14 << 20),
            cpu_percent: Some(91.5),
            ..Host::default()
        }));
    }
    events
}

/// The UI on that run, live, with all of it read.
pub(crate) fn watching() -> State {
    let options = Options { readonly: false, host_memory: Some(16 << 30) };
    let mut state = State::new(Layers::new(), options, Screen::Train).expect("the demo resolves");
    state.update(Msg::Watching {
        run: RunRef { id: "bench".into(), name: "bench".into(), path: "bench".into() },
    });
    state.update(Msg::Connected(Control::Full));
    state.update(Msg::Size { width: 200, height: 60 });
    let mut waiting = vec![Event::Header(Box::new(header("bench")))];
    // In pieces, as a record is read: a million events at once are large.
    for update in 1..=UPDATES {
        waiting.extend(events(update));
        if update.is_multiple_of(1000) {
            state.update(Msg::Events(std::mem::take(&mut waiting)));
        }
    }
    state.update(Msg::Events(vec![Event::State(report(UPDATES - 50))]));
    state.update(Msg::Events(vec![Event::State(report(UPDATES))]));
    state
}

/// A number in [0, 1) that looks random.
fn noise(at: usize) -> f64 {
    let x = (at as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    ((x ^ (x >> 29)) >> 11) as f64 / (1_u64 << 53) as f64
}

/// Name of the parameter at that place.
pub(crate) fn name(at: usize) -> String {
    format!("model.layers.{}.mlp.experts.{}.up_proj.weight", at / 16, at % 16)
}

/// Statistics of all parameters.
pub(crate) fn report(update: u64) -> StateReport {
    let tensors = (0..TENSORS).map(|at| parameter(at, update)).collect();
    StateReport { update, optimizer: "adafactor".into(), tensors, shared: BTreeMap::new() }
}

fn parameter(at: usize, update: u64) -> TensorState {
    let state = |shape: Vec<usize>, seed: usize| {
        let rms = 1e-4 * (1.0 + noise(at * 3 + seed)) * (1.0 + 1e3 / update as f64);
        let elements = shape.iter().product::<usize>() as u64;
        let stats =
            TensorStats { min: rms * 1e-6, max: rms * 4.0, mean: rms / 3.0, rms, zeros: 0, nonfinite: 0 };
        StateTensor { shape, dtype: "f32".into(), elements, bytes: 4 * elements, stats: Some(stats) }
    };
    TensorState {
        name: name(at),
        shape: vec![2048, 688],
        step: update,
        update_ratio: Some(1e-3 * (0.5 + noise(at))),
        measured_at: None,
        figures: [("factorization_error".to_owned(), noise(at + 7)), ("rows_never_touched".to_owned(), 0.0)]
            .into(),
        state: BTreeMap::from([
            ("exp_avg_sq_row".to_owned(), state(vec![2048], 1)),
            ("exp_avg_sq_col".to_owned(), state(vec![688], 2)),
        ]),
    }
}

/// The first parameter opened.
pub(crate) fn detail(update: u64) -> Box<StateDetail> {
    let tensor = parameter(0, update);
    let values = |seed: usize| -> Vec<f64> {
        (0..STRIP).map(|at| 1e-6 * (12.0 * noise(at + 1000 * seed) - 4.0).exp2()).collect()
    };
    let strip = |name: &str, axis: &str, length, seed| Strip {
        name: name.into(),
        axis: axis.into(),
        length,
        values: values(seed),
    };
    let reconstructed = Heat::reconstructed(&values(1), &values(2), STRIP);
    let squared = Heat {
        values: reconstructed.values.iter().enumerate().map(|(at, v)| v * (0.4 + 1.2 * noise(at))).collect(),
        ..reconstructed.clone()
    };
    let spread = |name: &str| Histogram::of(name, 1, values(3).into_iter().chain(values(4)));
    let look = UpdateLook {
        step: update,
        gradient: spread("gradient"),
        update: spread("update"),
        second_moment: Some(reconstructed.clone()),
        squared_gradient: Some(squared.clone()),
        error: Some(squared),
        factorization_error: Some(0.412),
    };
    Box::new(StateDetail {
        update,
        tensor,
        strips: vec![strip("exp_avg_sq_row", "row", 2048, 1), strip("exp_avg_sq_col", "column", 688, 2)],
        reconstructed: Some(reconstructed),
        histograms: vec![spread("exp_avg_sq_row"), spread("exp_avg_sq_col")],
        codes: Vec::new(),
        look: Some(Box::new(look)),
    })
}

/// What a record of that length says of the opened parameter.
pub(crate) fn history() -> Box<History> {
    let mut history = History::default();
    for update in (50..=UPDATES).step_by(50) {
        let report = StateReport {
            update,
            optimizer: "adafactor".into(),
            tensors: vec![parameter(0, update)],
            shared: BTreeMap::new(),
        };
        history.push(&name(0), &report);
    }
    Box::new(history)
}

/// A long list of runs.
pub(crate) fn rows() -> Vec<RunRow> {
    let row = |at: usize| RunRow {
        id: format!("20260301T{at:06}-run-{at}"),
        name: format!("run-{at}"),
        state: if at == 0 { "live" } else { "done" }.into(),
        update: UPDATES,
        total: Some(UPDATES),
        optimizer: Some(["adamw", "adafactor", "lion"][at % 3].into()),
        batch: Some((8, 1 + at % 4)),
        config: None,
        train_loss: Some(1.2 + noise(at)),
        val_loss: Some(1.3 + noise(at + 1)),
        state_bytes: Some(15_204 + 1000 * (at as u64 % 900)),
        peak: Some(((14 << 20) + 5000 * (at as u64 % 777), "allocator".into())),
        tokens_per_second: Some(9_000.0 + 1000.0 * noise(at + 2)),
        problem: None,
        ..RunRow::default()
    };
    (0..RUNS).map(row).collect()
}

/// Six runs marked, with curves as long as this one's, and compared.
pub(crate) fn mark(state: &mut State) {
    state.update(Msg::Runs(rows()));
    let curves = Curves { loss: state.run.loss.clone(), val: state.run.val.clone() };
    state.runs.marked = rows().iter().take(6).map(|row| row.id.clone()).collect();
    for run in state.runs.marked.clone() {
        state.update(Msg::Curves { run, curves: curves.clone() });
    }
    state.update(Msg::Comparison(Ok(Comparison {
        runs: state.runs.marked.clone(),
        differences: (0..40).map(|at| (format!("section.key_{at}"), vec!["0.001".into(); 6])).collect(),
        verdict: "run-1 needs 48 % less memory than run-0 at a loss that is 0.6 % higher.".into(),
    })));
}
