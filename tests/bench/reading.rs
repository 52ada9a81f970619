//! How long a list of ten thousand runs and a record of a million updates take to open, and that to export.
//!
//! `cargo bench --bench reading`

use std::{fmt::Write as _, fs, io::BufWriter, path::Path};

use criterion::{Criterion, criterion_group, criterion_main};
use tui_train::{
    app::run::RunView,
    config::Layers,
    ledger,
    protocol::{DataReport, Event, Header, Reason, RunEnded, SCHEMA, Update},
    run::{
        Home, Record, RunDir, Standing, Tail,
        export::{self, Format},
        list::Lister,
        summary::{Finish, build},
    },
};

const RUNS: usize = 10_000;
const UPDATES: u64 = 1_000_000;

fn header(run: &RunDir) -> Header {
    let config = run.config().expect("a new run has a configuration");
    Header {
        schema: SCHEMA,
        run: run.id().to_owned(),
        name: run.name(),
        started: "2026-01-01T00:00:00Z".into(),
        explicit: Default::default(),
        device: "flex".into(),
        threads: 2,
        version: "0.1.0".into(),
        git: None,
        hardware: Default::default(),
        total_updates: UPDATES,
        data: DataReport::default(),
        ledger: ledger::ledger(&config),
        notes: Vec::new(),
        forked_from: None,
        matmul_peak: None,
        config,
    }
}

fn update(update: u64) -> Event {
    let x = update as f64;
    Event::Update(Update {
        update,
        time: x * 0.013_7,
        tokens: 512 * update,
        micro_batches: 1,
        loss: 1.5 + (x * 0.77).sin() / (1.0 + x.ln()),
        learning_rate: 1e-3 * (1.0 - x / 2e6),
        grad_norm: 0.5 + (x * 0.31).cos() / 7.0,
        tokens_per_second: 9_000.0 + (x * 0.11).sin() * 333.3,
        flops_per_second: None,
        mfu: None,
        skipped: false,
    })
}

fn line(event: &Event) -> String {
    serde_json::to_string(event).expect("an event has a JSON form") + "\n"
}

fn new_run(home: &Home, name: &str) -> RunDir {
    let resolved = Layers::new().resolve().expect("the demo resolves");
    RunDir::create(home, name, &resolved).expect("a folder for runs")
}

/// Runs that have ended, as a worker leaves them, without their checkpoints.
fn many(home: &Home) {
    let model = new_run(home, "run");
    let mut text = line(&Event::Header(Box::new(header(&model))));
    (1..=100).for_each(|number| text.push_str(&line(&update(number))));
    fs::write(model.events(), &text).expect("a record");
    let record = Record::read(&model).expect("a record");
    let summary =
        build(&record, Finish { reason: Reason::Finished, ..Finish::so_far(&record) }).expect("a header");
    text += &line(&Event::RunEnded(Box::new(RunEnded { reason: Reason::Finished, message: None, summary })));
    fs::write(model.events(), &text).expect("a record");
    for number in 1..RUNS {
        let folder = home.runs().join(format!("20260101T000000Z-run-{}", number + 1));
        fs::create_dir(&folder).expect("a folder");
        for name in ["run.toml", "meta.json", "events.jsonl"] {
            fs::copy(model.path().join(name), folder.join(name)).expect("a copy");
        }
    }
}

fn long(home: &Home) -> RunDir {
    let run = new_run(home, "long");
    let mut text = line(&Event::Header(Box::new(header(&run))));
    for number in 1..=UPDATES {
        let _ = write!(text, "{}", line(&update(number)));
    }
    fs::write(run.events(), text).expect("a record");
    run
}

fn reading(criterion: &mut Criterion) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let home = Home::at(folder.path().join("many"));
    many(&home);
    let kept = home.path().join("list.json");
    let mut group = criterion.benchmark_group("10,000 runs");
    group.sample_size(10);
    group.bench_function("list, never listed before", |bencher| {
        bencher.iter(|| {
            forget(&kept);
            Lister::default().list(&home).expect("a list").len()
        });
    });
    group.bench_function("list", |bencher| {
        bencher.iter(|| Lister::default().list(&home).expect("a list").len());
    });
    let mut lister = Lister::default();
    lister.list(&home).expect("a list");
    group.bench_function("list again", |bencher| bencher.iter(|| lister.list(&home).expect("a list").len()));
    group.finish();

    let run = long(&Home::at(folder.path().join("long")));
    let mut group = criterion.benchmark_group("1,000,000 updates");
    group.sample_size(10);
    group.bench_function("show", |bencher| {
        bencher.iter(|| Standing::read(&run).expect("a record").summary.updates);
    });
    group.bench_function("curves", |bencher| {
        bencher.iter(|| {
            let (mut view, mut tail) = (RunView::default(), Tail::open(&run).with_newest_state());
            while tail.each(1 << 20, |event| view.apply(&event)).expect("a record") {}
            view.done()
        });
    });
    for (name, format) in [("export as CSV", Format::Csv), ("export as JSON lines", Format::Jsonl)] {
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                let mut file = BufWriter::new(tempfile::tempfile().expect("a file"));
                export::write(&run, format, &mut file, &mut |_, _| {}).expect("an export");
                file.into_inner().expect("an export").metadata().expect("a file").len()
            });
        });
    }
    group.bench_function("export for TensorBoard", |bencher| {
        bencher.iter(|| {
            let board = tempfile::tempdir().expect("a folder");
            export::tensorboard::write(&run, board.path(), &mut |_, _| {}).expect("an export")
        });
    });
    group.finish();
}

fn forget(path: &Path) {
    // The first time there is nothing to forget.
    let _ = fs::remove_file(path);
}

criterion_group!(benches, reading);
criterion_main!(benches);
