"""Slices with logs whose untouched base rows Spark's own reader takes, while tasks merge the touched rows.

The touched rows are found first: a bit for each base row, sent to every task of the native scan. So the rules of
merging stay in one module, and untouched rows are filtered and pruned natively.
"""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f

from pyhudi.engine.local.executors import LocalExecutor
from pyhudi.engine.spark.read.arrow_rows import arrow_dataframe, can_take_arrow
from pyhudi.engine.spark.read.merge_design import base_size_bytes, finds_on_driver
from pyhudi.engine.spark.read.merged import map_slices
from pyhudi.engine.spark.schema import spark_schema
from pyhudi.storage.open import open_storage
from pyhudi.storage.protocol import Storage, StorageLocation
from pyhudi.table.read.plan import PlannedFile, ReadPlan
from pyhudi.table.slices.touched_rows import find_touched

FILE = "__pyhudi_file"
POSITION = "__pyhudi_position"
_OF = "__pyhudi_of"
_BITS = "__pyhudi_bits"
WORD_BITS = 64


def untouched_rows(
    spark: SparkSession,
    location: StorageLocation,
    plan: ReadPlan,
    slices: Sequence[PlannedFile],
    scan: Callable[..., DataFrame],
    touched: Callable[[], Sequence[np.ndarray]] | None = None,
) -> DataFrame:
    """Base rows of these slices, without the rows that the logs touch. `scan`: gives the base rows, with more columns.

    `touched`: gives the positions of the touched rows, as `find_touched` does, and is asked once Spark has planned the
    scan; None: they are looked up. Memory of each executor, and of the driver on the way: a bit for each base row.
    """
    files = [(planned_file.path, base_size_bytes(planned_file)) for planned_file in slices]
    by_size = go_by_size(files)
    rows = scan(*_file_and_position(by_size))

    if touched is not None:
        return _rows_without(rows, _gone(spark, files, touched(), by_size), by_size)
    return _rows_without(rows, _touched(spark, location, plan, slices, by_size), by_size)


def _gone(
    spark: SparkSession, files: Sequence[tuple[str, int]], gone: Sequence[np.ndarray], by_size: bool
) -> DataFrame:
    """For each file, its size or name, and the bits of its rows that are gone."""
    bits = [
        (_goes_by(path, size_bytes, by_size), pack_positions(positions))
        for (path, size_bytes), positions in zip(files, gone, strict=True)
    ]
    return _bits_dataframe(spark, bits, by_size)


def _rows_without(rows: DataFrame, gone: DataFrame, by_size: bool) -> DataFrame:
    """The rows with their file and position, except those with a bit in `gone`.

    Reading fails for a file that `gone` says nothing of.
    """
    # A lookup by number takes a fifth of the time of a lookup by name. Names are compared after it.
    is_same = f"{FILE} = {_OF}"
    found = is_same if by_size else f"xxhash64({FILE}) = xxhash64({_OF})"
    joined = rows.join(f.broadcast(gone), f.expr(found), "left")

    word = f"get({_BITS}, CAST(shiftright({POSITION}, 6) AS INT))"  # null behind the last row that is gone
    bit = f"coalesce(shiftright({word}, CAST({POSITION} & 63 AS INT)) & 1, 0)"
    unknown = f"raise_error(concat('pyhudi: nobody looked which rows of this file logs touch: ', {FILE}))"
    is_gone = f"CASE WHEN {is_same} THEN {bit} ELSE CAST({unknown} AS BIGINT) END"

    return joined.where(f"{is_gone} = 0").drop(FILE, POSITION, _OF, _BITS)


def _file_and_position(by_size: bool) -> tuple[Column, Column]:
    """The columns that tell each row's file apart, and the row's position in it."""
    file = "_metadata.file_size" if by_size else "_metadata.file_name"
    return f.expr(f"{file} AS {FILE}"), f.expr(f"_metadata.row_index AS {POSITION}")


def go_by_size(files: Sequence[tuple[str, int]]) -> bool:
    """Whether files (path, bytes) are told apart by their sizes. Text would take longer in each row."""
    return len({size_bytes for _, size_bytes in files}) == len(files)


def _goes_by(path: str, size_bytes: int, by_size: bool) -> int | str:
    return size_bytes if by_size else path.rpartition("/")[2]


def _touched(
    spark: SparkSession, location: StorageLocation, plan: ReadPlan, slices: Sequence[PlannedFile], by_size: bool
) -> DataFrame:
    """For each slice, the size or name of its base file, and the bits of the touched rows."""
    reading, stored = plan.log_reading, plan.stored_schema
    assert reading is not None

    def find(storage: Storage, planned_file: PlannedFile) -> tuple[int | str, np.ndarray]:
        words = pack_positions(find_touched(storage, planned_file.slice_files, reading, stored))
        return _goes_by(planned_file.path, base_size_bytes(planned_file), by_size), words

    schema = _bits_schema(by_size)

    def run(storage: Storage, planned_file: PlannedFile) -> Iterator[pa.RecordBatch]:
        file, words = find(storage, planned_file)
        yield pa.RecordBatch.from_arrays([pa.array([file]), pa.array([words], pa.list_(pa.int64()))], schema=schema)

    if not finds_on_driver(slices):
        return map_slices(spark, location, slices, run, schema)
    storage = open_storage(location)
    return _bits_dataframe(
        spark, LocalExecutor().run(lambda planned_file: find(storage, planned_file), slices), by_size
    )


def _bits_schema(by_size: bool) -> pa.Schema:
    file = pa.field(_OF, pa.int64() if by_size else pa.string())
    return pa.schema([file, pa.field(_BITS, pa.list_(pa.int64()))])


def _bits_dataframe(spark: SparkSession, bits: Sequence[tuple[int | str, np.ndarray]], by_size: bool) -> DataFrame:
    schema = _bits_schema(by_size)
    if can_take_arrow(spark):
        files, words = zip(*bits, strict=True)
        lists = pa.ListArray.from_arrays(np.cumsum([0, *map(len, words)]).astype(np.int32), np.concatenate(words))
        return arrow_dataframe(spark, pa.table([pa.array(files), lists], schema=schema), spark_schema(schema))
    return spark.createDataFrame([(file, words.tolist()) for file, words in bits], spark_schema(schema))


def pack_positions(positions: np.ndarray) -> np.ndarray:
    """Words with bits set at these positions, up to the last one.

    `positions`: ascending. Example: 0 and 2 give the word 5.
    """
    bits = np.zeros(int(positions[-1]) + 1 if len(positions) else 0, np.bool_)
    bits[positions] = True
    return pack_bits(bits)


def pack_bits(bits: np.ndarray) -> np.ndarray:
    """The bits in words of `WORD_BITS` bits. The first bit is the lowest of the first word."""
    padded = np.zeros(-(-len(bits) // WORD_BITS) * WORD_BITS, np.bool_)
    padded[: len(bits)] = bits
    return np.packbits(padded, bitorder="little").view("<i8")
