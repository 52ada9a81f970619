use super::*;
use crate::{
    protocol::{Event, Host, Reason, Resumed, RunEnded},
    run::{
        EventWriter, Record, sample,
        summary::{Finish, build},
    },
};

/// A run of `updates` updates with a validation every 10 that starts at `loss`, and a peak.
fn made(name: &str, set: &[&str], updates: u64, loss: f64, peak: Option<u64>) -> (tempfile::TempDir, RunDir) {
    let (folder, run) = sample::run_with(name, set);
    let mut writer = EventWriter::create(&run, &sample::header(&run)).unwrap();
    for update in 1..=updates {
        writer.append(&sample::update(update, loss)).unwrap();
        if update % 10 == 0 {
            writer.append(&sample::validation(update, loss - update as f64 / 100.0)).unwrap();
        }
    }
    if peak.is_some() {
        let host = Host { update: updates, host_rss: Some(900), allocator_peak: peak, ..Host::default() };
        writer.append(&Event::Host(host)).unwrap();
    }
    writer.append(&sample::run_ended(&run)).unwrap();
    (folder, run)
}

/// A run whose data that is.
fn made_on(content: &str, set: &[&str]) -> (tempfile::TempDir, RunDir) {
    let (folder, run) = sample::run_with("run", set);
    let mut header = sample::header(&run);
    header.data.content = content.into();
    let mut writer = EventWriter::create(&run, &header).unwrap();
    writer.append(&sample::update(10, 3.0)).unwrap();
    writer.append(&sample::validation(10, 2.5)).unwrap();
    writer.append(&sample::run_ended(&run)).unwrap();
    (folder, run)
}

fn of(runs: &[&(tempfile::TempDir, RunDir)]) -> Comparison {
    compare(&runs.iter().map(|(_, run)| run.clone()).collect::<Vec<_>>()).unwrap()
}

#[test]
fn two_runs_make_one_honest_sentence() {
    let base = made("base", &[], 20, 3.0, Some(4 << 20));
    let other = made("other", &["optimizer.name=adafactor"], 20, 3.5, Some(1 << 20));
    let compared = of(&[&base, &other]);
    assert_eq!(
        compared.verdict.text,
        "Against base (adamw), other (adafactor) needs 0.25x the memory (1.00 MiB against 4.00 MiB, peak of \
         the allocator), is 0.5000 higher in loss (3.3000 against 2.8000, final validation loss at update 20) \
         and trains at 1.00x the speed (1,024 against 1,024 tokens/s); one seed each (1): small differences \
         may be chance."
    );
    assert_eq!(compared.verdict.memory_ratio, Some(0.25));
    assert_eq!(compared.differences.len(), 1);
    assert_eq!(compared.differences[0].values, ["adamw", "adafactor"]);
    let json = serde_json::to_value(&compared).unwrap();
    assert_eq!(json["verdict"]["speed_ratio"], 1.0);
    assert_eq!(json["runs"][1]["config"]["optimizer"]["name"], "adafactor");
}

#[test]
fn losses_compare_where_the_data_is_the_same_wherever_it_lies() {
    let here = made_on("7f3a", &["data.path=a.txt"]);
    let moved = made_on("7f3a", &["data.path=b.txt"]);
    let written_again = made_on("90c1", &["data.path=a.txt"]);
    let elsewhere = made_on("90c1", &["data.path=c.txt"]);
    assert_eq!(of(&[&here, &moved]).verdict.loss_source, "final validation loss at update 10");
    let words = |other: &_| of(&[&here, other]).verdict.loss_source;
    let told = "losses on different text do not compare";
    assert_eq!(words(&written_again), format!("{told} (what the files hold differs)"));
    assert_eq!(words(&elsewhere), format!("{told} (data.path differs)"));
    // Nothing is known of what older runs were trained on but where it was.
    assert!(words(&made_on("", &["data.path=a.txt"])).starts_with(told));
}

