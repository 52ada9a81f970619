//! Sizes to the element, against counts made by allocating the state in the reference libraries.

use tui_train::{
    config::{Layers, OptimizerName},
    ledger,
};

use super::read;

#[test]
fn state_sizes_of_known_models() {
    let counts = read("counts.json");
    for (preset, model) in
        [("llama-nano", "llama_tiny_64x2_tied_vocab256"), ("tinyllama-1.1b", "tinyllama_1.1b")]
    {
        let config = Layers::new()
            .with_assignment(&format!("model.preset={preset}"))
            .unwrap()
            .resolve()
            .unwrap()
            .config;
        let model = &counts[model];
        for (name, state) in [
            (OptimizerName::AdamW, [&model["torch_adamw"]["elements"], &model["torch_adamw"]["bytes"]]),
            (
                OptimizerName::Adafactor,
                [
                    &model["hf_adafactor"]["elements_counting_step_and_RMS"],
                    &model["hf_adafactor"]["bytes_step_as_f32"],
                ],
            ),
        ] {
            let ours = ledger::ledger_for(&config, name);
            assert_eq!(ours.parameters, model["params"].as_u64().unwrap(), "{preset}");
            assert_eq!(ours.parameter_tensors, model["param_tensors"].as_u64().unwrap(), "{preset}");
            assert_eq!(ours.state_elements, state[0].as_u64().unwrap(), "{preset} {name}");
            assert_eq!(ours.state_bytes, state[1].as_u64().unwrap(), "{preset} {name}");
        }
        let sgd = if config.optimizer.sgd.momentum > 0.0 { "sgd_momentum" } else { "sgd_plain" };
        let ours = ledger::ledger_for(&config, OptimizerName::Sgd);
        assert_eq!(ours.state_elements, model[sgd]["elements"].as_u64().unwrap(), "{preset} {sgd}");
    }
}
