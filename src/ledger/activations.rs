//! An estimate of the activations that live at the worst moment of a micro-batch: when the backward pass has begun and
//! hardly anything has been given up yet.
//!
//! Counted are the tensors that the operations of this program keep for the backward pass, and what is in flight in the
//! last layer when it begins. In each formula `d` is the width of the residual stream, `k` that of the keys, `f` that of
//! the feed-forward layer, `v` the vocabulary, all numbers a token; `s` are the attention scores of a token, one a head
//! and key. A softmax keeps its scores, their exponentials and the probabilities: `3 s`. A norm keeps what it has centred
//! and what it has scaled, and its output is kept by whoever uses it: `3 d`.
//!
//! All rows are taken to be `train.seq_len` long: a batch of shorter rows needs less.

use crate::config::{Arch, Config, ModelConfig};

use super::F32;

/// Estimated bytes of activations of one micro-batch.
pub fn estimate(config: &Config) -> u64 {
    let (model, train) = (&config.model, &config.train);
    let sizes = Sizes::of(model, train.seq_len);
    let each = match model.arch {
        Arch::Llama => llama(&sizes),
        Arch::DistilBert => distilbert(&sizes, model),
        Arch::Gpt2 => gpt2(&sizes),
    };
    // The largest sizes that may be set are more than a u64 of bytes.
    let bytes = u128::from(F32) * (train.micro_batch * train.seq_len) as u128 * each as u128;
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

/// Numbers a token.
struct Sizes {
    layers: usize,
    d: usize,
    k: usize,
    f: usize,
    s: usize,
    v: usize,
}

impl Sizes {
    fn of(model: &ModelConfig, seq_len: usize) -> Self {
        Self {
            layers: model.num_hidden_layers,
            d: model.hidden_size,
            k: model.num_key_value_heads * model.head_dim(),
            f: model.intermediate_size,
            s: model.num_attention_heads * seq_len,
            v: model.vocab_size,
        }
    }

    /// What a language model has beside its layers: the last norm; the shifted logits, and then either their
    /// exponentials and two gradients, or what is in flight in the last layer.
    fn head(&self, in_flight: usize) -> usize {
        3 * self.d + self.v + (3 * self.v).max(in_flight)
    }

    /// In flight behind a gelu: the gradients of what goes in and what comes out, less what has been given up by then.
    const fn behind_gelu(&self) -> usize {
        (2 * self.f).saturating_sub(self.d)
    }
}

/// A layer: two norms `6 d`; the turned queries and the mixed values `2 d`; keys and values `2 k`; of SwiGLU the gate, its
/// sigmoid, its activation, the other branch and their product `5 f`. In flight are the gradients of the product and of a
/// layer's output.
fn llama(sizes: &Sizes) -> usize {
    let Sizes { layers, d, k, f, s, .. } = sizes;
    layers * (8 * d + 2 * k + 5 * f + 3 * s) + sizes.head(d + f)
}

/// A layer: two norms `6 d`; queries, keys, values and the mixed values `4 d`; the feed-forward layer before and after
/// its activation `2 f`. Dropout keeps its mask, that of the attention also what is left of the probabilities in place of
/// them. The classifier sees one token a row and is too small to count.
fn distilbert(sizes: &Sizes, model: &ModelConfig) -> usize {
    let Sizes { layers, d, f, s, .. } = sizes;
    let mask = usize::from(model.dropout > 0.0) * d;
    let attention = 3 * s + usize::from(model.attention_dropout > 0.0) * s;
    // Two gradients of the scores, once what the feed-forward layer and its norm kept has been given up.
    let behind_softmax = (2 * s).saturating_sub(2 * f + 2 * d);
    let in_flight = sizes.behind_gelu().max(behind_softmax);
    layers * (10 * d + mask + 2 * f + attention) + 2 * d + mask + in_flight
}

/// Cannot be trained here; counted as if it were, without dropout. A layer: two norms `6 d`; queries, keys and values in
/// one and the mixed values `4 d`; the feed-forward layer before and after its activation `2 f`.
fn gpt2(sizes: &Sizes) -> usize {
    let Sizes { layers, d, f, s, .. } = sizes;
    layers * (10 * d + 2 * f + 3 * s) + sizes.head(sizes.behind_gelu())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Layers;

    fn estimated(settings: &[&str]) -> u64 {
        estimate(&Layers::new().with_assignments(settings).unwrap().resolve().unwrap().config)
    }

    #[test]
    fn a_longer_row_costs_more_than_in_proportion_and_a_larger_batch_in_proportion() {
        for preset in ["llama-nano", "distilbert-nano", "gpt2-124m"] {
            let of =
                |setting: &str| estimated(&[&format!("model.preset={preset}"), "train.seq_len=64", setting]);
            let one = of("train.micro_batch=1");
            assert_eq!(of("train.micro_batch=6"), 6 * one, "{preset}");
            let longer =
                estimated(&[&format!("model.preset={preset}"), "train.seq_len=128", "train.micro_batch=1"]);
            assert!(longer > 2 * one && longer < 4 * one, "{preset}: {one} and {longer}");
        }
    }

    #[test]
    fn dropout_costs_its_masks() {
        let nano = "model.preset=distilbert-nano";
        let all = estimated(&[nano]);
        let tokens = 16 * 128;
        assert_eq!(all - estimated(&[nano, "model.dropout=0"]), 4 * tokens * 3 * 64);
        assert_eq!(all - estimated(&[nano, "model.attention_dropout=0"]), 4 * tokens * 2 * 4 * 128);
        assert_eq!(all, estimated(&[nano, "model.seq_classif_dropout=0"]));
    }

    #[test]
    fn shared_keys_cost_less_and_gpt2_has_none() {
        let llama = |shared: &str| estimated(&[shared]);
        assert!(llama("model.num_key_value_heads=1") < llama("model.num_key_value_heads=4"));
        // Width 768, 12 heads and layers, a vocabulary of 50257 whose logits weigh most.
        let layer = 10 * 768 + 2 * 3072 + 3 * 12 * 1024;
        let expected = 4 * 1024 * (12 * layer + 3 * 768 + 4 * 50257);
        let set = ["model.preset=gpt2-124m", "train.seq_len=1024", "train.micro_batch=1"];
        assert_eq!(estimated(&set), expected);
    }
}
