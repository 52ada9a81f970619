# Needs torch 2.9.0, transformers 4.57.6 and safetensors 0.8.0, on the CPU.
# Run: python tests/peers/check_export.py FOLDER
"""Whether the reference library loads an exported folder without a complaint: exit code 0 if so, 1 if not.

The folder holds `config.json` and weights. The class is chosen by the configuration's `architectures`. A weight that is
missing, not used, of another shape or newly initialised is a failure, and so is a prediction that is not finite. Where
`optimizer.safetensors` lies beside them, whose tensors are named `<parameter>.<state>`, its tensors are counted by state.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
from collections import Counter
from pathlib import Path

os.environ["CUDA_VISIBLE_DEVICES"] = ""

import torch  # noqa: E402
import transformers  # noqa: E402
from safetensors import SafetensorError, safe_open  # noqa: E402

AUTO_CLASSES = {
    "ForCausalLM": transformers.AutoModelForCausalLM,
    "ForSequenceClassification": transformers.AutoModelForSequenceClassification,
}
COMPLAINTS = ("initialized", "not used", "missing", "unexpected", "mismatch")


class Recorder(logging.Handler):
    """Keeps every warning."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keeps one."""
        self.messages.append(record.getMessage())


def problems(folder: Path) -> list[str]:
    """Everything that is wrong with an export, as sentences; prints what is right with it."""
    config = json.loads((folder / "config.json").read_text())
    architectures = config.get("architectures") or []
    suffixes = [suffix for suffix in AUTO_CLASSES if architectures and architectures[0].endswith(suffix)]
    if not suffixes:
        return [f"architectures in config.json is {architectures}: expected one that ends in {' or '.join(AUTO_CLASSES)}"]

    recorder = Recorder()
    logger = logging.getLogger("transformers")
    transformers.logging.set_verbosity_warning()
    transformers.logging.disable_progress_bar()
    logger.addHandler(recorder)
    try:
        model, info = AUTO_CLASSES[suffixes[0]].from_pretrained(folder, output_loading_info=True, local_files_only=True)
    except (OSError, ValueError, RuntimeError, KeyError, SafetensorError) as error:
        return [f"does not load: {error}"]
    finally:
        logger.removeHandler(recorder)

    found = [f"{kind}: {names}" for kind, names in info.items() if names]
    if type(model).__name__ != architectures[0]:
        found.append(f"loaded as {type(model).__name__}, and config.json says {architectures[0]}")
    for message in recorder.messages:
        if any(complaint in message.lower() for complaint in COMPLAINTS):
            found.append(f"warned: {message}")
        else:
            print(f"warning: {message}")

    model.eval()
    with torch.no_grad():
        logits = model(input_ids=torch.tensor([[1, 2, 3]])).logits
    if not logits.isfinite().all():
        found.append("predictions are not finite")
    parameters = sum(parameter.numel() for parameter in model.parameters())
    print(f"{type(model).__name__}: {parameters} parameters, logits {list(logits.shape)}")
    return found


def print_optimizer(path: Path) -> None:
    """Counts the tensors of each state, and the parameters that have any."""
    with safe_open(path, framework="pt") as file:
        names = [name.rpartition(".") for name in file.keys()]
    states = Counter(state for _, _, state in names)
    print(f"optimizer.safetensors: {len(names)} tensors of {len({parameter for parameter, _, _ in names})} parameters")
    for state, count in sorted(states.items()):
        print(f"  {state}: {count}")


def main() -> int:
    """Checks the folder named on the command line."""
    parser = argparse.ArgumentParser(description="Loads an exported folder with the reference library.")
    parser.add_argument("folder", type=Path)
    folder: Path = parser.parse_args().folder
    if not (folder / "config.json").is_file():
        print(f"{folder} holds no config.json", file=sys.stderr)
        return 1
    found = problems(folder)
    optimizer = folder / "optimizer.safetensors"
    if optimizer.is_file():
        print_optimizer(optimizer)
    for problem in found:
        print(problem, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
