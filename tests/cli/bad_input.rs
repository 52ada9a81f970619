//! Every mistake gets one sentence on standard error, the contract's exit code, and leaves nothing behind.

use crate::support::Sandbox;

/// Runs `tui-train run --headless` with these settings and expects a refusal that holds all these words.
fn refused(settings: &[&str], words: &[&str]) {
    refused_in(&Sandbox::new(), settings, words);
}

pub(super) fn refused_in(sandbox: &Sandbox, settings: &[&str], words: &[&str]) {
    let mut arguments = vec!["run", "--headless"];
    settings.iter().for_each(|setting| arguments.extend(["--set", setting]));
    let output = sandbox.run(&arguments);
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{settings:?}: {message}");
    assert!(output.stdout.is_empty(), "standard output is data");
    assert_eq!(message.trim_end().lines().count(), 1, "one sentence: {message}");
    for word in words {
        assert!(message.contains(word), "`{word}` is not in: {message}");
    }
    assert!(sandbox.runs().is_empty(), "a run that cannot start leaves no folder");
}

#[test]
fn an_unknown_key_names_the_nearest() {
    refused(&["train.acumulate=2"], &["train.acumulate", "did you mean `train.accumulate`?"]);
    refused(&["optimizer.learning_rate=2"], &["optimizer.learning_rate"]);
    refused(&["optimizer.lrr=2"], &["optimizer.lrr", "did you mean `optimizer.lr`?"]);
}

