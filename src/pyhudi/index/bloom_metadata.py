"""What the metadata table says about the keys of base files: their key ranges and Bloom filters."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast, get_args

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import CorruptFile
from pyhudi.format.bloom import BloomFilter, BloomKind
from pyhudi.format.footer import is_bytewise
from pyhudi.format.metadata_groups import BLOOM_FILTERS, COLUMN_STATS
from pyhudi.format.names import join
from pyhudi.format.schema import RECORD_KEY
from pyhudi.metadata.column_stats import read_column_stats
from pyhudi.metadata.indexes import MetadataIndexes
from pyhudi.metadata.key_indexes import read_bloom_filters_of

log = logging.getLogger("pyhudi")

KeyRange = tuple[str, str]


@dataclass(frozen=True, slots=True)
class KeyStatistics:
    """Key ranges from `column_stats` and filters from `bloom_filters`, as far as these are there and ready.

    Answers leave out files about which nothing is known. The caller then reads the file's footer.
    Spec: format/indexes.md section 2; format/metadata-table.md section 5.
    """

    indexes: MetadataIndexes

    def read_ranges(self, paths: Sequence[str]) -> dict[str, KeyRange]:
        """Least and greatest key of files, by path. Left out if Java's order of the two may differ from their bytes'.

        Requests: one look-up of the statistics of the key column in these partitions.
        """
        partitions = sorted({path.rpartition("/")[0] for path in paths})
        stats = read_column_stats(self.indexes, pa.field(RECORD_KEY, pa.string()), partitions=partitions)
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
        split = [path.rpartition("/") for path in paths]
        partitions, names = (pa.array([parts[at] for parts in split], pa.string()) for at in (0, 2))
        blooms = read_bloom_filters_of(self.indexes, partitions, names)
        return {} if blooms is None else _decoded(blooms)


def key_statistics(indexes: MetadataIndexes | None) -> KeyStatistics | None:
    """What the metadata table says about keys. None if it has neither column statistics nor Bloom filters."""
    if indexes is None or not {COLUMN_STATS, BLOOM_FILTERS} & set(indexes.config.metadata_partitions):
        return None
    return KeyStatistics(indexes)


def _decoded(blooms: pa.Table) -> dict[str, BloomFilter]:
    found: dict[str, BloomFilter] = {}
    kinds = get_args(BloomKind)
    columns = [blooms.column(name).to_pylist() for name in ("partition", "file", "type", "bloom_filter")]
    for partition, name, kind, content in zip(*columns, strict=True):
        path = join(partition, name)
        try:
            if kind not in kinds:
                raise CorruptFile(path, 0, expected=" or ".join(kinds), found=f"a filter of kind '{kind}'")
            found[path] = BloomFilter.decode(cast(BloomKind, kind), content, path=f"{path}, Bloom filter")
        except CorruptFile as error:
            log.warning("a Bloom filter of the metadata table is passed over: %s", error)
    return found
