"""What the metadata table knows about record keys, for queries that skip file groups.

Spec: format/indexes.md sections 1, 6 and 11; format/metadata-table.md sections 4 to 6.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.format.arrow_arrays import one_array
from pyhudi.format.metadata_groups import BLOOM_FILTERS, RECORD_INDEX, SECONDARY_INDEX_PREFIX
from pyhudi.index.bloom_metadata import KeyStatistics
from pyhudi.metadata.derive_action import stored_text
from pyhudi.metadata.index_facts import can_be_secondary
from pyhudi.metadata.indexes import MetadataIndexes
from pyhudi.metadata.key_indexes import find_secondary, locate_records, located_groups

_ASKED_TOGETHER: Final = 64


@dataclass(frozen=True, slots=True)
class MetadataKeyIndexes:
    """Record index, secondary indexes and Bloom filters, as far as the table's properties name them as ready.

    `schema`: the table's columns.
    """

    indexes: MetadataIndexes
    schema: pa.Schema

    @property
    def is_by_partition(self) -> bool:
        found = self.indexes.find(RECORD_INDEX)
        return found is not None and bool(found.groups) and None not in found.groups

    def secondary_columns(self) -> Mapping[str, str]:
        """Index name -> column, for indexes over one column whose values have one spelling. One get.

        Empty without a record index.
        """
        ready = set(self.indexes.config.metadata_partitions)
        if RECORD_INDEX not in ready or not any(name.startswith(SECONDARY_INDEX_PREFIX) for name in ready):
            return {}
        return {
            name: of.source_fields[0]
            for name, of in self.indexes.index_definitions().items()
            if name in ready and name.startswith(SECONDARY_INDEX_PREFIX)
            if len(of.source_fields) == 1 and can_be_secondary(self.schema, of.source_fields[0])
        }

    def keys_of(self, index: str, column: pa.Field, values: pa.Array) -> pa.Array | None:
        """Requests: for an index of version V2, those of one file group for each value; else of all its file groups."""
        found = self.indexes.find(index)
        if found is None or not found.groups:
            return None
        texts = one_array(stored_text(pa.chunked_array([values]), column.name))
        entries = find_secondary(self.indexes, index.removeprefix(SECONDARY_INDEX_PREFIX), texts)
        return None if entries is None else one_array(entries.column("record_key").unique())

    def locate(self, keys: pa.Array, partitions: Sequence[str]) -> Mapping[str, Collection[str] | None] | None:
        """Requests: a list of the index's partition, once; a few for each of its file groups that may hold a key.

        An index kept by partition knows nothing about a data partition for which it has no file group.
        """
        found = self.indexes.find(RECORD_INDEX)
        if found is None or not found.groups:
            return None

        known = [one for one in partitions if one in found.groups]
        is_global = None in found.groups

        places = located_groups([self._locations(keys, None)] if is_global else self._run(keys, known))
        unknown = () if is_global else set(partitions).difference(known)
        return {**places, **dict.fromkeys(unknown)}

    def _run(self, keys: pa.Array, partitions: Sequence[str]) -> list[pa.Table]:
        def locations(partition: str) -> pa.Table:
            return self._locations(keys, partition)

        executor = self.indexes.executor
        return [*map(locations, partitions)] if executor is None else executor.run(locations, partitions)

    def _locations(self, keys: pa.Array, partition: str | None) -> pa.Table:
        located = locate_records(self.indexes, keys, partition=partition)
        assert located is not None  # `locate` has found the index
        return located

    def may_hold(self, keys: pa.Array, paths: Sequence[str]) -> npt.NDArray[np.bool_] | None:
        """Memory: the filters of `_ASKED_TOGETHER` files. A file without a usable filter may hold any key."""
        found = self.indexes.find(BLOOM_FILTERS)
        if found is None or not found.groups:
            return None

        statistics, result = KeyStatistics(self.indexes), np.ones(len(paths), np.bool_)
        for start in range(0, len(paths), _ASKED_TOGETHER):
            filters = statistics.read_filters(paths[start : start + _ASKED_TOGETHER])
            for at in range(start, min(start + _ASKED_TOGETHER, len(paths))):
                bloom = filters.get(paths[at])
                result[at] = bloom is None or bool(pc.any(bloom.may_contain(keys), min_count=0).as_py())
        return result
