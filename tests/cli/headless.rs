//! A headless run from its first event to its exports.

use serde_json::Value;

use crate::support::Sandbox;

fn of_type<'a>(events: &'a [Value], name: &str) -> Vec<&'a Value> {
    events.iter().filter(|event| event["type"] == name).collect()
}

#[test]
fn trains_on_a_folder_of_text_and_can_be_looked_into() {
    let sandbox = Sandbox::new();
    for number in 0..30 {
        let text =
            format!("Document {number}: the quick brown fox jumps over the lazy dog, again and again.\n")
                .repeat(20);
        sandbox.file(&format!("texts/{number}.txt"), text);
    }
    sandbox.file("texts/picture.png", b"\x89PNG");
    // Relative to the folder the command runs in.
    let path = "data.path=texts";
    let events = sandbox.train(
        "folder",
        &[
            path,
            "model.tie_word_embeddings=false",
            "train.max_updates=12",
            "train.accumulate=2",
            "optimizer.name=adafactor",
            "log.state_every=6",
            "schedule.warmup_updates=2",
        ],
    );

    let header = &events[0];
    assert_eq!((&header["type"], &header["schema"]), (&"header".into(), &1.into()));
    assert_eq!(header["device"], crate::support::device_name());
    assert_eq!(header["data"]["documents"], 30);
    assert_eq!(
        header["config"]["data"]["path"],
        sandbox.path("texts").to_str().unwrap(),
        "the record keeps the whole path"
    );
    assert!(!header["data"]["left_out"].as_object().unwrap().is_empty(), "the picture is counted");

    let updates = of_type(&events, "update");
    let numbers: Vec<u64> = updates.iter().map(|update| update["update"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (1..=12).collect::<Vec<_>>());
    assert_eq!(updates[0]["train/learning_rate"], 0.0, "Hugging Face's warm-up starts at 0");
    assert!(updates.iter().all(|update| update["micro_batches"] == 2));
    let tokens: Vec<u64> = updates.iter().map(|update| update["tokens"].as_u64().unwrap()).collect();
    assert!(tokens.windows(2).all(|pair| pair[0] < pair[1]));
    assert!(updates.iter().all(|update| update["train/loss"].as_f64().unwrap().is_finite()));
    assert!(!of_type(&events, "validation").is_empty());

    let state = of_type(&events, "state");
    assert_eq!(state.iter().map(|event| event["update"].as_u64().unwrap()).collect::<Vec<_>>(), [6, 12]);
    let tensor = &state[0]["tensors"][0];
    assert_eq!(tensor["name"], "model.embed_tokens.weight");
    assert!(tensor["update_ratio"].as_f64().unwrap() > 0.0);
    assert_eq!(tensor["state"]["exp_avg_sq_row"]["shape"], serde_json::json!([256]));
    assert_eq!(tensor["state"]["exp_avg_sq_col"]["shape"], serde_json::json!([64]));

    let last = events.last().unwrap();
    assert_eq!((&last["type"], &last["reason"]), (&"run_ended".into(), &"finished".into()));
    let summary = &last["summary"];
    assert_eq!(summary["updates"], 12);
    assert_eq!(summary["measured"]["state_elements"], summary["ledger"]["state_elements"]);
    assert_eq!(summary["measured"]["state_bytes"], summary["ledger"]["state_bytes"]);
    // libtorch's tensors do not live in the allocator that the program counts: what it does not know it does not say.
    let peak = &summary["measured"]["peak_allocator_bytes"];
    if crate::support::device_name() == "flex" {
        assert!(peak.as_u64().unwrap() > summary["ledger"]["parameter_bytes"].as_u64().unwrap());
    } else {
        assert!(peak.is_null(), "{peak}");
    }

    // What is printed is what is written.
    let run = &sandbox.runs()[0];
    let written = std::fs::read(run.join("events.jsonl")).unwrap();
    assert_eq!(crate::support::events(&written), events);
    for name in
        ["run.toml", "summary.json", "summary.md", "worker.log", "checkpoints/00000012/model.safetensors"]
    {
        assert!(run.join(name).exists(), "{name}");
    }
    assert_eq!(std::fs::read_to_string(run.join("worker.log")).unwrap(), "", "nothing went wrong");

    let inspected = sandbox.json(&["inspect", "latest", "--json"]);
    assert_eq!(inspected["optimizer"], "adafactor");
    assert_eq!(inspected["state_elements"], summary["ledger"]["state_elements"]);
    assert_eq!(inspected["state_bytes"], summary["ledger"]["state_bytes"]);
    let embedding = inspected["tensors"]
        .as_array()
        .unwrap()
        .iter()
        .find(|tensor| tensor["name"] == "model.embed_tokens.weight")
        .unwrap();
    assert_eq!(embedding["step"], 12);
    // Bytes that never occur have rows that were never touched: exactly eps.
    let row = &embedding["state"]["exp_avg_sq_row"];
    assert!((row["min"].as_f64().unwrap() / 1e-30 - 1.0).abs() < 1e-6, "{row}");
}

#[test]
fn the_checkpoint_holds_pytorchs_names_and_shapes() {
    let sandbox = Sandbox::new();
    sandbox.train(
        "checkpoint",
        &["train.max_updates=3", "checkpoint.every_updates=1", "schedule.warmup_updates=1"],
    );
    let folder = sandbox.runs()[0].join("checkpoints");
    let mut kept: Vec<_> =
        std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    kept.sort();
    assert_eq!(kept, ["00000002", "00000003"], "the last two are kept");
    let model = std::fs::read(folder.join("00000003/model.safetensors")).unwrap();
    let model = safetensors::SafeTensors::deserialize(&model).unwrap();
    assert_eq!(model.tensor("model.layers.0.self_attn.k_proj.weight").unwrap().shape(), [32, 64]);
    assert!(model.tensor("lm_head.weight").is_err(), "a tied head is one parameter");
    let state = std::fs::read(folder.join("00000003/optimizer.safetensors")).unwrap();
    let state = safetensors::SafeTensors::deserialize(&state).unwrap();
    assert_eq!(state.tensor("model.norm.weight.exp_avg_sq").unwrap().shape(), [64]);
    let step = state.tensor("model.norm.weight.step").unwrap();
    assert_eq!((step.shape(), step.data()), (&[][..], &3.0_f32.to_le_bytes()[..]));
}

#[test]
fn the_same_seed_is_the_same_run() {
    let sandbox = Sandbox::new();
    let losses = |events: &[Value]| -> Vec<Value> {
        of_type(events, "update").iter().map(|update| update["train/loss"].clone()).collect()
    };
    let settings = ["train.max_updates=8", "schedule.warmup_updates=1"];
    let first = sandbox.train("first", &settings);
    let second = sandbox.train("second", &settings);
    assert_eq!(losses(&first), losses(&second));
    assert_eq!(losses(&first).len(), 8);
}

#[test]
fn two_runs_are_compared_and_exported() {
    let sandbox = Sandbox::new();
    let settings = ["train.max_updates=6", "schedule.warmup_updates=1"];
    sandbox.train("one", &settings);
    sandbox.train("two", &[&settings[..], &["optimizer.name=adafactor"]].concat());
    let comparison = sandbox.json(&["compare", "one", "two", "--json"]);
    let differences = comparison["differences"].as_array().unwrap();
    let keys: Vec<&str> = differences.iter().map(|difference| difference["key"].as_str().unwrap()).collect();
    assert_eq!(keys, ["optimizer.name"]);
    assert_eq!(differences[0]["values"], serde_json::json!(["adamw", "adafactor"]));
    assert!(
        comparison["verdict"]["text"].as_str().unwrap().contains("one seed"),
        "{}",
        comparison["verdict"]
    );

    let csv = String::from_utf8(sandbox.run(&["export", "one", "--format", "csv"]).stdout).unwrap();
    let mut reader = csv::Reader::from_reader(csv.as_bytes());
    assert!(reader.headers().unwrap().iter().any(|name| name == "train/loss"));
    assert_eq!(reader.records().count(), 6);
    let summary = sandbox.json(&["export", "one", "--format", "json"]);
    assert_eq!(summary["updates"], 6);
    let markdown = String::from_utf8(sandbox.run(&["export", "one", "--format", "md"]).stdout).unwrap();
    assert!(markdown.contains("adamw") && markdown.contains("| "), "{markdown}");
    let target = sandbox.path("out.csv");
    let output = sandbox.run(&["export", "one", "--format", "csv", "-o", target.to_str().unwrap()]);
    assert!(output.status.success());
    assert_eq!(std::fs::read_to_string(target).unwrap(), csv);

    let list = sandbox.json(&["list", "--json"]);
    let names: Vec<&str> =
        list["runs"].as_array().unwrap().iter().map(|run| run["name"].as_str().unwrap()).collect();
    assert_eq!(names.len(), 2);
    assert!(list["runs"].as_array().unwrap().iter().all(|run| run["state"] == "done"));
}

#[test]
fn a_loss_that_is_not_finite_ends_the_run_with_4() {
    let sandbox = Sandbox::new();
    let mut arguments = vec!["run", "--json"];
    let settings = [
        "optimizer.name=sgd",
        "optimizer.lr=1000",
        "clip.max_norm=0",
        "schedule.warmup_updates=0",
        "train.max_skipped=3",
        "train.max_updates=200",
    ];
    crate::support::SMALL.iter().chain(&settings).for_each(|setting| arguments.extend(["--set", setting]));
    let output = sandbox.run(&arguments);
    assert_eq!(output.status.code(), Some(4), "{}", String::from_utf8_lossy(&output.stderr));
    let events = crate::support::events(&output.stdout);
    let last = events.last().unwrap();
    assert_eq!(last["reason"], "not_finite");
    assert!(last["message"].as_str().unwrap().contains("optimizer.lr"));
    assert_eq!(last["summary"]["skipped_updates"], 3);
    let skipped: Vec<&Value> =
        of_type(&events, "update").into_iter().filter(|update| update["skipped"] == true).collect();
    assert!(
        skipped
            .iter()
            .all(|update| update["train/loss"].is_string() || update["train/grad_norm"].is_string())
    );
    // The update was tried three times at its own place in the schedule, and what was trained before it is kept.
    let (updates, rate) = (last["summary"]["updates"].as_u64().unwrap(), &skipped[2]["train/learning_rate"]);
    assert!(
        skipped[..]
            .iter()
            .all(|update| update["update"] == updates + 1 && update["train/learning_rate"] == *rate)
    );
    let checkpoint = sandbox.runs()[0].join(format!("checkpoints/{updates:08}/model.safetensors"));
    let weights = std::fs::read(checkpoint).unwrap();
    let weights = safetensors::SafeTensors::deserialize(&weights).unwrap();
    for (name, tensor) in weights.tensors() {
        let mut values =
            tensor.data().chunks_exact(4).map(|bytes| f32::from_le_bytes(bytes.try_into().unwrap()));
        assert!(values.all(f32::is_finite), "{name}");
    }
}

#[test]
fn plan_prints_every_optimizer() {
    let sandbox = Sandbox::new();
    let plan = sandbox.json(&["plan", "--json", "--set", "model.preset=tinyllama-1.1b"]);
    assert_eq!(plan["parameters"], 1_100_048_384_u64);
    assert_eq!(plan["tensors"], 201);
    let adamw = &plan["optimizers"][0];
    assert_eq!((&adamw["name"], &adamw["state_elements"]), (&"adamw".into(), &2_200_096_969_u64.into()));
    assert!(sandbox.runs().is_empty());
}
