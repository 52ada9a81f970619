//! A trace as the reference library wrote it, and the optimizer of ours that it corresponds to.

use burn::tensor::DType;
use serde_json::Value;
use tui_train::{
    config::{
        AdafactorConfig, AdamW8bitConfig, AdamWConfig, AdjustLr, Config, Layers, LionConfig, MuonConfig,
        OptimizerConfig, OptimizerName, SgdConfig,
    },
    optim::{self, Driver, NoDecay, ParameterUpdates, adamw::AdamW, muon::Muon},
};

/// Relative, on state: two roundings of f32 and the f32 copies of the betas.
const STATE: f64 = 2e-5;
/// Absolute, on parameters: the reference's own rounding is up to 4.5e-7 (`max_abs_diff_vs_same_code_in_f64`), and
/// the order of f32 operations differs.
const PARAMS: f64 = 2e-6;
/// bf16 has 8 bits: one unit in the last place is at most this much, relative.
const BF16: f64 = 1.0 / 128.0;
/// Relative: the same bf16, of which the trace has eight digits.
const AS_WRITTEN: f64 = 1e-6;

/// What a trace asks for.
pub(super) enum Plan {
    Run(Subject),
    /// Not run, and why.
    Skip(String),
}

/// An optimizer of ours, set as the trace's was, and how near it must come.
pub(super) struct Subject {
    pub optimizer: Box<dyn ParameterUpdates>,
    pub lr: f64,
    /// Parameters: absolute, plus relative.
    pub params: [f64; 2],
    /// State: relative, plus a share of the tensor's largest value.
    pub state: [f64; 2],
    /// The reference's name of a state tensor, and ours where it is another.
    pub renamed: &'static [(&'static str, &'static str)],
}

impl Subject {
    fn new(config: &OptimizerConfig) -> Self {
        Self {
            optimizer: optim::build(config),
            lr: config.lr(),
            params: [PARAMS, 0.0],
            state: [STATE, 0.0],
            renamed: &[],
        }
    }
}

/// The optimizer of a trace in our configuration.
pub(super) fn plan(trace: &Value) -> Plan {
    let name = trace["optimizer"].as_str().unwrap_or_default();
    let config = &trace["config"];
    let bf16 = trace["dtype"] == "bfloat16";
    let subject = match name {
        "torch.optim.AdamW" => adamw(config),
        "torch.optim.SGD" => Subject::new(&sgd(config)),
        "transformers.optimization.Adafactor" => {
            let mut subject = Subject::new(&adafactor(config));
            // The state is f32 there as here, so that only the parameters are rounded to bf16.
            subject.params = if bf16 { [0.0, AS_WRITTEN] } else { subject.params };
            return Plan::Run(subject);
        }
        "bitsandbytes.optim.Lion (32-bit state)" => lion(config),
        "torch.optim.Muon" => muon(config, DType::BF16),
        "torch.optim.Muon with Newton-Schulz patched to f32" => muon(config, DType::F32),
        "torch.optim.Adafactor" => {
            return Plan::Skip(
                "`adafactor` is transformers' rule: PyTorch's clamps where that adds eps, and always scales"
                    .into(),
            );
        }
        "torch.optim.Adam" => {
            return Plan::Skip("no optimizer here adds its decay to Adam's gradient".into());
        }
        name if name.starts_with("bitsandbytes.optim.AdamW8bit") => {
            return Plan::Skip(
                "numbers of its CPU backend: `adamw8bit` has the arithmetic of the CUDA kernels, which decay after the \
                 update and quantise exactly"
                    .into(),
            );
        }
        name if name.starts_with("torchao") => {
            return Plan::Skip("torchao decays before the update and quantises other tensors".into());
        }
        other => return Plan::Skip(format!("no optimizer here is {other}")),
    };
    if bf16 {
        return Plan::Run(Subject { params: [0.0, AS_WRITTEN], state: [AS_WRITTEN, 0.0], ..subject });
    }
    Plan::Run(subject)
}

/// The demo's optimizers, decaying everything, as the traces do.
fn defaults() -> OptimizerConfig {
    let config: Config = Layers::new().resolve().expect("the demo is valid").config;
    OptimizerConfig { no_decay: Vec::new(), ..config.optimizer }
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

fn adamw(config: &Value) -> Subject {
    let adamw = AdamWConfig {
        lr: float(config, "lr", 1e-3),
        betas: pair(config, "betas"),
        eps: float(config, "eps", 1e-8),
        weight_decay: float(config, "weight_decay", 1e-2),
        amsgrad: flag(config, "amsgrad"),
    };
    let mut subject = Subject::new(&OptimizerConfig { name: OptimizerName::AdamW, ..defaults() });
    let rule = AdamW::new(&adamw);
    // In f32 both ways of rounding are the same.
    let rule = if config["impl"] == "single" { rule.rounding_each_operation() } else { rule };
    subject.optimizer = Box::new(Driver::new(rule, NoDecay::new(&[])));
    subject.lr = adamw.lr;
    subject
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

/// bitsandbytes numbers its state; ours has the name that Lion's authors gave it. An average of gradients of both signs
/// can be near zero while its terms are not, and their rounding stays.
fn lion(config: &Value) -> Subject {
    let lion = LionConfig {
        lr: float(config, "lr", 1e-4),
        betas: pair(config, "betas"),
        weight_decay: float(config, "weight_decay", 0.0),
    };
    let config = OptimizerConfig { name: OptimizerName::Lion, lion, ..defaults() };
    Subject { renamed: &[("state1", "exp_avg")], state: [STATE, 1e-6], ..Subject::new(&config) }
}

fn muon(config: &Value, iterate_in: DType) -> Subject {
    let muon = MuonConfig {
        lr: float(config, "lr", 1e-3),
        weight_decay: float(config, "weight_decay", 0.1),
        momentum: float(config, "momentum", 0.95),
        nesterov: flag(config, "nesterov"),
        eps: float(config, "eps", 1e-7),
        ns_steps: config["ns_steps"].as_u64().unwrap_or(5) as usize,
        adjust_lr_fn: AdjustLr::Original,
        ..defaults().muon
    };
    // A sum in another order can round to the next bf16, which the iteration carries on: an update is the rate times
    // about 1, and two units of bf16 in it remain.
    let params = if iterate_in == DType::BF16 { [2.0 * BF16 * muon.lr, 0.0] } else { [PARAMS, 0.0] };
    let rule = Muon::new(&muon).iterating_in(iterate_in);
    let lr = muon.lr;
    Subject {
        optimizer: Box::new(Driver::new(rule, NoDecay::new(&[]))),
        lr,
        params,
        state: [STATE, 0.0],
        renamed: &[],
    }
}

/// 8-bit AdamW as a trace sets it.
pub(super) fn adamw8bit(config: &Value) -> OptimizerConfig {
    let whole = |key: &str, default: u64| config[key].as_u64().unwrap_or(default) as usize;
    let adamw8bit = AdamW8bitConfig {
        lr: float(config, "lr", 1e-3),
        betas: pair(config, "betas"),
        eps: float(config, "eps", 1e-8),
        weight_decay: float(config, "weight_decay", 1e-2),
        min_8bit_size: whole("min_8bit_size", 4096),
        blocksize: whole("blocksize", 256),
        quantize_embeddings: true,
    };
    OptimizerConfig { name: OptimizerName::AdamW8bit, adamw8bit, ..defaults() }
}
