use super::*;
use crate::{
    protocol::{Host, Level, Resumed, Snapshot},
    run::sample::{self, update, validation},
};

fn fold(events: &[Event]) -> Record {
    let mut record = Record::default();
    events.iter().for_each(|event| record.apply(event));
    record
}

fn checkpoint(update: u64) -> Event {
    Event::Checkpoint(CheckpointWritten {
        update,
        time: update as f64 / 2.0,
        path: format!("checkpoints/{update:08}"),
        bytes: 10,
    })
}

fn host(update: u64, peak: u64) -> Event {
    Event::Host(Host {
        update,
        time: update as f64,
        allocator: Some(peak / 2),
        allocator_peak: Some(peak),
        ..Host::default()
    })
}

#[test]
fn figures_are_those_of_the_events() {
    let record = fold(&[
        update(1, 5.0),
        host(1, 100),
        update(2, 3.0),
        validation(2, 3.5),
        update(3, 4.0),
        host(3, 80),
        validation(3, 3.6),
    ]);
    assert_eq!((record.updates(), record.tokens(), record.skipped_updates()), (3, 1536, 0));
    assert_eq!((record.final_train_loss(), record.best_train_loss()), (Some(4.0), Some(3.0)));
    assert_eq!((record.final_val_loss(), record.best_val_loss()), (Some(3.6), Some(3.5)));
    assert_eq!(record.totals.peaks.allocator, Some(100));
    assert_eq!(record.tokens_per_second(), Some(1024.0));
    assert_eq!(record.validations[0].tokens, 1024);
}

#[test]
fn a_skipped_update_is_counted_and_its_loss_is_not_used() {
    let Event::Update(mut bad) = update(2, f64::NAN) else { unreachable!() };
    bad.skipped = true;
    let record = fold(&[update(1, 5.0), Event::Update(bad)]);
    assert_eq!(record.skipped_updates(), 1);
    assert_eq!((record.final_train_loss(), record.best_train_loss()), (Some(5.0), Some(5.0)));
}

#[test]
fn a_resumed_run_is_what_it_would_be_without_the_updates_it_dropped() {
    let start = [update(1, 5.0), host(1, 100), update(2, 4.0), validation(2, 4.1), checkpoint(2)];
    let alert = Alert { update: 3, time: 1.0, level: Level::Error, message: "lost".into() };
    let lost = [update(3, 1.0), host(3, 900), validation(3, 0.5), Event::Alert(alert), checkpoint(4)];
    let after = [update(3, 3.0), validation(3, 3.1)];
    let resumed = [Event::resumed(2)];
    let mut told = fold(&[&start[..], &lost, &resumed, &after].concat());
    assert_eq!(told.resumed, [2]);
    told.resumed.clear();
    let without = fold(&[&start[..], &after].concat());
    // What the process needed that made them is told still.
    assert_eq!(told.totals.peaks.allocator, Some(900));
    told.totals.peaks = without.totals.peaks;
    assert_eq!(told, without);
}

#[test]
fn a_changed_setting_is_known_with_the_update_from_which_it_holds() {
    let resumed = |from_update, before: &str| {
        let changed = vec![["train.max_updates", before, "x"].map(str::to_owned)];
        Event::Resumed(Box::new(Resumed { from_update, changed, ..Resumed::default() }))
    };
    let record =
        fold(&[update(1, 5.0), update(2, 5.0), resumed(2, "600"), update(3, 4.0), Event::resumed(1)]);
    let known = record.changed.iter().map(|change| (change.from_update, &*change.before));
    assert_eq!(known.collect::<Vec<_>>(), [(1, "600")], "the updates since the second were dropped");
}

#[test]
fn a_run_that_resumes_without_a_checkpoint_starts_over() {
    let record = fold(&[update(1, 5.0), host(1, 9), Event::resumed(0)]);
    assert_eq!((record.updates(), record.best_train_loss()), (0, None));
    let peaks = Peaks { allocator: Some(9), ..Peaks::default() };
    assert_eq!(record.totals, Totals { peaks, ..Totals::default() }, "what was needed is told still");
}

