# Needs torch 2.9.0, transformers 4.57.6, tokenizers 0.22.2, safetensors 0.8.0 and numpy 2.4.6, on the CPU.
# Run: python tests/peers/parity.py
"""Writes `tests/fixtures/parity/`: what the reference implementations compute, for the Rust tests to meet.

* `llama-tied/`, `llama-untied/`, `distilbert/`: a model as the library saves it, `expected.safetensors` (see
  `gradients.py`) and, but for the first, `trace-adamw.json` and `trace-adafactor.json` (see `traces.py`).
* `formats/`: the same weights in many formats (see `formats.py`).
* `tokenizer/`: a tokenizer and its encodings (see `wordpiece.py`).

Parameters bear their state-dict names; a tied head appears once, as the embedding.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

os.environ["CUDA_VISIBLE_DEVICES"] = ""
sys.dont_write_bytecode = True

import torch  # noqa: E402

from formats import write_formats  # noqa: E402
from gradients import write_expected  # noqa: E402
from models import distilbert, llama, randomise, save  # noqa: E402
from traces import write_traces  # noqa: E402
from wordpiece import write_tokenizer  # noqa: E402

FOLDER = Path(__file__).resolve().parent.parent / "fixtures" / "parity"
LIMIT = 1_500_000
WATCHED_LLAMA = ("model.layers.0.self_attn.k_proj.weight", "model.layers.1.post_attention_layernorm.weight")
WATCHED_DISTILBERT = ("classifier.weight", "distilbert.transformer.layer.0.attention.q_lin.bias")


def main() -> None:
    """Writes everything anew."""
    torch.set_num_threads(1)
    shutil.rmtree(FOLDER, ignore_errors=True)

    tied = llama(kv_heads=2, theta=10_000.0, tied=True)
    untied = llama(kv_heads=1, theta=500_000.0, tied=False)
    classifier = distilbert()
    for seed, (name, model) in enumerate({"llama-tied": tied, "llama-untied": untied, "distilbert": classifier}.items()):
        randomise(model, seed + 1)
        save(model, FOLDER / name)
        write_expected(model, FOLDER / name)
    torch.manual_seed(5)
    write_traces(untied, FOLDER / "llama-untied", WATCHED_LLAMA)
    write_traces(classifier, FOLDER / "distilbert", WATCHED_DISTILBERT)
    write_formats(classifier, FOLDER / "formats")
    write_tokenizer(FOLDER / "tokenizer")

    size = sum(path.stat().st_size for path in FOLDER.rglob("*") if path.is_file())
    assert size < LIMIT, f"{size} bytes are too many"
    print(f"{size} bytes in all")


if __name__ == "__main__":
    main()
