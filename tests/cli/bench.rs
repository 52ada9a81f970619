//! What `bench` measures, held against the ledger.

use serde_json::Value;

use crate::support::Sandbox;

/// Relative, on what the ledger counts exactly.
const TOLERANCE: f64 = 0.02;
/// Names, maps and handles of the 39 tensors: not elements, and not in the ledger.
const HANDLES: f64 = 256.0 * 1024.0;

#[test]
fn memory_in_the_allocator_is_what_the_ledger_counts() {
    let sandbox = Sandbox::new();
    for optimizer in ["adamw", "adamw8bit", "adafactor"] {
        let optimizer_name = format!("optimizer.name={optimizer}");
        let preset = "model.preset=llama-tiny";
        // Half as long as the preset: what is measured here does not depend on it.
        let small = ["--set", "train.seq_len=32", "--set", "train.micro_batch=2"];
        let mut arguments =
            vec!["bench", "--json", "--updates", "2", "--set", preset, "--set", &optimizer_name];
        arguments.extend(small);
        let report = sandbox.json(&arguments);
        let memory = &report["memory"];
        let bytes = |value: &Value| value.as_f64().unwrap();
        let (mut ledger, mut measured) = (0.0, 0.0);
        for part in ["parameters", "gradients", "optimizer_state"] {
            let (counted, seen) = (bytes(&memory[part]["ledger"]), bytes(&memory[part]["measured"]));
            assert!((seen - counted).abs() <= TOLERANCE * counted + HANDLES, "{optimizer}, {part}: {memory}");
            ledger += counted;
            measured += seen;
        }
        assert!((measured - ledger).abs() <= TOLERANCE * ledger, "{optimizer}: {memory}");
        let waiting = report["waiting_for_data"].as_f64().unwrap();
        assert!((0.0..0.5).contains(&waiting), "the loader runs ahead: {report}");
        // Besides the gradient an update holds one more tensor of a parameter's size at a time.
        let temporaries = &memory["optimizer_temporaries"];
        let most = bytes(&temporaries["largest_parameter"]) + HANDLES;
        assert!(bytes(&temporaries["measured"]) <= most, "{optimizer}: {memory}");
    }
}
