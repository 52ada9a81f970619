//! What a person may set: the types, their defaults, their validation, and one table of fields
//! ([`fields::FIELDS`]) that drives the form, the help, the environment names and the checks.
//!
//! A configuration is resolved once, by [`layers::Layers::resolve`], and never changes afterwards:
//! flag > environment (`TUI_TRAIN_SECTION_KEY`) > file > preset > default.

pub mod change;
pub mod device;
pub mod error;
pub mod fields;
pub mod file_kind;
pub mod grid;
pub mod layers;
pub mod name_pattern;
pub mod optimizer;
pub mod own;
pub mod presets;
pub mod printed;
pub mod quiet;
pub mod schedule;
pub mod validate;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use device::DeviceName;
pub use error::ConfigError;
pub use layers::{Layers, Resolved};
pub use name_pattern::NamePattern;
pub use optimizer::{
    AdafactorConfig, AdamW8bitConfig, AdamWConfig, AdjustLr, LionConfig, MuonConfig, OptimizerConfig,
    OptimizerName, SgdConfig,
};

/// A complete, resolved configuration. `run.toml` is this type written as TOML.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Config {
    pub model: ModelConfig,
    pub data: DataConfig,
    pub train: TrainConfig,
    pub optimizer: OptimizerConfig,
    pub schedule: ScheduleConfig,
    pub clip: ClipConfig,
    pub checkpoint: CheckpointConfig,
    pub log: LogConfig,
    /// `[task]`: the settings of a task that the program was given, by their names; none for a built-in model.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub task: BTreeMap<String, toml::Value>,
}

/// Model architectures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Arch {
    /// A causal language model.
    Llama,
    /// An encoder that classifies one or two sentences.
    DistilBert,
    /// For `plan` alone: its memory is counted, it cannot be trained.
    Gpt2,
    /// The model of a task that the program was given; its preset is the task's name.
    Own,
    /// The model of a loop that reports itself.
    Loop,
}

/// What the counters of a run count: an example of a task of its own counts as one token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counted {
    Tokens,
    Examples,
}

impl Counted {
    /// Many of it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Tokens => "tokens",
            Self::Examples => "examples",
        }
    }

    /// One of it.
    pub const fn one(self) -> &'static str {
        match self {
            Self::Tokens => "a token",
            Self::Examples => "an example",
        }
    }

    /// So many in a second, where there is little room.
    pub const fn each_second(self) -> &'static str {
        match self {
            Self::Tokens => "tok/s",
            Self::Examples => "ex/s",
        }
    }
}

impl Arch {
    /// What the model learns from.
    pub const fn task(self) -> Task {
        match self {
            Self::Llama | Self::Gpt2 => Task::LanguageModel,
            Self::DistilBert => Task::Classification,
            Self::Own | Self::Loop => Task::Own,
        }
    }

    /// What the counters of a run count.
    pub const fn counted(self) -> Counted {
        match self {
            Self::Own => Counted::Examples,
            Self::Llama | Self::DistilBert | Self::Gpt2 | Self::Loop => Counted::Tokens,
        }
    }

    /// The name used in configuration and files.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Llama => "llama",
            Self::DistilBert => "distilbert",
            Self::Gpt2 => "gpt2",
            Self::Own => "own",
            Self::Loop => "loop",
        }
    }
}

/// What a model learns from: running text, or sentences with a label.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Task {
    LanguageModel,
    Classification,
    /// Examples of whatever a task of its own makes them.
    Own,
}

/// `[model]`: the names are those that Hugging Face's configurations share. Keys of another architecture have no
/// effect and cannot be set ([`fields::arches`]).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelConfig {
    /// The preset the other keys started from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preset: Option<String>,
    pub arch: Arch,
    pub vocab_size: usize,
    pub hidden_size: usize,
    pub intermediate_size: usize,
    pub num_hidden_layers: usize,
    pub num_attention_heads: usize,
    pub num_key_value_heads: usize,
    pub tie_word_embeddings: bool,
    pub rope_theta: f64,
    pub rms_norm_eps: f64,
    /// Rows of the position embedding: the longest sequence.
    pub max_position_embeddings: usize,
    /// After the embedding and each sublayer.
    pub dropout: f64,
    /// Of the attention's probabilities.
    pub attention_dropout: f64,
    /// Before the classifier.
    pub seq_classif_dropout: f64,
    /// Classes.
    pub num_labels: usize,
    /// A checkpoint to start from: a file or folder of Hugging Face or PyTorch weights. Absent: random weights.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weights: Option<String>,
    /// Name and shape of every parameter of a model that is not built in; of one that is, the other keys tell.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parameters: Vec<own::Parameter>,
}

impl Config {
    /// What a run is called when nobody names it: its model and its optimizer.
    pub fn run_name(&self) -> String {
        format!("{}-{}", self.model.name(), self.optimizer.name)
    }
}

impl ModelConfig {
    /// The preset's name; every resolved configuration starts from one.
    pub fn name(&self) -> &str {
        self.preset.as_deref().unwrap_or("llama")
    }

    /// Width of one attention head: `hidden_size / num_attention_heads`.
    pub fn head_dim(&self) -> usize {
        self.hidden_size / self.num_attention_heads.max(1)
    }
}

