"""The file groups of a partition of the metadata table, and how keys are spread over them."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pyhudi.format.metadata.groups import MetadataGroupId
from pyhudi.format.metadata.keys import KeyHashing, file_groups
from pyhudi.metadata.kinds.registry import is_listing
from pyhudi.metadata.store.table import FILES_GROUP, MetadataTable


def group_ids(partition: str, count: int, data_partition: str | None = None) -> list[str]:
    """The ids of a partition's first file groups. `data_partition`: their owner, in a partitioned record index."""
    return [MetadataGroupId(partition, index, data_partition).format() for index in range(count)]


def list_groups(table: MetadataTable, partition: str, data_partition: str | None = None) -> list[str]:
    """The ids of a partition's existing file groups, by number. One list request; none for the listing.

    `data_partition`: of a partitioned record index, only the groups of this data partition.
    """
    if is_listing(partition):
        return [FILES_GROUP]

    ids = (one for one in table.group_ids(partition) if one.data_partition == data_partition)
    return [file_id for _, file_id in sorted({(one.index, one.format()) for one in ids})]


def rows_by_group(keys: pa.Array, count: int, hashing: KeyHashing) -> Sequence[npt.NDArray[np.int64]]:
    """For each of `count` file groups the positions of its keys, which are large binary. One sort."""
    indexes = file_groups(keys.cast(pa.large_string()), count, hashing=hashing)
    order = np.argsort(indexes, kind="stable")
    return np.split(order, np.searchsorted(indexes[order], np.arange(1, count)))
