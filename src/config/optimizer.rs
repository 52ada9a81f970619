//! `[optimizer]`: the chosen one, and the settings of every one under its reference's names.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OptimizerName {
    AdamW,
    AdamW8bit,
    Adafactor,
    Sgd,
    Lion,
    Muon,
    /// That of a loop that reports itself: it keeps its settings, and no run can choose it.
    Own,
}

impl OptimizerName {
    /// Every optimizer there is, in the order the keys cycle through them.
    pub const ALL: [Self; 6] =
        [Self::AdamW, Self::Adafactor, Self::AdamW8bit, Self::Sgd, Self::Lion, Self::Muon];

    /// The name used in configuration, tables and files.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::AdamW => "adamw",
            Self::AdamW8bit => "adamw8bit",
            Self::Adafactor => "adafactor",
            Self::Sgd => "sgd",
            Self::Lion => "lion",
            Self::Muon => "muon",
            Self::Own => "own",
        }
    }
}

impl std::fmt::Display for OptimizerName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The chosen optimizer and the settings of every optimizer, so that changing the name never drags
/// another optimizer's settings along.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OptimizerConfig {
    pub name: OptimizerName,
    /// Patterns of parameter names that no optimizer decays; upper and lower case are the same.
    pub no_decay: Vec<String>,
    pub adamw: AdamWConfig,
    pub adamw8bit: AdamW8bitConfig,
    pub adafactor: AdafactorConfig,
    pub sgd: SgdConfig,
    pub lion: LionConfig,
    pub muon: MuonConfig,
}

impl OptimizerConfig {
    /// The base learning rate of the chosen optimizer; not a number where a loop of its own has its own.
    pub fn lr(&self) -> f64 {
        match self.name {
            OptimizerName::AdamW => self.adamw.lr,
            OptimizerName::AdamW8bit => self.adamw8bit.lr,
            OptimizerName::Adafactor => self.adafactor.lr,
            OptimizerName::Sgd => self.sgd.lr,
            OptimizerName::Lion => self.lion.lr,
            OptimizerName::Muon => self.muon.lr,
            OptimizerName::Own => f64::NAN,
        }
    }
}

/// `torch.optim.AdamW`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AdamWConfig {
    pub lr: f64,
    pub betas: [f64; 2],
    pub eps: f64,
    pub weight_decay: f64,
    /// Keeps the largest second moment seen (`max_exp_avg_sq`).
    pub amsgrad: bool,
}

/// `bitsandbytes.optim.AdamW8bit`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AdamW8bitConfig {
    pub lr: f64,
    pub betas: [f64; 2],
    pub eps: f64,
    pub weight_decay: f64,
    /// Smaller tensors keep f32 state.
    pub min_8bit_size: usize,
    /// Elements that share one scale.
    pub blocksize: usize,
    /// Off, as in Hugging Face's `Trainer`: embeddings keep f32 state.
    pub quantize_embeddings: bool,
}

/// `transformers.optimization.Adafactor`, by default as its `Trainer` sets it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AdafactorConfig {
    pub lr: f64,
    pub eps: [f64; 2],
    pub clip_threshold: f64,
    pub decay_rate: f64,
    /// Absent: no first moment is kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub beta1: Option<f64>,
    pub weight_decay: f64,
    pub scale_parameter: bool,
    pub relative_step: bool,
    pub warmup_init: bool,
}

/// `torch.optim.SGD`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SgdConfig {
    pub lr: f64,
    pub momentum: f64,
    pub dampening: f64,
    pub weight_decay: f64,
    pub nesterov: bool,
}

/// Lion (Chen et al. 2023, arXiv 2302.06675) as `bitsandbytes.optim.Lion` has it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LionConfig {
    pub lr: f64,
    pub betas: [f64; 2],
    pub weight_decay: f64,
}

/// `torch.optim.Muon` for the matrices of the hidden layers; embeddings, head and vectors by AdamW.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MuonConfig {
    pub lr: f64,
    pub weight_decay: f64,
    pub momentum: f64,
    pub nesterov: bool,
    pub eps: f64,
    pub ns_steps: usize,
    pub adjust_lr_fn: AdjustLr,
    /// Base rate of the parameters that AdamW updates; it follows the schedule in proportion.
    pub adamw_lr: f64,
    pub adamw_betas: [f64; 2],
    pub adamw_eps: f64,
    pub adamw_weight_decay: f64,
}

/// How Muon's rate depends on the shape of a matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AdjustLr {
    /// `sqrt(max(1, rows / columns))`
    Original,
    /// `0.2 sqrt(max(rows, columns))`: updates of AdamW's size, so that its rate can be kept.
    MatchRmsAdamw,
}
