# Needs pandas 2 or later.
# Run: python tests/peers/check_rows.py RUN.csv RUN.jsonl EVENTS.jsonl
"""Whether pandas reads the rows of a run as they are: exit code 0 if so, 1 if not.

Both files are read without an option but `lines=True`. Every column must be numbers (or true and false), both files must
hold the same ones, and every loss must be exactly that of the record. The lines of JSON hold the texts that the model
wrote, too: one for each `sample` of the record.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pandas


def main() -> int:
    """Checks the files named on the command line."""
    table, lines, record = (Path(name) for name in sys.argv[1:4])
    csv = pandas.read_csv(table)
    jsonl = pandas.read_json(lines, lines=True, precise_float=True)
    found = []
    texts = jsonl[[column for column in jsonl.columns if column.startswith("sample/")]]
    jsonl = jsonl.drop(columns=texts.columns)
    written = sum('"type":"sample"' in line for line in record.read_text().splitlines())
    if texts["sample/greedy"].notna().sum() != written or written == 0:
        found.append(f"{texts['sample/greedy'].notna().sum()} texts, and {written} in the record")
    if list(csv.columns) != list(jsonl.columns) or len(csv) != len(jsonl):
        found.append(f"{list(csv.columns)} x {len(csv)} and {list(jsonl.columns)} x {len(jsonl)}")
    for frame, name in ((csv, table), (jsonl, lines)):
        for column in frame.columns:
            empty = frame[column].isna().all()
            numbers = pandas.api.types.is_numeric_dtype(frame[column]) or pandas.api.types.is_bool_dtype(frame[column])
            if not (numbers or empty):
                found.append(f"{name}: {column} is {frame[column].dtype}: {frame[column].iloc[0]!r}")
    losses: dict[int, float] = {}
    for line in record.read_text().splitlines():
        event = json.loads(line)
        if event["type"] == "update":
            losses[event["update"]] = float(event["train/loss"])
        elif event["type"] == "resumed":
            losses = {update: loss for update, loss in losses.items() if update <= event["from_update"]}
    for frame, name in ((csv, table), (jsonl, lines)):
        trained = frame[frame["train/loss"].notna()]
        read = dict(zip(trained["update"], trained["train/loss"]))
        finite = {update: loss for update, loss in losses.items() if loss == loss}
        if read != finite:
            found.append(f"{name}: the losses are not those of the record")
    print(f"pandas {pandas.__version__}: {len(csv)} rows of {len(csv.columns)} columns")
    for problem in found:
        print(problem, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
