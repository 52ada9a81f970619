//! Parameter names and shapes without a single tensor: what Hugging Face's checkpoint of the model holds.

use crate::config::{Arch, ModelConfig};

/// One parameter: Hugging Face's name, PyTorch's shape (`[out, in]` for a linear layer).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParameterShape {
    pub name: String,
    pub shape: Vec<usize>,
}

impl ParameterShape {
    /// Number of elements.
    pub fn elements(&self) -> u64 {
        self.shape.iter().map(|&length| length as u64).product()
    }
}

/// What a parameter is for, as far as optimizers treat it differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Rows are looked up, so that most have no gradient in an update.
    Embedding,
    /// The last layer, which makes logits.
    Head,
    /// Scales and shifts what has been normalised.
    Norm,
    Other,
}

impl Role {
    /// The role by Hugging Face's name: the module that owns the weight is called after what it does.
    pub fn of(name: &str) -> Self {
        if name.rsplit_once('.').is_some_and(|(path, _)| is_norm(last(path))) {
            return Self::Norm;
        }
        match name.strip_suffix(".weight").map(last) {
            Some("wte" | "wpe") => Self::Embedding,
            Some(module) if module.starts_with("embed") || module.ends_with("_embeddings") => Self::Embedding,
            Some("lm_head" | "classifier" | "score") => Self::Head,
            _ => Self::Other,
        }
    }
}

fn last(path: &str) -> &str {
    path.rsplit('.').next().unwrap_or(path)
}

/// Hugging Face's names: `norm`, `input_layernorm`, `sa_layer_norm`, `LayerNorm`, `ln_1`.
fn is_norm(module: &str) -> bool {
    let end = module.len().saturating_sub("norm".len());
    module.get(end..).is_some_and(|end| end.eq_ignore_ascii_case("norm")) || module.starts_with("ln_")
}

/// Every parameter of the model, in the order of its checkpoint. A tied head is not a parameter of its own.
pub fn parameters(model: &ModelConfig) -> Vec<ParameterShape> {
    match model.arch {
        Arch::Llama => llama(model),
        Arch::DistilBert => distilbert(model),
        Arch::Gpt2 => gpt2(model),
        Arch::Own | Arch::Loop => {
            model.parameters.iter().map(|parameter| named(&parameter.name, &parameter.shape)).collect()
        }
    }
}

/// `LlamaForCausalLM` without biases.
fn llama(model: &ModelConfig) -> Vec<ParameterShape> {
    let (width, feed) = (model.hidden_size, model.intermediate_size);
    let shared = model.num_key_value_heads * model.head_dim();
    let mut all = vec![named("model.embed_tokens.weight", &[model.vocab_size, width])];
    for layer in 0..model.num_hidden_layers {
        for (name, shape) in [
            ("self_attn.q_proj", &[width, width][..]),
            ("self_attn.k_proj", &[shared, width]),
            ("self_attn.v_proj", &[shared, width]),
            ("self_attn.o_proj", &[width, width]),
            ("mlp.gate_proj", &[feed, width]),
            ("mlp.up_proj", &[feed, width]),
            ("mlp.down_proj", &[width, feed]),
            ("input_layernorm", &[width]),
            ("post_attention_layernorm", &[width]),
        ] {
            all.push(named(&format!("model.layers.{layer}.{name}.weight"), shape));
        }
    }
    all.push(named("model.norm.weight", &[width]));
    if !model.tie_word_embeddings {
        all.push(named("lm_head.weight", &[model.vocab_size, width]));
    }
    all
}

/// `DistilBertForSequenceClassification`: every layer has a bias.
fn distilbert(model: &ModelConfig) -> Vec<ParameterShape> {
    let (width, feed) = (model.hidden_size, model.intermediate_size);
    let embeddings = "distilbert.embeddings";
    let mut all = vec![
        named(&format!("{embeddings}.word_embeddings.weight"), &[model.vocab_size, width]),
        named(&format!("{embeddings}.position_embeddings.weight"), &[model.max_position_embeddings, width]),
    ];
    with_bias(&mut all, &format!("{embeddings}.LayerNorm"), &[width]);
    for layer in 0..model.num_hidden_layers {
        for (name, shape) in [
            ("attention.q_lin", &[width, width][..]),
            ("attention.k_lin", &[width, width]),
            ("attention.v_lin", &[width, width]),
            ("attention.out_lin", &[width, width]),
            ("sa_layer_norm", &[width]),
            ("ffn.lin1", &[feed, width]),
            ("ffn.lin2", &[width, feed]),
            ("output_layer_norm", &[width]),
        ] {
            with_bias(&mut all, &format!("distilbert.transformer.layer.{layer}.{name}"), shape);
        }
    }
    with_bias(&mut all, "pre_classifier", &[width, width]);
    with_bias(&mut all, "classifier", &[model.num_labels, width]);
    all
}

/// `GPT2LMHeadModel`, whose head is its embedding and whose `Conv1D` weights are `[in, out]`.
fn gpt2(model: &ModelConfig) -> Vec<ParameterShape> {
    let (width, feed) = (model.hidden_size, model.intermediate_size);
    let mut all = vec![
        named("transformer.wte.weight", &[model.vocab_size, width]),
        named("transformer.wpe.weight", &[model.max_position_embeddings, width]),
    ];
    for layer in 0..model.num_hidden_layers {
        for (name, shape) in [
            ("ln_1", &[width][..]),
            ("attn.c_attn", &[width, 3 * width]),
            ("attn.c_proj", &[width, width]),
            ("ln_2", &[width]),
            ("mlp.c_fc", &[width, feed]),
            ("mlp.c_proj", &[feed, width]),
        ] {
            let path = format!("transformer.h.{layer}.{name}");
            all.push(named(&format!("{path}.weight"), shape));
            all.push(named(&format!("{path}.bias"), &shape[shape.len() - 1..]));
        }
    }
    with_bias(&mut all, "transformer.ln_f", &[width]);
    all
}

/// A weight and a bias of its first axis.
fn with_bias(all: &mut Vec<ParameterShape>, path: &str, shape: &[usize]) {
    all.push(named(&format!("{path}.weight"), shape));
    all.push(named(&format!("{path}.bias"), &shape[..1]));
}

fn named(name: &str, shape: &[usize]) -> ParameterShape {
    ParameterShape { name: name.to_owned(), shape: shape.to_vec() }
}
