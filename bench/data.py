"""The input of the benchmark: the same Parquet files for every side, made once from a fixed seed."""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

SEED = 20261121
PARTITIONS = 10
INPUT_FILES = 8
FEW_ROWS = 1_000
LETTERS = np.frombuffer(b"abcdefghijklmnopqrstuvwxyz ", dtype=np.uint8)
LAYOUT = 2  # raise it when the columns below change: the files are made anew


@dataclass(frozen=True, slots=True)
class BenchInput:
    """Folders of Parquet files, and what a table must hold after each step (for a check of the answer)."""

    inserted: Path
    changed: Path
    few: Path
    rows: int
    changed_rows: int
    sum_inserted: int  # of the column `n_long`
    sum_upserted: int
    sum_upserted_few: int


def make_input(folder: Path, *, rows: int) -> BenchInput:
    """Rows × 12 columns in ten partitions; a tenth of them again with other values and a later `ts`; then 1,000 of all
    once more."""
    assert rows % (INPUT_FILES * 10) == 0
    home = folder / f"input-{rows}-{SEED}-{LAYOUT}"
    facts = home / "facts.json"
    changed_rows = rows // 10
    if not facts.exists():
        shutil.rmtree(home, ignore_errors=True)
        random = np.random.default_rng(SEED)
        # Each id belongs to one partition; the changed ones are spread over all of them.
        partitions = random.integers(0, PARTITIONS, rows)
        changed_ids = np.sort(random.choice(rows, changed_rows, replace=False))
        first = make_rows(random, np.arange(rows), partitions, ts=1)
        second = make_rows(random, changed_ids, partitions[changed_ids], ts=2)
        _write(first, home / "inserted", files=INPUT_FILES)
        _write(second.take(random.permutation(changed_rows)), home / "changed", files=2)
        few_ids = np.sort(random.choice(rows, FEW_ROWS, replace=False))
        third = make_rows(random, few_ids, partitions[few_ids], ts=3)
        _write(third.take(random.permutation(FEW_ROWS)), home / "few", files=1)
        values = first["n_long"].to_numpy().copy()
        sums = {"sum_inserted": int(values.sum())}
        values[changed_ids] = second["n_long"].to_numpy()
        sums["sum_upserted"] = int(values.sum())
        values[few_ids] = third["n_long"].to_numpy()
        sums["sum_upserted_few"] = int(values.sum())
        facts.write_text(json.dumps(sums))
    return BenchInput(
        inserted=home / "inserted",
        changed=home / "changed",
        few=home / "few",
        rows=rows,
        changed_rows=changed_rows,
        **json.loads(facts.read_text()),
    )


def make_rows(random: np.random.Generator, ids: np.ndarray, partitions: np.ndarray, *, ts: int) -> pa.Table:
    count = len(ids)
    days = random.integers(18_000, 20_000, count).astype(np.int32)
    micros = random.integers(1_600_000_000_000_000, 1_790_000_000_000_000, count)
    cents = random.integers(-99_999_999, 99_999_999, count)
    return pa.table(
        {
            "id": np.char.add("id-", np.char.zfill(ids.astype(str), 9)),
            "part": np.char.add("part-", partitions.astype(str)),
            "ts": np.full(count, ts, dtype=np.int64),
            "n_int": random.integers(-(2**31), 2**31, count).astype(np.int32),
            "n_long": random.integers(0, 1_000_000, count),
            "n_double": random.normal(size=count),
            "s_one": _make_strings(random, count),
            "s_two": _make_strings(random, count),
            "on_date": pa.array(days, pa.date32()),
            "at": pa.array(micros, pa.timestamp("us", "UTC")),
            "flag": random.random(count) < 0.5,
            "price": _make_decimals(cents),
        }
    )


def _make_strings(random: np.random.Generator, count: int) -> pa.Array:
    """Text of 10 to 30 letters."""
    offsets = np.zeros(count + 1, dtype=np.int32)
    np.cumsum(random.integers(10, 31, count), out=offsets[1:])
    letters = LETTERS[random.integers(0, len(LETTERS), int(offsets[-1]))]
    return pa.Array.from_buffers(pa.string(), count, [None, pa.py_buffer(offsets), pa.py_buffer(letters)])


def _make_decimals(cents: np.ndarray) -> pa.Array:
    """decimal(10, 2) straight from the unscaled values: 16 bytes each, little endian, sign extended."""
    words = np.stack([cents, cents >> 63], axis=1).astype("<i8")
    return pa.Array.from_buffers(pa.decimal128(10, 2), len(cents), [None, pa.py_buffer(words)])


def _write(rows: pa.Table, folder: Path, *, files: int) -> None:
    folder.mkdir(parents=True)
    step = -(-rows.num_rows // files)
    for number in range(files):
        pq.write_table(rows.slice(number * step, step), folder / f"input-{number}.parquet")


def describe_input(made: BenchInput) -> dict[str, object]:
    return {name: str(value) if isinstance(value, Path) else value for name, value in asdict(made).items()}