#[test]
fn runs_of_different_lengths_are_compared_where_both_have_been() {
    let long = made("long", &[], 50, 3.0, None);
    let short = made("short", &["train.max_updates=25"], 25, 2.9, None);
    let verdict = of(&[&long, &short]).verdict;
    assert_eq!(verdict.loss_source, "validation loss at update 20");
    assert!((verdict.loss_difference.unwrap() + 0.1).abs() < 1e-12, "{verdict:?}");
    assert_eq!(verdict.memory_source, "~ledger", "neither has a reading");
    // The last validation of this one is at update 25, which the other one passed unvalidated.
    let (_folder, odd) = sample::run("odd");
    let mut writer = EventWriter::create(&odd, &sample::header(&odd)).unwrap();
    for update in [10, 20, 25] {
        writer.append(&sample::update(update, 3.0)).unwrap();
        writer.append(&sample::validation(update, 2.0)).unwrap();
    }
    let verdict = compare(&[long.1, odd]).unwrap().verdict;
    assert_eq!(verdict.loss_source, "validation loss at update 20");
}

#[test]
fn only_a_rate_by_hand_is_an_intervention() {
    let base = made("base", &[], 20, 3.0, None);
    let (_folder, run) = sample::run("driven");
    let mut writer = EventWriter::create(&run, &sample::header(&run)).unwrap();
    writer.append(&sample::update(1, 3.0)).unwrap();
    for name in ["pause", "step", "resume", "checkpoint", "stop"] {
        let value = Some(1e-4).filter(|_| name == "learning_rate");
        writer.append(&sample::command(name, 1, value)).unwrap();
    }
    let told = |run: &RunDir| compare(&[base.1.clone(), run.clone()]).unwrap().verdict.caveats.join("; ");
    assert!(!told(&run).contains("by hand"), "{}", told(&run));
    writer.append(&sample::command("learning_rate", 1, Some(1e-4))).unwrap();
    assert!(told(&run).contains("driven got a learning rate by hand at update 1"), "{}", told(&run));
}

#[test]
fn a_setting_changed_on_resume_is_told_with_the_update_from_which_it_holds() {
    let base = made("base", &["train.max_updates=1200"], 20, 3.0, None);
    let (_folder, run) = sample::run("longer");
    let mut writer = EventWriter::create(&run, &sample::header(&run)).unwrap();
    (1..=30).for_each(|update| writer.append(&sample::update(update, 3.0)).unwrap());
    let mut header = sample::header(&run);
    header.config.train.max_updates = Some(1200);
    let resumed = Resumed {
        from_update: 25,
        changed: vec![["train.max_updates", "600", "1200"].map(str::to_owned)],
        header: Some(Box::new(header)),
        ..Resumed::default()
    };
    writer.append(&Event::Resumed(Box::new(resumed))).unwrap();
    let compared = compare(&[base.1, run]).unwrap();
    let [difference] = &compared.differences[..] else { panic!("{:?}", compared.differences) };
    assert_eq!(difference.values, ["1200", "1200"], "both end with the same value");
    assert_eq!(difference.told(), ["1200", "1200 since update 25, 600 before"]);
    let json = serde_json::to_value(difference).unwrap();
    assert_eq!(json["changed"], serde_json::json!([null, {"from_update": 25, "before": "600"}]));
    let caveats = compared.verdict.caveats.join("; ");
    assert!(caveats.contains("longer went on from update 25 with another train.max_updates"), "{caveats}");
}

#[test]
fn losses_on_different_text_are_not_compared() {
    let one = made("one", &[], 20, 3.0, None);
    let two = made("two", &["data.validation_fraction=0.1", "train.seed=2"], 20, 3.0, None);
    let verdict = of(&[&one, &two]).verdict;
    assert_eq!(verdict.loss_difference, None);
    assert!(verdict.text.contains("data.validation_fraction differs"), "{}", verdict.text);
    assert!(verdict.text.contains("not the same (1, 2)"), "{}", verdict.text);
    let none = made("none", &[], 5, 3.0, None);
    let verdict = of(&[&one, &none]).verdict;
    assert!(verdict.text.contains("no validation loss to compare"), "{}", verdict.text);
}

