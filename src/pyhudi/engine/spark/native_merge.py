"""Slices with logs whose untouched base rows Spark's own reader takes; tasks merge the others.

Which rows those are is found out first: a bit for each base row, sent to every task of the native scan. So the rules of
merging stay in one place, whatever they are, and what is known to be untouched is filtered and pruned natively.
"""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from pyhudi.engine.local import LocalExecutor
from pyhudi.engine.spark.arrow_rows import arrow_dataframe, can_take_arrow
from pyhudi.engine.spark.merge_design import base_size_bytes, finds_on_driver
from pyhudi.engine.spark.merged import map_slices
from pyhudi.engine.spark.schema import spark_schema
from pyhudi.storage.open import open_storage
from pyhudi.storage.protocol import Storage, StorageLocation
from pyhudi.table.read_plan import PlannedFile, ReadPlan
from pyhudi.table.touched_rows import find_touched

FILE = "__pyhudi_file"
PLACE = "__pyhudi_place"
_FILE_HASH = "__pyhudi_file_hash"
_OF = "__pyhudi_of"
_OF_HASH = "__pyhudi_of_hash"
_BITS = "__pyhudi_bits"
_WORD_BITS = 64


def untouched_rows(
    spark: SparkSession,
    location: StorageLocation,
    plan: ReadPlan,
    slices: Sequence[PlannedFile],
    scan: Callable[..., DataFrame],
) -> DataFrame:
    """Base rows of these slices without those that the logs touch. `scan` gives the base rows, with more columns.

    A file goes by its size where that tells it from the others, by its name otherwise: text takes longer in each row.
    Memory of each executor, and of the driver on the way: a bit for each base row.
    """
    # A lookup by a number takes a fifth of the time that one by the name takes; names are compared after it.
    by_size = _go_by_size(slices)
    file, hashed = ("_metadata.file_size", f.col) if by_size else ("_metadata.file_name", f.xxhash64)
    rows = scan(f.col(file).alias(FILE), f.col("_metadata.row_index").alias(PLACE))
    touched = f.broadcast(_touched(spark, location, plan, slices, by_size).withColumn(_OF_HASH, hashed(_OF)))
    joined = rows.withColumn(_FILE_HASH, hashed(FILE)).join(touched, f.col(_FILE_HASH) == f.col(_OF_HASH), "left")
    word = f"get({_BITS}, CAST(shiftright({PLACE}, 6) AS INT))"  # null behind the last touched row
    bit = f.expr(f"coalesce(shiftright({word}, CAST({PLACE} & 63 AS INT)) & 1, 0)")
    unknown = f.raise_error(f.concat(f.lit("pyhudi: nobody looked which rows of this file logs touch: "), FILE))
    is_touched = f.when(f.col(FILE) == f.col(_OF), bit).otherwise(unknown.cast("long"))
    return joined.where(is_touched == 0).drop(FILE, PLACE, _FILE_HASH, _OF, _OF_HASH, _BITS)


def _go_by_size(slices: Sequence[PlannedFile]) -> bool:
    return len({base_size_bytes(piece) for piece in slices}) == len(slices)


def _touched(
    spark: SparkSession, location: StorageLocation, plan: ReadPlan, slices: Sequence[PlannedFile], by_size: bool
) -> DataFrame:
    """What each slice's base file goes by, and the bits of the rows that are touched."""
    reading, stored = plan.log_reading, plan.stored_schema
    assert reading is not None
    of = pa.field(_OF, pa.int64() if by_size else pa.string())
    schema = pa.schema([of, pa.field(_BITS, pa.list_(pa.int64()))])

    def find(storage: Storage, piece: PlannedFile) -> tuple[int | str, np.ndarray]:
        words = pack_places(find_touched(storage, piece.slice_files, reading, stored))
        return base_size_bytes(piece) if by_size else piece.path.rpartition("/")[2], words

    def run(storage: Storage, piece: PlannedFile) -> Iterator[pa.RecordBatch]:
        file, words = find(storage, piece)
        yield pa.RecordBatch.from_arrays([pa.array([file]), pa.array([words], pa.list_(pa.int64()))], schema=schema)

    if not finds_on_driver(slices):
        return map_slices(spark, location, slices, run, schema)
    storage = open_storage(location)
    found = LocalExecutor().run(lambda piece: find(storage, piece), slices)
    if can_take_arrow(spark):
        files, words = zip(*found, strict=True)
        bits = pa.ListArray.from_arrays(np.cumsum([0, *map(len, words)]).astype(np.int32), np.concatenate(words))
        return arrow_dataframe(spark, pa.table([pa.array(files), bits], schema=schema), spark_schema(schema))
    return spark.createDataFrame([(file, words.tolist()) for file, words in found], spark_schema(schema))


def pack_places(places: np.ndarray) -> np.ndarray:
    """Words of 64 bits, the first row's bit the lowest of the first word: set at these places, which ascend."""
    count = -(-(int(places[-1]) + 1) // _WORD_BITS) if len(places) else 0
    bits = np.zeros(count * _WORD_BITS, np.bool_)
    bits[places] = True
    return np.packbits(bits, bitorder="little").view("<i8")
