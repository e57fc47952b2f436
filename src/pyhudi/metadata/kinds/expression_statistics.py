"""What the indexes on expressions tell a query of files and partitions."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, cast, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import CorruptFile
from pyhudi.format.arrow_arrays import one_array
from pyhudi.format.keys.bloom import BloomFilter, BloomKind
from pyhudi.metadata.kinds.bloom_filters import read_bloom_filters
from pyhudi.metadata.kinds.expression_index import ExpressionIndex, is_expression_index, known_expressions
from pyhudi.metadata.kinds.stats_reading import read_column_stats, read_partition_stats
from pyhudi.metadata.store.indexes import MetadataIndexes
from pyhudi.table.prune.file_statistics import Kept, KnownExpression

log = logging.getLogger("pyhudi")

_VALUES: Final = "value_count"


@dataclass(frozen=True, slots=True)
class MetadataExpressions:
    """The indexes on expressions that the table's properties name as ready.

    `schema`: the table's columns, meta fields first.
    """

    indexes: MetadataIndexes
    schema: pa.Schema
    _found: list[tuple[ExpressionIndex, ...]] = field(default_factory=list, compare=False, repr=False)

    def known(self) -> Sequence[KnownExpression]:
        ready = [name for name in self.indexes.config.metadata_partitions if is_expression_index(name)]
        if not self._found:
            definitions = self.indexes.index_definitions() if ready else {}
            self._found.append(known_expressions(ready, definitions, self.schema))
        return [
            KnownExpression(index.partition, index.source, index.node, index.bloom is not None)
            for index in self._found[0]
        ]

    def of_files(self, expression: KnownExpression, files: pa.Table) -> pa.Table | None:
        partitions = pc.unique(one_array(files.column("partition"))).to_pylist()
        column = self._column(expression)
        return with_nulls(
            read_column_stats(self.indexes, column, partitions=partitions, files=files, index=expression.index)
        )

    def of_partitions(self, expression: KnownExpression, partitions: Sequence[str]) -> pa.Table | None:
        return with_nulls(
            read_partition_stats(self.indexes, self._column(expression), partitions=partitions, index=expression.index)
        )

    def may_hold(self, expression: KnownExpression, files: pa.Table, texts: pa.Array) -> Kept:
        """Which files may hold one of the texts. A filter that is missing or cannot be used rules nothing out.

        Memory: the filters of a data partition.
        """
        found = np.ones(len(files), np.bool_)
        partitions, names = (one_array(files.column(name)) for name in ("partition", "name"))
        for partition in pc.unique(partitions).to_pylist():
            positions = pc.indices_nonzero(pc.equal(partitions, partition)).to_numpy()
            mine = names.take(pa.array(positions)).to_pylist()
            at = dict(zip(mine, positions.tolist(), strict=True))

            blooms = read_bloom_filters(self.indexes, partition, mine, index=expression.index)
            for row in blooms.to_pylist() if blooms is not None else []:
                bloom = usable_filter(row, expression.index)
                found[at[row["file"]]] = bloom is None or bool(pc.any(bloom.may_contain(texts)).as_py())
        return found

    def _column(self, expression: KnownExpression) -> pa.Field:
        found = next(index for index in self._found[0] if index.partition == expression.index)
        return pa.field(found.source, found.type)


def with_nulls(stats: pa.Table | None) -> pa.Table | None:
    """Statistics of an expression whose count of values includes nulls, as in all other statistics."""
    if stats is None:
        return None

    counts = pc.add(stats.column(_VALUES), stats.column("null_count"))
    return stats.set_column(stats.schema.get_field_index(_VALUES), _VALUES, counts)


def usable_filter(row: Mapping[str, object], index: str) -> BloomFilter | None:
    """The filter in a row of `BLOOMS`; None for one that cannot be used, with a log line."""
    kind, text = row["type"], row["bloom_filter"]
    assert isinstance(text, bytes)
    try:
        if kind not in get_args(BloomKind):
            raise CorruptFile(index, 0, expected=" or ".join(get_args(BloomKind)), found=f"a filter of kind '{kind}'")
        return BloomFilter.decode(cast(BloomKind, kind), text, path=f"{index}, {row['file']}")
    except CorruptFile as error:
        log.warning("a Bloom filter of an index on an expression is passed over: %s", error)
        return None
