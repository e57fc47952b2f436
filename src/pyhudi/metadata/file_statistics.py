"""Statistics of files and partitions that planning asks for, from the metadata table."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import tzinfo

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.executor import Executor
from pyhudi.format.arrow_arrays import one_array
from pyhudi.format.metadata_groups import COLUMN_STATS, PARTITION_STATS
from pyhudi.metadata.column_stats import read_column_stats, read_partition_stats
from pyhudi.metadata.indexes import MetadataIndexes, open_indexes
from pyhudi.storage.protocol import Storage
from pyhudi.table.config import TableConfig
from pyhudi.table.file_statistics import FileStatistics
from pyhudi.timeline.active import Timeline


@dataclass(frozen=True, slots=True)
class MetadataStatistics:
    """`column_stats` and `partition_stats`, where the table's properties name them as ready."""

    indexes: MetadataIndexes

    def of_files(self, column: pa.Field, files: pa.Table) -> pa.Table | None:
        partitions = pc.unique(one_array(files.column("partition"))).to_pylist()
        return read_column_stats(self.indexes, column, partitions=partitions, files=files)

    def of_partitions(self, column: pa.Field, partitions: Sequence[str]) -> pa.Table | None:
        return read_partition_stats(self.indexes, column, partitions=partitions)


def open_statistics(
    storage: Storage, config: TableConfig, timeline: Timeline, zone: tzinfo, *, executor: Executor | None = None
) -> FileStatistics | None:
    """The statistics of a data table; None without a ready index of them."""
    if not {COLUMN_STATS, PARTITION_STATS} & set(config.metadata_partitions):
        return None
    indexes = open_indexes(storage, config, timeline, zone, executor=executor)
    return None if indexes is None else MetadataStatistics(indexes)
