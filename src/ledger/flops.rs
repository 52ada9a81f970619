//! Floating-point operations of training, counted product by product from a model's shapes: what the model asks for, not
//! what a device happens to compute.
//!
//! The product of `[n, i]` and `[i, o]` is `2 n i o` operations, a multiplication and an addition each. A weight of `e`
//! elements that a token goes through is `2 e` forward, and twice that backward, for the gradients of what went in and of
//! the weight: `6 e`. Attention multiplies queries with keys and probabilities with values: `4 d` forward for each layer
//! and pair of places of a row, `12 d` in all, `d` being the width of all heads together; that half of the pairs are
//! masked is not taken off. This is `6 N + 12 L H Q T` a token of Chowdhery et al. 2022 (arXiv 2204.02311, appendix B),
//! with `N` counted weight by weight: a tied embedding is the head and counts, the lookup of an embedding does not.
//! Norms, activations, softmax, the loss and the optimizer are left out, as they are there: they are less than a hundredth
//! of all but the smallest models. Filled places do not count.

use super::shapes::{Role, parameters};
use crate::config::{Arch, ModelConfig};

/// Operations of the forward and the backward pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flops {
    /// For each token of a row.
    pub per_token: u64,
    /// For each pair of tokens of a row: attention.
    pub per_pair: u64,
    /// For each row: the head of a classification.
    pub per_row: u64,
}

impl Flops {
    /// Of a model with these sizes.
    pub fn of(model: &ModelConfig) -> Self {
        let (mut per_token, mut per_row) = (0_u64, 0_u64);
        for parameter in parameters(model).iter().filter(|parameter| parameter.shape.len() == 2) {
            // The head of a classification sees the first place of a row alone.
            let of_row = model.arch == Arch::DistilBert && parameter.name.contains("classifier");
            match Role::of(&parameter.name) {
                Role::Embedding | Role::Norm => {}
                _ if of_row => per_row = per_row.saturating_add(6 * parameter.elements()),
                _ => per_token = per_token.saturating_add(6 * parameter.elements()),
            }
        }
        let tied = match model.arch {
            Arch::Llama => model.tie_word_embeddings,
            Arch::Gpt2 => true,
            Arch::DistilBert | Arch::Own | Arch::Loop => false,
        };
        if tied {
            per_token = per_token.saturating_add(6 * (model.vocab_size * model.hidden_size) as u64);
        }
        let width = (model.num_attention_heads * model.head_dim()) as u64;
        Self { per_token, per_pair: 12 * model.num_hidden_layers as u64 * width, per_row }
    }

    /// Of one row of so many tokens.
    pub fn row(&self, tokens: usize) -> f64 {
        let tokens = tokens as f64;
        if tokens == 0.0 {
            return 0.0;
        }
        tokens.mul_add(self.per_token as f64, tokens * tokens * self.per_pair as f64) + self.per_row as f64
    }

    /// Of rows of these lengths.
    pub fn rows(&self, lengths: impl IntoIterator<Item = usize>) -> f64 {
        lengths.into_iter().map(|tokens| self.row(tokens)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Layers;

    fn of(preset: &str) -> (ModelConfig, Flops) {
        let layers = Layers::new().with_assignment(&format!("model.preset={preset}")).unwrap();
        let model = layers.resolve().unwrap().config.model;
        let flops = Flops::of(&model);
        (model, flops)
    }

    #[test]
    fn products_are_counted_one_by_one() {
        // By hand, each product of one token of the demo: outputs x inputs.
        let layer = 64 * 64 + 2 * (32 * 64) + 64 * 64 + 3 * 192 * 64;
        let (_, flops) = of("llama-nano");
        assert_eq!(flops.per_token, 6 * (2 * layer + 256 * 64));
        // Two layers of 4 heads of 16.
        assert_eq!((flops.per_pair, flops.per_row), (12 * 2 * 64, 0));
        assert_eq!(flops.row(64), 64.0 * 688_128.0 + 64.0 * 64.0 * 1536.0);
        assert_eq!(flops.rows([64, 1, 0]), flops.row(64) + 688_128.0 + 1536.0);
    }

    #[test]
    fn the_formula_of_the_source_comes_out() {
        // 6 N + 12 L H Q T a token, N without the embedding that is looked up.
        for preset in ["llama-160m", "tinyllama-1.1b", "gpt2-124m"] {
            let (model, flops) = of(preset);
            let looked_up =
                |name: &str| name.contains("embed_tokens") || name.contains("wte") || name.contains("wpe");
            let n: u64 = parameters(&model)
                .iter()
                .filter(|p| p.shape.len() == 2 && !looked_up(&p.name))
                .map(|p| p.elements())
                .sum();
            let head = (model.vocab_size * model.hidden_size) as u64;
            let tied = !parameters(&model).iter().any(|p| p.name == "lm_head.weight");
            let n = if tied { n + head } else { n };
            let time = 1024.0;
            let attention = 12.0 * (model.num_hidden_layers * model.hidden_size) as f64 * time;
            let expected = 6.0_f64.mul_add(n as f64, attention) * time;
            assert!((flops.row(1024) / expected - 1.0).abs() < 1e-12, "{preset}");
        }
    }

    #[test]
    fn the_head_of_a_classification_counts_once_a_row() {
        let (model, flops) = of("distilbert-base-cased");
        assert_eq!(flops.per_row, 6 * (768 * 768 + model.num_labels as u64 * 768));
        assert_eq!(flops.per_token, 6 * 6 * (4 * 768 * 768 + 2 * 768 * 3072));
    }
}