#[test]
fn a_resolved_configuration_can_be_read_again() {
    let sandbox = Sandbox::new();
    for preset in ["llama-nano", "distilbert-nano", "gpt2-124m"] {
        let printed = sandbox.run(&["config", "print", "--set", &format!("model.preset={preset}")]);
        let file = sandbox.file(&format!("{preset}.toml"), &printed.stdout);
        let output = sandbox.run(&["config", "validate", &file]);
        assert!(output.status.success(), "{preset}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn a_flag_of_a_command_that_stands_before_it_is_told_its_place() {
    let sandbox = Sandbox::new();
    let said = |arguments: &[&str]| {
        let output = sandbox.run(arguments);
        assert_eq!(output.status.code(), Some(2));
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let ascii = said(&["--ascii", "attach", "latest"]);
    assert!(ascii.contains("--ascii stands behind its command: `tui-train attach --ascii`"), "{ascii}");
    let theme = said(&["--theme", "dark", "attach", "latest"]);
    assert!(theme.contains("`tui-train attach --theme`"), "{theme}");
    let none = said(&["--ascii", "list"]);
    assert!(!none.contains("stands behind"), "list has no such flag: {none}");
}

#[test]
fn settings_without_effect_are_said() {
    let sandbox = Sandbox::new();
    let text = sandbox.file("rows.csv", "text,label\n".to_owned() + &"a,b\n".repeat(200));
    let events = sandbox.train(
        "idle",
        &[
            "train.max_updates=1",
            "schedule.warmup_updates=0",
            "schedule.start_factor=0.5",
            "optimizer.no_decay=[\"*nomatch*\"]",
            "data.field=",
            &format!("data.path={text}"),
        ],
    );
    let notes = events[0]["notes"].to_string();
    for words in [
        "schedule.start_factor has no effect",
        "`*nomatch*` is the name of no parameter",
        "as the text it is",
    ] {
        assert!(notes.contains(words), "`{words}` is not in {notes}");
    }
}

#[test]
fn a_warm_up_that_nobody_set_gives_way_to_a_short_run() {
    let sandbox = Sandbox::new();
    let note = |events: &[serde_json::Value]| events[0]["notes"].to_string();
    let events = sandbox.train("short", &["train.max_updates=2"]);
    assert_eq!(events[0]["config"]["schedule"]["warmup_updates"], 0);
    assert!(note(&events).contains("schedule.warmup_updates = 0, a tenth of the 2 updates"), "{}", events[0]);
    assert_eq!(events.last().unwrap()["reason"], "finished");
    // How many updates an epoch has is known once the text is.
    let text = sandbox.file("t.txt", "Some words to train on. ".repeat(20));
    let path = format!("data.path={text}");
    let events = sandbox.train("epoch", &["train.epochs=1", &path]);
    let total = events[0]["total_updates"].as_u64().unwrap();
    assert!((2..20).contains(&total), "shorter than the warm-up: {total}");
    assert_eq!(events[0]["config"]["schedule"]["warmup_updates"], total / 10);
    assert!(note(&events).contains(&format!("a tenth of the {total} updates")), "{}", events[0]);
    // Set by hand it stays, and is refused.
    refused(
        &["train.max_updates=2", "schedule.warmup_updates=20"],
        &["schedule.warmup_updates = 20 is not below the 2 updates"],
    );
}

#[test]
fn a_wrong_type_and_a_value_out_of_range_say_what_is_expected() {
    refused(&["train.accumulate=many"], &["train.accumulate", "many", "whole number from 1 to 4096"]);
    refused(&["train.micro_batch=0"], &["train.micro_batch", "0", "from 1 to 65536"]);
    refused(&["data.validation_fraction=0.9"], &["data.validation_fraction", "0.9", "from 0 to 0.5"]);
    refused(&["optimizer.name=adamm"], &["optimizer.name", "adamm", "adamw, adafactor, adamw8bit"]);
    for optimizer in ["adamw", "adamw8bit", "lion"] {
        for betas in ["[0.9, 1.0]", "[-0.1, 0.99]", "[0.9]"] {
            let betas = format!("optimizer.{optimizer}.betas={betas}");
            refused(&[&betas], &["betas", "two numbers from 0 to 0.999"]);
        }
    }
    refused(&["optimizer.no_decay=[\"*[\"]"], &["optimizer.no_decay", "no pattern"]);
    refused(&["train.accumulate"], &["train.accumulate", "key=value"]);
}

#[test]
fn combinations_that_cannot_train() {
    refused(
        &["train.max_updates=10", "schedule.warmup_updates=10"],
        &["schedule.warmup_updates", "below the 10 updates"],
    );
    refused(&["model.num_attention_heads=3"], &["model.hidden_size", "num_attention_heads = 3"]);
    refused(&["model.num_key_value_heads=3"], &["num_key_value_heads = 3", "divisor"]);
    refused(&["train.max_updates=10", "train.epochs=1"], &["train.max_updates", "train.epochs"]);
    refused(
        &["optimizer.name=adafactor", "optimizer.relative_step=true", "optimizer.lr=0.1"],
        &["relative_step", "optimizer.adafactor.lr"],
    );
    refused(
        &["optimizer.name=adafactor", "optimizer.relative_step=true", "schedule.warmup_updates=5"],
        &["relative_step", "schedule.warmup_updates"],
    );
    refused(
        &["optimizer.name=adafactor", "optimizer.warmup_init=true"],
        &["warmup_init", "relative_step = true"],
    );
    for momentum in ["optimizer.momentum=0.0", "optimizer.dampening=0.1"] {
        refused(
            &["optimizer.name=sgd", "optimizer.nesterov=true", momentum],
            &["optimizer.sgd.nesterov", "momentum above 0", "dampening of 0"],
        );
    }
    refused(&["optimizer.eps=0"], &["optimizer.adamw.eps", "f32"]);
    refused(&["optimizer.name=muon", "optimizer.adamw_eps=0"], &["optimizer.muon", "f32"]);
    refused(
        &["train.epochs=1", "schedule.warmup_updates=1000000"],
        &["schedule.warmup_updates", "not below"],
    );
    refused(&["optimizer.lr=1e-5", "schedule.min_lr=1e-3"], &["schedule.min_lr", "optimizer.adamw.lr"]);
    refused(&["model.preset=llama-nona"], &["llama-nona", "llama-nano"]);
}

#[test]
fn keys_and_data_of_another_model() {
    let bert = "model.preset=distilbert-nano";
    refused(&[bert, "model.rope_theta=1e5"], &["model.rope_theta", "distilbert", "only on llama"]);
    refused(&["model.dropout=0.2"], &["model.dropout", "llama", "only on distilbert"]);
    refused(&[bert, "data.source=stories"], &["stories", "labels", "sentence-pairs"]);
    refused(&["data.source=sentence-pairs"], &["sentence-pairs", "stories"]);
    refused(&[bert, "train.seq_len=129"], &["train.seq_len = 129", "max_position_embeddings = 128"]);
    refused(&["model.preset=gpt2-124m"], &["gpt2", "planned and not trained", "tui-train plan"]);
}

#[test]
fn a_device_that_is_not_there() {
    refused(&["train.device=cuda"], &["train.device", "cuda", "libtorch-cuda:N"]);
}

#[test]
fn data_that_cannot_be_read() {
    let sandbox = Sandbox::new();
    let path = |path: &str| format!("data.path={path}");
    refused_in(&sandbox, &[&path("/nowhere/at/all.txt")], &["/nowhere/at/all.txt", "not exist"]);
    let empty = sandbox.file("empty.txt", "");
    refused_in(&sandbox, &[&path(&empty)], &["empty.txt", "empty"]);
    let binary = sandbox.file("latin1.txt", b"caf\xe9 au lait");
    refused_in(&sandbox, &[&path(&binary)], &["latin1.txt", "UTF-8", "byte 3"]);
    let short = sandbox.file("short.txt", "Hello.");
    refused_in(&sandbox, &[&path(&short)], &["short.txt", "65"]);
    refused_in(&sandbox, &["data.source=path"], &["data.path"]);
}

#[test]
fn a_file_with_a_mistake_is_named() {
    let sandbox = Sandbox::new();
    let file = sandbox.file("bad.toml", "[train]\nmicro_batches = 3\n");
    let output = sandbox.run(&["run", &file, "--headless"]);
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2));
    assert!(message.contains("bad.toml") && message.contains("train.micro_batch"), "{message}");
    let output = sandbox.run(&["plan", "missing.toml"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("missing.toml"));
}

#[test]
fn an_environment_variable_is_checked_like_a_key() {
    let sandbox = Sandbox::new();
    let output =
        sandbox.command(&["config", "print"]).env("TUI_TRAIN_TRAIN_ACUMULATE", "2").output().unwrap();
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        message.contains("TUI_TRAIN_TRAIN_ACUMULATE") && message.contains("train.accumulate"),
        "{message}"
    );
    let output =
        sandbox.command(&["config", "print"]).env("TUI_TRAIN_TRAIN_ACCUMULATE", "2").output().unwrap();
    assert!(String::from_utf8_lossy(&output.stdout).contains("accumulate = 2"));
}

#[test]
fn a_state_folder_that_cannot_be_written() {
    let sandbox = Sandbox::new();
    let file = sandbox.file("a-file", "not a folder");
    let output = sandbox.command(&["run", "--headless"]).env("TUI_TRAIN_HOME", &file).output().unwrap();
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(message.contains("a-file") && message.contains("TUI_TRAIN_HOME"), "{message}");
    assert_eq!(message.trim_end().lines().count(), 1, "one sentence: {message}");
}

#[test]
fn a_run_that_is_not_there() {
    let sandbox = Sandbox::new();
    for command in ["show", "inspect", "stop", "attach"] {
        let output = sandbox.run(&[command, "latest"]);
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{command}: {message}");
        assert_eq!(message.trim_end().lines().count(), 1, "{command}: {message}");
    }
}
