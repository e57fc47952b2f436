"""Slices whose rows are known without merging, as stored rows.

A native scan reads the base files, and leaves out the rows that do not count by their position. It also reads each
Parquet block of the logs, as a file that this process writes, where tasks can open such files: a query then pays only
for the columns it names, of base files and logs. Elsewhere the blocks' rows that count reach Spark as Arrow.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f

from pyhudi.engine.local.executors import LocalExecutor
from pyhudi.engine.spark.read.array_literal import array_literal
from pyhudi.engine.spark.read.arrow_rows import arrow_dataframe, can_take_arrow
from pyhudi.engine.spark.read.base_files import CALENDAR, hadoop_uri, spark_uri
from pyhudi.engine.spark.read.filters import LeftBy
from pyhudi.engine.spark.read.local_rows import KeptFiles, takes_files
from pyhudi.engine.spark.read.merge_design import base_size_bytes, data_blocks_max, merges_on_driver
from pyhudi.engine.spark.read.native_merge import WORD_BITS, pack_bits
from pyhudi.engine.spark.read.pruned_index import ScanFile, scan_pruned_files
from pyhudi.engine.spark.schema import spark_schema
from pyhudi.format.log.block import LogBlock
from pyhudi.format.log.data import read_batches
from pyhudi.storage.open import open_storage
from pyhudi.storage.protocol import StorageLocation
from pyhudi.table.read.plan import PlannedFile, ReadPlan
from pyhudi.table.slices.conform import conform_batch
from pyhudi.table.slices.standing_rows import StandingRows, find_standing
from pyhudi.table.slices.stored_types import group_by_stored_types

StandingSlice = tuple[PlannedFile, StandingRows]


def find_standing_slices(
    spark: SparkSession, location: StorageLocation, plan: ReadPlan, slices: Sequence[PlannedFile]
) -> list[StandingSlice]:
    """The slices among these that `standing_rows` can read, in order. None of them through Connect, or if their logs
    are too large for this process.

    Cost: as `find_standing`, by threads of this process.
    """
    if not (slices and merges_on_driver(slices) and can_take_arrow(spark)):
        return []

    reading, wanted, storage = plan.log_reading, plan.schema_read, open_storage(location)
    assert reading is not None
    by_path = {
        planned_file.path: planned_file for planned_file in slices if planned_file.slice_files.base_path is not None
    }
    files = [(path, base_size_bytes(planned_file)) for path, planned_file in by_path.items()]
    groups = group_by_stored_types(storage, files, wanted, LocalExecutor())
    fitting = [by_path[path] for group in groups if group.schema == wanted for path, _ in group.files]

    def find(planned_file: PlannedFile) -> StandingRows | None:
        most = data_blocks_max(planned_file)
        return find_standing(
            storage, planned_file.slice_files, reading, plan.stored_schema, wanted.names, data_blocks_max=most
        )

    found = zip(fitting, LocalExecutor().run(find, fitting), strict=True)
    return [(planned_file, rows) for planned_file, rows in found if rows is not None]


def standing_rows(
    spark: SparkSession,
    location: StorageLocation,
    plan: ReadPlan,
    slices: Sequence[StandingSlice],
    left_by: LeftBy | None = None,
) -> DataFrame:
    """The rows of these slices as they are stored, with the columns that reading needs.

    `left_by`: what tells the slices that a query's filters leave, by their paths.

    Disk: the data blocks, in Spark's folder for spilled data or the shared one, until no DataFrame of these rows is
    left. If tasks cannot open files there: none, and the blocks' rows are in the memory of this process and the JVM.
    Memory of each task, and of the driver: a bit for each stored row.
    """
    if takes_files(spark, sum(block.content_size for _, rows in slices for block, _ in rows.blocks)):
        return _with_blocks_as_files(spark, location, plan, slices, left_by)
    with ThreadPoolExecutor(max_workers=1) as beside:  # this process reads blocks while Spark plans
        reading = beside.submit(_read_blocks, plan.schema_read, [one for _, rows in slices for one in rows.blocks])
        words, starts = _pack([rows.base_gone for _, rows in slices])
        base = _base_files(location, [one for one, _ in slices], starts)
        scan = scan_pruned_files(
            spark, base, plan.told_as_stored, spark_schema(plan.schema_read), CALENDAR, left_by=left_by
        )
        rows = arrow_dataframe(spark, reading.result(), scan.schema)
        return scan.where(_stands(array_literal(spark, words))).union(rows)


def _with_blocks_as_files(
    spark: SparkSession,
    location: StorageLocation,
    plan: ReadPlan,
    slices: Sequence[StandingSlice],
    left_by: LeftBy | None,
) -> DataFrame:
    """`standing_rows` with a file for each data block."""
    schema = spark_schema(plan.schema_read)
    blocks = [block_and_gone for _, rows in slices for block_and_gone in rows.blocks]
    with KeptFiles(spark) as kept, ThreadPoolExecutor(max_workers=1) as beside:  # this process writes while Spark plans
        paths = [kept.folder / f"{number:06d}.parquet" for number in range(len(blocks))]
        writing = beside.submit(_write, paths, [block for block, _ in blocks])
        words, starts = _pack([*(rows.base_gone for _, rows in slices), *(gone for _, gone in blocks)])
        owners = [planned_file for planned_file, rows in slices for _ in rows.blocks]
        copies = [
            ScanFile(owner.partition, hadoop_uri(path), block.content_size, start, owner.path)
            for owner, path, (block, _), start in zip(owners, paths, blocks, starts[len(slices) :], strict=True)
        ]
        files = [*_base_files(location, [one for one, _ in slices], starts[: len(slices)]), *copies]

        scan = scan_pruned_files(spark, files, plan.told_as_stored, schema, CALENDAR, left_by=left_by)
        standing = scan.where(_stands(array_literal(spark, words)))
        writing.result()
        kept.keep(scan, sum(copy.size_bytes for copy in copies))
    return standing


def _base_files(location: StorageLocation, slices: Sequence[PlannedFile], starts: Sequence[int]) -> list[ScanFile]:
    """The base files of a scan. `starts`: the number of each one's first word."""
    return [
        ScanFile(one.partition, spark_uri(location, one.path), base_size_bytes(one), start, one.path)
        for one, start in zip(slices, starts, strict=True)
    ]


