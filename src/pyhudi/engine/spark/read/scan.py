"""Scans as Spark DataFrames: the chosen files are handed to Spark's own readers."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial, reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f

from pyhudi.engine.local.executors import LocalExecutor
from pyhudi.engine.spark.batches import map_in_arrow
from pyhudi.engine.spark.read.arrow_rows import arrow_dataframe, can_take_arrow
from pyhudi.engine.spark.read.base_files import (
    CALENDAR,
    hides_position,
    is_overwritten,
    is_scanned,
    read_as,
    tells_positions,
)
from pyhudi.engine.spark.read.filters import LeftBy, LeftByIndexes, Narrowing
from pyhudi.engine.spark.read.local_rows import file_dataframe, takes_files
from pyhudi.engine.spark.read.merge_design import (
    base_size_bytes,
    merged_bytes,
    merges_on_driver,
    merges_whole_on_driver,
    pays_as_files,
    split_by_design,
)
from pyhudi.engine.spark.read.merged import read_merged_slices
from pyhudi.engine.spark.read.merged_files import scan_merged_files
from pyhudi.engine.spark.read.native_merge import untouched_rows
from pyhudi.engine.spark.read.shown import as_shown
from pyhudi.engine.spark.read.standing import find_standing_slices, standing_rows
from pyhudi.engine.spark.schema import spark_schema
from pyhudi.engine.spark.session import is_classic, refuse_unshared, use_running_interpreter, with_settings
from pyhudi.engine.spark.write.keys import quoted
from pyhudi.format.schema.conversion import COMMIT_TIME
from pyhudi.format.time_units import in_micros
from pyhudi.predicate import Predicate
from pyhudi.storage.open import open_storage
from pyhudi.storage.protocol import StorageLocation
from pyhudi.table.read.files import read_planned
from pyhudi.table.read.plan import PlannedFile, ReadPlan
from pyhudi.table.slices.conform import conform_batch


def plan_to_dataframe(
    spark: SparkSession, location: StorageLocation, plan: ReadPlan, narrowing: Narrowing | None = None
) -> DataFrame:
    """The plan's rows: a native scan of its files, with native filters and projection, and the rows that tasks merge.

    Base files without logs are scanned natively, if Spark has a reader of their format and they hold all columns of
    their rows. A slice with logs is read in one of three ways. If it is known which stored rows are its rows, these are
    a native scan (`standing_rows`). If it pays (`split_by_design`), only rows that the log touches are merged, and the
    others are a native scan. Otherwise all rows are merged (`_whole`).
    If a column has the name by which Spark tells the rows of a file apart, tasks merge all rows. If Spark would put row
    numbers into that column, or if columns had other names in older files, tasks read slices without logs, too. An
    Arrow expression as predicate is evaluated by Arrow on the executors.

    `narrowing`: tells the files that a query's filters leave, when Spark plans the query. Native scans and slices that
    this process merges once a query needs them go by it.
    """
    refuse_unshared(spark, location)
    left_by = None if narrowing is None or not is_classic(spark) else LeftByIndexes(spark, narrowing).of

    is_native = not is_overwritten(plan.schema_read.names) and plan.as_written.is_today
    plain, logged = _split(plan.files, plan.schema_read) if is_native else ([], list(plan.files))
    merges_all = hides_position(plan.schema_read.names) or not plan.as_written.is_today
    apart, whole = split_by_design([] if merges_all else [file for file in logged if tells_positions(file)])
    whole += [file for file in logged if merges_all or not tells_positions(file)]

    standing = find_standing_slices(spark, location, plan, apart)
    apart = [file for file in apart if all(file is not one for one, _ in standing)]
    parts = []
    with ThreadPoolExecutor(max_workers=1) as beside:  # this process merges while Spark plans
        is_merged_here = bool(apart) and can_take_arrow(spark) and merges_on_driver(apart)
        merging = beside.submit(_merge_touched, location, plan, apart) if is_merged_here else None

        if plain or not (standing or apart or whole):
            parts.append(_native(spark, location, plan, _scanned(spark, location, plan, plain, left_by=left_by)))
        if standing:
            parts.append(_native(spark, location, plan, standing_rows(spark, location, plan, standing, left_by)))

        if apart:
            scan = partial(_scanned, spark, location, plan, apart, left_by=left_by)
            touched = None if merging is None else lambda: merging.result()[1]
            parts.append(_native(spark, location, plan, untouched_rows(spark, location, plan, apart, scan, touched)))

        if merging is not None:
            parts.append(_rows_of_driver(spark, merging.result()[0]))
        elif apart:
            parts.append(read_merged_slices(spark, location, plan, apart, touched_only=True))
        if whole:
            parts.append(_whole(spark, location, plan, whole, left_by))

    # Spark lets INSERT INTO a temporary view of a bare relation write files below the scan's made-up root. It refuses
    # to insert into a selection. Seen: 4.3.
    return reduce(DataFrame.union, parts).select("*")


def _split(files: Sequence[PlannedFile], schema: pa.Schema) -> tuple[list[PlannedFile], list[PlannedFile]]:
    """The base files that Spark's own readers read alone, and all others."""
    plain: list[PlannedFile] = []
    others: list[PlannedFile] = []
    for file in files:
        (plain if not file.logs and is_scanned(file, schema) else others).append(file)
    return plain, others


