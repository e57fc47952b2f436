"""Statistics of files and partitions that planning asks for, from the metadata table."""

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.format.arrow_arrays import one_array
from pyhudi.metadata.column_stats import read_column_stats, read_partition_stats
from pyhudi.metadata.expression_statistics import MetadataExpressions
from pyhudi.metadata.indexes import MetadataIndexes


@dataclass(frozen=True, slots=True)
class MetadataStatistics:
    """`column_stats`, `partition_stats` and indexes on expressions, those that the table's properties name as ready.

    `schema`: the table's columns, meta fields first.
    """

    indexes: MetadataIndexes
    schema: pa.Schema

    def expressions(self) -> MetadataExpressions:
        return MetadataExpressions(self.indexes, self.schema)

    def of_files(self, column: pa.Field, files: pa.Table) -> pa.Table | None:
        partitions = pc.unique(one_array(files.column("partition"))).to_pylist()
        return read_column_stats(self.indexes, column, partitions=partitions, files=files)

    def of_partitions(self, column: pa.Field, partitions: Sequence[str]) -> pa.Table | None:
        return read_partition_stats(self.indexes, column, partitions=partitions)