#[test]
fn several_seeds_give_the_verdict_its_uncertainty() {
    let run = |name: &str, optimizer: &str, seed: u64, loss: f64, peak: u64| {
        let set = [format!("optimizer.name={optimizer}"), format!("train.seed={seed}")];
        made(name, &set.each_ref().map(String::as_str), 20, loss, Some(peak))
    };
    let runs = [
        run("a", "adamw", 1, 3.0, 4000),
        run("b", "adafactor", 1, 3.028, 1000),
        run("c", "adamw", 2, 3.2, 4000),
        run("d", "adafactor", 2, 3.2, 1000),
    ];
    let text = of(&runs.iter().collect::<Vec<_>>()).verdict.text;
    assert!(text.starts_with("adafactor against adamw: -75.0 % memory (peak of the allocator), "), "{text}");
    // 1 % and 0 % above 2.8 and 3.0: their mean, and their standard deviation.
    assert!(text.contains("+0.50 % loss (final validation loss at update 20; 2 seeds, +-0.71)"), "{text}");
    assert!(!text.contains("one seed"), "{text}");
    // Anything else that differs makes them no pairs.
    let odd = made("odd", &["train.seed=2", "train.micro_batch=4"], 20, 3.0, None);
    let text = of(&[&runs[0], &odd]).verdict.text;
    assert!(text.contains("one seed each, and not the same (1, 2)"), "{text}");
    let text = of(&[&runs[2], &odd, &runs[0]]).verdict.text;
    assert!(
        text.contains(
            "not the same seeds (adamw (micro_batch 8) with seeds 1, 2; adamw (micro_batch 4) with seed 2)"
        ),
        "{text}"
    );
    assert!(!text.contains("one seed"), "{text}");
    let text = of(&[&runs[2], &runs[0]]).verdict.text;
    assert!(text.contains("they differ in the seed alone (1, 2)"), "{text}");
    // Two of three have partners: they are held against each other.
    let sgd = [run("e", "sgd", 2, 3.5, 500), run("f", "sgd", 1, 3.4, 500)];
    let text = of(&[&runs[2], &runs[3], &runs[1], &sgd[0], &sgd[1]]).verdict.text;
    assert!(text.starts_with("sgd against adafactor: -50.0 % memory"), "{text}");
    assert!(
        text.contains("2 seeds, +-") && text.contains("in common with adafactor: adamw (seed 2)"),
        "{text}"
    );
    assert!(!text.contains("one seed") && !text.contains("Mind"), "{text}");
}

#[test]
fn several_runs_name_the_best_of_each_kind() {
    let runs = [
        made("a", &[], 20, 3.0, Some(3000)),
        made("b", &["optimizer.name=sgd"], 20, 2.0, Some(2000)),
        made("c", &["optimizer.name=adafactor"], 20, 2.5, Some(1000)),
    ];
    let text = of(&runs.iter().collect::<Vec<_>>()).verdict.text;
    assert!(text.starts_with("Of 3 runs, b (sgd) has the lowest loss (1.8000"), "{text}");
    assert!(text.contains("c (adafactor) needs the least memory (1000 B"), "{text}");
}

#[test]
fn a_run_that_has_not_ended_is_said_so() {
    let base = made("base", &[], 20, 3.0, None);
    let (_folder, run) = sample::run("dead");
    EventWriter::create(&run, &sample::header(&run)).unwrap().append(&sample::update(7, 3.0)).unwrap();
    let compared = compare(&[base.1, run]).unwrap();
    assert!(compared.verdict.text.contains("dead is crashed at update 7"), "{}", compared.verdict.text);
    assert_eq!(compared.runs[1]["state"], "crashed");
}

#[test]
fn a_run_that_broke_off_does_not_keep_the_others_from_being_compared() {
    let (long, other) = (made("long", &[], 50, 3.0, None), made("other", &["train.seed=2"], 50, 3.5, None));
    let (_folder, broken) = sample::run("broken");
    let mut writer = EventWriter::create(&broken, &sample::header(&broken)).unwrap();
    writer.append(&sample::update(1, f64::NAN)).unwrap();
    let record = Record::read(&broken).unwrap();
    let finish = Finish { reason: Reason::NotFinite, ..Finish::so_far(&record) };
    let summary = build(&record, finish).unwrap();
    let ended = RunEnded { reason: Reason::NotFinite, message: None, summary };
    writer.append(&Event::RunEnded(Box::new(ended))).unwrap();
    let verdict = compare(&[long.1.clone(), other.1, broken.clone()]).unwrap().verdict;
    assert_eq!(verdict.loss_source, "final validation loss at update 50, without broken");
    assert!(verdict.figures[0].loss.is_some() && verdict.figures[2].loss.is_none());
    assert!(verdict.text.contains("long has the lowest loss"), "{}", verdict.text);
    let pair = compare(&[long.1, broken]).unwrap().verdict;
    assert_eq!(pair.loss_source, "no validation loss to compare", "of two there is nothing left");
}
