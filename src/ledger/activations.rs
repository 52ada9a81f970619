//! An estimate of the activations that live at the end of a forward pass.

use crate::config::{Arch, Config};

use super::F32;

/// Estimated bytes of activations of one micro-batch.
///
/// Counts the tensors that the backward pass of the decomposed operations keeps: per layer about 30 of the
/// residual's size, 6 of the feed-forward's, 5 of the attention scores', and 5 of the logits' size at the head.
pub fn estimate(config: &Config) -> u64 {
    match config.model.arch {
        Arch::Llama => llama(config),
    }
}

fn llama(config: &Config) -> u64 {
    let (model, train) = (&config.model, &config.train);
    let tokens = (train.micro_batch * train.seq_len) as u64;
    let scores = tokens * (model.num_attention_heads * train.seq_len) as u64;
    let layer = tokens * (30 * model.hidden_size as u64 + 6 * model.intermediate_size as u64) + 5 * scores;
    let head = 5 * tokens * model.vocab_size as u64;
    F32 * (layer * model.num_hidden_layers as u64 + head)
}
