"""The same weights in every file format that people meet, and in one that attacks its reader.

`single/` is the reference. Everything else in the folder holds exactly its tensors (`bf16.safetensors` and `f16.bin`
rounded to their types), but `distilbert-base/`, which is the model below the classifier of the DistilBERT next door, and
`evil.bin`, which runs a command in a reader that executes pickles: a file named EVIL_WAS_HERE then lies in the working
folder. The scripts never load that file.

`legacy.bin` names its storages by their addresses, so its bytes differ from run to run; its tensors do not.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from models import DistilBertForSequenceClassification, randomise, save, small_llama

KEY = "model.layers.0.self_attn.k_proj.weight"
VALUE = "model.layers.0.self_attn.v_proj.weight"
QUERY = "model.layers.0.self_attn.q_proj.weight"


class Command:
    """Runs a command where it is unpickled."""

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return os.system, ("touch EVIL_WAS_HERE",)


def write_formats(classifier: DistilBertForSequenceClassification, folder: Path) -> None:
    """Writes the whole folder."""
    folder.mkdir(parents=True)
    model = small_llama()
    randomise(model, seed=4)
    save(model, folder / "single")
    weights = model.state_dict()

    for name, safe in (("sharded", True), ("sharded-bin", False)):
        model.save_pretrained(folder / name, safe_serialization=safe, max_shard_size=800)
        (folder / name / "generation_config.json").unlink(missing_ok=True)
        assert len(list((folder / name).glob("*-of-00003.*"))) == 3

    torch.save(weights, folder / "pytorch_model.bin")
    torch.save({"model": {f"_orig_mod.module.{name}": weight for name, weight in weights.items()}}, folder / "prefixed.pt")
    save_file(_cast(weights, torch.bfloat16), folder / "bf16.safetensors", metadata={"format": "pt"})
    torch.save(_cast(weights, torch.float16), folder / "f16.bin")
    torch.save(_strided(weights), folder / "strided.bin")
    torch.save(weights, folder / "legacy.bin", _use_new_zipfile_serialization=False)
    torch.save({**weights, "extra": Command()}, folder / "evil.bin")
    save(classifier.distilbert, folder / "distilbert-base")
    _check(folder)


def _cast(weights: dict[str, Tensor], dtype: torch.dtype) -> dict[str, Tensor]:
    return {name: weight.to(dtype) for name, weight in weights.items()}


def _strided(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """One tensor is a transposed view of its storage; two share one storage, the second from its middle."""
    found = {name: weight.clone() for name, weight in weights.items()}
    found[QUERY] = weights[QUERY].t().contiguous().t()
    both = torch.cat((weights[KEY], weights[VALUE]))
    found[KEY], found[VALUE] = both.split(weights[KEY].shape[0])
    assert found[QUERY].stride() == (1, 8)
    assert found[VALUE].storage_offset() == weights[KEY].numel()
    return found


def _check(folder: Path) -> None:
    """Reads everything back with the safe reader and compares."""
    reference = load_file(folder / "single" / "model.safetensors")

    def read(*paths: Path) -> dict[str, Tensor]:
        found: dict[str, Tensor] = {}
        for path in paths:
            found |= load_file(path) if path.suffix == ".safetensors" else torch.load(path, weights_only=True)
        return found

    def same(found: dict[str, Tensor], dtype: torch.dtype = torch.float32) -> bool:
        return found.keys() == reference.keys() and all(
            found[name].dtype == dtype and torch.equal(found[name], weight.to(dtype)) for name, weight in reference.items()
        )

    for name in ("pytorch_model.bin", "strided.bin", "legacy.bin"):
        assert same(read(folder / name)), name
    assert same(read(*(folder / "sharded").glob("*.safetensors")))
    assert same(read(*(folder / "sharded-bin").glob("*.bin")))
    assert same(read(folder / "bf16.safetensors"), torch.bfloat16)
    assert same(read(folder / "f16.bin"), torch.float16)
    prefixed = read(folder / "prefixed.pt")["model"]
    assert same({name.removeprefix("_orig_mod.module."): weight for name, weight in prefixed.items()})
    base = read(folder / "distilbert-base" / "model.safetensors")
    whole = read(folder.parent / "distilbert" / "model.safetensors")
    assert base and all(torch.equal(weight, whole[f"distilbert.{name}"]) for name, weight in base.items())
    try:
        torch.load(folder / "evil.bin", weights_only=True)
    except Exception as error:  # The reader's own class of error is private.
        assert "system" in str(error)
    else:
        raise AssertionError("the safe reader took the file that attacks")
