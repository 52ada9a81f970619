//! An estimate of the activations that live at the worst moment of a micro-batch: when the backward pass has begun and
//! hardly anything has been given up yet.
//!
//! Counted are the tensors that the operations of this program keep for the backward pass, and what is in flight in the
//! last layer when it begins. In each formula `d` is the width of the residual stream, `k` that of the keys, `f` that of
//! the feed-forward layer, `v` the vocabulary, all numbers a token; `s` are the attention scores of a token, one a head
//! and key.
//!
//! Flex runs the plain bodies of the operations: a softmax keeps its scores, their exponentials and the probabilities,
//! `3 s`; a norm keeps what it has centred and what it has scaled, and its output is kept by whoever uses it, `3 d`.
//! libtorch runs each as one node that keeps what goes in and what comes out: no scores where attention is one kernel,
//! `2 d` for a norm on CUDA and `3 d` on the processor. Until a run's device is known it is taken to be flex, which needs more.
//!
//! All rows are taken to be `train.seq_len` long: a batch of shorter rows needs less.

use std::ops::Add;

use crate::config::{Arch, Config, DeviceName, ModelConfig, Precision};

use super::F32;

/// Estimated bytes of activations of one micro-batch; 0 where nothing is known of them.
pub fn estimate(config: &Config) -> u64 {
    let (model, train) = (&config.model, &config.train);
    let sizes = Sizes::of(config);
    let Numbers { passes, f32 } = match model.arch {
        Arch::Llama => llama(&sizes),
        Arch::DistilBert => distilbert(&sizes, model),
        Arch::Gpt2 => gpt2(&sizes),
        // Its shapes do not tell what its passes keep.
        Arch::Own | Arch::Loop => Numbers::default(),
    };
    let each = u128::from(train.precision.bytes()) * passes as u128 + u128::from(F32) * f32 as u128;
    // The largest sizes that may be set are more than a u64 of bytes.
    u64::try_from((train.micro_batch * train.seq_len) as u128 * each).unwrap_or(u64::MAX)
}

/// Numbers a token that are kept: in the type of the passes, and in f32 whatever that is.
#[derive(Debug, Clone, Copy, Default)]
struct Numbers {
    passes: usize,
    f32: usize,
}

impl Numbers {
    const fn of_passes(passes: usize) -> Self {
        Self { passes, f32: 0 }
    }

    const fn times(self, layers: usize) -> Self {
        Self { passes: layers * self.passes, f32: layers * self.f32 }
    }
}

impl Add for Numbers {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { passes: self.passes + other.passes, f32: self.f32 + other.f32 }
    }
}

/// Numbers a token, and how the device keeps them.
struct Sizes {
    layers: usize,
    d: usize,
    k: usize,
    f: usize,
    s: usize,
    v: usize,
    /// Operations are single nodes.
    fused: bool,
    /// Of a norm that is one: CUDA has a kernel for it, the processor makes it of parts and keeps one of them.
    fused_norm: usize,
    /// The passes are narrower than f32, so that what goes over to f32 is there twice.
    narrow: bool,
}

impl Sizes {
    fn of(config: &Config) -> Self {
        let (model, train) = (&config.model, &config.train);
        Self {
            layers: model.num_hidden_layers,
            d: model.hidden_size,
            k: model.num_key_value_heads * model.head_dim(),
            f: model.intermediate_size,
            s: model.num_attention_heads * train.seq_len,
            v: model.vocab_size,
            fused: !matches!(train.device, DeviceName::Auto | DeviceName::Flex),
            fused_norm: if matches!(train.device, DeviceName::LibtorchCuda(_)) { 2 } else { 3 },
            narrow: train.precision != Precision::F32,
        }
    }

    const fn norm(&self) -> Numbers {
        if self.fused {
            Numbers::of_passes(self.fused_norm * self.d)
        } else {
            Numbers { passes: self.d, f32: 2 * self.d }
        }
    }

    /// Of attention without dropout.
    fn softmax(&self) -> Numbers {
        match self.fused {
            true => Numbers::default(),
            false => Numbers { passes: usize::from(self.narrow) * self.s, f32: 3 * self.s },
        }
    }