def _whole(
    spark: SparkSession,
    location: StorageLocation,
    plan: ReadPlan,
    slices: Sequence[PlannedFile],
    left_by: LeftBy | None,
) -> DataFrame:
    """The rows of slices that are merged whole: by this process once a query needs them, if that pays, or by tasks."""
    by_driver = merges_whole_on_driver(slices) and takes_files(spark, merged_bytes(slices))
    if by_driver and not hides_position(plan.schema.names):
        return scan_merged_files(spark, location, plan, slices, left_by)
    return read_merged_slices(spark, location, plan, slices)


def _merge_touched(
    location: StorageLocation, plan: ReadPlan, slices: Sequence[PlannedFile]
) -> tuple[pa.Table, list[np.ndarray]]:
    """The merged rows that the logs of these slices touch, and the positions of the touched rows in each base file."""
    storage = open_storage(location)

    def merge(planned_file: PlannedFile) -> tuple[list[pa.RecordBatch], np.ndarray]:
        positions = [np.zeros(0, np.int64)]
        read = read_planned(
            storage, plan, planned_file, use_threads=False, touched_only=True, on_positions=positions.append
        )
        return list(read), np.unique(np.concatenate(positions))

    merged = LocalExecutor().run(merge, slices)
    rows = pa.Table.from_batches((batch for batches, _ in merged for batch in batches), plan.schema)
    return rows, [positions for _, positions in merged]


def _rows_of_driver(spark: SparkSession, rows: pa.Table) -> DataFrame:
    if pays_as_files(rows.nbytes) and takes_files(spark, rows.nbytes):
        return file_dataframe(spark, rows, CALENDAR)
    return arrow_dataframe(spark, rows, spark_schema(rows.schema))


def _scanned(
    spark: SparkSession,
    location: StorageLocation,
    plan: ReadPlan,
    files: Sequence[PlannedFile],
    *more: Column,
    left_by: LeftBy | None,
) -> DataFrame:
    """The base files' rows, with the columns that reading needs, and the columns `more`."""
    stored = plan.schema_read
    named = [(file.path, base_size_bytes(file)) for file in files]
    return read_as(spark, location, named, stored, *more, values=plan.told_as_stored, left_by=left_by)


def _native(spark: SparkSession, location: StorageLocation, plan: ReadPlan, rows: DataFrame) -> DataFrame:
    """Filter and project stored rows natively."""
    stored = plan.schema_read
    if plan.commit_times is not None:
        rows = rows.where(f.col(COMMIT_TIME).isin(sorted(plan.commit_times)))

    rows = as_shown(rows, stored, plan.shown)

    if plan.predicate is not None:
        rows = _filtered(spark, rows, plan.predicate, plan.shown.schema(stored))

    if plan.schema.names == stored.names:  # each column that is named to the JVM costs a few calls
        return rows
    return rows.select(*(f.col(quoted(name)) for name in plan.schema.names))


def _filtered(spark: SparkSession, rows: DataFrame, predicate: Predicate, stored: pa.Schema) -> DataFrame:
    if isinstance(predicate.condition, pc.Expression):
        use_running_interpreter(spark)
        return map_in_arrow(rows, _arrow_filter(predicate, stored), rows.schema)
    if not is_classic(spark):
        return rows.where(predicate.portable_text)
    with with_settings(spark, {"spark.sql.ansi.enabled": "false", "spark.sql.session.timeZone": "UTC"}):
        return rows.where(predicate.portable_text)


def _arrow_filter(
    predicate: Predicate, stored: pa.Schema
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    taken = in_micros(stored)

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield predicate.filter(conform_batch(batch, taken, path="scan"))

    return run
