//! DistilBERT (Sanh et al. 2019, arXiv 1910.01108): post-norm encoder with learnt positions, and a classifier on its
//! first token, under the parameter names of Hugging Face's `DistilBertForSequenceClassification`.
#![allow(non_snake_case, reason = "the embeddings have a parameter that is called LayerNorm")]

use burn::{
    module::Module,
    tensor::{Device, Int, Tensor, TensorData, activation::relu},
};

use super::{
    Noise, SummedLoss, TrainModel,
    init::Init,
    layers::{BiasedLinear, Embedding, LayerNorm},
    loss, mask,
};
use crate::{
    backend::ops::{self, AttentionMask},
    config::{Config, ModelConfig},
    data::batch::Batch,
    ledger::Flops,
};

/// Added to the variance in every norm; Hugging Face's configuration has no key for it.
const LAYER_NORM_EPS: f64 = 1e-12;

/// The encoder and the classifier on top of it.
#[derive(Module, Debug)]
pub struct DistilBertForSequenceClassification {
    distilbert: Encoder,
    pre_classifier: BiasedLinear,
    classifier: BiasedLinear,
    #[module(skip)]
    settings: Settings,
}

#[derive(Module, Debug)]
struct Encoder {
    embeddings: Embeddings,
    transformer: Transformer,
}

#[derive(Module, Debug)]
struct Embeddings {
    word_embeddings: Embedding,
    position_embeddings: Embedding,
    LayerNorm: LayerNorm,
}

#[derive(Module, Debug)]
struct Transformer {
    layer: Vec<Layer>,
}

#[derive(Module, Debug)]
struct Layer {
    attention: Attention,
    sa_layer_norm: LayerNorm,
    ffn: FeedForward,
    output_layer_norm: LayerNorm,
}

#[derive(Module, Debug)]
struct Attention {
    q_lin: BiasedLinear,
    k_lin: BiasedLinear,
    v_lin: BiasedLinear,
    out_lin: BiasedLinear,
    #[module(skip)]
    heads: usize,
}

#[derive(Module, Debug)]
struct FeedForward {
    lin1: BiasedLinear,
    lin2: BiasedLinear,
}

/// What does not depend on the weights.
#[derive(Debug, Clone)]
struct Settings {
    dropout: f64,
    attention_dropout: f64,
    classifier_dropout: f64,
    device: Device,
}

/// What one pass has besides the tokens.
#[derive(Clone, Copy)]
struct Context<'a> {
    settings: &'a Settings,
    noise: &'a Noise,
    /// Over the padded keys, `[b, 1, 1, 1, t]`; nothing where no row has any.
    mask: &'a AttentionMask,
}

impl TrainModel for DistilBertForSequenceClassification {
    fn init(config: &Config, device: &Device) -> Self {
        let model = &config.model;
        let init = Init::new(config.train.seed, device);
        let width = model.hidden_size;
        Self {
            distilbert: Encoder::new(model, &init.at("distilbert")),
            pre_classifier: BiasedLinear::new(&init.at("pre_classifier"), width, width),
            classifier: BiasedLinear::new(&init.at("classifier"), width, model.num_labels),
            settings: Settings {
                dropout: model.dropout,
                attention_dropout: model.attention_dropout,
                classifier_dropout: model.seq_classif_dropout,
                device: device.clone().inner(),
            },
        }
    }

    fn loss(&self, batch: &Batch, noise: &Noise) -> SummedLoss {
        self.summed(self.forward(batch, noise), batch)
    }

    fn flops(config: &Config) -> Option<Flops> {
        Some(Flops::of(&config.model))
    }

    fn evaluate(&self, batch: &Batch) -> (SummedLoss, Vec<u32>) {
        let logits_bc = self.forward(batch, &Noise::off());
        let found = logits_bc.clone().argmax(1).into_data().iter::<u32>().collect();
        (self.summed(logits_bc, batch), found)
    }
}

impl DistilBertForSequenceClassification {
    /// Logits `[b, c]` of a batch's rows. No row may be longer than the position embedding.
    pub fn forward(&self, batch: &Batch, noise: &Noise) -> Tensor<2> {
        let settings = &self.settings;
        let (rows, time) = (batch.rows, batch.seq_len);
        let ids: Vec<i64> = batch.inputs.iter().map(|&id| i64::from(id)).collect();
        let ids_bt = Tensor::<2, Int>::from_data(TensorData::new(ids, [rows, time]), &settings.device);
        let additive_bkgtt = batch
            .has_padding()
            .then(|| mask::padding(&batch.lengths, time, &settings.device).reshape([rows, 1, 1, 1, time]));
        let mask = AttentionMask { additive_bkgtt, causal: false };
        let context = Context { settings, noise, mask: &mask };
        let mut x_btd = self.distilbert.embeddings.forward(ids_bt, context);
        for (number, layer) in self.distilbert.transformer.layer.iter().enumerate() {
            x_btd = layer.forward(x_btd, number, context);
        }
        let [_, _, width] = x_btd.dims();
        let first_bd = x_btd.narrow(1, 0, 1).reshape([rows, width]);
        let pooled_bd = relu(self.pre_classifier.forward(first_bd));
        self.classifier.forward(noise.drop(pooled_bd, settings.classifier_dropout, "classifier"))
    }

