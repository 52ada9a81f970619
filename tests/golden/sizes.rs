//! Sizes to the element, against counts made by allocating the state in the reference libraries.

use serde_json::Value;
use tui_train::{
    config::{Config, Layers},
    ledger,
};

use super::read;

/// A model of the counts, and what makes it here.
const MODELS: &[(&str, &[&str])] = &[
    ("distilbert_base_cased_2cls", &["model.preset=distilbert-base-cased"]),
    ("gpt2_124m", &["model.preset=gpt2-124m"]),
    ("tinyllama_1.1b", &["model.preset=tinyllama-1.1b"]),
    (
        "llama_article_768x12",
        &[
            "model.preset=llama-160m",
            "model.vocab_size=50000",
            "model.intermediate_size=3072",
            "model.num_key_value_heads=3",
        ],
    ),
    ("llama_tiny_64x2_tied_vocab256", &["model.preset=llama-nano"]),
];

/// An optimizer of the counts, what makes it here, and where its elements and bytes stand. A count that leaves out `step`
/// has one element and four bytes a tensor fewer than ours.
const OPTIMIZERS: &[(&str, &[&str], [&str; 2], bool)] = &[
    ("torch_adamw", &["optimizer.name=adamw"], ["elements", "bytes"], true),
    ("torch_adamw_amsgrad", &["optimizer.name=adamw", "optimizer.amsgrad=true"], ["elements", "bytes"], true),
    (
        "hf_adafactor",
        &["optimizer.name=adafactor"],
        ["elements_counting_step_and_RMS", "bytes_step_as_f32"],
        true,
    ),
    (
        "hf_adafactor_beta1",
        &["optimizer.name=adafactor", "optimizer.beta1=0.9"],
        ["elements_counting_step_and_RMS", ""],
        true,
    ),
    ("sgd_plain", &["optimizer.name=sgd", "optimizer.momentum=0.0"], ["elements", "bytes"], true),
    ("sgd_momentum", &["optimizer.name=sgd", "optimizer.momentum=0.9"], ["elements", "bytes"], true),
    ("lion", &["optimizer.name=lion"], ["elements", "bytes"], true),
    (
        "bnb_adam8bit",
        &["optimizer.name=adamw8bit", "optimizer.quantize_embeddings=true"],
        ["elements_qmap_counted_once", "bytes_qmap_once"],
        false,
    ),
    (
        "bnb_adam8bit_block2048_pre0.44",
        &["optimizer.name=adamw8bit", "optimizer.quantize_embeddings=true", "optimizer.blocksize=2048"],
        ["elements_qmap_counted_once", "bytes_qmap_once"],
        false,
    ),
    (
        "bnb_adam8bit_embeddings_fp32_hf_trainer",
        &["optimizer.name=adamw8bit"],
        ["elements_qmap_counted_once", "bytes_qmap_once"],
        false,
    ),
];

fn config(settings: &[&str]) -> Config {
    Layers::new().with_assignments(settings).unwrap().resolve().unwrap().config
}

#[test]
fn state_sizes_of_known_models() {
    let counts = read("counts.json");
    let number = |value: &Value| value.as_u64();
    for (name, model) in MODELS {
        let of_model = &counts[name];
        let tensors = number(&of_model["param_tensors"]).unwrap();
        for (optimizer, settings, keys, counts_step) in OPTIMIZERS {
            let ours = ledger::ledger(&config(&[*model, *settings].concat()));
            let at = format!("{name}, {optimizer}");
            assert_eq!(
                (ours.parameters, ours.parameter_tensors),
                (number(&of_model["params"]).unwrap(), tensors),
                "{at}"
            );
            let expected = &of_model[optimizer];
            let steps = if *counts_step { 0 } else { tensors };
            assert_eq!(ours.state_elements, number(&expected[keys[0]]).unwrap() + steps, "{at}");
            if let Some(bytes) = number(&expected[keys[1]]) {
                assert_eq!(ours.state_bytes, bytes + 4 * steps, "{at}");
            }
        }
    }
}

#[test]
fn the_seed_model_in_the_numbers_people_know() {
    let of = |optimizer: &str| {
        let ledger = ledger::ledger(&config(&["model.preset=distilbert-base-cased", optimizer]));
        (ledger.parameters, ledger.parameter_tensors, ledger.state_elements, ledger.state_bytes)
    };
    assert_eq!(of("optimizer.name=adamw"), (65_783_042, 104, 131_566_188, 526_264_752));
    assert_eq!(of("optimizer.name=adafactor"), (65_783_042, 104, 178_712, 714_848));
}
