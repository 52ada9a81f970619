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

/// Every parameter of the model, in the order of its checkpoint. A tied head is not a parameter of its own.
pub fn parameters(model: &ModelConfig) -> Vec<ParameterShape> {
    match model.arch {
        Arch::Llama => llama(model),
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

fn named(name: &str, shape: &[usize]) -> ParameterShape {
    ParameterShape { name: name.to_owned(), shape: shape.to_vec() }
}
