"""Tables of many files that hold nothing: what a metadata table of that size needs, and no more.

Each file has a name as a writer would give it and a size, but no blocks on disk. One row is really written, so that
there is a timeline; the other files bear that commit's instant.
"""

from __future__ import annotations

import os
import random
import uuid
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from pyhudi import HudiTable

SEED = 15
TABLE_VERSION = 9


@dataclass(frozen=True, slots=True)
class Dataset:
    """A data set of RFC-15 (spec/001): how many files lie in how many partitions."""

    name: str
    files: int
    partitions: int

    def partition(self, number: int) -> str:
        return f"region=r{number % 7}/day={2_000 + number // 360:04d}-{number // 30 % 12 + 1:02d}-{number % 30 + 1:02d}"


DATASETS = {
    "C": Dataset("C", 1_050, 719),
    "M": Dataset("M", 283_675, 3_617),
    "E": Dataset("E", 2_275_402, 497),
}


def make_table(folder: Path, dataset: Dataset) -> Path:
    """The table without a metadata table; kept for the next run. Same seed, same files."""
    path = folder / f"table_{dataset.name}"
    done = path.with_suffix(".made")
    if done.exists():
        return path
    partitions = [dataset.partition(number) for number in range(dataset.partitions)]
    table = HudiTable.create(
        path, name=f"scale_{dataset.name.lower()}", record_key="id", partition_by="part", table_version=TABLE_VERSION,
        properties={"hoodie.metadata.enable": "false"},
    )  # fmt: skip
    requested = table.bulk_insert(pa.table({"id": ["k"], "part": [partitions[0]]})).requested
    draw = random.Random(SEED)
    made = 1  # the row's own file
    for number, partition in enumerate(partitions):
        wanted = dataset.files * (number + 1) // dataset.partitions
        _fill(path / partition, wanted - made, requested=str(requested), draw=draw)
        made = wanted
    assert made == dataset.files
    done.touch()
    return path


def _fill(folder: Path, count: int, *, requested: str, draw: random.Random) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    metafile = folder / ".hoodie_partition_metadata"
    if not metafile.exists():
        depth = 2  # region and day
        metafile.write_text(f"#partition metadata\ncommitTime={requested}\npartitionDepth={depth}\n")
    at = os.open(folder, os.O_RDONLY)
    try:
        for number in range(count):
            file_id = uuid.UUID(int=draw.getrandbits(128), version=4)
            name = f"{file_id}-0_{number}-{number % 97}-{number % 9_973}_{requested}.parquet"
            file = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644, dir_fd=at)
            os.ftruncate(file, draw.randrange(1_000_000, 120_000_000))
            os.close(file)
    finally:
        os.close(at)
