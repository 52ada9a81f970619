"""Writes tests/fixtures/parquet with pyarrow, whose tables are what most people have.

    python3 -m venv venv && venv/bin/pip install pyarrow==26.0.1
    venv/bin/python tests/peers/parquet_fixtures.py

One table in several packings and encodings: 50 rows in row groups of 20, some of them without text.
"""

import pathlib

import pyarrow as pa
import pyarrow.parquet as pq

FOLDER = pathlib.Path(__file__).parent.parent / "fixtures" / "parquet"
ROWS = range(50)


def table() -> pa.Table:
    text = [None if n % 10 == 3 else "" if n % 10 == 7 else f"The moon rose over hill {n}, é." for n in ROWS]
    return pa.table({
        "n": pa.array(ROWS, pa.int64()),
        "text": pa.array(text, pa.string()),
        "long": pa.array([f"sentence number {n}" for n in ROWS], pa.large_string()),
        "label": pa.array([n % 3 for n in ROWS], pa.uint8()),
        "mood": pa.array(["good" if n % 2 else "bad" for n in ROWS]).dictionary_encode(),
        "truth": pa.array([n % 2 == 0 for n in ROWS], pa.bool_()),
        "raw": pa.array([b"raw %d" % n for n in ROWS], pa.binary()),
        "score": pa.array([n / 7 for n in ROWS], pa.float32()),
        "day": pa.array(ROWS, pa.int32()).cast(pa.date32()),
        "words": pa.array([["a", "b"][: n % 3] for n in ROWS], pa.list_(pa.string())),
        "source": pa.array([{"name": "x", "page": n} for n in ROWS]),
    })


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    kinds = {
        "snappy": {},
        "zstd": {"compression": "zstd", "data_page_version": "2.0", "write_page_checksum": True},
        "gzip": {"compression": "gzip", "use_dictionary": False, "write_page_index": True},
        "lz4": {"compression": "lz4", "version": "1.0", "use_dictionary": False, "data_page_size": 64},
        "none": {
            "compression": "none",
            "use_dictionary": False,
            "column_encoding": {"text": "DELTA_BYTE_ARRAY", "long": "DELTA_LENGTH_BYTE_ARRAY"},
        },
        "brotli": {"compression": "brotli"},
    }
    for name, settings in kinds.items():
        written = table() if name in ("snappy", "brotli") else table().select(["n", "text", "long", "label"])
        if name == "brotli":
            written = written.select(["text"])
        pq.write_table(written, FOLDER / f"{name}.parquet", row_group_size=20, store_schema=False, **settings)


main()
