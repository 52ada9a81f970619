use std::fs;

use super::*;
use crate::{
    protocol::Host,
    run::{
        EventWriter, Home, Record, RunLock, list,
        list::Lister,
        sample,
        summary::{Finish, build},
    },
};

fn home(run: &RunDir) -> Home {
    Home::at(run.path().parent().unwrap().parent().unwrap())
}

fn end(run: &RunDir, reason: Reason) -> Event {
    let record = Record::read(run).unwrap();
    let finish = Finish { reason, ..Finish::so_far(&record) };
    let summary = build(&record, finish).unwrap();
    Event::RunEnded(Box::new(RunEnded { reason, message: None, summary }))
}

#[test]
fn a_run_is_listed_from_queued_to_its_end_and_when_it_goes_on() {
    let (_folder, run) = sample::run_with("all", &["optimizer.name=adafactor", "train.accumulate=4"]);
    let home = home(&run);
    let mut lister = Lister::default();
    let mut entry = || {
        let listed = lister.list(&home).unwrap().remove(0);
        assert_eq!(listed, list(&home).unwrap().remove(0), "a second look tells the same");
        listed
    };
    let queued = entry();
    assert_eq!((queued.state, queued.update, queued.total_updates), (State::Queued, 0, Some(600)));
    assert_eq!((queued.optimizer.as_deref(), queued.accumulate), (Some("adafactor"), Some(4)));

    let lock = RunLock::acquire(&run).unwrap();
    let mut writer = EventWriter::create(&run, &sample::header(&run)).unwrap();
    assert_eq!((entry().state, entry().device.as_deref()), (State::Live, Some("flex")));
    for event in [sample::update(49, 3.0), sample::validation(49, 3.2), sample::update(50, 2.9)] {
        writer.append(&event).unwrap();
    }
    let live = entry();
    assert_eq!((live.state, live.update, live.tokens), (State::Live, 50, 25_600));
    assert_eq!((live.final_train_loss, live.final_val_loss), (Some(2.9), Some(3.2)));
    drop(lock);
    assert_eq!(entry().state, State::Crashed);

    writer.append(&end(&run, Reason::Finished)).unwrap();
    let done = entry();
    assert_eq!((done.state, done.update, done.final_val_loss), (State::Done, 50, Some(3.2)));

    let _lock = RunLock::acquire(&run).unwrap();
    writer.append(&Event::resumed(49)).unwrap();
    let resumed = entry();
    assert_eq!((resumed.state, resumed.update, resumed.reason), (State::Live, 49, None));
    assert_eq!(resumed.final_train_loss, Some(3.0), "update 50 was dropped");
}

#[test]
fn a_live_run_without_a_sign_of_life_says_so() {
    let (_folder, run) = sample::run("silent");
    let _lock = RunLock::acquire(&run).unwrap();
    let mut writer = EventWriter::create(&run, &sample::header(&run)).unwrap();
    for update in 1..=5 {
        writer.append(&sample::update(update, 3.0)).unwrap();
    }
    let problem = || list(&home(&run)).unwrap()[0].problem.clone();
    assert_eq!(problem(), None);
    let host = |time| Event::Host(Host { update: 5, time, ..Host::default() });
    writer.append(&host(4.0)).unwrap();
    assert_eq!(problem(), None);
    writer.append(&host(62.5)).unwrap();
    assert_eq!(problem().unwrap(), "no update for 60 s", "the engine is stuck, the worker is not");
    let past = std::time::SystemTime::now() - std::time::Duration::from_secs(90);
    fs::File::options().append(true).open(run.events()).unwrap().set_modified(past).unwrap();
    assert!(problem().unwrap().starts_with("no sign of life for 9"), "{:?}", problem());
}

#[test]
fn a_run_that_nobody_starts_is_not_queued_for_ever() {
    let (_folder, run) = sample::run("abandoned");
    let entry = || list(&home(&run)).unwrap().remove(0);
    assert_eq!(entry().state, State::Queued, "its worker may be about to start");
    let past = std::time::SystemTime::now() - std::time::Duration::from_secs(90);
    fs::File::options().append(true).open(run.run_toml()).unwrap().set_modified(past).unwrap();
    assert_eq!(entry().state, State::Crashed);
    assert!(entry().problem.unwrap().contains("no worker was started"), "{:?}", entry());
    crate::run::queue::Queue::of(&home(&run)).add(std::slice::from_ref(&run)).unwrap();
    assert_eq!(entry().state, State::Queued, "it waits in the line");
}

