# Needs tensorboard 2.x.
# Run: python tests/peers/check_tensorboard.py FOLDER EVENTS.jsonl [WORDS OF THE RUN'S PAGE]
"""Whether TensorBoard itself reads a folder as the run's record says: exit code 0 if so, 1 if not.

The folder is an export with `--format tensorboard`, or the folder `tensorboard` of a run that trained with
`log.tensorboard = true`; the record is the run's `events.jsonl`. Scalars are compared update by update, histograms by their
number of elements, hyper-parameters by the plugin's own reader.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from pathlib import Path

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.plugins.hparams import metadata as hparams
from tensorboard.util import tensor_util

NAMES = ("train/loss", "train/learning_rate", "train/grad_norm", "perf/tokens_per_second", "val/loss")
SESSION = "_hparams_/session_start_info"
ALL = {"scalars": 0, "histograms": 0, "tensors": 0}


def expected(path: Path) -> tuple[dict[str, dict[int, float]], dict]:
    """The scalars that count by tag and update, and the header."""
    scalars: dict[str, dict[int, float]] = {name: {} for name in NAMES}
    header: dict = {}
    for line in path.read_text().splitlines():
        event = json.loads(line)
        if event["type"] == "header":
            header = event
        elif event["type"] == "resumed":
            header = event.get("header", header)
            for points in scalars.values():
                for update in [update for update in points if update > event["from_update"]]:
                    del points[update]
        elif event["type"] in ("update", "validation"):
            for name in NAMES:
                if name in event:
                    scalars[name][event["update"]] = float(event[name])
    return scalars, header


def same(ours: float, theirs: float) -> bool:
    """Whether the two are the same number as far as 32 bits tell."""
    if math.isnan(theirs):
        return math.isnan(ours)
    return ours == theirs or abs(ours - theirs) <= 1e-6 * abs(theirs)


def scalar_points(board: EventAccumulator, tag: str) -> dict[int, float]:
    """What TensorBoard has under a tag, however it is stored."""
    if tag in board.Tags()["scalars"]:
        return {point.step: point.value for point in board.Scalars(tag)}
    if tag in board.Tags()["tensors"]:
        return {point.step: float(tensor_util.make_ndarray(point.tensor_proto)) for point in board.Tensors(tag)}
    return {}


def problems(folder: Path, record: Path, words: list[str]) -> list[str]:
    """Everything that is wrong, as sentences; prints what is right."""
    scalars, header = expected(record)
    board = EventAccumulator(str(folder), size_guidance=ALL)
    board.Reload()
    found = []
    for name, points in scalars.items():
        read = scalar_points(board, name)
        if sorted(read) != sorted(points):
            found.append(f"{name}: updates {sorted(read)[:5]}.. of {len(read)}, expected {sorted(points)[:5]}.. of {len(points)}")
            continue
        wrong = [update for update, value in points.items() if not same(read[update], value)]
        if wrong:
            found.append(f"{name}: update {wrong[0]} is {read[wrong[0]]}, expected {points[wrong[0]]}")
        print(f"{name}: {len(points)} points")

    histograms = board.Tags()["histograms"]
    if not histograms:
        found.append("there are no histograms")
    for tag in histograms:
        for point in board.Histograms(tag):
            value = point.histogram_value
            if sum(value.bucket) != value.num or len(value.bucket) != len(value.bucket_limit):
                found.append(f"{tag}: the buckets hold {sum(value.bucket)} of {value.num} elements")
            if any(low >= high for low, high in zip(value.bucket_limit, value.bucket_limit[1:])):
                found.append(f"{tag}: the buckets are out of order")
    print(f"{len(histograms)} histograms")

    texts = [tensor_util.make_ndarray(point.tensor_proto).item().decode() for point in board.Tensors("val/text")]
    if not texts or not all("the model goes on" in text for text in texts):
        found.append(f"the texts are {texts[:1]}")
    if board.SummaryMetadata("val/text").plugin_data.plugin_name != "text":
        found.append("the texts are not the text plugin's")
    print(f"{len(texts)} texts")

    if "run" in board.Tags()["tensors"]:
        page = tensor_util.make_ndarray(board.Tensors("run")[0].tensor_proto).item().decode()
        if header["run"] not in page or not all(word in page for word in words):
            found.append(f"the run's page is {page}")
        print("a page with the run's name")
    elif words:
        found.append("there is no page with the run's name")

    metadata = board.SummaryMetadata(SESSION)
    session = hparams.parse_session_start_info_plugin_data(metadata.plugin_data.content)
    told = {name: value for name, value in session.hparams.items()}
    config = header["config"]
    optimizer = config["optimizer"]["name"]
    rate = told[f"optimizer.{optimizer}.lr"].number_value
    if told["optimizer.name"].string_value != optimizer or rate != config["optimizer"][optimizer]["lr"]:
        found.append(f"the hyper-parameters say {told['optimizer.name']} at {rate}")
    if told["train.seed"].number_value != config["train"]["seed"] or session.group_name != header["run"]:
        found.append("the hyper-parameters are of another run")
    experiment = hparams.parse_experiment_plugin_data(
        board.SummaryMetadata("_hparams_/experiment").plugin_data.content
    )
    if {info.name for info in experiment.hparam_infos} != set(told):
        found.append("the experiment lists other hyper-parameters than the session")
    print(f"{len(told)} hyper-parameters, {len(experiment.metric_infos)} metrics")
    return found


def main() -> int:
    """Checks the folder named on the command line."""
    parser = argparse.ArgumentParser(description="Loads an exported folder with TensorBoard.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("record", type=Path)
    parser.add_argument("words", nargs="*", help="words that the run's page must have")
    arguments = parser.parse_args()
    found = problems(arguments.folder, arguments.record, arguments.words)
    for problem in found:
        print(problem, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
