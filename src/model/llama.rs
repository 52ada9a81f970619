//! Llama (Touvron et al. 2023): pre-norm decoder with rotary embedding, grouped-query attention and SwiGLU, under
//! the parameter names of Hugging Face's `LlamaForCausalLM`.

use burn::{
    module::Module,
    tensor::{Device, Int, Tensor, TensorData},
};

use super::{
    Noise, Seen, SummedLoss, TrainModel,
    init::Init,
    layers::{Embedding, Linear, RmsNorm},
    loss, mask,
    rotary::Rotary,
    seen::SeenByLayer,
};
use crate::{
    backend::ops::{self, AttentionMask},
    config::{Config, ModelConfig},
    data::batch::Batch,
    ledger::Flops,
};

/// The whole language model. Without `lm_head` the embedding is the head: one parameter, one state.
#[derive(Module, Debug)]
pub struct Llama {
    model: Decoder,
    lm_head: Option<Linear>,
    #[module(skip)]
    tables: Tables,
}

#[derive(Module, Debug)]
struct Decoder {
    embed_tokens: Embedding,
    layers: Vec<Layer>,
    norm: RmsNorm,
}

#[derive(Module, Debug)]
struct Layer {
    self_attn: Attention,
    mlp: FeedForward,
    input_layernorm: RmsNorm,
    post_attention_layernorm: RmsNorm,
}

#[derive(Module, Debug)]
struct Attention {
    q_proj: Linear,
    k_proj: Linear,
    v_proj: Linear,
    o_proj: Linear,
    #[module(skip)]
    heads: usize,
    #[module(skip)]
    shared: usize,
}

#[derive(Module, Debug)]
struct FeedForward {
    gate_proj: Linear,
    up_proj: Linear,
    down_proj: Linear,
}

/// What does not depend on the weights, made once.
#[derive(Debug, Clone)]
struct Tables {
    rotary: Rotary,
    causal_tt: Tensor<2>,
    device: Device,
}

impl TrainModel for Llama {
    fn init(config: &Config, device: &Device) -> Self {
        let model = &config.model;
        let plain = device.clone().inner();
        let init = Init::new(config.train.seed, device);
        let tables = Tables {
            rotary: Rotary::new(config.train.seq_len, model.head_dim(), model.rope_theta, &plain),
            causal_tt: mask::causal(config.train.seq_len, &plain),
            device: plain,
        };
        let lm_head = (!model.tie_word_embeddings)
            .then(|| Linear::new(&init.at("lm_head"), model.hidden_size, model.vocab_size));
        Self { model: Decoder::new(model, &init.at("model")), lm_head, tables }
    }

    /// Llama has no dropout.
    fn loss(&self, batch: &Batch, _: &Noise) -> SummedLoss {
        let logits_btv = self.forward(batch);
        let [rows, time, vocabulary] = logits_btv.dims();
        let logits_nv = logits_btv.reshape([rows * time, vocabulary]);
        let sum = loss::cross_entropy_sum(logits_nv, &batch.targets, &self.tables.device);
        SummedLoss { sum, targets: batch.target_count }
    }

    fn flops(config: &Config) -> Option<Flops> {
        Some(Flops::of(&config.model))
    }

    fn next_token(&self, batch: &Batch, seen: &mut Seen) -> Option<Tensor<2>> {
        let last = batch.seq_len.checked_sub(1)?;
        let x_btd = self.hidden(batch, Some(seen)).narrow(1, last, 1);
        Some(self.head(x_btd).squeeze_dim(1))
    }
}

impl Llama {
    /// Logits `[b, t, v]` of a batch's inputs.
    pub fn forward(&self, batch: &Batch) -> Tensor<3> {
        self.head(self.hidden(batch, None))
    }

    /// What the layers make of a batch's inputs, behind what was seen of its rows: `[b, t, d]`.
    fn hidden(&self, batch: &Batch, mut seen: Option<&mut Seen>) -> Tensor<3> {
        let shape = [batch.rows, batch.seq_len];
        let ids: Vec<i64> = batch.inputs.iter().map(|&id| i64::from(id)).collect();
        let ids_bt = Tensor::<2, Int>::from_data(TensorData::new(ids, shape), &self.tables.device);
        let before = seen.as_ref().map_or(0, |seen| seen.places());
        let mask = match before {
            0 => self.tables.mask(batch),
            _ => self.tables.mask_behind(before, batch.seq_len),
        };
        let behind = (before > 0).then(|| self.tables.rotary.behind(before));
        let rotary = behind.as_ref().unwrap_or(&self.tables.rotary);
        let mut x_btd = self.model.embed_tokens.forward(ids_bt);
        for (at, layer) in self.model.layers.iter().enumerate() {
            let seen = seen.as_mut().map(|seen| seen.layer(at));
            x_btd = layer.forward(x_btd, rotary, &mask, seen);
        }
        self.model.norm.forward(x_btd)
    }

