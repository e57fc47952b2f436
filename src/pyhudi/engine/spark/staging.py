"""Handing a DataFrame's rows to this process: Arrow files on the machine's own disk, sorted by partition.

Only where all tasks run on this machine (a `local` master). The DataFrame is evaluated once; its rows are not
shuffled: each task sorts what it holds, a piece at a time, and says where each partition's rows lie.
"""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession

from pyhudi.engine.code_order import stable_order
from pyhudi.engine.partition_rows import PartitionRows
from pyhudi.engine.spark.schema import spark_schema
from pyhudi.engine.spark.session import arrow_batches, is_classic
from pyhudi.errors import Bug, Invalid
from pyhudi.format.keys import missing_keys, partition_paths, record_keys
from pyhudi.format.schema import RECORD_KEY
from pyhudi.table.conform import conform_batch
from pyhudi.write.source import ARRIVAL, InputSpec

PIECE_BYTES = 32 * 1024 * 1024
"""Arrow bytes that a task gathers before it sorts them; about four times this is what it needs."""

_REPORT = "file string, bad_keys long, example string, refusal string, nulls array<long>"
_RUNS = pa.schema([("path", pa.string()), ("batch", pa.int32()), ("start", pa.int64()), ("rows", pa.int64())])
_RUNS_SUFFIX = ".runs"
_TASK_ROWS_BITS = 33
"""Rows that a task may number before it would run into the next one's numbers."""


def runs_on_this_machine(spark: SparkSession) -> bool:
    """Whether every task of the session runs where this process does."""
    if not is_classic(spark):
        return False
    master = spark.sparkContext.master or ""
    return master == "local" or master.startswith("local[")


@dataclass(frozen=True)
class StagedInput:
    """Rows in Arrow files of a folder of its own. `nulls`: nulls by column, of those that were asked for."""

    folder: Path
    files: tuple[str, ...]
    bad_keys: int
    example: str
    nulls: dict[str, int]
    key_column: str

    def partitions(self) -> dict[str, PartitionRows]:
        """The rows of each partition in the input's order, memory-mapped: they cost address space only."""
        slices: dict[str, list[pa.RecordBatch]] = {}
        for file in self.files:
            batches = _open_batches(file)
            runs = pa.ipc.open_file(file + _RUNS_SUFFIX).read_all()
            for path, batch, start, rows in zip(*(column.to_pylist() for column in runs.columns), strict=True):
                slices.setdefault(path, []).append(batches[batch].slice(start, rows))
        return {path: PartitionRows(pa.Table.from_batches(of), self.key_column) for path, of in slices.items()}

    def dataframe(self, spark: SparkSession, schema: pa.Schema) -> DataFrame:
        """The rows as a DataFrame that may be evaluated again and again."""
        files = self.files
        numbers = spark.range(0, len(files), 1, max(1, len(files)))
        return numbers.mapInArrow(_read_files(files, schema), spark_schema(schema))

    def discard(self) -> None:
        """Delete the files."""
        shutil.rmtree(self.folder, ignore_errors=True)


def stage(rows: DataFrame, spec: InputSpec, key_column: str | None) -> StagedInput:
    """Evaluate `rows`, which has the columns of the spec's schema, into files. One job.

    `key_column`: the column that is the record key as it is; None where keys are to be spelled.
    Raises: Invalid for what a task refuses; null keys and nulls are counted, for the caller to refuse.
    """
    spark = rows.sparkSession
    folder = Path(tempfile.mkdtemp(prefix="pyhudi-staged-", dir=scratch_folder(spark)))
    never_null = tuple(dict.fromkeys((*spec.ordering, *spec.required)))
    try:
        with arrow_batches(spark):
            found = rows.mapInArrow(_stage_task(str(folder), spec, key_column, never_null), _REPORT).collect()
        if refused := [row["refusal"] for row in found if row["refusal"] is not None]:
            raise Invalid(refused[0])
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return StagedInput(
        folder=folder,
        files=tuple(sorted(row["file"] for row in found)),
        bad_keys=sum(row["bad_keys"] for row in found),
        example=next((row["example"] for row in found if row["example"] is not None), ""),
        nulls={name: sum(row["nulls"][i] for row in found) for i, name in enumerate(never_null)},
        key_column=key_column or RECORD_KEY,
    )


def scratch_folder(spark: SparkSession) -> str | None:
    """Where Spark itself puts what it spills."""
    named = os.environ.get("SPARK_LOCAL_DIRS") or spark.conf.get("spark.local.dir", "") or ""
    first = named.split(",")[0].strip()
    return first if first and Path(first).is_dir() else None


