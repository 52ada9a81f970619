//! The table of every key a person may set.
//!
//! One row a key: what it holds, its default as a TOML literal, its unit and one line of help. The form,
//! `config print`, the range checks and the names of environment variables are all read off this table.

use super::{Arch, MOST_TOKENS, own};

/// What a key holds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    Integer {
        min: i64,
        max: i64,
    },
    /// `min` and `max` belong to the range.
    Float {
        min: f64,
        max: f64,
    },
    Bool,
    Choice(&'static [&'static str]),
    Text,
    /// Texts; written with commas in a flag or a form.
    List,
    /// Two numbers, each in the range.
    Pair {
        min: f64,
        max: f64,
    },
}

/// One key of the configuration.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Field {
    /// `section.key`, or `optimizer.<name>.key`.
    pub key: &'static str,
    pub kind: Kind,
    /// A TOML literal; empty when the key may be absent and is by default.
    pub default: &'static str,
    pub unit: &'static str,
    pub help: &'static str,
}

impl Field {
    /// A key with what it holds, its default as a TOML literal, its unit and one line of help.
    pub const fn new(
        key: &'static str,
        kind: Kind,
        default: &'static str,
        unit: &'static str,
        help: &'static str,
    ) -> Self {
        Self { key, kind, default, unit, help }
    }

    /// A whole number.
    pub const fn integer(
        key: &'static str,
        min: i64,
        max: i64,
        default: &'static str,
        help: &'static str,
    ) -> Self {
        Self::new(key, Kind::Integer { min, max }, default, "", help)
    }

    /// A number; `min` and `max` belong to the range.
    pub const fn number(
        key: &'static str,
        min: f64,
        max: f64,
        default: &'static str,
        help: &'static str,
    ) -> Self {
        Self::new(key, Kind::Float { min, max }, default, "", help)
    }

    /// Its unit with a model of that architecture: the examples of a task of its own are no sequences.
    pub fn unit_of(&self, arch: Arch) -> &'static str {
        if arch == Arch::Own && self.unit == SEQUENCES { arch.counted().as_str() } else { self.unit }
    }

    /// Whether this text of a TOML value is the default, however it is written.
    pub fn is_default(&self, text: &str) -> bool {
        let read = |text: &str| format!("v = {text}").parse::<toml::Table>().ok()?.remove("v");
        match (read(self.default), read(text)) {
            (Some(ours), Some(theirs)) => {
                ours == theirs || ours.as_float().is_some_and(|ours| theirs.as_float() == Some(ours))
            }
            _ => false,
        }
    }

    /// The environment variable that sets this key.
    pub fn variable(&self) -> String {
        format!("TUI_TRAIN_{}", self.key.replace('.', "_").to_uppercase())
    }
}

impl Kind {
    /// The range in words, as error messages and the form print it.
    pub fn expected(&self) -> String {
        match self {
            Self::Integer { min, max: i64::MAX } => format!("a whole number of at least {min}"),
            Self::Integer { min, max } => format!("a whole number from {min} to {max}"),
            Self::Float { min, max } if *max == f64::MAX => format!("a number of at least {min}"),
            Self::Float { min, max } => format!("a number from {min} to {max}"),
            Self::Bool => "true or false".to_owned(),
            Self::Choice(names) => format!("one of {}", names.join(", ")),
            Self::Text => "a text".to_owned(),
            Self::List => "a list of texts, as [\"a\", \"b\"]".to_owned(),
            Self::Pair { min, max } => format!("two numbers from {min} to {max}, as [a, b]"),
        }
    }

    /// Whether the value has the right type and lies in the range.
    pub fn accepts(&self, value: &toml::Value) -> bool {
        let number = |v: &toml::Value| v.as_float().or_else(|| v.as_integer().map(|i| i as f64));
        match self {
            Self::Integer { min, max } => value.as_integer().is_some_and(|v| (*min..=*max).contains(&v)),
            Self::Float { min, max } => number(value).is_some_and(|v| v >= *min && v <= *max),
            Self::Bool => value.is_bool(),
            Self::Choice(names) => value.as_str().is_some_and(|v| names.contains(&v)),
            Self::Text => value.is_str(),
            Self::List => value.as_array().is_some_and(|texts| texts.iter().all(toml::Value::is_str)),
            Self::Pair { min, max } => value.as_array().is_some_and(|pair| {
                pair.len() == 2 && pair.iter().all(|v| number(v).is_some_and(|v| v >= *min && v <= *max))
            }),
        }
    }
}

