"""Logits, loss and the gradient of every parameter for one padded batch.

Layout of `expected.safetensors`: `input_ids` and `lengths`, `targets` (of a language model the token after each place,
-100 where there is none; of a classifier the class of each row), `logits`, `loss_sum` of one entry, and `grad.<parameter>`.
Logits of a place at or beyond its row's length mean nothing. The gradient of a bias of keys is nothing but rounding: see
`without_effect`. Adaptive optimizers blow that rounding up, which moves the bias and never the loss.
"""

from __future__ import annotations

from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor
from transformers import PreTrainedModel

from models import Batch, deviation, double, logits, loss_sum, random_batch

TOLERANCE = 1e-5
NOTE = (
    "logits of a place at or beyond its row's length mean nothing; loss_sum is summed over the targets that are not "
    "-100; grad.* is the gradient of loss_sum divided by the number of those targets"
)


def write_expected(model: PreTrainedModel, folder: Path) -> None:
    """Writes `expected.safetensors` for a batch of three rows of 12, 7 and 10 tokens."""
    model.eval()
    batch = random_batch(model, [12, 7, 10], places=12)
    found = _compute(model, batch)
    _assert_well_conditioned(found, _compute(double(model), batch), batch)
    tensors = {"input_ids": batch.input_ids, "lengths": batch.lengths, "targets": batch.targets, **found}
    save_file(tensors, folder / "expected.safetensors", metadata={"note": NOTE})
    gradients = {name: tensor.abs().max().item() for name, tensor in found.items() if name.startswith("grad.")}
    least, most = min(gradients, key=gradients.__getitem__), max(gradients, key=gradients.__getitem__)
    print(
        f"{folder.name}: loss {found['loss_sum'].item() / batch.counted:.4f} over {batch.counted} targets, largest "
        f"gradient entry {gradients[most]:.3g} ({most}), least of a tensor {gradients[least]:.3g} ({least})"
    )


def _compute(model: PreTrainedModel, batch: Batch) -> dict[str, Tensor]:
    model.zero_grad(set_to_none=True)
    predicted = logits(model, batch)
    total = loss_sum(predicted, batch)
    (total / batch.counted).backward()
    found = {"logits": predicted.detach(), "loss_sum": total.detach().reshape(1)}
    for name, parameter in model.named_parameters():
        found[f"grad.{name}"] = parameter.grad.clone()
    model.zero_grad(set_to_none=True)
    return found


def without_effect(name: str) -> bool:
    """Whether a parameter cannot move the output, so that its gradient is 0 but for rounding.

    The bias of an attention's keys adds the same amount to every score of a query, and the softmax removes it.
    """
    return name.endswith("k_lin.bias")


def _assert_well_conditioned(single: dict[str, Tensor], exact: dict[str, Tensor], batch: Batch) -> None:
    assert single.keys() == exact.keys()
    largest = max(tensor.abs().max() for name, tensor in exact.items() if name.startswith("grad."))
    places = batch.attention_mask.bool()
    for name, tensor in single.items():
        assert tensor.dtype == torch.float32 and bool(tensor.isfinite().all()), name
        if without_effect(name):
            assert exact[name].abs().max() < 1e-12 and tensor.abs().max() < 1e-6 * largest, name
            continue
        pair = (tensor, exact[name])
        if name == "logits" and tensor.dim() == 3:
            pair = (tensor[places], exact[name][places])
        off = deviation(*pair)
        assert off < TOLERANCE, f"{name} deviates by {off:.1e} from double precision"
        if name.startswith("grad."):
            assert tensor.abs().max() > 1e-4 * largest, f"{name} is hardly there"
