//! Memory runs out and devices are lost, at every phase of a run.

use super::*;

const NO_MEMORY: &str = "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.11 GiB of which 1.00 GiB \
                         is free.\nmore";

#[test]
fn out_of_memory_in_a_pass_keeps_what_was_trained_and_says_what_would_fit() {
    let settings = ["train.max_updates=6", "schedule.warmup_updates=0", "train.validate_every=0"];
    let ran = ran_into(Some((4, Phase::Passes, NO_MEMORY)), &settings, &straight(6), &[GOOD; 6]);
    assert_eq!((ran.ending.reason, ran.ending.done.updates), (Reason::OutOfMemory, 3));
    let message = ran.ending.message.as_ref().unwrap();
    assert!(message.contains("2.00 GiB were asked for, 1.00 GiB were free"), "{message}");
    assert!(message.contains("train.micro_batch = 1 with train.accumulate = 8"), "{message}");
    let advised: Vec<String> =
        ran.ending.advised.iter().map(|(key, value)| format!("{key}={value}")).collect();
    assert_eq!(advised[..2], ["train.micro_batch=1", "train.accumulate=8"]);
    assert!(ran.run.checkpoint(3).join("model.safetensors").exists(), "the parameters are those of update 3");
    assert!(ran.validations().is_empty(), "there is no memory to evaluate with");
}

#[test]
fn parameters_of_half_an_update_are_not_kept() {
    let settings = ["train.max_updates=6", "schedule.warmup_updates=0", "checkpoint.every_updates=2"];
    for (text, reason) in
        [(NO_MEMORY, Reason::OutOfMemory), ("CUDA error: device-side assert triggered\nmore", Reason::Failed)]
    {
        let ran = ran_into(Some((4, Phase::Update, text)), &settings, &straight(6), &[GOOD; 6]);
        assert_eq!((ran.ending.reason, ran.ending.done.updates), (reason, 3));
        let message = ran.ending.message.as_ref().unwrap();
        assert!(message.ends_with("; what is left is the checkpoint of update 2"), "{message}");
        assert!(ran.run.checkpoint(2).exists() && !ran.run.checkpoint(3).exists());
    }
}

#[test]
fn out_of_memory_in_the_last_validation_costs_that_validation_alone_and_says_where_it_was() {
    let settings = [
        "train.max_updates=3",
        "train.validate_every=2",
        "schedule.warmup_updates=0",
        "checkpoint.every_updates=2",
    ];
    let ran = ran_into(Some((3, Phase::LastValidation, NO_MEMORY)), &settings, &straight(3), &[GOOD; 3]);
    assert_eq!((ran.ending.reason, ran.ending.done.updates), (Reason::OutOfMemory, 3));
    let message = ran.ending.message.as_ref().unwrap();
    assert!(message.contains("in the last validation: 2.00 GiB were asked for"), "{message}");
    assert!(message.ends_with("; the checkpoint of update 3 is written"), "{message}");
    assert_eq!(ran.validations(), [2]);
    let progress = |update| crate::run::checkpoint::chosen(&ran.run, Some(update)).unwrap().1.progress;
    let (second, third) = (progress(2), progress(3));
    assert_eq!((second.last_validation, second.val_loss), (2, Some(SCORED.loss)));
    // The loss of update 2 is not that of update 3.
    assert_eq!((third.last_validation, third.val_loss), (2, None));
    let told: Vec<u64> = ran
        .events
        .iter()
        .filter_map(|event| if let Event::Checkpoint(written) = event { Some(written.update) } else { None })
        .collect();
    assert_eq!(told, [2, 3]);
}

#[test]
fn the_last_checkpoint_is_there_before_the_last_validation_and_keeps_its_loss() {
    let settings = ["train.max_updates=2", "train.validate_every=0", "schedule.warmup_updates=0"];
    let ran = ran(&settings, &straight(2), &[GOOD; 2]);
    let order: Vec<&str> = ran
        .events
        .iter()
        .filter_map(|event| match event {
            Event::Snapshot(_) => Some("copied"),
            Event::Validation(_) => Some("validated"),
            Event::Checkpoint(_) => Some("told"),
            _ => None,
        })
        .collect();
    assert_eq!(order, ["copied", "validated", "told"]);
    let (checkpoint, info) = crate::run::checkpoint::chosen(&ran.run, Some(2)).unwrap();
    assert_eq!((info.progress.last_validation, info.progress.val_loss), (2, Some(SCORED.loss)));
    let Some(Event::Checkpoint(told)) = ran.events.iter().find(|event| matches!(event, Event::Checkpoint(_)))
    else {
        panic!("no checkpoint was told")
    };
    let sizes =
        std::fs::read_dir(&checkpoint.path).unwrap().map(|entry| entry.unwrap().metadata().unwrap().len());
    assert_eq!(told.bytes, sizes.sum::<u64>(), "what is written again is counted as it is");
}