/// Where the text comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// The built-in generator of small stories.
    Stories,
    /// The built-in generator of labelled pairs of sentences.
    SentencePairs,
    /// `data.path`: a text, a table, or a folder of them.
    Path,
}

/// How text becomes ids.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum Tokenizer {
    /// One token a byte: vocabulary 256, and two more for the marks of a classification.
    Bytes,
    /// BPE learnt from the data, with at most so many tokens: `bpe:4096`.
    Bpe(usize),
    /// A Hugging Face `tokenizer.json`.
    File(String),
}

/// What a tokenizer that is learnt begins with, before its size.
pub const BPE: &str = "bpe:";
/// Rows that an embedding has at most, and so tokens that a tokenizer has.
pub const MOST_TOKENS: usize = 1 << 24;

impl From<String> for Tokenizer {
    fn from(text: String) -> Self {
        let size = text.strip_prefix(BPE).and_then(|size| size.parse().ok());
        match (size, &*text) {
            (Some(size), _) => Self::Bpe(size),
            (None, "bytes") => Self::Bytes,
            (None, _) => Self::File(text),
        }
    }
}

impl From<Tokenizer> for String {
    fn from(tokenizer: Tokenizer) -> Self {
        match tokenizer {
            Tokenizer::Bytes => "bytes".to_owned(),
            Tokenizer::Bpe(size) => format!("{BPE}{size}"),
            Tokenizer::File(path) => path,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DataConfig {
    pub source: Source,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Of a language model: what holds the text in the rows of a table. Empty: a table is a text like others.
    #[serde(default = "text_field")]
    pub field: String,
    /// Of a classification: one or two sentences, then the label. Empty: found by their usual names.
    pub columns: Vec<String>,
    pub tokenizer: Tokenizer,
    /// Share of the text held out for validation, in [0, 0.5]; 0 switches validation off.
    pub validation_fraction: f64,
    pub shuffle: bool,
}

/// The usual name of what holds the text.
fn text_field() -> String {
    "text".to_owned()
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrainConfig {
    /// Sequences in one forward and backward pass.
    pub micro_batch: usize,
    /// Micro-batches in one update.
    pub accumulate: usize,
    /// Target tokens in one sequence.
    pub seq_len: usize,
    /// Optimizer updates in the whole run; absent when `epochs` is set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_updates: Option<u64>,
    /// Passes over the training text; the last window of an epoch may be short.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub epochs: Option<u64>,
    pub seed: u64,
    /// What trains; `auto` until a run starts.
    pub device: DeviceName,
    /// The type in which the passes compute.
    #[serde(default)]
    pub precision: Precision,
    /// Products of f32 matrices in TF32, on CUDA devices that have it.
    #[serde(default)]
    pub tf32: bool,
    /// Validate every so many updates; 0 = only at the end.
    pub validate_every: u64,
    /// Updates in a row skipped for a loss or gradient that is not finite, after which the run ends.
    pub max_skipped: u64,
}

/// The type in which the forward and the backward pass compute. Parameters, sums of gradients and optimizer state are f32
/// in either.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Precision {
    #[default]
    F32,
    /// The passes see a copy of the parameters in bf16; norms and the loss compute in f32.
    Bf16,
}

impl Precision {
    /// Bytes of an element of the passes.
    pub const fn bytes(self) -> u64 {
        match self {
            Self::F32 => 4,
            Self::Bf16 => 2,
        }
    }
}

impl TrainConfig {
    /// Sequences that make one update.
    pub fn effective_batch(&self) -> usize {
        self.micro_batch * self.accumulate
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ScheduleName {
    Cosine,
    Linear,
    Constant,
}

/// The learning rate over the run, counted in optimizer updates.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ScheduleConfig {
    pub name: ScheduleName,
    pub warmup_updates: u64,
    /// Share of the base rate that the warm-up starts from; 0 is Hugging Face's warm-up.
    pub start_factor: f64,
    /// The rate the decay ends at.
    pub min_lr: f64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClipConfig {
    /// Largest global gradient norm; 0 = no clipping.
    pub max_norm: f64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CheckpointConfig {
    /// 0 = only at the end and on stop.
    pub every_updates: u64,
    /// Seconds between two; 0 = no clock.
    #[serde(default)]
    pub every_seconds: u64,
    /// Checkpoints kept; older ones are removed.
    pub keep_last: usize,
    /// That of the lowest validation loss is kept, too.
    #[serde(default)]
    pub keep_best: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LogConfig {
    /// Updates between two `update` events.
    pub every_updates: u64,
    /// Updates between two `state` events; 0 = none.
    pub state_every: u64,
    /// Whether the run's folder has one for TensorBoard that grows with the run.
    #[serde(default)]
    pub tensorboard: bool,
    /// Tokens that a language model writes at each validation; 0 = none.
    #[serde(default = "sample_tokens")]
    pub sample_tokens: usize,
    /// Tokens of the held-out text that it goes on with.
    #[serde(default = "sample_prompt")]
    pub sample_prompt: usize,
    /// Of the second text; 0 = only the likeliest tokens.
    #[serde(default = "sample_temperature")]
    pub sample_temperature: f64,
}

const fn sample_tokens() -> usize {
    48
}

const fn sample_prompt() -> usize {
    16
}

const fn sample_temperature() -> f64 {
    0.8
}
