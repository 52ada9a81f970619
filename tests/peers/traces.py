"""Twenty updates of an optimizer: accumulation, clipping, schedule and state as a trainer composes them.

Layout of `trace-<optimizer>.json`:

* `optimizer`, `config`, `schedule`, `max_norm`: what was set. `config.no_weight_decay` names the parameters that are not
  decayed by what their names hold (in any case) or end in.
* `micro_batches`: `input_ids`, `lengths` and `targets` of six micro-batches, as in `expected.safetensors`.
* `windows`: the micro-batches of each update. Their losses are summed and divided by the window's counted targets.
* `updates`: the loss of the window before the update, the global gradient norm before clipping, and the rate used.
* `final_state`, `final_params`: `{"shape": [..], "data": [..]}` after the last update, for one matrix and one vector.
* `double_precision`: by how much, relatively, the same trace in double precision deviates. A tolerance below it asks for
  the same rounding and not for the same algorithm.
"""

from __future__ import annotations

import copy
import json
import math
from pathlib import Path
from typing import Any

import numpy
import torch
from torch import Tensor
from torch.nn.utils import clip_grad_norm_
from torch.optim import AdamW, Optimizer
from transformers import PreTrainedModel, get_cosine_schedule_with_warmup
from transformers.optimization import Adafactor

from models import Batch, deviation, double, is_classifier, is_norm, logits, loss_sum, random_batch

UPDATES = 20
WARMUP = 4
MAX_NORM = 1.0
LANGUAGE_ROWS = [[12, 7], [5, 3], [9, 12], [4, 8], [12, 11], [2, 10]]
# A classifier counts rows: a short micro-batch is what makes the counts of a window differ.
CLASSIFIER_ROWS = [[12, 7], [5], [9], [4, 8], [12, 11], [10]]
ADAMW: dict[str, Any] = {"lr": 1e-2, "betas": [0.9, 0.999], "eps": 1e-8, "weight_decay": 0.01}
ADAFACTOR: dict[str, Any] = {
    "lr": 1e-2,
    "eps": [1e-30, 1e-3],
    "clip_threshold": 1.0,
    "decay_rate": -0.8,
    "beta1": None,
    "weight_decay": 0.0,
    "scale_parameter": False,
    "relative_step": False,
    "warmup_init": False,
}


def write_traces(model: PreTrainedModel, folder: Path, watched: tuple[str, str]) -> None:
    """Writes `trace-adamw.json` and `trace-adafactor.json`, each from the weights that the model has now."""
    rows = CLASSIFIER_ROWS if is_classifier(model) else LANGUAGE_ROWS
    batches = [random_batch(model, lengths, places=12) for lengths in rows]
    for optimizer in ("adamw", "adafactor"):
        trace = _trace(copy.deepcopy(model), optimizer, batches, watched)
        exact = _trace(double(model), optimizer, batches, watched)
        trace["double_precision"] = _compare(trace, exact)
        path = folder / f"trace-{optimizer}.json"
        path.write_text(json.dumps(trace, separators=(",", ":"), allow_nan=False) + "\n")
        _report(path, trace)


def _trace(model: PreTrainedModel, name: str, batches: list[Batch], watched: tuple[str, str]) -> dict[str, Any]:
    model.train()
    optimizer = _optimizer(model, name)
    schedule = get_cosine_schedule_with_warmup(optimizer, num_warmup_steps=WARMUP, num_training_steps=UPDATES)
    windows = [[2 * update % len(batches), (2 * update + 1) % len(batches)] for update in range(UPDATES)]
    updates = []
    for window in windows:
        counted = sum(batches[index].counted for index in window)
        total = 0.0
        for index in window:
            batch_loss = loss_sum(logits(model, batches[index]), batches[index])
            (batch_loss / counted).backward()
            total += batch_loss.item()
        norm = clip_grad_norm_(model.parameters(), MAX_NORM)
        updates.append({"loss": total / counted, "grad_norm": norm.item(), "lr": schedule.get_last_lr()[0]})
        optimizer.step()
        schedule.step()
        optimizer.zero_grad(set_to_none=True)
    parameters = dict(model.named_parameters())
    return {
        "optimizer": name,
        "config": ADAMW | {"no_weight_decay": ["norm", ".bias"]} if name == "adamw" else ADAFACTOR,
        "schedule": {"name": "cosine", "warmup_updates": WARMUP, "updates": UPDATES, "start_factor": 0.0, "min_lr": 0.0},
        "max_norm": MAX_NORM,
        "micro_batches": [
            {
                "input_ids": batch.input_ids.tolist(),
                "lengths": batch.lengths.tolist(),
                "targets": batch.targets.tolist(),
            }
            for batch in batches
        ],
        "windows": windows,
        "updates": updates,
        "final_state": {
            parameter: {key: _tensor(value) for key, value in optimizer.state[parameters[parameter]].items()}
            for parameter in watched
        },
        "final_params": {parameter: _tensor(parameters[parameter]) for parameter in watched},
    }


def _optimizer(model: PreTrainedModel, name: str) -> Optimizer:
    if name == "adafactor":
        return Adafactor(model.parameters(), **ADAFACTOR)
    named = dict(model.named_parameters())
    decayed = [parameter for name, parameter in named.items() if not (is_norm(name) or name.endswith(".bias"))]
    spared = [parameter for name, parameter in named.items() if is_norm(name) or name.endswith(".bias")]
    groups = [{"params": decayed}, {"params": spared, "weight_decay": 0.0}]
    return AdamW(groups, **ADAMW)


def _tensor(value: Tensor | int) -> dict[str, Any]:
    """Shape and values; single-precision values in the fewest digits that give them back."""
    array = torch.as_tensor(value).detach().numpy()
    flat = array.reshape(-1)
    data = [float(str(entry)) for entry in flat] if array.dtype == numpy.float32 else flat.tolist()
    return {"shape": list(array.shape), "data": data}


def _compare(single: dict[str, Any], exact: dict[str, Any]) -> dict[str, float]:
    """The largest relative deviation of each kind of figure; of a tensor relative to its largest entry."""

    def tensors(trace: dict[str, Any], key: str) -> list[Tensor]:
        entries = trace[key].values()
        if key == "final_state":
            entries = [entry for states in entries for entry in states.values()]
        return [torch.tensor(entry["data"], dtype=torch.float64) for entry in entries]

    found = {}
    for key in ("loss", "grad_norm"):
        pairs = zip(single["updates"], exact["updates"])
        found[key] = max(abs(one[key] / two[key] - 1) for one, two in pairs)
    for key in ("final_state", "final_params"):
        pairs = zip(tensors(single, key), tensors(exact, key))
        found[key] = max(deviation(one, two) for one, two in pairs)
    for key, off in found.items():
        assert off < 2e-4, f"{key} deviates by {off:.1e} from double precision"
    return {key: float(f"{off:.1e}") for key, off in found.items()}


def _report(path: Path, trace: dict[str, Any]) -> None:
    losses = [update["loss"] for update in trace["updates"]]
    norms = [update["grad_norm"] for update in trace["updates"]]
    assert all(math.isfinite(figure) for figure in losses + norms)
    first = trace["windows"].index(trace["windows"][-1])
    assert losses[-1] < 0.7 * losses[first], "the loss of the same window did not fall"
    assert max(norms) > MAX_NORM, "the clipping was never at work"
    print(
        f"{path.parent.name}/{path.name}: loss {losses[0]:.3f} -> {losses[-1]:.3f}, norm {min(norms):.3f} to "
        f"{max(norms):.3f}, off double precision {trace['double_precision']}"
    )