    /// What a language model has beside its layers: the last norm; the logits, and then either what cross-entropy makes of
    /// them (flex: shifted, their exponentials and two gradients; libtorch: one gradient), or what is in flight in the last
    /// layer.
    fn head(&self, in_flight: usize) -> Numbers {
        let logits = if self.fused {
            Numbers::of_passes(self.v + self.v.max(in_flight))
        } else {
            Numbers { passes: 0, f32: self.v + (3 * self.v).max(in_flight) }
        };
        self.norm() + logits
    }

    /// In flight behind a gelu: the gradients of what goes in and what comes out, less what has been given up by then.
    const fn behind_gelu(&self) -> usize {
        (2 * self.f).saturating_sub(self.d)
    }
}

/// A layer: two norms; the turned queries and the mixed values `2 d`; keys and values `2 k`; of SwiGLU the gate, its
/// sigmoid, its activation, the other branch and their product `5 f`. As single nodes: queries and keys before they are
/// turned, too, `d + k`, and no sigmoid. In flight are the gradients of the product and of a layer's output.
fn llama(sizes: &Sizes) -> Numbers {
    let Sizes { layers, d, k, f, .. } = *sizes;
    let rest = if sizes.fused { 3 * d + 3 * k + 4 * f } else { 2 * d + 2 * k + 5 * f };
    let layer = sizes.norm().times(2) + sizes.softmax() + Numbers::of_passes(rest);
    layer.times(layers) + sizes.head(d + f)
}

/// A layer: two norms; queries, keys, values and the mixed values `4 d`; the feed-forward layer before and after
/// its activation `2 f`. Dropout keeps its mask, that of the attention also what is left of the probabilities in place of
/// them, and its scores are there on every device. The classifier sees one token a row and is too small to count.
fn distilbert(sizes: &Sizes, model: &ModelConfig) -> Numbers {
    let Sizes { layers, d, f, s, .. } = *sizes;
    let mask = usize::from(model.dropout > 0.0) * d;
    let attention = match (model.attention_dropout > 0.0, sizes.fused) {
        (true, true) => Numbers::of_passes(4 * s + d),
        (true, false) => sizes.softmax() + Numbers::of_passes(s),
        (false, _) => sizes.softmax(),
    };
    // Two gradients of the scores, once what the feed-forward layer and its norm kept has been given up.
    let behind_softmax = (2 * s).saturating_sub(2 * f + 2 * d);
    let in_flight = sizes.behind_gelu().max(behind_softmax);
    let layer = sizes.norm().times(2) + attention + Numbers::of_passes(4 * d + mask + 2 * f);
    layer.times(layers) + Numbers::of_passes(2 * d + mask + in_flight)
}

/// Cannot be trained here; counted as if it were, without dropout. A layer: two norms; queries, keys and values in
/// one and the mixed values `4 d`; the feed-forward layer before and after its activation `2 f`.
fn gpt2(sizes: &Sizes) -> Numbers {
    let Sizes { layers, d, f, .. } = *sizes;
    let layer = sizes.norm().times(2) + sizes.softmax() + Numbers::of_passes(4 * d + 2 * f);
    layer.times(layers) + sizes.head(sizes.behind_gelu())
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
    fn bf16_halves_what_single_nodes_keep_and_spares_less_of_the_plain_ones() {
        for preset in ["llama-nano", "distilbert-nano"] {
            let of = |device: &str, precision: &str| {
                estimated(&[&format!("model.preset={preset}"), device, precision]) as f64
            };
            let share = |device| of(device, "train.precision=bf16") / of(device, "train.precision=f32");
            assert_eq!(share("train.device=libtorch-cpu"), 0.5);
            let plain = share("train.device=flex");
            assert!(plain > 0.6 && plain < 0.95, "{preset}: {plain}");
        }
    }

    #[test]
    fn attention_in_one_kernel_keeps_no_scores() {
        let of = |device: &str| estimated(&[device, "train.seq_len=256"]);
        assert!(of("train.device=libtorch-cuda:0") < of("train.device=libtorch-cpu"));
        assert!(of("train.device=libtorch-cpu") < of("train.device=flex") / 2);
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
