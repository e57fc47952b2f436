"""Slices with logs that this process merges into Parquet files of this machine, once a query needs them.

Spark's own reader scans the files. So a query's filters and columns are pushed down as into base files. A slice of a
partition that the query's filters rule out is not merged, and none of its files is opened.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from pyhudi.engine.local.executors import LocalExecutor
from pyhudi.engine.spark.read.base_files import CALENDAR, hadoop_uri, spark_uri
from pyhudi.engine.spark.read.file_index import scan_index
from pyhudi.engine.spark.read.filters import LeftBy
from pyhudi.engine.spark.read.local_rows import KeptFiles
from pyhudi.engine.spark.read.merge_design import base_size_bytes
from pyhudi.engine.spark.read.pruned_index import PrunedIndex, ScanFile
from pyhudi.engine.spark.schema import arrow_schema, spark_schema
from pyhudi.format.leaf_bounds import leaves_with_bounds
from pyhudi.storage.open import open_storage
from pyhudi.storage.protocol import Storage, StorageLocation
from pyhudi.table.read.files import read_planned
from pyhudi.table.read.plan import PlannedFile, ReadPlan

_GROUP_ROWS = 128 * 1024
"""Rows of a row group. Spark reads several row groups of one file at the same time."""


def scan_merged_files(
    spark: SparkSession,
    location: StorageLocation,
    plan: ReadPlan,
    slices: Sequence[PlannedFile],
    left_by: LeftBy | None = None,
) -> DataFrame:
    """The plan's rows of these slices, filtered and projected. Each slice is merged once, when a query first needs it.

    `left_by`: what tells the slices that a query's filters leave, by their paths.

    Disk: the rows of the merged slices, in Spark's folder for spilled data, until no DataFrame of these rows is left.
    Memory: for each processor the merged log of one slice, and a row group.
    """
    schema = spark_schema(plan.schema)
    inputs = [
        (spark_uri(location, path), size_bytes) for planned_file in slices for path, size_bytes in _inputs(planned_file)
    ]
    partitions = [planned_file.partition for planned_file in slices]
    with KeptFiles(spark) as kept:
        files_of = _MergedFiles(location, plan, slices, kept, arrow_schema(schema)).of
        root = hadoop_uri(kept.folder)
        paths = [planned_file.path for planned_file in slices]
        index = PrunedIndex(spark, root, inputs, partitions, plan.told_as_shown, schema, files_of, paths, left_by)
        scan = scan_index(spark, index, schema, CALENDAR)
        kept.keep(scan, 0)
    return scan


class _MergedFiles:
    """The files of the slices that were merged so far."""

    def __init__(
        self,
        location: StorageLocation,
        plan: ReadPlan,
        slices: Sequence[PlannedFile],
        kept: KeptFiles,
        schema: pa.Schema,
    ) -> None:
        self._location, self._plan, self._slices, self._kept, self._schema = location, plan, slices, kept, schema
        self._found: dict[int, ScanFile | None] = {}

    def of(self, numbers: Sequence[int]) -> list[ScanFile]:
        """A file for each of these slices that has a row. Must be called by one thread at a time."""
        missing = [number for number in numbers if number not in self._found]
        if missing:
            storage = open_storage(self._location)
            merged = LocalExecutor().run(lambda number: self._merge(storage, number), missing)
            self._found.update(zip(missing, merged, strict=True))
            self._kept.grow(sum(file.size_bytes for file in merged if file is not None))
        return [file for number in numbers if (file := self._found[number]) is not None]

    def _merge(self, storage: Storage, number: int) -> ScanFile | None:
        planned_file, path = self._slices[number], self._kept.folder / f"{number:06d}.parquet"
        batches = read_planned(storage, self._plan, planned_file, use_threads=len(self._slices) == 1)
        first = next(batches, None)
        if first is None:
            return None
        bounds = leaves_with_bounds(self._schema.empty_table(), is_whole=False)
        with pq.ParquetWriter(
            path, self._schema, compression="none", use_dictionary=False, write_statistics=bounds
        ) as writer:
            for rows in _joined(chain([first], batches)):
                writer.write_table(rows.cast(self._schema))
        return ScanFile(planned_file.partition, hadoop_uri(path), path.stat().st_size)


def _joined(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """The batches in tables of at least `_GROUP_ROWS` rows; the last table may have fewer."""
    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        waiting.append(batch)
        if sum(map(len, waiting)) >= _GROUP_ROWS:
            yield pa.Table.from_batches(waiting)
            waiting = []
    if waiting:
        yield pa.Table.from_batches(waiting)


def _inputs(planned_file: PlannedFile) -> list[tuple[str, int]]:
    """The files of a slice, and their bytes."""
    base = [] if planned_file.slice_files.base_path is None else [(planned_file.path, base_size_bytes(planned_file))]
    return [*base, *planned_file.logs]