def _read_blocks(wanted: pa.Schema, blocks: Sequence[tuple[LogBlock, np.ndarray]]) -> pa.Table:
    """The rows of these data blocks that count, with these columns."""

    def read(block_and_gone: tuple[LogBlock, np.ndarray]) -> pa.Table:
        block, gone = block_and_gone
        batches = [conform_batch(one, wanted, path=block.path) for one in read_batches(block, columns=wanted.names)]
        rows = pa.Table.from_batches(batches, wanted)
        return rows.filter(pa.array(~gone)) if gone.any() else rows

    return pa.concat_tables([wanted.empty_table(), *LocalExecutor().run(read, blocks)])


def _write(paths: Sequence[Path], blocks: Sequence[LogBlock]) -> None:
    """Write the content of each block to a file."""
    for path, block in zip(paths, blocks, strict=True):
        path.write_bytes(block.read_content())


def _pack(gone: Sequence[np.ndarray]) -> tuple[np.ndarray, list[int]]:
    """The bits of all files in words, each file's from a word of its own on, and which word that is."""
    words = [pack_bits(marks) for marks in gone]
    ends = np.cumsum([0, *map(len, words)])
    return np.concatenate(words), ends[:-1].tolist()


def _stands(words: Column) -> Column:
    """Whether a row of the scan counts: its bit is not set. The time of its file is the number of the file's first
    word.

    Files must stay as they were when the query was planned. A row beyond the last word of all files fails.
    """
    shift = WORD_BITS.bit_length() - 1
    first = "unix_millis(_metadata.file_modification_time)"
    word = f.expr(f"CAST({first} + shiftright(_metadata.row_index, {shift}) AS INT)")
    position = f.expr(f"CAST(_metadata.row_index & {WORD_BITS - 1} AS INT)")
    bit = f.call_function("shiftright", f.get(words, word), position).bitwiseAND(f.lit(1))
    unknown = "raise_error('pyhudi: a file has more rows than as the query was planned; expected files that stay')"
    return f.coalesce(bit, f.expr(f"CAST({unknown} AS BIGINT)")) == 0
