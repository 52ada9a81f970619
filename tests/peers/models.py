"""The reference models, their batches, their loss, and the same models in double precision.

The models are small and their weights random, so that a mistake anywhere moves every figure. The double-precision
twin computes the same function in other code where the library's own forces single precision; where the two agree,
a fixture is the mathematics and not the rounding.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import (
    DistilBertConfig,
    DistilBertForSequenceClassification,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedModel,
)

PAD = 0
IGNORE = -100
VOCABULARY = 48
CLASSES = 3


@dataclass(frozen=True)
class Batch:
    """Rows of one micro-batch, filled with `PAD` on the right.

    `targets` is `[rows, places]` for a language model: the token after each place, `IGNORE` where there is none. It is
    `[rows]` for a classifier.
    """

    input_ids: Tensor
    lengths: Tensor
    targets: Tensor

    @property
    def counted(self) -> int:
        """Targets that have a loss."""
        return int((self.targets != IGNORE).sum())

    @property
    def attention_mask(self) -> Tensor:
        """1 for the places of each row that hold a token."""
        return (torch.arange(self.input_ids.shape[1])[None] < self.lengths[:, None]).long()


def llama(*, kv_heads: int, theta: float, tied: bool) -> LlamaForCausalLM:
    """A Llama of two layers and four heads."""
    config = LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=kv_heads,
        max_position_embeddings=64,
        rope_theta=theta,
        rms_norm_eps=1e-5,
        tie_word_embeddings=tied,
        attention_bias=False,
        mlp_bias=False,
        attn_implementation="eager",
    )
    return LlamaForCausalLM(config)


def small_llama() -> LlamaForCausalLM:
    """A Llama of one layer for the fixtures that are about files and not about figures."""
    config = LlamaConfig(
        vocab_size=8,
        hidden_size=8,
        intermediate_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=1,
        max_position_embeddings=16,
        rms_norm_eps=1e-5,
        tie_word_embeddings=False,
        attn_implementation="eager",
    )
    return LlamaForCausalLM(config)


def distilbert() -> DistilBertForSequenceClassification:
    """A DistilBERT of two layers with three classes and no dropout."""
    config = DistilBertConfig(
        vocab_size=VOCABULARY,
        dim=32,
        hidden_dim=64,
        n_layers=2,
        n_heads=4,
        max_position_embeddings=16,
        num_labels=CLASSES,
        dropout=0.0,
        attention_dropout=0.0,
        qa_dropout=0.0,
        seq_classif_dropout=0.0,
        attn_implementation="eager",
    )
    return DistilBertForSequenceClassification(config)


def randomise(model: PreTrainedModel, seed: int) -> None:
    """Gives every parameter random values: norms' weights lie around 1, everything else around 0."""
    torch.manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            centre = 1.0 if is_norm(name) and name.endswith("weight") else 0.0
            parameter.copy_(centre + 0.2 * torch.randn(parameter.shape))


def is_norm(name: str) -> bool:
    """Whether a parameter belongs to a normalisation."""
    return "norm" in name.lower()


def is_classifier(model: PreTrainedModel) -> bool:
    """Whether the targets of a model are classes."""
    return isinstance(model, DistilBertForSequenceClassification)


def random_batch(model: PreTrainedModel, lengths: list[int], places: int) -> Batch:
    """A batch from the global generator. `PAD` is never a token of a row."""
    input_ids = torch.randint(1, VOCABULARY, (len(lengths), places))
    for row, length in enumerate(lengths):
        input_ids[row, length:] = PAD
    if is_classifier(model):
        targets = torch.randint(0, CLASSES, (len(lengths),))
    else:
        targets = torch.full_like(input_ids, IGNORE)
        for row, length in enumerate(lengths):
            targets[row, : length - 1] = input_ids[row, 1:length]
    return Batch(input_ids, torch.tensor(lengths), targets)


def logits(model: PreTrainedModel, batch: Batch) -> Tensor:
    """What the model predicts, with the padding masked."""
    return model(input_ids=batch.input_ids, attention_mask=batch.attention_mask).logits


def loss_sum(predicted: Tensor, batch: Batch) -> Tensor:
    """The sum of the cross entropy of the targets that count."""
    return functional.cross_entropy(
        predicted.flatten(0, -2), batch.targets.flatten(), ignore_index=IGNORE, reduction="sum"
    )


def save(model: PreTrainedModel, folder: Path) -> None:
    """Writes `config.json` and `model.safetensors`, as the library does, and nothing else."""
    model.save_pretrained(folder, safe_serialization=True)
    (folder / "generation_config.json").unlink(missing_ok=True)


class DoubleRotary(nn.Module):
    """The rotary angles of a Llama in double precision."""

    def __init__(self, theta: float, head_size: int) -> None:
        super().__init__()
        self.theta = theta
        self.head_size = head_size

    def forward(self, _hidden: Tensor, positions: Tensor) -> tuple[Tensor, Tensor]:
        """Cosines and sines of `[rows, places, head size]`."""
        pair = torch.arange(0, self.head_size, 2, dtype=torch.float64) / self.head_size
        angles = positions[..., None].double() / self.theta**pair
        angles = torch.cat((angles, angles), dim=-1)
        return angles.cos(), angles.sin()


def double(model: PreTrainedModel) -> PreTrainedModel:
    """The same function with every operation in double precision.

    The library's Llama computes its norms, its softmax and its angles in single precision whatever its weights are, so
    these are replaced.
    """
    twin = copy.deepcopy(model).double()
    if isinstance(twin, LlamaForCausalLM):
        config = twin.config
        for layer in twin.model.layers:
            layer.input_layernorm = _double_norm(layer.input_layernorm)
            layer.post_attention_layernorm = _double_norm(layer.post_attention_layernorm)
        twin.model.norm = _double_norm(twin.model.norm)
        twin.model.rotary_emb = DoubleRotary(config.rope_theta, config.hidden_size // config.num_attention_heads)
        twin.set_attn_implementation("sdpa")
    return twin


def _double_norm(norm: nn.Module) -> nn.RMSNorm:
    replacement = nn.RMSNorm(norm.weight.shape[0], eps=norm.variance_epsilon, dtype=torch.float64)
    replacement.weight = norm.weight
    return replacement


def deviation(single: Tensor, exact: Tensor) -> float:
    """The largest difference relative to the largest magnitude of the exact tensor."""
    return float((single.double() - exact).abs().max() / exact.abs().max())