#[test]
fn a_record_of_a_newer_version_is_listed_with_the_version_that_reads_it() {
    let (_folder, run) = sample::run("newer");
    fs::write(run.events(), "{\"type\":\"header\",\"schema\":9,\"version\":\"7.0.0\"}\n").unwrap();
    let problem = list(&home(&run)).unwrap()[0].problem.clone().unwrap();
    assert!(problem.contains("tui-train 7.0.0") && problem.contains("events.jsonl"), "{problem}");
}

#[test]
fn paused_is_known_however_long_ago_it_was_asked_for() {
    let (_folder, run) = sample::run("paused");
    let _lock = RunLock::acquire(&run).unwrap();
    let mut writer = EventWriter::create(&run, &sample::header(&run)).unwrap();
    let state = || list(&home(&run)).unwrap()[0].state;
    for update in 1..=5 {
        writer.append(&sample::update(update, 3.0)).unwrap();
    }
    writer.append(&sample::command("pause", 5, None)).unwrap();
    for time in 0..5000 {
        let host = Host { update: 5, time: f64::from(time), ..Host::default() };
        writer.append(&Event::Host(host)).unwrap();
    }
    assert_eq!(state(), State::Paused);
    writer.append(&sample::update(6, 3.0)).unwrap();
    writer.append(&sample::command("step", 6, None)).unwrap();
    assert_eq!(state(), State::Paused, "a step does not end the pause");
    writer.append(&sample::command("resume", 6, None)).unwrap();
    assert_eq!(state(), State::Live);
}

#[test]
fn a_run_that_cannot_be_read_is_listed_with_its_problem() {
    let (_folder, run) = sample::run("broken");
    fs::write(run.run_toml(), "model = 3").unwrap();
    fs::write(run.meta_json(), "{").unwrap();
    let listed = list(&home(&run)).unwrap().remove(0);
    assert_eq!((listed.state, listed.optimizer), (State::Queued, None));
    assert!(listed.problem.unwrap().contains("run.toml"));
}

#[test]
fn a_folder_that_comes_from_another_machine_is_not_live_there() {
    let (_folder, run) = sample::run("copied");
    let mut writer = EventWriter::create(&run, &sample::header(&run)).unwrap();
    writer.append(&sample::update(5, 2.0)).unwrap();
    writer.append(&sample::command("pause", 5, None)).unwrap();
    // Its worker was alive over there when it was copied.
    std::fs::write(run.lock(), "1\n").unwrap();
    std::fs::write(run.control_sock(), "/run/user/1/tui-train-1-0/s\n").unwrap();
    let listed = list(&home(&run)).unwrap().remove(0);
    assert_eq!((listed.state, listed.update), (State::Crashed, 5));
    assert!(crate::run::Client::connect(&run).is_err());
    let moved = run.path().with_file_name("20200101T000000Z-elsewhere");
    std::fs::rename(run.path(), &moved).unwrap();
    let listed = list(&home(&run)).unwrap().remove(0);
    assert_eq!((&*listed.run, listed.path == moved), ("20200101T000000Z-elsewhere", true));
}

#[test]
fn ended_runs_are_read_from_their_last_line_alone() {
    let (_folder, run) = sample::run("speed");
    let mut writer = EventWriter::create(&run, &sample::header(&run)).unwrap();
    writer.append(&sample::update(1, 3.0)).unwrap();
    let end = end(&run, Reason::Stopped);
    let mut text = fs::read(run.events()).unwrap();
    text.extend(vec![b'?'; 1 << 20]);
    text.push(b'\n');
    fs::write(run.events(), text).unwrap();
    EventWriter::reopen(&run).unwrap().append(&end).unwrap();
    let listed = list(&home(&run)).unwrap().remove(0);
    assert_eq!((listed.state, listed.update, listed.problem), (State::Stopped, 1, None));
}