    fn summed(&self, logits_bc: Tensor<2>, batch: &Batch) -> SummedLoss {
        let sum = loss::cross_entropy_sum(logits_bc, &batch.targets, &self.settings.device);
        SummedLoss { sum, targets: batch.target_count }
    }
}

impl Encoder {
    fn new(model: &ModelConfig, init: &Init) -> Self {
        let (width, at) = (model.hidden_size, init.at("embeddings"));
        let positions = model.max_position_embeddings;
        let layers = init.at("transformer").at("layer");
        Self {
            embeddings: Embeddings {
                word_embeddings: Embedding::new(&at.at("word_embeddings"), model.vocab_size, width),
                position_embeddings: Embedding::new(&at.at("position_embeddings"), positions, width),
                LayerNorm: norm(&at.at("LayerNorm"), width),
            },
            transformer: Transformer {
                layer: (0..model.num_hidden_layers)
                    .map(|number| Layer::new(model, &layers.at(number)))
                    .collect(),
            },
        }
    }
}

fn norm(init: &Init, width: usize) -> LayerNorm {
    LayerNorm::new(init, width, LAYER_NORM_EPS)
}

impl Embeddings {
    fn forward(&self, ids_bt: Tensor<2, Int>, context: Context) -> Tensor<3> {
        let [_, time] = ids_bt.dims();
        let x_btd = self.word_embeddings.forward(ids_bt) + self.position_embeddings.first(time);
        context.noise.drop(self.LayerNorm.forward(x_btd), context.settings.dropout, "embeddings")
    }
}

impl Layer {
    fn new(model: &ModelConfig, init: &Init) -> Self {
        let (width, feed) = (model.hidden_size, model.intermediate_size);
        let (attention, ffn) = (init.at("attention"), init.at("ffn"));
        let square = |name| BiasedLinear::new(&attention.at(name), width, width);
        Self {
            attention: Attention {
                q_lin: square("q_lin"),
                k_lin: square("k_lin"),
                v_lin: square("v_lin"),
                out_lin: square("out_lin"),
                heads: model.num_attention_heads,
            },
            sa_layer_norm: norm(&init.at("sa_layer_norm"), width),
            ffn: FeedForward {
                lin1: BiasedLinear::new(&ffn.at("lin1"), width, feed),
                lin2: BiasedLinear::new(&ffn.at("lin2"), feed, width),
            },
            output_layer_norm: norm(&init.at("output_layer_norm"), width),
        }
    }

    /// Each norm comes after its sum, so that the residual stream is normalised, too.
    fn forward(&self, x_btd: Tensor<3>, number: usize, context: Context) -> Tensor<3> {
        let attended_btd = self.attention.forward(x_btd.clone(), number, context);
        let x_btd = self.sa_layer_norm.forward(attended_btd + x_btd);
        let fed_btd = self.ffn.forward(x_btd.clone(), number, context);
        self.output_layer_norm.forward(fed_btd + x_btd)
    }
}

impl Attention {
    /// Every token sees every other. Only the probabilities have dropout, the output has none.
    fn forward(&self, x_btd: Tensor<3>, number: usize, context: Context) -> Tensor<3> {
        let [rows, time, width] = x_btd.dims();
        let head = width / self.heads;
        let heads = |x_btd: Tensor<3>| x_btd.reshape([rows, time, self.heads, head]);
        let q_bthe = heads(self.q_lin.forward(x_btd.clone()));
        let k_bthe = heads(self.k_lin.forward(x_btd.clone()));
        let v_bthe = heads(self.v_lin.forward(x_btd));
        let share = context.settings.attention_dropout;
        if !context.noise.drops(share) {
            return self.out_lin.forward(ops::attention(q_bthe, k_bthe, v_bthe, context.mask));
        }
        let q_bhte = q_bthe.mul_scalar(1.0 / (head as f64).sqrt()).permute([0, 2, 1, 3]);
        let dtype = q_bhte.dtype();
        let mut scores_bhtt = q_bhte.matmul(k_bthe.permute([0, 2, 3, 1]));
        if let Some(additive_bkgtt) = &context.mask.additive_bkgtt {
            let additive_bhtt = additive_bkgtt.clone().reshape([rows, 1, 1, time]);
            scores_bhtt = scores_bhtt + additive_bhtt.cast(dtype);
        }
        let site = format!("layer.{number}.attention");
        let weights_bhtt = context.noise.drop(ops::softmax(scores_bhtt), share, &site);
        let mixed_bhte = weights_bhtt.matmul(v_bthe.permute([0, 2, 1, 3]));
        self.out_lin.forward(mixed_bhte.permute([0, 2, 1, 3]).reshape([rows, time, width]))
    }
}

impl FeedForward {
    /// `lin2(gelu(lin1(x)))`, where gelu is the exact one and not the one by a hyperbolic tangent.
    fn forward(&self, x_btd: Tensor<3>, number: usize, context: Context) -> Tensor<3> {
        let fed_btd = self.lin2.forward(ops::gelu(self.lin1.forward(x_btd)));
        context.noise.drop(fed_btd, context.settings.dropout, &format!("layer.{number}.ffn"))
    }
}