    /// `[b, t, d]` to logits `[b, t, v]`.
    fn head(&self, x_btd: Tensor<3>) -> Tensor<3> {
        match &self.lm_head {
            Some(head) => head.forward(x_btd),
            None => self.model.embed_tokens.as_head(x_btd),
        }
    }
}

impl Tables {
    /// Causal, and over the padded keys where a row has any.
    fn mask(&self, batch: &Batch) -> AttentionMask {
        let time = batch.seq_len;
        let causal = self.causal_tt.clone().slice([0..time, 0..time]).reshape([1, 1, 1, time, time]);
        if !batch.has_padding() {
            return AttentionMask { additive_bkgtt: Some(causal), causal: true };
        }
        let padding_bt = mask::padding(&batch.lengths, time, &self.device);
        let padding = padding_bt.reshape([batch.rows, 1, 1, 1, time]);
        AttentionMask { additive_bkgtt: Some(causal + padding), causal: false }
    }

    /// For places behind others, without padding: each sees those, itself, and what is between. One place sees all.
    fn mask_behind(&self, before: usize, time: usize) -> AttentionMask {
        let all = before + time;
        let rows = || self.causal_tt.clone().slice([before..all, 0..all]).reshape([1, 1, 1, time, all]);
        AttentionMask { additive_bkgtt: (time > 1).then(rows), causal: false }
    }
}

impl Decoder {
    fn new(model: &ModelConfig, init: &Init) -> Self {
        Self {
            embed_tokens: Embedding::new(&init.at("embed_tokens"), model.vocab_size, model.hidden_size),
            layers: (0..model.num_hidden_layers)
                .map(|layer| Layer::new(model, &init.at("layers").at(layer)))
                .collect(),
            norm: RmsNorm::new(&init.at("norm"), model.hidden_size, model.rms_norm_eps),
        }
    }
}

impl Layer {
    fn new(model: &ModelConfig, init: &Init) -> Self {
        let (width, feed) = (model.hidden_size, model.intermediate_size);
        let shared = model.num_key_value_heads * model.head_dim();
        let attention = init.at("self_attn");
        let mlp = init.at("mlp");
        let norm = |name| RmsNorm::new(&init.at(name), width, model.rms_norm_eps);
        Self {
            self_attn: Attention {
                q_proj: Linear::new(&attention.at("q_proj"), width, width),
                k_proj: Linear::new(&attention.at("k_proj"), width, shared),
                v_proj: Linear::new(&attention.at("v_proj"), width, shared),
                o_proj: Linear::new(&attention.at("o_proj"), width, width),
                heads: model.num_attention_heads,
                shared: model.num_key_value_heads,
            },
            mlp: FeedForward {
                gate_proj: Linear::new(&mlp.at("gate_proj"), width, feed),
                up_proj: Linear::new(&mlp.at("up_proj"), width, feed),
                down_proj: Linear::new(&mlp.at("down_proj"), feed, width),
            },
            input_layernorm: norm("input_layernorm"),
            post_attention_layernorm: norm("post_attention_layernorm"),
        }
    }

    fn forward(
        &self,
        x_btd: Tensor<3>,
        rotary: &Rotary,
        mask: &AttentionMask,
        seen: Option<SeenByLayer<'_>>,
    ) -> Tensor<3> {
        let normed_btd = self.input_layernorm.forward(x_btd.clone());
        let attended = self.self_attn.forward(normed_btd, rotary, mask, seen);
        let x_btd = x_btd + attended;
        let fed = self.mlp.forward(self.post_attention_layernorm.forward(x_btd.clone()));
        x_btd + fed
    }
}

impl Attention {
    /// Grouped-query attention: several query heads share one key and value head.
    fn forward(
        &self,
        x_btd: Tensor<3>,
        rotary: &Rotary,
        mask: &AttentionMask,
        seen: Option<SeenByLayer<'_>>,
    ) -> Tensor<3> {
        let [rows, time, width] = x_btd.dims();
        let head = width / self.heads;
        let q_bthe = self.q_proj.forward(x_btd.clone()).reshape([rows, time, self.heads, head]);
        let k_btke = self.k_proj.forward(x_btd.clone()).reshape([rows, time, self.shared, head]);
        let v_btke = self.v_proj.forward(x_btd).reshape([rows, time, self.shared, head]);
        let k_btke = rotary.apply(k_btke);
        let (k_btke, v_btke) = match seen {
            Some(seen) => seen.with(k_btke, v_btke),
            None => (k_btke, v_btke),
        };
        let mixed_btd = ops::attention(rotary.apply(q_bthe), k_btke, v_btke, mask);
        self.o_proj.forward(mixed_btd)
    }
}

impl FeedForward {
    /// SwiGLU: `down(silu(gate(x)) * up(x))`.
    fn forward(&self, x_btd: Tensor<3>) -> Tensor<3> {
        let gate_btf = self.gate_proj.forward(x_btd.clone());
        self.down_proj.forward(ops::swiglu(gate_btf, self.up_proj.forward(x_btd)))
    }
}
