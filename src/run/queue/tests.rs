//! The line and its runner.

use std::sync::Mutex;

use super::{runner::shares, *};
use crate::{
    config::{DeviceName, Layers},
    run::{RunLock, State, lock},
};

fn queued(home: &Home, names: &[&str]) -> Vec<RunDir> {
    let resolved = Layers::new().with_assignment("train.device=flex").unwrap().resolve().unwrap();
    let runs: Vec<_> = names.iter().map(|name| RunDir::create(home, name, &resolved).unwrap()).collect();
    Queue::of(home).add(&runs).unwrap();
    runs
}

fn home() -> (tempfile::TempDir, Home) {
    let folder = tempfile::tempdir().unwrap();
    let home = Home::at(folder.path());
    (folder, home)
}

/// Runs the line down and returns the names in the order in which they were started.
fn worked(home: &Home) -> Vec<String> {
    let started = Mutex::new(Vec::new());
    Queue::of(home)
        .work(|run| {
            started.lock().unwrap().push(run.name());
            drop(RunLock::acquire(run).unwrap());
            Ok(())
        })
        .unwrap();
    started.into_inner().unwrap()
}

#[test]
fn what_was_queued_first_is_started_first_whatever_it_is_called() {
    let (_folder, home) = home();
    queued(&home, &["z", "a"]);
    queued(&home, &["m"]);
    assert_eq!(Queue::of(&home).waiting().unwrap().len(), 3);
    assert_eq!(worked(&home), ["z", "a", "m"]);
    assert!(Queue::of(&home).waiting().unwrap().is_empty());
    assert_eq!(worked(&home), Vec::<String>::new());
}

#[test]
fn a_run_that_cannot_be_started_says_why_and_does_not_stop_the_rest() {
    let (_folder, home) = home();
    let runs = queued(&home, &["bad", "good"]);
    let begin = |run: &RunDir| match &*run.name() {
        "bad" => anyhow::bail!("no such device"),
        _ => RunLock::acquire(run).map(drop).map_err(Into::into),
    };
    Queue::of(&home).work(begin).unwrap();
    assert_eq!(State::of(&runs[0], None, false), State::Crashed);
    assert_eq!(std::fs::read_to_string(runs[0].worker_log()).unwrap(), "no such device\n");
    assert!(lock::was_started(&runs[1]));
}

#[test]
fn a_run_taken_out_of_the_line_is_stopped_and_never_started() {
    let (_folder, home) = home();
    let runs = queued(&home, &["a", "b", "c"]);
    assert_eq!(State::of(&runs[1], None, false), State::Queued);
    let queue = Queue::of(&home);
    assert!(queue.remove(&runs[1]).unwrap());
    assert!(!queue.remove(&runs[1]).unwrap(), "it is gone already");
    assert_eq!(State::of(&runs[1], None, false), State::Stopped);
    std::fs::remove_dir_all(runs[2].path()).unwrap();
    assert_eq!(worked(&home), ["a"], "one was removed, of another the folder is gone");
}

#[test]
fn a_runner_goes_on_where_a_dead_one_left_off() {
    let (_folder, home) = home();
    let runs = queued(&home, &["trained", "claimed", "next"]);
    let queue = Queue::of(&home);
    for run in &runs[..2] {
        let entry = queue.entries().unwrap().into_iter().find(|entry| entry.id == run.id()).unwrap();
        queue.rename(&entry, true).unwrap();
    }
    drop(RunLock::acquire(&runs[0]).unwrap());
    assert!(!queue.remove(&runs[1]).unwrap(), "a run that is being started is stopped, not removed");
    assert_eq!(worked(&home), ["claimed", "next"]);
}

#[test]
fn there_is_one_runner_and_it_waits_for_the_runs_of_its_device() {
    let (_folder, home) = home();
    let busy = queued(&home, &["busy"]).remove(0);
    let held = RunLock::acquire(&busy).unwrap();
    queued(&home, &["next"]);
    let queue = Queue::of(&home);
    assert!(!queue.has_runner().unwrap());
    let other = home.clone();
    let runner = std::thread::spawn(move || worked(&other));
    while !queue.has_runner().unwrap() {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(worked(&home), Vec::<String>::new(), "another one is there");
    assert!(!runner.is_finished());
    drop(held);
    assert_eq!(runner.join().unwrap(), ["next"]);
    assert!(!queue.has_runner().unwrap());
}

#[test]
fn other_files_in_the_folder_are_none_of_ours_and_devices_are_told_apart() {
    let (_folder, home) = home();
    let run = queued(&home, &["a"]).remove(0);
    for name in ["log", "000000000009-", "1-x", "taken-", ".swp", "00000000000x-y"] {
        std::fs::write(home.path().join("queue").join(name), "").unwrap();
    }
    assert_eq!(Queue::of(&home).waiting().unwrap(), [run.id()]);
    let cuda = DeviceName::LibtorchCuda;
    assert!(shares(DeviceName::Flex, DeviceName::LibtorchCpu) && shares(cuda(1), cuda(1)));
    assert!(!shares(cuda(0), cuda(1)) && !shares(DeviceName::Flex, cuda(0)));
}
