"""`python -m bench.record_index`: record keys looked up in a large record index, and writes that are tagged by one.

lookup: a table of few large files whose index pyhudi builds; random keys are looked up, cold in a fresh process and
warm again in it, by pyhudi and by Apache Hudi. upsert: tables of more and more small files, one a partition; a few rows
are changed, and the requests to the storage are counted. Writes `build/bench/record-index.json`.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bench.java_probe import compile_probe
from bench.metadata_scale import OUTPUT, ask_pyhudi, shown
from pyhudi import HudiTable
from pyhudi.storage.open import open_storage, parse_location
from pyhudi.testing.counting import CountingStorage

SEED = 10
REPEATS = 5
UPSERTS = 12
"""A table: more than a compaction of the metadata table comes after."""
INDEXED = {"hoodie.metadata.record.index.enable": "true", "hoodie.index.type": "RECORD_INDEX"}

Say = Callable[[str], None]


def key_texts(numbers: pa.Array) -> pa.Array:
    """Keys of 36 characters that are spread like UUIDs. Shape: (n,) -> (n,)."""
    mixed = (numbers.to_numpy().astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)).astype(np.int64)
    text = pc.binary_join_element_wise(
        pc.utf8_lpad(pa.array(mixed).cast(pa.string()), 20, "0"), pc.utf8_lpad(numbers.cast(pa.string()), 15, "0"), "-"
    )
    assert pc.all(pc.equal(pc.utf8_length(text), 36)).as_py()
    return text


def rows(numbers: pa.Array, partitions: int, value: int) -> pa.Table:
    part = pc.binary_join_element_wise("p", pa.array(numbers.to_numpy() % partitions).cast(pa.string()), "")
    return pa.table({"id": key_texts(numbers), "part": part, "value": pa.repeat(pa.scalar(value), len(numbers))})


def indexed_table(path: Path, keys: int, partitions: int, say: Say) -> Path:
    """A table of `keys` rows with a record index; kept for the next run. The index is built from the files."""
    done = path.with_suffix(".made")
    if done.exists():
        return path
    started = time.perf_counter()
    table = HudiTable.create(path, name="record_index", record_key="id", partition_by="part", table_version=9)
    table.bulk_insert(rows(pa.array(np.arange(keys)), partitions, 0))
    written = time.perf_counter()
    options = {"hoodie.metadata.record.index.enable": "true"}
    HudiTable.open(path, options=options).bulk_insert(rows(pa.array([keys]), 1, 0))
    built = time.perf_counter()
    say(f"{path.name}: {keys:,} rows written in {written - started:.1f} s, indexed in {built - written:.1f} s")
    done.touch()
    return path


def look_up(folder: Path, keys: int, wanted: int, rounds: int, say: Say) -> dict[str, list[dict[str, Any]]]:
    """Answers by side. Both must find every key."""
    table = indexed_table(folder / f"table_keys_{keys}", keys, 8, say)
    drawn = pa.array(random.Random(SEED).sample(range(keys), wanted))
    listed = folder / "keys.txt"
    listed.write_text("\n".join(key_texts(drawn).to_pylist()) + "\n")
    java = compile_probe(folder)
    answers: dict[str, list[dict[str, Any]]] = {"pyhudi": [], "hudi": []}
    for _ in range(rounds):
        answers["pyhudi"].append(ask_pyhudi(table, "keys", str(listed), REPEATS))
        say(f"{wanted:,} of {keys:,} keys: pyhudi {shown(answers['pyhudi'][-1])}")
        answers["hudi"].append(java.ask(table, "keys", str(listed), REPEATS))
        say(f"{wanted:,} of {keys:,} keys: Apache Hudi {shown(answers['hudi'][-1])}")
        found = [answers[side][-1]["count"] for side in answers]
        if found != [wanted, wanted]:
            raise RuntimeError(f"keys found: expected {wanted:,}, pyhudi {found[0]:,}, Apache Hudi {found[1]:,}")
    return answers


def upsert(folder: Path, files: int, changed: int, say: Say) -> dict[str, Any]:
    """Upserts of a few keys, each in a file of its own, of a table of so many files, after one that warms up.

    `requests`: of the upsert with the median number of them. Some carry out a compaction of the metadata table, too.
    """
    path = indexed_table(folder / f"table_files_{files}", files, files, say)
    draw = random.Random(SEED)
    taken = []
    for value in range(UPSERTS + 1):
        change = rows(pa.array(draw.sample(range(files), changed)), files, value)
        storage = CountingStorage(open_storage(parse_location(path)))
        started = time.perf_counter()
        result = HudiTable.open(path, options=INDEXED, storage=storage).upsert(change)
        taken.append((sum(storage.counts.values()), time.perf_counter() - started, storage))
        if (result.updated, result.inserted) != (changed, 0):
            raise RuntimeError(f"expected {changed} updates, found {result.updated} and {result.inserted} inserts")
    seconds = [wall_s for _, wall_s, _ in taken[1:]]
    _, _, storage = sorted(taken[1:], key=lambda one: one[:2])[UPSERTS // 2]
    answer = {
        "files": files, "changed": changed, "seconds": seconds, "requests": dict(storage.counts),
        "bytes_read": storage.bytes_read, "bytes_written": storage.bytes_written,
    }  # fmt: skip
    median_s, mean_s, most_s = statistics.median(seconds), statistics.mean(seconds), max(seconds)
    say(f"{changed:,} rows, {files:,} files: median {median_s:.3f}, mean {mean_s:.3f}, most {most_s:.3f} s")
    say(f"requests: {answer['requests']}")
    return answer


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.record_index", description=__doc__)
    parser.add_argument("--keys", type=int, default=10_000_000, help="rows of the table of look-ups (%(default)s)")
    parser.add_argument("--wanted", type=int, default=1_000, help="keys looked up at a time (%(default)s)")
    parser.add_argument("--files", default="1000,10000,100000", help="files of the upserts' tables (%(default)s)")
    parser.add_argument("--changed", type=int, default=10, help="rows an upsert changes (%(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="fresh processes a side (%(default)s)")
    parser.add_argument("--steps", default="lookup,upsert", help="of: %(default)s")
    parser.add_argument("--folder", type=Path, default=OUTPUT, help="where tables and figures go (%(default)s)")
    arguments = parser.parse_args()
    started = time.perf_counter()

    def say(text: str) -> None:
        print(f"[{time.perf_counter() - started:6.0f} s] {text}", file=sys.stderr, flush=True)

    folder: Path = arguments.folder
    folder.mkdir(parents=True, exist_ok=True)
    steps, found = set(arguments.steps.split(",")), {}
    if "lookup" in steps:
        found["lookup"] = look_up(folder, arguments.keys, arguments.wanted, arguments.rounds, say)
    if "upsert" in steps:
        counts = [int(text) for text in arguments.files.split(",")]
        found["upsert"] = {"pyhudi": [upsert(folder, files, arguments.changed, say) for files in counts]}
    (folder / "record-index.json").write_text(json.dumps(found, indent=1))
    print(json.dumps(found, indent=1), flush=True)


if __name__ == "__main__":
    main()