#[test]
fn a_checkpoint_is_of_the_moment_it_was_copied_whenever_it_reached_the_disk() {
    let copied = Event::Snapshot(Snapshot { update: 2, time: 1.0 });
    let start = [update(1, 5.0), update(2, 4.0), copied];
    let expected = fold(&start).totals;
    let late = [update(3, 3.0), checkpoint(2), update(4, 2.0)];
    // Killed before it could be told: it is on the disk all the same.
    let never = [update(3, 3.0)];
    for after in [&late[..], &never] {
        let told = fold(&[&start[..], after, &[Event::resumed(2)]].concat());
        assert_eq!((&told.totals, told.updates()), (&expected, 2));
        assert_eq!((told.tokens(), told.best_train_loss()), (1024, Some(4.0)));
    }
}

#[test]
fn an_update_skipped_before_the_checkpoint_was_copied_stays_skipped() {
    let skipped = |number| {
        let Event::Update(mut bad) = update(number, f64::NAN) else { unreachable!() };
        bad.skipped = true;
        Event::Update(bad)
    };
    let copied = Event::Snapshot(Snapshot { update: 1, time: 1.0 });
    let record = fold(&[update(1, 5.0), skipped(2), copied, skipped(2), checkpoint(1), Event::resumed(1)]);
    assert_eq!(record.skipped_updates(), 1);
}

#[test]
fn energy_and_operations_are_added_up_over_workers() {
    let host = |update, joules| {
        Event::Host(Host { update, time: update as f64, gpu_energy: Some(joules), ..Host::default() })
    };
    let once = fold(&[host(0, 0.0)]);
    assert_eq!(once.totals.energy.joules(), None, "one reading tells nothing");
    let start = [host(0, 0.0), update(1, 5.0), host(1, 40.0), checkpoint(1), host(2, 60.0)];
    let record = fold(&start);
    assert_eq!(record.totals.energy.joules(), Some(60.0));
    assert_eq!(record.joules_per_token(512), Some(60.0 / 512.0));
    // What was lost is not in the run, and the next worker counts from 0.
    let on = fold(&[&start[..], &[Event::resumed(1), host(1, 0.0), host(2, 7.0)]].concat());
    assert_eq!(on.totals.energy.joules(), Some(47.0));

    let Event::Update(mut fast) = update(1, 5.0) else { unreachable!() };
    fast.flops_per_second = Some(3e9);
    let record = fold(&[Event::Update(fast)]);
    assert_eq!((record.flops_per_second(), record.mfu()), (Some(3e9), None));
}

#[test]
fn pause_and_resume_are_known_from_the_commands_that_were_applied() {
    let command = |name: &str, outcome: &str| {
        Event::Command(CommandRecord {
            micro_batches: 0,
            id: 1,
            name: name.into(),
            outcome: outcome.into(),
            update: 1,
            time: 1.0,
            value: None,
            why: None,
        })
    };
    assert!(fold(&[command("pause", "applied"), command("step", "applied")]).paused);
    assert!(!fold(&[command("pause", "rejected")]).paused);
    assert!(!fold(&[command("pause", "applied"), command("resume", "applied")]).paused);
}

#[test]
fn a_record_is_read_from_its_folder_with_its_bad_lines_counted() {
    let (_folder, run) = sample::run("record");
    assert_eq!(Record::read(&run).unwrap(), Record::default());
    let mut writer = crate::run::EventWriter::create(&run, &sample::header(&run)).unwrap();
    writer.append(&update(1, 5.0)).unwrap();
    let mut text = std::fs::read_to_string(run.events()).unwrap();
    text += "garbage\n{\"torn";
    std::fs::write(run.events(), text).unwrap();
    let mut seen = 0;
    let record = Record::read_with(&run, |_| seen += 1).unwrap();
    assert_eq!((seen, record.skipped_lines, record.updates()), (2, 1, 1));
}

#[test]
fn what_was_needed_is_needed_still_after_a_resumption_unless_it_trains_elsewhere() {
    let (_folder, run) = sample::run("peaks");
    let header = sample::header(&run);
    let elsewhere = Header { device: "libtorch-cpu".into(), ..header.clone() };
    for (moved, peak) in [(None, Some(900)), (Some(Box::new(elsewhere)), None)] {
        let mut record = Record::default();
        record.apply(&Event::Header(Box::new(header.clone())));
        record.apply(&sample::update(1, 3.0));
        let host = Host { allocator_peak: Some(900), ..Host::default() };
        record.apply(&Event::Host(host));
        record.apply(&Event::Resumed(Box::new(Resumed { header: moved, ..Resumed::default() })));
        assert_eq!(record.totals.peaks.allocator, peak);
    }
}
