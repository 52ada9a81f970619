//! How long a frame takes: every screen at 200x60 with a million updates of history.
//!
//! `cargo bench --bench screens`

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use ratatui::{Terminal, backend::TestBackend};
use tui_train::{
    app::{
        Msg, Options, RunRef, State,
        action::{Action, Screen},
    },
    config::Layers,
    ledger,
    protocol::{DataReport, Event, Header, SCHEMA, Update, Validation},
    ui::{self, theme::Theme},
};

const UPDATES: u64 = 1_000_000;

/// Lets the state see a run of the demo's configuration that is much longer than the demo.
fn play(state: &mut State) {
    let resolved = Layers::new()
        .with_assignment(&format!("train.max_updates={UPDATES}"))
        .and_then(|layers| layers.resolve());
    let config = resolved.expect("the demo resolves").config;
    let header = Header {
        schema: SCHEMA,
        run: "bench".into(),
        name: "bench".into(),
        started: "2026-01-01T00:00:00Z".into(),
        ledger: ledger::ledger(&config),
        config,
        explicit: Default::default(),
        device: "flex".into(),
        threads: 2,
        version: "0".into(),
        git: None,
        hardware: Default::default(),
        total_updates: UPDATES,
        data: DataReport::default(),
        notes: Vec::new(),
        forked_from: None,
        matmul_peak: None,
    };
    let mut events = vec![Event::Header(Box::new(header))];
    // In pieces, as a record is read: a million events at once are large.
    let mut show = |events: &mut Vec<Event>| drop(state.update(Msg::Events(std::mem::take(events))));
    for update in 1..=UPDATES {
        let loss = 1.5 + 4.0 / (update as f64).sqrt() + 0.1 * (update as f64 * 0.7).sin();
        events.push(Event::Update(Update {
            update,
            time: update as f64 * 0.02,
            tokens: update * 512,
            micro_batches: 1,
            loss,
            learning_rate: 1e-3,
            grad_norm: loss / 2.0,
            tokens_per_second: 25_000.0,
            flops_per_second: None,
            mfu: None,
            skipped: false,
        }));
        if update.is_multiple_of(50) {
            events.push(Event::Validation(Validation {
                update,
                time: update as f64 * 0.02,
                loss,
                tokens: 8192,
                ..Default::default()
            }));
            show(&mut events);
        }
    }
    show(&mut events);
}

fn frames(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("frame 200x60, 1,000,000 updates");
    for screen in [Screen::Train, Screen::State, Screen::Setup, Screen::Runs] {
        let options = Options { readonly: false, host_memory: Some(16 << 30) };
        let mut state = State::new(Layers::new(), options, screen).expect("the demo resolves");
        state.update(Msg::Watching {
            run: RunRef { id: "bench".into(), name: "bench".into(), path: "bench".into() },
        });
        state.update(Msg::Size { width: 200, height: 60 });
        play(&mut state);
        state.update(Msg::Action(Action::Show(screen)));
        let theme = Theme::detect(false, |_| None);
        let mut terminal = Terminal::new(TestBackend::new(200, 60)).expect("a buffer");
        group.bench_with_input(
            BenchmarkId::from_parameter(format!("{screen:?}")),
            &state,
            |bencher, state| {
                bencher.iter(|| terminal.draw(|frame| ui::draw(state, &theme, frame)).map(|_| ()));
            },
        );
    }
    group.finish();
}

criterion_group!(benches, frames);
criterion_main!(benches);
