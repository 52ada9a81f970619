//! A model of one's own gets every command.

use std::process::Output;

use serde_json::Value;

use crate::support::{
    Sandbox, device_name, events,
    trace::{last, trace},
};

fn start(sandbox: &Sandbox, arguments: &[&str]) -> Output {
    sandbox.example("own-model", arguments).output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn json(sandbox: &Sandbox, arguments: &[&str]) -> Value {
    let output = start(sandbox, arguments);
    assert!(output.status.success(), "{arguments:?}: {}", said(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn train(sandbox: &Sandbox, name: &str, settings: &[&str]) -> Vec<Value> {
    let mut arguments = vec!["run", "--json", "--name", name];
    settings.iter().for_each(|setting| arguments.extend(["--set", setting]));
    let output = start(sandbox, &arguments);
    assert!(output.status.success(), "{}", said(&output));
    events(&output.stdout)
}

#[test]
fn a_model_of_ones_own_trains_and_is_planned_inspected_exported_and_compared() {
    let sandbox = Sandbox::new();
    let plan = json(&sandbox, &["plan", "--json"]);
    assert_eq!((&plan["model"], &plan["tensors"]), (&"stripes".into(), &6.into()));
    let parameters = 4 * 9 + 4 + 144 * 16 + 16 + 32 + 2;
    assert_eq!(plan["parameters"], parameters);

    // Most of the parameters are codes in the one, and factors in the other.
    let told = train(
        &sandbox,
        "codes",
        &["optimizer.name=adamw8bit", "optimizer.min_8bit_size=256", "optimizer.lr=5e-3"],
    );
    train(&sandbox, "factors", &["optimizer.name=adafactor", "task.noise=0.5"]);
    let header = &told[0];
    assert_eq!(header["config"]["task"], serde_json::json!({"dropout": 0.1, "noise": 0.8, "width": 16}));
    assert_eq!(header["data"]["train_sequences"], 512);
    let losses: Vec<f64> = told.iter().filter_map(|event| event["train/loss"].as_f64()).collect();
    assert_eq!(losses.len(), 60);
    assert!((losses[0] - 2.0_f64.ln()).abs() < 0.3, "about as good as guessing: {}", losses[0]);
    let validations: Vec<_> = told.iter().filter(|event| event["type"] == "validation").collect();
    assert!(validations.last().unwrap()["val/accuracy"].as_f64() > Some(0.9), "{validations:?}");
    let summary = &told.last().unwrap()["summary"];
    assert_eq!(
        summary["measured"]["state_bytes"], summary["ledger"]["state_bytes"],
        "as planned from the shapes"
    );
    // It does not see the tensors of libtorch.
    if device_name() == "flex" {
        assert!(summary["measured"]["peak_allocator_bytes"].as_u64() > Some(0), "its allocator counts");
    }

    let list = json(&sandbox, &["list", "--json"]);
    assert_eq!(list["runs"].as_array().unwrap().len(), 2);
    let inspected = json(&sandbox, &["inspect", "codes", "--json"]);
    let names: Vec<_> =
        inspected["tensors"].as_array().unwrap().iter().map(|t| t["name"].as_str().unwrap()).collect();
    assert_eq!(
        names,
        ["conv.weight", "conv.bias", "hidden.weight", "hidden.bias", "classifier.weight", "classifier.bias"]
    );
    assert_eq!(inspected["tensors"][2]["state"]["state1"]["dtype"], "u8");
    assert_eq!(inspected["tensors"][2]["step"], 60);

    // The program of this package has no such task, and reads its runs all the same.
    let compared = sandbox.json(&["compare", "codes", "factors", "--json"]);
    let different: Vec<_> = compared["differences"].as_array().unwrap().iter().map(|d| &d["key"]).collect();
    assert!(different.contains(&&"task.noise".into()) && different.contains(&&"optimizer.name".into()));
    assert!(!compared["verdict"]["text"].as_str().unwrap().is_empty());
    let page = sandbox.run(&["export", "codes", "--format", "md"]);
    let page = String::from_utf8_lossy(&page.stdout).into_owned();
    assert!(page.contains("512 examples to train on, 64 held out"), "{page}");
    assert!(page.contains("8 x 1 = 8 examples") && !page.contains("seq_len"), "{page}");
    let folder = sandbox.path("weights");
    let exported =
        start(&sandbox, &["export", "factors", "--format", "safetensors", "-o", folder.to_str().unwrap()]);
    assert!(exported.status.success(), "{}", said(&exported));
    let bytes = std::fs::read(folder.join("model.safetensors")).unwrap();
    let tensors = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    assert_eq!(tensors.tensor("conv.weight").unwrap().shape(), [4, 1, 3, 3]);
    for format in ["csv", "svg", "html", "json", "jsonl"] {
        let output = sandbox.run(&["export", "codes", "--format", format]);
        assert!(output.status.success() && !output.stdout.is_empty(), "{format}: {}", said(&output));
    }
    let frame = sandbox.run(&["attach", "codes", "--once", "--screen", "state"]);
    let frame = String::from_utf8_lossy(&frame.stdout).into_owned();
    assert!(frame.contains("hidden") && frame.contains("absmax1"), "{frame}");
    let setup = start(&sandbox, &["attach", "codes", "--once", "--screen", "setup", "--size", "120x80"]);
    let setup = String::from_utf8_lossy(&setup.stdout).into_owned();
    assert!(setup.contains("stripes") && setup.contains("noise"), "{setup}");
    assert!(!setup.contains("seq_len"), "{setup}");
    // Its examples are called so, and nothing else.
    assert!(setup.contains("8 examples") && setup.contains("examples/update"), "{setup}");
    assert!(page.contains("| examples/s"), "{page}");
    let shown = sandbox.run(&["show", "codes"]);
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(shown.contains("data: stripes: 512 examples to train on, 64 held out"), "{shown}");
    let train = start(&sandbox, &["attach", "codes", "--once", "--screen", "train", "--size", "160x50"]);
    let train = String::from_utf8_lossy(&train.stdout).into_owned();
    let activations = train.lines().find(|line| line.contains("activations"));
    assert!(activations.is_some_and(|line| line.contains("n/a")), "no shape tells them: {train}");
    assert!(!setup.contains("tokens/update") && !setup.contains("sequences"), "{setup}");
    for text in [&page, &shown] {
        assert!(!text.contains("tokens") && !text.contains("sequence"), "{text}");
    }
}

#[test]
fn what_is_printed_of_it_counts_examples() {
    let sandbox = Sandbox::new();
    let settings = ["--set", "train.max_updates=2", "--set", "train.micro_batch=4"];
    let printed = |arguments: &[&str]| {
        let output = start(&sandbox, &[arguments, &settings[..]].concat());
        assert!(output.status.success(), "{arguments:?}: {}", said(&output));
        String::from_utf8(output.stdout).unwrap()
    };
    let run = printed(&["run", "--headless"]);
    assert!(run.contains(" examples/s") && run.contains("over 64 targets"), "{run}");
    let bench = printed(&["bench", "--updates", "2"]);
    assert!(bench.contains("2 updates of 4 examples") && bench.contains("examples/s "), "{bench}");
    assert!(bench.contains("\nwaiting        for data ") && bench.contains(" % of the time\n"), "{bench}");
    let check = printed(&["check", "accumulation", "--set", "task.dropout=0"]);
    assert!(check.contains("the first window, 4 examples with 4 targets"), "{check}");
    assert!(check.lines().last().unwrap().starts_with("holds"), "{check}");
    for text in [run, bench, check] {
        assert!(!text.contains("tokens") && !text.contains("sequence"), "{text}");
    }
}

#[test]
fn accumulation_is_not_judged_by_a_model_that_draws_random_numbers() {
    let sandbox = Sandbox::new();
    let output = start(&sandbox, &["check", "accumulation"]);
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    for part in ["cannot be judged", "draws random numbers of its own", "task.dropout = 0"] {
        assert!(said(&output).contains(part), "{part}: {}", said(&output));
    }
    assert_eq!(said(&output).trim_end().lines().count(), 1, "one sentence: {}", said(&output));
    assert!(output.stdout.is_empty());
}

#[test]
fn the_machine_is_checked_for_a_program_with_a_task_of_its_own() {
    let sandbox = Sandbox::new();
    let found = json(&sandbox, &["doctor", "--json"]);
    assert_eq!(found["can_train"], true, "{found}");
    let check = |name: &str| {
        let all = found["checks"].as_array().unwrap();
        all.iter().find(|check| check["name"] == name).unwrap_or_else(|| panic!("no {name}: {found}")).clone()
    };
    assert_eq!(check("flex")["result"], "ok");
    // No program but this one trains the task.
    if cfg!(not(feature = "libtorch")) {
        let libtorch = check("libtorch");
        assert!(libtorch["found"].as_str().unwrap().contains("does not link it"), "{libtorch}");
        assert_eq!(libtorch["command"], "cargo add tui-train --features libtorch");
        let devices = json(&sandbox, &["devices", "--json"]);
        let about = devices["devices"][1]["about"].as_str().unwrap();
        assert!(about.contains("cargo add tui-train --features libtorch"), "{about}");
        for text in [found.to_string(), devices.to_string()] {
            assert!(!text.contains("tui-train-libtorch"), "{text}");
        }
    }
}

#[test]
fn a_stopped_run_goes_on_bit_for_bit() {
    let sandbox = Sandbox::new();
    for optimizer in ["adamw8bit", "adafactor"] {
        let name = format!("optimizer.name={optimizer}");
        let settings = [
            &*name,
            "train.max_updates=24",
            "train.validate_every=5",
            "train.accumulate=2",
            "schedule.name=constant",
        ];
        train(&sandbox, "whole", &settings);
        train(&sandbox, "parts", &[&settings[..], &["train.max_updates=11"]].concat());
        let runs = sandbox.runs();
        let (parts, whole) = (&runs[runs.len() - 2], &runs[runs.len() - 1]);
        let (parts, whole) =
            if parts.to_string_lossy().ends_with("parts") { (parts, whole) } else { (whole, parts) };
        let id = parts.file_name().unwrap().to_str().unwrap();
        let resumed = start(&sandbox, &["resume", id, "--headless", "--set", "train.max_updates=24"]);
        assert!(resumed.status.success(), "{}", said(&resumed));
        let validated_at_the_stop = |row: &Value| row[0] == 11 && row.as_array().unwrap().len() == 2;
        let went_on: Vec<_> = trace(parts).into_iter().filter(|row| !validated_at_the_stop(row)).collect();
        assert_eq!(went_on, trace(whole), "{optimizer}");
        for file in ["model.safetensors", "optimizer.safetensors"] {
            assert!(last(parts, file) == last(whole, file), "{optimizer}: {file}");
        }
        for run in [parts, whole] {
            std::fs::remove_dir_all(run).unwrap();
        }
    }
}

#[test]
fn its_settings_are_checked_like_any_other_and_foreign_ones_refused() {
    let sandbox = Sandbox::new();
    let refused = |arguments: &[&str], word: &str| {
        let output = start(&sandbox, arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", said(&output));
        assert!(said(&output).contains(word), "{arguments:?}: {}", said(&output));
    };
    refused(&["run", "--set", "task.width=0"], "from 1 to 1024");
    refused(&["run", "--set", "task.wdth=8"], "did you mean `task.width`");
    refused(&["run", "--set", "model.hidden_size=8"], "brings its model and its data along");
    refused(&["run", "--set", "model.arch=llama"], "model.arch has no effect on the task `stripes`");
    refused(&["run", "--set", "train.precision=bf16"], "train.precision");
    refused(
        &["run", "--set", "model.preset=llama-nano", "--set", "task.width=8"],
        "model.preset = \"stripes\"",
    );
    if cfg!(not(feature = "libtorch")) {
        refused(&["run", "--device", "libtorch-cpu"], "does not link it");
    }
    assert!(sandbox.runs().is_empty());

    let shown = String::from_utf8(start(&sandbox, &["config", "print"]).stdout).unwrap();
    assert!(shown.contains("[task]") && shown.contains("width = 16"), "{shown}");
    let file = sandbox.file("printed.toml", &shown);
    let again = start(&sandbox, &["config", "print", &file]);
    assert_eq!(String::from_utf8_lossy(&again.stdout), shown, "{}", said(&again));
    let schema = json(&sandbox, &["config", "schema"]);
    assert_eq!(schema["properties"]["task"]["properties"]["width"]["maximum"], 1024);
    let help = String::from_utf8(start(&sandbox, &["--help"]).stdout).unwrap();
    assert!(help.contains("own-model run") && !help.contains("tui-train run"), "{help}");

    // A run of the task is no run that the program without it can go on with.
    train(&sandbox, "mine", &["train.max_updates=3"]);
    for command in [
        &["resume", "mine", "--headless", "--set", "train.max_updates=5"][..],
        &["fork", "mine", "--headless"],
    ] {
        let output = sandbox.run(command);
        assert_eq!(output.status.code(), Some(2), "{}", said(&output));
        assert!(said(&output).contains("does not have the task `stripes`"), "{}", said(&output));
    }
    let other = sandbox.run(&["run", "--headless", "--set", "model.preset=stripes"]);
    assert_eq!(other.status.code(), Some(2), "{}", said(&other));
    let forked = start(
        &sandbox,
        &["fork", "mine", "--headless", "--set", "train.max_updates=5", "--set", "optimizer.name=sgd"],
    );
    assert!(forked.status.success(), "{}", said(&forked));
    assert!(said(&forked).contains("optimizer state from adamw to sgd"), "{}", said(&forked));
    // The built-in models are still there.
    let demo = start(&sandbox, &["plan", "--set", "model.preset=llama-nano", "--json"]);
    assert!(demo.status.success(), "{}", said(&demo));
}