const fn field(
    key: &'static str,
    kind: Kind,
    default: &'static str,
    unit: &'static str,
    help: &'static str,
) -> Field {
    Field::new(key, kind, default, unit, help)
}

const fn at_least(min: i64) -> Kind {
    Kind::Integer { min, max: i64::MAX }
}

/// A size: as large as anybody needs, and small enough to be multiplied.
/// The unit of a batch.
const SEQUENCES: &str = "sequences";

const fn size(min: i64, max: i64) -> Kind {
    Kind::Integer { min, max }
}

const RATE: Kind = Kind::Float { min: 0.0, max: 1000.0 };
const BELOW_ONE: Kind = Kind::Float { min: 0.0, max: 0.999_999_999 };
const POSITIVE: Kind = Kind::Float { min: 0.0, max: f64::MAX };

/// Every key, in the order in which it is printed.
pub const FIELDS: &[Field] = &[
    field("model.preset", Kind::Text, "", "", "start from this preset; the other keys override it"),
    field(
        "model.arch",
        Kind::Choice(&["llama", "distilbert", "gpt2"]),
        "\"llama\"",
        "",
        "architecture; gpt2 is for planning alone",
    ),
    field("model.vocab_size", size(2, MOST_TOKENS as i64), "256", "tokens", "rows of the embedding"),
    field("model.hidden_size", size(1, 1 << 17), "64", "", "width of the residual stream"),
    field("model.intermediate_size", size(1, 1 << 20), "192", "", "width of the feed-forward layer"),
    field("model.num_hidden_layers", size(1, 1024), "2", "layers", "decoder layers"),
    field("model.num_attention_heads", size(1, 4096), "4", "heads", "query heads"),
    field(
        "model.num_key_value_heads",
        size(1, 4096),
        "2",
        "heads",
        "key and value heads; fewer than query heads share them",
    ),
    field(
        "model.tie_word_embeddings",
        Kind::Bool,
        "true",
        "",
        "the output head is the embedding: one parameter, one state",
    ),
    field(
        "model.rope_theta",
        Kind::Float { min: 1.0, max: f64::MAX },
        "10000.0",
        "",
        "base of the rotary frequencies",
    ),
    field("model.rms_norm_eps", POSITIVE, "1e-5", "", "added to the mean square before the root"),
    field("model.max_position_embeddings", size(1, 1 << 20), "512", "tokens", "the longest sequence"),
    field("model.dropout", BELOW_ONE, "0.1", "", "share dropped after the embedding and each sublayer"),
    field("model.attention_dropout", BELOW_ONE, "0.1", "", "share of attention dropped"),
    field("model.seq_classif_dropout", BELOW_ONE, "0.2", "", "share dropped before the classifier"),
    field("model.num_labels", size(2, 1 << 16), "2", "classes", "classes to tell apart"),
    field(
        "model.weights",
        Kind::Text,
        "",
        "",
        "start from these weights: a .safetensors, .bin or .pt file, or a folder",
    ),
    field(
        "data.source",
        Kind::Choice(&["stories", "sentence-pairs", "path"]),
        "\"stories\"",
        "",
        "built-in stories, built-in labelled pairs, or data.path",
    ),
    field(
        "data.path",
        Kind::Text,
        "",
        "",
        "a UTF-8 text, .jsonl, .csv or .tsv file, or a folder of them; also .gz and .zst, and .parquet where the program was built for it; to classify: tables",
    ),
    field(
        "data.field",
        Kind::Text,
        "\"text\"",
        "",
        "what holds the text in .jsonl, .csv, .tsv and .parquet; empty: all of it",
    ),
    field("data.columns", Kind::List, "[]", "", "to classify: one or two sentences, then the label"),
    field(
        "data.tokenizer",
        Kind::Text,
        "\"bytes\"",
        "",
        "bytes, bpe:SIZE (learnt from the data), or the path of a tokenizer.json",
    ),
    field(
        "data.validation_fraction",
        Kind::Float { min: 0.0, max: 0.5 },
        "0.05",
        "",
        "share of the text held out",
    ),
    field("data.shuffle", Kind::Bool, "true", "", "a new seeded order of the sequences each epoch"),
    field("train.micro_batch", size(1, 1 << 16), "8", SEQUENCES, "one forward and backward pass"),
    field(
        "train.accumulate",
        Kind::Integer { min: 1, max: 4096 },
        "1",
        "micro-batches",
        "passes that make one update",
    ),
    field("train.seq_len", size(2, 1 << 20), "64", "tokens", "tokens in a sequence"),
    field("train.max_updates", at_least(1), "", "updates", "length of the run in optimizer updates"),
    field("train.epochs", at_least(1), "", "epochs", "length of the run in passes over the text"),
    field("train.seed", at_least(0), "1", "", "initial weights and data order"),
    field("train.device", Kind::Text, "\"auto\"", "", "auto, flex, libtorch-cpu or libtorch-cuda:N"),
    field(
        "train.precision",
        Kind::Choice(&["f32", "bf16"]),
        "\"f32\"",
        "",
        "type of the passes; parameters and optimizer state are f32 in either",
    ),
    field("train.tf32", Kind::Bool, "false", "", "products of f32 matrices in TF32, on CUDA alone"),
    field("train.validate_every", at_least(0), "50", "updates", "0 = only at the end"),
    field(
        "train.max_skipped",
        at_least(1),
        "10",
        "updates",
        "non-finite updates in a row after which the run ends",
    ),
    field(
        "optimizer.name",
        Kind::Choice(&["adamw", "adafactor", "adamw8bit", "sgd", "lion", "muon"]),
        "\"adamw\"",
        "",
        "which optimizer trains",
    ),
    field(
        "optimizer.no_decay",
        Kind::List,
        "[\"*norm*\", \"*.bias\"]",
        "",
        "names of parameters without weight decay; * stands for anything",
    ),
    field("optimizer.adamw.lr", RATE, "1e-3", "", "base learning rate"),
    field(
        "optimizer.adamw.betas",
        Kind::Pair { min: 0.0, max: 0.999_999_999 },
        "[0.9, 0.999]",
        "",
        "decay of the two moments",
    ),
    field("optimizer.adamw.eps", POSITIVE, "1e-8", "", "added to the root of the second moment"),
    field("optimizer.adamw.weight_decay", POSITIVE, "1e-2", "", "decoupled decay"),
    field("optimizer.adamw.amsgrad", Kind::Bool, "false", "", "divide by the largest second moment seen"),
    field("optimizer.adamw8bit.lr", RATE, "1e-3", "", "base learning rate"),
    field(
        "optimizer.adamw8bit.betas",
        Kind::Pair { min: 0.0, max: 0.999_999_999 },
        "[0.9, 0.999]",
        "",
        "decay of the two moments",
    ),
    field("optimizer.adamw8bit.eps", POSITIVE, "1e-8", "", "added to the root of the second moment"),
    field("optimizer.adamw8bit.weight_decay", POSITIVE, "1e-2", "", "decoupled decay"),
    field(
        "optimizer.adamw8bit.min_8bit_size",
        at_least(1),
        "4096",
        "elements",
        "smaller tensors keep f32 state",
    ),
    field(
        "optimizer.adamw8bit.blocksize",
        size(1, 1 << 16),
        "256",
        "elements",
        "elements that share one scale",
    ),
    field(
        "optimizer.adamw8bit.quantize_embeddings",
        Kind::Bool,
        "false",
        "",
        "8-bit state for embeddings, too",
    ),
    field("optimizer.adafactor.lr", RATE, "1e-3", "", "base learning rate"),
    field(
        "optimizer.adafactor.eps",
        Kind::Pair { min: 0.0, max: 1.0 },
        "[1e-30, 1e-3]",
        "",
        "added to the squared gradient; floor of the parameter scale",
    ),
    field(
        "optimizer.adafactor.clip_threshold",
        Kind::Float { min: 1e-9, max: f64::MAX },
        "1.0",
        "",
        "largest RMS of an update before the rate",
    ),
    field(
        "optimizer.adafactor.decay_rate",
        Kind::Float { min: -1.0, max: 0.0 },
        "-0.8",
        "",
        "beta2 of update t is 1 - t^decay_rate",
    ),
    field("optimizer.adafactor.beta1", BELOW_ONE, "", "", "set: keep a first moment of the update"),
    field("optimizer.adafactor.weight_decay", POSITIVE, "0.0", "", "decay, scaled like the rate"),
    field(
        "optimizer.adafactor.scale_parameter",
        Kind::Bool,
        "false",
        "",
        "scale the rate by the RMS of the parameter",
    ),
    field(
        "optimizer.adafactor.relative_step",
        Kind::Bool,
        "false",
        "",
        "its own rate min(1e-2, 1/sqrt(t)); switches the schedule off",
    ),
    field("optimizer.adafactor.warmup_init", Kind::Bool, "false", "", "relative_step starts from 1e-6 t"),
    field("optimizer.sgd.lr", RATE, "1e-3", "", "base learning rate"),
    field("optimizer.sgd.momentum", BELOW_ONE, "0.0", "", "0 keeps no state"),
    field(
        "optimizer.sgd.dampening",
        Kind::Float { min: 0.0, max: 1.0 },
        "0.0",
        "",
        "share of the gradient left out of the buffer",
    ),
    field("optimizer.sgd.weight_decay", POSITIVE, "0.0", "", "added to the gradient (L2)"),
    field("optimizer.sgd.nesterov", Kind::Bool, "false", "", "look ahead along the momentum"),
    field("optimizer.lion.lr", RATE, "1e-4", "", "base learning rate"),
    field(
        "optimizer.lion.betas",
        Kind::Pair { min: 0.0, max: 0.999_999_999 },
        "[0.9, 0.99]",
        "",
        "weight of the average in the update; decay of the average",
    ),
    field("optimizer.lion.weight_decay", POSITIVE, "0.0", "", "decoupled decay"),
    field("optimizer.muon.lr", RATE, "1e-3", "", "base learning rate of the matrices"),
    field("optimizer.muon.weight_decay", POSITIVE, "0.1", "", "decoupled decay of the matrices"),
    field("optimizer.muon.momentum", BELOW_ONE, "0.95", "", "decay of the averaged gradient"),
    field("optimizer.muon.nesterov", Kind::Bool, "true", "", "look ahead along the momentum"),
    field("optimizer.muon.eps", POSITIVE, "1e-7", "", "floor of the norm that is divided by"),
    field(
        "optimizer.muon.ns_steps",
        Kind::Integer { min: 1, max: 99 },
        "5",
        "steps",
        "Newton-Schulz iterations",
    ),
    field(
        "optimizer.muon.adjust_lr_fn",
        Kind::Choice(&["original", "match_rms_adamw"]),
        "\"original\"",
        "",
        "the rate by the matrix's shape",
    ),
    field("optimizer.muon.adamw_lr", RATE, "1e-3", "", "base rate of embeddings, head and vectors"),
    field(
        "optimizer.muon.adamw_betas",
        Kind::Pair { min: 0.0, max: 0.999_999_999 },
        "[0.9, 0.999]",
        "",
        "decay of their two moments",
    ),
    field("optimizer.muon.adamw_eps", POSITIVE, "1e-8", "", "added to the root of their second moment"),
    field("optimizer.muon.adamw_weight_decay", POSITIVE, "1e-2", "", "their decoupled decay"),
    field(
        "schedule.name",
        Kind::Choice(&["cosine", "linear", "constant"]),
        "\"cosine\"",
        "",
        "shape after the warm-up",
    ),
    field("schedule.warmup_updates", at_least(0), "0", "updates", "linear rise to the base rate"),
    field(
        "schedule.start_factor",
        Kind::Float { min: 0.0, max: 1.0 },
        "0.0",
        "",
        "share of the rate the warm-up starts from",
    ),
    field("schedule.min_lr", RATE, "0.0", "", "the rate the decay ends at"),
    field("clip.max_norm", POSITIVE, "1.0", "", "largest global gradient norm; 0 = off"),
    field("checkpoint.every_updates", at_least(0), "0", "updates", "0 = at the end and on stop"),
    field("checkpoint.every_seconds", at_least(0), "600", "seconds", "0 = by updates alone"),
    field("checkpoint.keep_last", at_least(1), "2", "checkpoints", "older ones are removed"),
    field(
        "checkpoint.keep_best",
        Kind::Bool,
        "true",
        "",
        "save and keep the one of the lowest validation loss, too, at most every 10 s",
    ),
    field("log.every_updates", at_least(1), "1", "updates", "between two update events"),
    field("log.state_every", at_least(0), "50", "updates", "between two state events; 0 = none"),
    field(
        "log.tensorboard",
        Kind::Bool,
        "false",
        "",
        "a folder `tensorboard` in the run's that grows with it",
    ),
    field("log.sample_tokens", size(0, 4096), "48", "tokens", "text written at each validation; 0 = none"),
    field("log.sample_prompt", size(1, 4096), "16", "tokens", "of the held-out text that it goes on with"),
    field(
        "log.sample_temperature",
        Kind::Float { min: 0.0, max: 100.0 },
        "0.8",
        "",
        "of a second text; 0 = only the likeliest tokens",
    ),
];

