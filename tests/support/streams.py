"""Streams of small files into tables, and what their commits say."""

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pyhudi import HudiTable
from pyhudi.table.view.commits import read_commit
from pyhudi.table.view.sink_batches import batches_in

SCHEMA = "id long, part string, n long, ts long"
AS_ARROW = pa.schema([("id", pa.int64()), ("part", pa.string()), ("n", pa.int64()), ("ts", pa.int64())])
OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.partitionpath.field": "part",
}


def rows(ids: range, ts: int = 1) -> pa.Table:
    """Rows of these ids; `n` is 10 times the id, and `ts`."""
    columns = [list(ids), [f"p{i % 2}" for i in ids], [i * 10 + ts for i in ids], [ts] * len(ids)]
    return pa.table([pa.array(values, field.type) for values, field in zip(columns, AS_ARROW, strict=True)], AS_ARROW)


class Feed:
    """A folder of files that a stream reads, one file a batch."""

    def __init__(self, spark: Any, folder: Path) -> None:
        self.spark, self.folder, self.count = spark, folder, 0
        folder.mkdir(parents=True)

    def add(self, ids: range, ts: int = 1) -> None:
        path = self.folder / f"{self.count:04}.parquet"
        pq.write_table(rows(ids, ts), path)
        self.count += 1
        os.utime(path, (1_000_000 + self.count, 1_000_000 + self.count))  # Spark takes the oldest first

    def stream(self) -> Any:
        return self.spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(self.folder))


def writer(frame: Any, checkpoint: Path, **options: str) -> Any:
    """A stream writer that takes what there is and ends."""
    named = {**OPTIONS, **{name.replace("__", "."): text for name, text in options.items()}}
    started = frame.writeStream.format("hudi").options(**named).option("checkpointLocation", str(checkpoint))
    return started.trigger(availableNow=True)


def run(query: Any) -> Any:
    """Wait for the end of a query that takes what there is."""
    try:
        assert query.awaitTermination(120)
    finally:
        query.stop()
    return query


def stored_batches(path: Path, *, history: bool = False) -> list[tuple[str, int]]:
    """Identifier and number of each batch in the table, by requested time of its commit."""
    snapshot = HudiTable.open(path)._access.snapshot()
    timeline = snapshot.timeline
    commits = [*(timeline.archived_writes() if history else ()), *timeline.completed_writes]
    found = [
        batches_in(read_commit(snapshot.storage, timeline, i).extra_metadata, instant=i.requested) for i in commits
    ]
    return [(batch.identifier, batch.number) for batches in found for batch in batches]


def ids_in(path: Path) -> list[int]:
    """The ids of the table's rows, each as often as it is there."""
    found = HudiTable.open(path).scan(columns=["id"]).to_arrow().column("id").to_pylist()
    return sorted(found)


def forget_last_batch(checkpoint: Path) -> None:
    """Make a checkpoint that of a driver which died after its batch was stored, and before Spark noted it."""
    last = max((checkpoint / "commits").glob("[0-9]*"), key=lambda path: int(path.name))
    last.unlink()
    (last.parent / f".{last.name}.crc").unlink(missing_ok=True)
