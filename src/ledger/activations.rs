//! An estimate of the activations that live when the backward pass begins, which is when most are alive.

use crate::config::{Arch, Config};

use super::F32;

/// Estimated bytes of activations of one micro-batch.
pub fn estimate(config: &Config) -> u64 {
    match config.model.arch {
        // The planned one is counted as if its feed-forward were as wide; it shares the decoder's shape.
        Arch::Llama | Arch::Gpt2 => llama(config),
        Arch::DistilBert => distilbert(config),
    }
}

/// Counts, a token, the tensors that the backward pass of the decomposed operations keeps.
///
/// A layer: 9 of the residual's width (two norms keep input, normalised and scaled; the query before and after its
/// rotation; the mixed values), 3 of the keys' width, 5 of the feed-forward's, and 2 of the attention scores (the
/// exponentials and the probabilities). The head: 4 of the vocabulary (the exponentials and three gradients).
fn llama(config: &Config) -> u64 {
    let (model, train) = (&config.model, &config.train);
    let tokens = (train.micro_batch * train.seq_len) as u64;
    let keys = model.num_key_value_heads * model.head_dim();
    let scores = model.num_attention_heads * train.seq_len;
    let layer = 9 * model.hidden_size + 3 * keys + 5 * model.intermediate_size + 2 * scores;
    let head = 4 * model.vocab_size;
    F32 * tokens * (layer * model.num_hidden_layers + head) as u64
}

/// As above, a token. A layer: 11 of the residual's width (query, key, value, the mixed values, the sums and two
/// norms with their centred inputs), 3 of the feed-forward's (before and after the activation and its error
/// function), 3 of the attention scores with dropout, 2 without. The classifier sees one token a row.
fn distilbert(config: &Config) -> u64 {
    let (model, train) = (&config.model, &config.train);
    let tokens = (train.micro_batch * train.seq_len) as u64;
    let scores = (2 + usize::from(model.attention_dropout > 0.0)) * model.num_attention_heads * train.seq_len;
    let layer = 11 * model.hidden_size + 3 * model.intermediate_size + scores;
    F32 * tokens * (layer * model.num_hidden_layers + 3 * model.hidden_size) as u64
}