def _stage_task(
    folder: str, spec: InputSpec, key_column: str | None, never_null: Sequence[str]
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    report_schema = pa.schema(
        [("file", pa.string()), ("bad_keys", pa.int64()), ("example", pa.string()), ("refusal", pa.string()),
         ("nulls", pa.list_(pa.int64()))]
    )  # fmt: skip

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        if context is None:
            raise Bug("a staging task runs outside of Spark")
        # Names sort as the input's parts do.
        file = f"{folder}/{context.partitionId():08d}-{context.taskAttemptId()}.arrow"
        stager = _Stager(file, spec, key_column, never_null, task=context.partitionId())
        try:
            stager.take(batches)
        except Invalid as refusal:
            stager.refusal = str(refusal)
            for _ in batches:  # Spark expects its rows to be read
                pass
        if stager.has_rows:
            yield pa.RecordBatch.from_pylist([stager.report()], schema=report_schema)

    return run


class _Stager:
    """One task's rows on their way into its file."""

    def __init__(
        self, file: str, spec: InputSpec, key_column: str | None, never_null: Sequence[str], *, task: int
    ) -> None:
        self._file, self._spec, self._key_column = file, spec, key_column
        self._never_null = never_null
        self._nulls = [0] * len(never_null)
        self._bad_keys = 0
        self._example: str | None = None
        self._batches = 0
        self._task, self._rows = task, 0
        self._first_number = task << _TASK_ROWS_BITS
        self._runs: list[pa.RecordBatch] = []
        self.has_rows = False
        self.refusal: str | None = None

    def take(self, batches: Iterator[pa.RecordBatch]) -> None:
        schema = self._spec.schema
        stored = schema if self._key_column is not None else schema.append(pa.field(RECORD_KEY, pa.string()))
        stored = stored.append(pa.field(ARRIVAL, pa.int64())) if self._spec.numbers_rows else stored
        held: list[pa.RecordBatch] = []
        size_bytes = 0
        with pa.OSFile(self._file, "wb") as sink, pa.ipc.new_file(sink, stored) as writer:
            for batch in batches:
                if len(batch) == 0:
                    continue
                self.has_rows = True
                held.append(conform_batch(batch, schema, path="input"))
                size_bytes += held[-1].nbytes
                if size_bytes >= PIECE_BYTES:
                    writer.write_batch(self._sorted(pa.Table.from_batches(held)))
                    held, size_bytes = [], 0
            if held:
                writer.write_batch(self._sorted(pa.Table.from_batches(held)))
        with pa.OSFile(self._file + _RUNS_SUFFIX, "wb") as sink, pa.ipc.new_file(sink, _RUNS) as runs:
            runs.write_table(pa.Table.from_batches(self._runs, _RUNS))

    def report(self) -> dict[str, object]:
        return {
            "file": self._file,
            "bad_keys": self._bad_keys,
            "example": self._example,
            "refusal": self.refusal,
            "nulls": self._nulls,
        }

    def _sorted(self, piece: pa.Table) -> pa.RecordBatch:
        """The rows of each partition together; where they lie is noted."""
        self._check(piece)
        if self._key_column is None and not self._bad_keys:
            keys = record_keys(piece, self._spec.keys, task=self._task, first=self._rows)
            piece = piece.append_column(RECORD_KEY, keys)
        elif self._key_column is None:  # refused by the caller anyhow
            piece = piece.append_column(RECORD_KEY, pa.nulls(len(piece), pa.string()))
        self._rows += len(piece)
        if self._spec.numbers_rows:
            numbers = np.arange(self._first_number, self._first_number + len(piece))
            self._first_number += len(piece)
            piece = piece.append_column(ARRIVAL, pa.array(numbers))
        encoded = partition_paths(piece, self._spec.keys).chunk(0)
        numbers = np.asarray(encoded.indices)
        if (np.diff(numbers) < 0).any():
            order = stable_order(numbers, len(encoded.dictionary))
            piece, numbers = piece.take(pa.array(order)), numbers[order]
        starts = np.concatenate([[0], np.flatnonzero(np.diff(numbers)) + 1])
        self._runs.append(
            pa.RecordBatch.from_arrays(
                [
                    encoded.dictionary.take(pa.array(numbers[starts])),
                    pa.array(np.full(len(starts), self._batches, dtype=np.int32)),
                    pa.array(starts.astype(np.int64)),
                    pa.array(np.diff([*starts, len(numbers)]).astype(np.int64)),
                ],
                schema=_RUNS,
            )
        )
        self._batches += 1
        (batch,) = piece.combine_chunks().to_batches()
        return batch

    def _check(self, piece: pa.Table) -> None:
        for i, name in enumerate(self._never_null):
            self._nulls[i] += piece.column(name).null_count
        missing = missing_keys(piece, self._spec.keys)
        count = pc.sum(missing).as_py() or 0
        if count and self._example is None:
            at = pc.index(missing, True).as_py()
            self._example = str({name: piece.column(name)[at].as_py() for name in self._spec.keys.record_key})
        self._bad_keys += count


def _read_files(
    files: Sequence[str], schema: pa.Schema
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def run(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                for rows in _open_batches(files[number]):
                    yield rows.select(schema.names)

    return run


def _open_batches(file: str) -> list[pa.RecordBatch]:
    reader = pa.ipc.open_file(pa.memory_map(file))
    return [reader.get_batch(i) for i in range(reader.num_record_batches)]
