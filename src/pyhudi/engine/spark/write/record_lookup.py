"""Looking up keys in the record index, or in an index of the user's, by Spark tasks.

Only keys are shuffled. Each key goes to the task that opens its file group of the record index.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import tzinfo

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from pyhudi.engine.local.code_order import rows_by_code
from pyhudi.engine.local.executors import SerialExecutor
from pyhudi.engine.spark.batches import map_in_arrow
from pyhudi.engine.spark.schema import spark_schema
from pyhudi.engine.spark.session import core_count, session_of, use_running_interpreter
from pyhudi.engine.spark.write.buckets import text_hash
from pyhudi.errors import HudiError
from pyhudi.format.schema.conversion import PARTITION_PATH, RECORD_KEY
from pyhudi.index.hits import Index
from pyhudi.index.own.lookup import OwnLookup
from pyhudi.index.record_index import RecordIndex
from pyhudi.metadata.store.indexes import MetadataIndexes
from pyhudi.metadata.store.table import MetadataTable, metadata_storage
from pyhudi.storage.open import open_storage
from pyhudi.storage.protocol import StorageLocation
from pyhudi.table.facts.config import TableConfig
from pyhudi.table.view.file_system_view import FileSlice
from pyhudi.timeline.active import Timeline
from pyhudi.timeline.history import NoHistory

KEYS_A_TASK = 50_000
"""So many keys are worth a task of their own: a task takes a tenth of a second before it looks anything up."""

KEYS_TOGETHER = 1_000_000
"""A task gathers so many keys before it looks them up, so that it opens a file group once for many keys."""


@dataclass(frozen=True, slots=True)
class _IndexesAbroad:
    """What a task needs to open the metadata table in the state that the driver sees. Can be pickled."""

    location: StorageLocation
    config: TableConfig
    timeline: Timeline
    zone: tzinfo
    own_config: TableConfig
    own_timeline: Timeline

    @classmethod
    def of(cls, indexes: MetadataIndexes, location: StorageLocation) -> "_IndexesAbroad":
        timelines = (replace(timeline, history=NoHistory()) for timeline in (indexes.timeline, indexes.table.timeline))
        timeline, own = timelines
        return cls(location, indexes.config, timeline, indexes.zone, indexes.table.config, own)

    def open(self) -> MetadataIndexes:
        storage = open_storage(self.location)
        table = MetadataTable(metadata_storage(storage), self.own_config, self.own_timeline)
        return MetadataIndexes(storage, self.config, self.timeline, self.zone, table)


def locate_in_tasks(
    keys: DataFrame,
    count: int,
    index: RecordIndex | OwnLookup,
    location: StorageLocation,
    slices: Sequence[FileSlice],
    *,
    stored_path: str,
    target: str,
) -> DataFrame:
    """The keys that the index knows, each with the partition and the position of its slice.

    `keys`: the columns `PARTITION_PATH` and `RECORD_KEY`, each pair once. `count`: how many keys there are at most.
    `stored_path`, `target`: names for the columns of the slice's partition and position. Shuffles the keys.
    Memory of a task: `KEYS_TOGETHER` keys and what the index knows of them.
    """
    spark = session_of(keys)
    use_running_interpreter(spark)
    tasks = max(1, min(-(-count // KEYS_A_TASK), 4 * core_count(spark)))

    abroad: _IndexesAbroad | OwnLookup
    is_global = index.is_global
    if isinstance(index, OwnLookup):
        abroad = replace(index, bring=None)
    else:
        abroad = _IndexesAbroad.of(index.indexes, location)
    fields = [(PARTITION_PATH, pa.string()), (RECORD_KEY, pa.string()), (stored_path, pa.string())]
    schema = pa.schema([*fields, (target, pa.int32())])
    paths = pa.array([file_slice.partition for file_slice in slices], pa.string())

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        found = abroad if isinstance(abroad, OwnLookup) else RecordIndex(abroad.open(), is_global)
        storage = open_storage(location)
        for rows in _gathered(batches):
            by_path = keys_by_path(rows)
            hits = found.locate(storage, by_path, slices, SerialExecutor())
            for path, own_hits in hits.items():
                groups = pa.array(own_hits.groups, pa.int32())
                path_column = pa.repeat(pa.scalar(path, pa.string()), len(groups))
                key_column = by_path[path].take(pa.array(own_hits.rows))
                columns = [path_column, key_column, paths.take(groups), groups]
                yield pa.RecordBatch.from_arrays(columns, schema=schema)

    return map_in_arrow(keys.repartition(tasks, *_spread(index)), run, spark_schema(schema))


@contextmanager
def of_one_state(index: Index) -> Iterator[None]:
    """Look keys up in an index of the user's, in one state of it.

    A task that meets another state fails, and so does the job. Raises: IndexMoved where the index has moved on
    meanwhile.
    """
    if not isinstance(index, OwnLookup):
        yield
        return
    try:
        yield
    except HudiError:
        raise
    except Exception:
        index.refuse_moved()
        raise
    index.refuse_moved()


def keys_by_path(rows: pa.Table) -> dict[str, pa.Array]:
    """Record keys by partition path. `rows`: the first column is the partition path, the second the record key."""
    paths = rows.column(0).combine_chunks().dictionary_encode()
    texts = rows.column(1).combine_chunks().cast(pa.string())
    by_path = rows_by_code(np.asarray(paths.indices), len(paths.dictionary))
    parts = (texts.take(pa.array(part)) for part in by_path)
    return dict(zip(paths.dictionary.to_pylist(), parts, strict=True))


def _spread(index: RecordIndex | OwnLookup) -> list[Column]:
    """The columns to shuffle by: keys of one file group of the index have equal values in them."""
    if isinstance(index, OwnLookup):
        return [f.col(RECORD_KEY)]
    if not index.is_global:
        return [f.col(PARTITION_PATH)]
    hashed = text_hash(f.col(RECORD_KEY), 0)
    signed = f.when(hashed >= 1 << 31, hashed - (1 << 32)).otherwise(hashed)
    return [f.abs(signed) % index.group_count]


def _gathered(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    held: list[pa.RecordBatch] = []
    for batch in batches:
        held.append(batch)
        if sum(map(len, held)) >= KEYS_TOGETHER:
            yield pa.Table.from_batches(held)
            held = []
    if sum(map(len, held)):
        yield pa.Table.from_batches(held)
