use super::*;
use crate::{
    protocol::{DataReport, Event, Host, Level},
    run::{EventWriter, sample},
};

fn page_of(run: &RunDir) -> String {
    String::from_utf8(render(run).unwrap()).unwrap()
}

#[test]
fn the_page_has_the_figures_and_fits() {
    let (_folder, run) = sample::run_with("a | b", &["train.accumulate=4", "optimizer.name=adafactor"]);
    let mut writer = EventWriter::create(&run, &sample::header(&run)).unwrap();
    for update in 1..=30 {
        writer.append(&sample::update(update, 3.0)).unwrap();
        let alert = Alert {
            update,
            time: 0.0,
            level: Level::Warning,
            message: format!("x\n# y{}", "z".repeat(update as usize)),
        };
        writer.append(&Event::Alert(alert)).unwrap();
    }
    writer.append(&sample::validation(30, 2.5)).unwrap();
    assert!(page_of(&run).contains("crashed, these are the figures so far"));
    writer.append(&sample::run_ended(&run)).unwrap();
    let page = page_of(&run);
    for part in ["# a | b\n", "| validation loss | 2.5000 | 2.5000 |", "train.accumulate", "finished."] {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert!(page.contains("- and 18 more") && !page.contains("\n# y"), "{page}");
    assert!(page.lines().count() < 80, "{}", page.lines().count());
    let table: Vec<_> = page.lines().filter(|line| line.starts_with("| optimizer state")).collect();
    assert!(table[0].contains(" 0 |"), "exact and measured agree: {table:?}");
}

#[test]
fn what_was_set_by_hand_is_told_with_its_value_and_where_it_ended() {
    let (_folder, run) = sample::run("driven");
    let mut writer = EventWriter::create(&run, &sample::header(&run)).unwrap();
    writer.append(&sample::update(1, 3.0)).unwrap();
    for command in [
        sample::command("learning_rate", 41, Some(1e-4)),
        sample::command("learning_rate", 60, None),
        sample::command("pause", 61, None),
    ] {
        writer.append(&command).unwrap();
    }
    writer.append(&sample::run_ended(&run)).unwrap();
    let page = page_of(&run);
    for line in [
        "- update 41: learning_rate 1.000e-4, applied",
        "- update 60: learning_rate back to the schedule, applied",
        "- update 61: pause, applied",
    ] {
        assert!(page.lines().any(|told| told == line), "{line}: {page}");
    }
}

#[test]
fn a_run_stands_under_its_new_name_with_its_note_and_what_was_said_at_the_start() {
    let (_folder, run) = sample::run("first");
    let header = crate::protocol::Header {
        notes: vec!["optimizer state from adamw to adafactor: (29)".into()],
        ..sample::header(&run)
    };
    let mut writer = EventWriter::create(&run, &header).unwrap();
    writer.append(&sample::run_ended(&run)).unwrap();
    assert!(page_of(&run).starts_with("# first\n"));
    crate::run::label::rename(&run, "better").unwrap();
    crate::run::label::annotate(&run, "on the old\u{1b}[2J data").unwrap();
    let page = page_of(&run);
    assert!(page.starts_with("# better\n") && page.contains("\nNote: on the old [2J data\n"), "{page}");
    assert!(page.contains("## Said at the start\n\n- optimizer state from adamw to adafactor"), "{page}");
    assert_eq!(Standing::read(&run).unwrap().json().unwrap()["note"], "on the old\u{1b}[2J data");
}

#[test]
fn memory_of_a_run_on_a_gpu_is_that_of_libtorchs_allocator() {
    const MIB: u64 = 1024 * 1024;
    let (_folder, run) = sample::run_with("gpu", &[]);
    let mut writer = EventWriter::create(&run, &sample::header(&run)).unwrap();
    for peak in [64 * MIB, 48 * MIB] {
        let host = Host {
            allocator_peak: Some(5 * MIB),
            gpu_allocated_peak: Some(peak),
            gpu_reserved_peak: Some(96 * MIB),
            ..Host::default()
        };
        writer.append(&Event::Host(host)).unwrap();
    }
    let page = page_of(&run);
    for parts in [["| peak of training", "64.0 MiB"], ["| peak, GPU pool", "96.0 MiB"]] {
        let row = page.lines().find(|line| line.starts_with(parts[0])).unwrap();
        assert!(row.contains(parts[1]) && row.contains("libtorch's allocator"), "{row}");
    }
}

#[test]
fn a_classification_is_told_with_accuracy_and_f1_and_a_language_model_without() {
    let (_folder, run) = sample::run_with("pairs", &["model.preset=distilbert-nano"]);
    let mut header = sample::header(&run);
    header.data = DataReport {
        source: "sentence-pairs".into(),
        documents: 4000,
        train_sequences: 3600,
        validation_sequences: 400,
        labels: vec!["does not fit".into(), "fits".into()],
        ..DataReport::default()
    };
    let mut writer = EventWriter::create(&run, &header).unwrap();
    writer.append(&sample::update(9, 0.5)).unwrap();
    let Event::Validation(mut scored) = sample::validation(9, 0.4) else { unreachable!() };
    (scored.accuracy, scored.f1, scored.f1_macro) = (Some(0.875), Some(0.85714), Some(0.87302));
    writer.append(&Event::Validation(scored)).unwrap();
    writer.append(&sample::run_ended(&run)).unwrap();
    let page = page_of(&run).split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "| eval_accuracy | 0.8750 |",
        "| eval_f1 | 0.8571 |",
        "| eval_f1_macro | 0.8730 |",
        "rows of at most 128",
        "sentence-pairs: 4,000 rows, 0 B; 3,600 to train on (0 tokens), 400 held out (0 tokens); labels: does not \
         fit, fits.",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert!(!page.contains("documents") && !page.contains("sequences"), "{page}");
    let ended = Standing::read(&run).unwrap();
    let json = ended.json().unwrap();
    let figures = ["eval_accuracy", "eval_f1", "eval_f1_macro"].map(|name| json[name].as_f64().unwrap());
    assert_eq!(figures, [0.875, 0.85714, 0.87302]);

    let (_folder, run) = sample::run("stories");
    let mut writer = EventWriter::create(&run, &sample::header(&run)).unwrap();
    writer.append(&sample::validation(1, 0.4)).unwrap();
    let page = page_of(&run);
    assert!(!page.contains("eval_") && !page.contains("at most"), "{page}");
    assert!(page.contains("stories: 3 documents") && page.contains("sequences of 64 tokens"), "{page}");
}
