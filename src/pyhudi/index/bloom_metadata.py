"""What the metadata table says about the keys of base files: their key ranges and Bloom filters."""

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow.compute as pc

from pyhudi.format.footer import is_bytewise
from pyhudi.format.keys.bloom import BloomFilter
from pyhudi.format.names import join
from pyhudi.metadata.kinds.bloom_filters import read_filters
from pyhudi.metadata.kinds.column_stats import read_key_ranges
from pyhudi.metadata.kinds.registry import tells_of_keys
from pyhudi.metadata.store.indexes import MetadataIndexes

KeyRange = tuple[str, str]


@dataclass(frozen=True, slots=True)
class KeyStatistics:
    """Key ranges from the statistics of columns, and Bloom filters, of each what is there and ready.

    Answers leave out files about which nothing is known. The caller then reads the file's footer.
    Spec: format/indexes.md section 2; format/metadata-table.md section 5.
    """

    indexes: MetadataIndexes

    def read_ranges(self, paths: Sequence[str]) -> dict[str, KeyRange]:
        """Least and greatest key of files, by path. Left out if Java's order of the two may differ from their bytes'.

        Requests: one look-up of the statistics of the key column in these partitions.
        """
        partitions = sorted({path.rpartition("/")[0] for path in paths})
        stats = read_key_ranges(self.indexes, partitions)
        if stats is None:
            return {}
        stats = stats.filter(pc.and_(stats.column("is_known"), pc.is_valid(stats.column("min"))))
        columns = [stats.column(name).to_pylist() for name in ("partition", "file", "min", "max")]
        found = {join(partition, file): (low, high) for partition, file, low, high in zip(*columns, strict=True)}
        wanted = set(paths)
        return {path: ends for path, ends in found.items() if path in wanted and is_bytewise(ends)}

    def read_filters(self, paths: Sequence[str]) -> dict[str, BloomFilter]:
        """The filters of files, by path. An unusable filter is left out and logged.

        Requests: one look-up. Memory: the filters.
        """
        return read_filters(self.indexes, paths)


def key_statistics(indexes: MetadataIndexes | None) -> KeyStatistics | None:
    """What the metadata table says of keys; None where it says nothing."""
    return KeyStatistics(indexes) if indexes is not None and tells_of_keys(indexes) else None
