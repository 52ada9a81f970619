//! A trace as the reference library wrote it, and the configuration of ours that it corresponds to.

use serde_json::Value;
use tui_train::config::{
    AdafactorConfig, AdamWConfig, Config, Layers, OptimizerConfig, OptimizerName, SgdConfig,
};

/// What a trace asks for.
pub(super) enum Plan {
    Run(OptimizerConfig),
    /// Not run, and why.
    Skip(String),
}

/// The optimizer of a trace in our configuration, with its learning rate (0 when the trace has none).
pub(super) fn plan(trace: &Value) -> Plan {
    let name = trace["optimizer"].as_str().unwrap_or_default();
    let config = &trace["config"];
    let bf16 = trace["dtype"] == "bfloat16";
    match name {
        "torch.optim.AdamW" if bf16 => Plan::Skip("bf16 parameters come with precision = \"bf16\"".into()),
        "torch.optim.AdamW" => Plan::Run(adamw(config)),
        "torch.optim.SGD" => Plan::Run(sgd(config)),
        "transformers.optimization.Adafactor" => Plan::Run(adafactor(config)),
        "torch.optim.Adafactor" => {
            Plan::Skip("`adafactor` is transformers' rule: PyTorch's puts eps elsewhere".into())
        }
        other => Plan::Skip(format!("no optimizer here is {other}")),
    }
}

fn defaults() -> OptimizerConfig {
    let config: Config = Layers::new().resolve().expect("the demo is valid").config;
    config.optimizer
}

fn float(config: &Value, key: &str, default: f64) -> f64 {
    config[key].as_f64().unwrap_or(default)
}

fn flag(config: &Value, key: &str) -> bool {
    config[key].as_bool().unwrap_or(false)
}

fn pair(config: &Value, key: &str) -> [f64; 2] {
    let numbers = super::numbers(&config[key]);
    [numbers[0], numbers[1]]
}

fn adamw(config: &Value) -> OptimizerConfig {
    let adamw = AdamWConfig {
        lr: float(config, "lr", 1e-3),
        betas: pair(config, "betas"),
        eps: float(config, "eps", 1e-8),
        weight_decay: float(config, "weight_decay", 1e-2),
        amsgrad: flag(config, "amsgrad"),
    };
    OptimizerConfig { name: OptimizerName::AdamW, adamw, ..defaults() }
}

fn sgd(config: &Value) -> OptimizerConfig {
    let sgd = SgdConfig {
        lr: float(config, "lr", 1e-3),
        momentum: float(config, "momentum", 0.0),
        dampening: float(config, "dampening", 0.0),
        weight_decay: float(config, "weight_decay", 0.0),
        nesterov: flag(config, "nesterov"),
    };
    OptimizerConfig { name: OptimizerName::Sgd, sgd, ..defaults() }
}

fn adafactor(config: &Value) -> OptimizerConfig {
    let adafactor = AdafactorConfig {
        lr: float(config, "lr", 0.0),
        eps: pair(config, "eps"),
        clip_threshold: float(config, "clip_threshold", 1.0),
        decay_rate: float(config, "decay_rate", -0.8),
        beta1: config["beta1"].as_f64(),
        weight_decay: float(config, "weight_decay", 0.0),
        scale_parameter: flag(config, "scale_parameter"),
        relative_step: flag(config, "relative_step"),
        warmup_init: flag(config, "warmup_init"),
    };
    OptimizerConfig { name: OptimizerName::Adafactor, adafactor, ..defaults() }
}
