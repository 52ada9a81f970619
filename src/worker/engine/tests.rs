//! The loop round an update, with updates whose outcome is known beforehand.

mod faults;

use std::{
    collections::{BTreeMap, VecDeque},
    sync::mpsc::channel,
};

use burn::tensor::TensorData;

use super::{
    super::{
        check::Accumulated,
        trainer::{Evaluation, PassTimes},
        weights::HostTensor,
    },
    *,
};
use crate::{
    config::Layers,
    data::{Batch, IGNORE, Pass},
    optim::{self, ParameterUpdates},
    protocol::{StateDetail, StateTensor, TensorState},
    run::{
        RunDir, checkpoint as stored, sample,
        script::{self, Deed},
    },
};

/// Training whose updates do what they are told to.
struct Scripted {
    outcomes: VecDeque<Outcome>,
    optimizer: Box<dyn ParameterUpdates>,
    failure: Option<Failure>,
    /// The update of the last pass.
    passed: u64,
    /// Updates at which all was to be measured.
    measured: Vec<u64>,
}

/// The update and the phase at which the device's library throws this.
type Failure = (u64, Phase, &'static str);

const GOOD: Outcome = Outcome { loss: 2.0, grad_norm: 1.0, skipped: false, empty: false };
const BAD: Outcome = Outcome { loss: f64::INFINITY, grad_norm: f64::NAN, skipped: true, empty: false };
const EMPTY: Outcome = Outcome { loss: f64::NAN, grad_norm: 0.0, skipped: false, empty: true };
/// A run of a few updates has no room for the usual one.
const NO_WARMUP: &str = "schedule.warmup_updates=0";
const SCORED: Evaluation =
    Evaluation { loss: 0.5, targets: 40, accuracy: Some(0.75), f1: Some(0.8), f1_macro: Some(0.7) };

impl Scripted {
    /// As libtorch's bindings do.
    fn fail(&self, update: u64, phase: Phase) {
        if let Some((at, of, text)) = self.failure
            && (at, of) == (update, phase)
        {
            panic!("called `Result::unwrap()` on an `Err` value: Torch({text:?})");
        }
    }
}

impl Training for Scripted {
    fn micro_batch(&mut self, _: &Batch, pass: Pass) -> PassTimes {
        self.fail(pass.update, Phase::Passes);
        self.passed = pass.update;
        PassTimes::default()
    }

    fn update(&mut self, _: f64, measure: bool) -> Outcome {
        self.measured.extend(measure.then_some(self.passed));
        self.fail(self.passed, Phase::Update);
        self.outcomes.pop_front().unwrap()
    }

    fn discard_window(&mut self) {}

    fn evaluate(&self, batches: &mut dyn Iterator<Item = Batch>) -> Evaluation {
        assert!(batches.next().is_some());
        self.fail(self.passed, Phase::LastValidation);
        SCORED
    }

    fn parameters(&self) -> Vec<(String, Vec<usize>)> {
        Vec::new()
    }

    fn parameter_bytes(&self) -> u64 {
        4
    }

    fn weights(&self) -> Vec<HostTensor> {
        vec![HostTensor { name: "weight".into(), shape: vec![1], data: TensorData::from([0.0_f32]) }]
    }

    fn optimizer(&self) -> &dyn ParameterUpdates {
        &*self.optimizer
    }

    fn optimizer_mut(&mut self) -> &mut dyn ParameterUpdates {
        &mut *self.optimizer
    }

    fn gradient_bytes(&self) -> u64 {
        0
    }

    fn accumulated(&self) -> Accumulated {
        Accumulated { loss: 0.0, grad_norm: 0.0, gradients: Vec::new() }
    }

    fn state(&self, _: &[String]) -> Vec<TensorState> {
        Vec::new()
    }

    fn shared_state(&self) -> BTreeMap<String, StateTensor> {
        BTreeMap::new()
    }

    fn open(&mut self, _: &str, _: usize) -> Option<StateDetail> {
        None
    }
}

/// A window of one row, after which the stream stands at that place.
fn window(epoch: u64, position: u64) -> Batches {
    let batch = Batch {
        rows: 1,
        seq_len: 2,
        inputs: vec![65, 66],
        targets: vec![66, IGNORE],
        lengths: vec![1],
        target_count: 1,
        own: None,
    };
    Batches { micro_batches: vec![batch], target_count: 1, after: Cursor { epoch, position } }
}

struct Ran {
    ending: Ending,
    events: Vec<Event>,
    run: RunDir,
    /// Updates at which all was to be measured.
    measured: Vec<u64>,
    _folder: tempfile::TempDir,
}

/// Runs windows that end at these places, with these outcomes.
fn ran(settings: &[&str], places: &[(u64, u64)], outcomes: &[Outcome]) -> Ran {
    ran_in(None, settings, places, outcomes, |_| {})
}

/// The same, with a failure of the device's library on the way.
fn ran_into(failure: Option<Failure>, settings: &[&str], places: &[(u64, u64)], outcomes: &[Outcome]) -> Ran {
    ran_in(failure, settings, places, outcomes, |_| {})
}

/// The same in a run that something has happened to.
fn ran_in(
    failure: Option<Failure>,
    settings: &[&str],
    places: &[(u64, u64)],
    outcomes: &[Outcome],
    before: impl FnOnce(&RunDir),
) -> Ran {
    let (folder, run) = sample::run_with("scripted", settings);
    before(&run);
    let config = Layers::new().with_assignments(settings).unwrap().resolve().unwrap().config;
    let (events, written) = Events::kept();
    let mut training = Scripted {
        outcomes: outcomes.iter().copied().collect(),
        optimizer: optim::build(&config.optimizer),
        failure,
        passed: 0,
        measured: Vec::new(),
    };
    let around = Surroundings {
        run: run.clone(),
        dataset: Dataset::open(&config).unwrap(),
        total_updates: config.train.max_updates.unwrap_or(places.len() as u64),
        matmul_peak: None,
        config,
        events,
        requests: channel().1,
        script: script::read(&run).unwrap(),
        status: Arc::default(),
        stop: Arc::default(),
        started: Instant::now(),
        from: Start::default(),
    };
    let windows = places.iter().map(|&(epoch, position)| Ok(window(epoch, position)));
    let ending = train(&around, &mut training, windows).unwrap();
    drop(around);
    Ran { ending, events: written.iter().collect(), run, measured: training.measured, _folder: folder }
}

impl Ran {
    fn updates(&self) -> Vec<&Update> {
        let updates = self.events.iter().filter_map(|event| match event {
            Event::Update(update) => Some(update),
            _ => None,
        });
        updates.collect()
    }

    /// The updates after which there was one.
    fn validations(&self) -> Vec<u64> {
        let validations = self.events.iter().filter_map(|event| match event {
            Event::Validation(validation) => Some(validation.update),
            _ => None,
        });
        validations.collect()
    }

    fn alerts(&self) -> Vec<&str> {
        let alerts = self.events.iter().filter_map(|event| match event {
            Event::Alert(alert) => Some(&*alert.message),
            _ => None,
        });
        alerts.collect()
    }
}

/// One long epoch.
fn straight(count: u64) -> Vec<(u64, u64)> {
    (1..=count).map(|position| (0, position)).collect()
}

#[test]
fn settings_among_the_commands_end_a_part_of_the_run_with_a_checkpoint_to_go_on_from() {
    let set = vec!["train.accumulate=2".to_owned()];
    let given = [
        Given {
            at_update: 1,
            micro_batches: 0,
            deed: Deed::Command(Command::LearningRate { value: Some(0.5) }),
        },
        Given { at_update: 2, micro_batches: 0, deed: Deed::Settings(set.clone()) },
        Given { at_update: 3, micro_batches: 0, deed: Deed::Command(Command::Stop) },
    ];
    let write = |run: &RunDir| script::write(run, &given).unwrap();
    // The run would go on, or have made all of its updates there.
    for (most, reason) in
        [("train.max_updates=9", Reason::Stopped), ("train.max_updates=2", Reason::Finished)]
    {
        let ran = ran_in(None, &[most, NO_WARMUP], &straight(9), &[GOOD; 9], write);
        assert_eq!((ran.ending.reason, ran.ending.done.updates), (reason, 2));
        let turn = Turn { update: 2, set: set.clone(), script: given[2..].to_vec() };
        assert_eq!(ran.ending.turn, Some(turn));
        assert_eq!(ran.updates()[1].learning_rate, 0.5);
        assert!(ran.alerts().is_empty(), "{:?}", ran.alerts());
        assert_eq!(stored::latest_checkpoint(&ran.run).unwrap().unwrap().update, 2);
    }
    let ended = ran_in(None, &["train.max_updates=1", NO_WARMUP], &straight(9), &[GOOD; 9], write);
    assert_eq!(ended.ending.turn, None);
    let told = "before 3 of its commands: learning_rate at update 1";
    assert!(ended.alerts()[0].contains(told), "{:?}", ended.alerts());
}

#[test]
fn a_pause_among_the_commands_that_nothing_ends_does_not_last_for_ever() {
    let given = |at_update, command| Given { at_update, micro_batches: 0, deed: Deed::Command(command) };
    let script = [given(1, Command::Pause), given(1, Command::Step), given(3, Command::Stop)];
    let settings = ["train.max_updates=9", NO_WARMUP];
    let ran = ran_in(None, &settings, &straight(9), &[GOOD; 9], |run| script::write(run, &script).unwrap());
    assert_eq!((ran.ending.reason, ran.ending.done.updates), (Reason::Stopped, 3));
    assert!(ran.alerts()[0].contains("goes on to the next one: stop at update 3"), "{:?}", ran.alerts());
}

#[test]
fn what_a_single_step_did_is_measured_and_told_whatever_the_interval() {
    let given = |at_update, command| Given { at_update, micro_batches: 0, deed: Deed::Command(command) };
    let script = [
        given(2, Command::Pause),
        given(2, Command::Step),
        given(3, Command::StepMicroBatch),
        given(4, Command::Resume),
    ];
    let told = |every| {
        let settings = ["train.max_updates=9", NO_WARMUP, every];
        let ran =
            ran_in(None, &settings, &straight(9), &[GOOD; 9], |run| script::write(run, &script).unwrap());
        assert_eq!((ran.ending.reason, ran.ending.done.updates), (Reason::Finished, 9), "{every}");
        let state = |event: &Event| if let Event::State(report) = event { Some(report.update) } else { None };
        (ran.measured, ran.events.iter().filter_map(state).collect::<Vec<u64>>())
    };
    assert_eq!(told("log.state_every=50"), (vec![3, 4], vec![3, 4]));
    assert_eq!(told("log.state_every=4"), (vec![3, 4, 8], vec![3, 4, 8]));
    // Without state events there are none: the step is measured for whoever asks.
    assert_eq!(told("log.state_every=0"), (vec![3, 4], Vec::new()));
}

#[test]
fn updates_that_are_not_finite_keep_the_schedule_and_end_the_run_when_there_are_too_many_in_a_row() {
    let settings = ["train.max_updates=50", "train.max_skipped=3", "schedule.warmup_updates=10"];
    let outcomes = [GOOD, BAD, BAD, GOOD, BAD, BAD, BAD, GOOD];
    let ran = ran(&settings, &straight(8), &outcomes);
    assert_eq!((ran.ending.reason, ran.ending.done.updates), (Reason::NotFinite, 2));
    assert!(ran.ending.message.as_ref().unwrap().starts_with("3 updates in a row"), "{:?}", ran.ending);
    let told: Vec<_> = ran.updates().iter().map(|update| (update.update, update.skipped)).collect();
    // The numbers are those of the updates that were tried.
    assert_eq!(told, [(1, false), (2, true), (2, true), (2, false), (3, true), (3, true), (3, true)]);
    let rates: Vec<f64> = ran.updates().iter().map(|update| update.learning_rate).collect();
    assert_eq!(rates[1..4], [rates[1]; 3], "an update that is tried again has its own rate");
    assert_eq!(rates[4..], [rates[4]; 3]);
    assert!(rates[0] < rates[1] && rates[1] < rates[4], "{rates:?}");
    assert_eq!(ran.alerts().len(), 5);
    assert!(ran.run.checkpoint(2).join("model.safetensors").exists(), "what was trained is kept");
}

#[test]
fn a_window_without_targets_is_passed_over_and_is_no_sign_of_trouble() {
    let settings = ["train.max_updates=50", "train.max_skipped=1", "schedule.warmup_updates=0"];
    let ran = ran(&settings, &straight(4), &[GOOD, EMPTY, EMPTY, GOOD]);
    assert_eq!((ran.ending.reason, ran.ending.done.updates), (Reason::DataEnded, 2));
    assert_eq!(ran.updates().iter().map(|update| update.update).collect::<Vec<_>>(), [1, 2]);
    assert!(ran.updates().iter().all(|update| !update.skipped));
    assert_eq!(ran.alerts().len(), 2);
    assert!(ran.alerts().iter().all(|alert| alert.contains("no target")), "{:?}", ran.alerts());
}

#[test]
fn an_epoch_ends_with_a_validation_and_no_update_has_two() {
    let places = [(0, 1), (0, 2), (1, 0), (1, 1), (1, 2), (2, 0)];
    let settings = |every: &'static str| ["train.epochs=2", every, "schedule.warmup_updates=0"];
    let ends = ran(&settings("train.validate_every=0"), &places, &[GOOD; 6]);
    assert_eq!(ends.validations(), [3, 6]);
    let both = ran(&settings("train.validate_every=3"), &places, &[GOOD; 6]);
    assert_eq!(both.validations(), [3, 6]);
    let more = ran(&settings("train.validate_every=2"), &places, &[GOOD; 6]);
    assert_eq!(more.validations(), [2, 3, 4, 6]);
    // The last window of the first epoch makes no update: two have been made when it ends, and five in the end.
    let skipped = ran(&settings("train.validate_every=0"), &places, &[GOOD, GOOD, BAD, GOOD, GOOD, GOOD]);
    assert_eq!(skipped.validations(), [2, 5]);
    // Counted in updates, a run has no epochs.
    let settings = ["train.max_updates=6", "train.validate_every=0", "schedule.warmup_updates=0"];
    assert_eq!(ran(&settings, &places, &[GOOD; 6]).validations(), [6]);
}

#[test]
fn a_checkpoint_that_cannot_be_written_is_told_and_training_goes_on() {
    let settings = ["train.max_updates=4", "checkpoint.every_updates=1", "schedule.warmup_updates=0"];
    let ran = ran_in(None, &settings, &straight(4), &[GOOD; 4], |run| {
        std::fs::write(run.checkpoints(), "in the way").unwrap();
    });
    assert_eq!(ran.ending.done.updates, 4);
    let lost: Vec<_> = ran.alerts().into_iter().filter(|alert| alert.contains("was not written")).collect();
    assert_eq!(lost.len(), 4, "{lost:?}");
    assert!(lost[3].contains("update 4"), "{lost:?}");
    // Nobody has what it came to.
    assert_eq!(ran.ending.reason, Reason::Failed);
    let message = ran.ending.message.unwrap();
    assert!(
        message.starts_with("all 4 updates are made, but their checkpoint was not written: "),
        "{message}"
    );
    assert!(!ran.events.iter().any(|event| matches!(event, Event::Checkpoint(_))));
}

#[test]
fn a_checkpoint_is_told_once_it_is_on_the_disk_and_holds_the_counters() {
    let settings = [
        "train.max_updates=4",
        "checkpoint.every_updates=2",
        "train.validate_every=2",
        "schedule.warmup_updates=0",
    ];
    let ran = ran(&settings, &straight(5), &[GOOD, GOOD, BAD, GOOD, GOOD]);
    let of =
        |wanted: fn(&Event) -> Option<u64>| -> Vec<u64> { ran.events.iter().filter_map(wanted).collect() };
    assert_eq!(of(|event| if let Event::Checkpoint(c) = event { Some(c.update) } else { None }), [2, 4]);
    assert_eq!(of(|event| if let Event::Snapshot(s) = event { Some(s.update) } else { None }), [2, 4]);
    let (_, info) = crate::run::checkpoint::chosen(&ran.run, Some(2)).unwrap();
    assert_eq!((info.update, info.progress.val_loss), (2, Some(SCORED.loss)));
    assert_eq!(info.cursor, serde_json::json!({"epoch": 0, "position": 2}));
    assert_eq!(info.progress.skipped_in_a_row, 0);
}

#[test]
fn a_validation_tells_all_that_was_found() {
    let settings = ["train.max_updates=1", "schedule.warmup_updates=0"];
    let ran = ran(&settings, &straight(1), &[GOOD]);
    let event = ran.events.iter().find(|event| matches!(event, Event::Validation(_)));
    let Some(Event::Validation(told)) = event else { panic!("no validation") };
    assert_eq!((told.loss, told.tokens), (SCORED.loss, SCORED.targets));
    assert_eq!((told.accuracy, told.f1, told.f1_macro), (SCORED.accuracy, SCORED.f1, SCORED.f1_macro));
}
