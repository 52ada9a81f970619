//! `tui-train inspect`: what a checkpoint says of the optimizer's state is what the run itself said.

use serde_json::Value;

use crate::support::Sandbox;

/// Trains four updates; the state that the run told after the last, its summary, and what `inspect` reads.
fn told_and_stored(optimizer: &str) -> (Value, Value, Value) {
    let sandbox = Sandbox::new();
    let name = format!("optimizer.name={optimizer}");
    let settings = [
        &name,
        "train.max_updates=4",
        "log.state_every=4",
        "schedule.warmup_updates=0",
        "model.tie_word_embeddings=false",
    ];
    let events = sandbox.train("looked-into", &settings);
    let state = events.iter().rfind(|event| event["type"] == "state").unwrap().clone();
    let summary = events.last().unwrap()["summary"].clone();
    let stored = sandbox.json(&["inspect", "latest", "--json"]);
    assert_eq!((&state["update"], &stored["update"]), (&4.into(), &4.into()));
    for total in ["state_elements", "state_bytes"] {
        assert_eq!(stored[total], summary["measured"][total], "{optimizer}: {total}");
        assert_eq!(stored[total], summary["ledger"][total], "{optimizer}: {total}");
    }
    (state, summary, stored)
}

fn tensors(report: &Value) -> &Vec<Value> {
    report["tensors"].as_array().unwrap()
}

/// Both are sums of the same values, taken in another order.
fn close(a: &Value, b: &Value) -> bool {
    let (a, b) = (a.as_f64().unwrap(), b.as_f64().unwrap());
    (a - b).abs() <= 1e-5 * a.abs().max(b.abs())
}

#[test]
fn eight_bit_state_reads_the_same_from_the_run_and_from_its_checkpoint() {
    let (told, _, stored) = told_and_stored("adamw8bit");
    assert_eq!(stored["shared"].as_object().unwrap().len(), 2);
    assert_eq!(stored["shared"]["qmap1"]["bytes"], told["shared"]["qmap1"]["bytes"]);
    let mut coded = 0;
    for (told, stored) in tensors(&told).iter().zip(tensors(&stored)) {
        assert_eq!((&told["name"], &told["step"]), (&stored["name"], &stored["step"]));
        for (part, ours) in told["state"].as_object().unwrap() {
            let theirs = &stored["state"][part];
            for key in ["shape", "dtype", "elements", "bytes", "zeros", "nonfinite"] {
                assert_eq!(ours[key], theirs[key], "{} {part} {key}", told["name"]);
            }
            for key in ["min", "max", "rms"] {
                assert!(close(&ours[key], &theirs[key]), "{} {part} {key}: {ours} {theirs}", told["name"]);
            }
        }
        if told["state"]["state1"]["dtype"] == "u8" {
            coded += 1;
            let error =
                |moment: &str| told["figures"][format!("quantization_error/{moment}")].as_f64().unwrap();
            assert!((1e-4..0.2).contains(&error("state1")), "{told}");
            assert!((1e-4..0.2).contains(&error("state2")), "{told}");
            assert!(stored.get("figures").is_none(), "codes do not tell what they lost");
        }
    }
    assert!(coded >= 5, "{coded} tensors have codes");
}

#[test]
fn rows_that_were_never_touched_are_counted_in_the_run_and_in_its_checkpoint() {
    for optimizer in ["adafactor", "adamw"] {
        let (told, _, stored) = told_and_stored(optimizer);
        let rows = |report: &Value| tensors(report)[0]["figures"]["rows_never_touched"].as_f64().unwrap();
        assert_eq!(tensors(&told)[0]["name"], "model.embed_tokens.weight");
        // Most bytes are no letters of the stories, and this embedding is not the head, too.
        assert!(rows(&told) > 100.0 && rows(&told) < 256.0, "{optimizer}: {}", rows(&told));
        assert_eq!(rows(&told), rows(&stored), "{optimizer}");
        assert!(tensors(&stored).iter().all(|tensor| tensor.get("update_ratio").is_none()));
        assert!(tensors(&told).iter().all(|tensor| tensor["update_ratio"].as_f64().unwrap() > 0.0));
    }
}

/// What the Adafactor lesson shows: rows of the word embedding that no token has reached stand at exactly 1e-30.
#[test]
fn after_three_updates_untouched_rows_of_the_word_embedding_stand_at_1e_30() {
    let sandbox = Sandbox::new();
    let settings = [
        "model.preset=distilbert-nano",
        "optimizer.name=adafactor",
        "train.max_updates=3",
        "train.micro_batch=2",
        "schedule.warmup_updates=0",
        "data.validation_fraction=0.01",
    ];
    let mut arguments = vec!["run", "--headless", "--name", "lesson"];
    settings.iter().for_each(|setting| arguments.extend(["--set", setting]));
    assert!(sandbox.run(&arguments).status.success());
    let found = sandbox.json(&["inspect", "lesson", "--json", "--tensor", "*word_embeddings*"]);
    let tensor = &found["tensors"][0];
    assert_eq!((&tensor["step"], &tensor["state"]["step"]["max"]), (&3.into(), &3.0.into()));
    let rows = &tensor["state"]["exp_avg_sq_row"];
    assert_eq!((&rows["shape"], rows["zeros"].as_u64()), (&serde_json::json!([258]), Some(0)));
    let least = rows["min"].as_f64().unwrap();
    assert!((least - 1e-30).abs() <= 1e-36, "{least:e}");
    let untouched = tensor["figures"]["rows_never_touched"].as_f64().unwrap();
    assert!((100.0..258.0).contains(&untouched), "{untouched} of 258 bytes do not occur in six rows");
}