/// The architectures that a key belongs to; `None` when it belongs to all.
pub fn arches(key: &str) -> Option<&'static [Arch]> {
    match key {
        "model.num_key_value_heads" | "model.rope_theta" | "model.rms_norm_eps" => Some(&[Arch::Llama]),
        "model.tie_word_embeddings" => Some(&[Arch::Llama]),
        "log.sample_tokens" | "log.sample_prompt" | "log.sample_temperature" => {
            Some(&[Arch::Llama, Arch::Gpt2])
        }
        "model.max_position_embeddings" => Some(&[Arch::DistilBert, Arch::Gpt2]),
        "model.dropout"
        | "model.attention_dropout"
        | "model.seq_classif_dropout"
        | "model.num_labels"
        | "data.columns" => Some(&[Arch::DistilBert]),
        "data.field" => Some(&[Arch::Llama, Arch::Gpt2]),
        _ => None,
    }
}

/// Whether a key has an effect on models of that architecture.
pub fn applies(key: &str, arch: Arch) -> bool {
    let (section, name) = key.split_once('.').unwrap_or((key, ""));
    match arch {
        // The task brings its model and its data along; the passes compute as it wrote them.
        Arch::Own => match section {
            "model" => matches!(name, "preset" | "weights"),
            "data" => name == "shuffle",
            "train" => !matches!(name, "seq_len" | "precision"),
            _ => true,
        },
        // Such a loop reads no setting of this program.
        Arch::Loop => section == own::SECTION || key == "model.preset",
        _ => section != own::SECTION && arches(key).is_none_or(|arches| arches.contains(&arch)),
    }
}

/// Every key there is: those of the table, then those of the program's own task.
pub fn all() -> impl Iterator<Item = &'static Field> {
    own::all_fields()
}

/// The field of that key.
pub fn find(key: &str) -> Option<&'static Field> {
    all().find(|field| field.key == key)
}

/// The known key that is written most like `key`, if one is close at all; its short form when a short form was written.
pub fn nearest(key: &str) -> Option<String> {
    let last = key.rsplit('.').next().unwrap_or(key);
    all()
        .map(|field| {
            let name = field.key.rsplit('.').next().unwrap_or(field.key);
            let whole = strsim::jaro_winkler(key, field.key);
            (whole.max(strsim::jaro_winkler(last, name) - 0.02), field.key)
        })
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .filter(|(likeness, _)| *likeness > 0.8)
        .map(|(_, found)| match found.split('.').collect::<Vec<_>>()[..] {
            ["optimizer", _, last] if key.matches('.').count() == 1 => format!("optimizer.{last}"),
            _ => found.to_owned(),
        })
}
