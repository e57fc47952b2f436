"""The records of the metadata table as Spark DataFrames: tasks read a share of its file groups each."""

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from pyhudi.engine.spark.read.merged import map_slices
from pyhudi.engine.spark.session import refuse_unshared
from pyhudi.metadata.kinds.all_records import RecordSlice, read_records, record_columns
from pyhudi.metadata.store.table import MetadataTable, metadata_storage
from pyhudi.storage.protocol import Storage, StorageLocation
from pyhudi.timeline.active import Timeline


def records_to_dataframe(
    spark: SparkSession,
    location: StorageLocation,
    table: MetadataTable,
    data_timeline: Timeline,
    slices: Sequence[RecordSlice],
) -> DataFrame:
    """The records of these slices. `location`: of the data table. Memory of a task: as `read_records`."""
    refuse_unshared(spark, location)
    config, timeline = table.config, table.timeline  # without the storage, which each task opens itself

    def read(storage: Storage, one: RecordSlice) -> Iterator[pa.RecordBatch]:
        return read_records(MetadataTable(metadata_storage(storage), config, timeline), data_timeline, one)

    return map_slices(spark, location, slices, read, record_columns(table))
