"""The file groups of a partition of the metadata table, and how keys are spread over them."""

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pyhudi.format.metadata.groups import MetadataGroupId
from pyhudi.format.metadata.keys import KeyHashing, file_groups
from pyhudi.metadata.kinds.registry import is_listing
from pyhudi.metadata.store.table import MetadataTable
from pyhudi.versions import TableVersion, is_born_with


def group_ids(version: TableVersion, partition: str, count: int, data_partition: str | None = None) -> list[str]:
    """The ids of a partition's first file groups, as a table of this version makes them.

    `data_partition`: their owner, in a partitioned record index.
    """
    has_suffix = version.has_group_suffix
    return [MetadataGroupId(partition, index, data_partition, has_suffix).format() for index in range(count)]


def list_groups(table: MetadataTable, partition: str, data_partition: str | None = None) -> list[str]:
    """The ids of a partition's existing file groups, by number. One list request; none for the listing of a table that
    had its layout from the first instant on. The groups of any other table may be those of table version 5, which
    spells their ids otherwise, and upgrades leave them as they are.

    `data_partition`: of a partitioned record index, only the groups of this data partition.
    """
    if is_listing(partition) and is_born_with(table.config.properties, table.config.layout.kind):
        return group_ids(table.config.version, partition, 1)

    ids = (one for one in table.group_ids(partition) if one.data_partition == data_partition)
    return _by_number(ids)


def list_groups_of(table: MetadataTable, partition: str, data_partition: str) -> tuple[list[str], set[str]]:
    """The ids of the file groups that a data partition has in a partitioned record index, by number; and those of them
    that no completed deltacommit has written to. One list request.

    The writer that made these may be dead, and its rollback would take them away.
    """
    files = [(one, instant) for one, instant in table.group_files(partition) if one.data_partition == data_partition]
    sure = {one.format() for one, instant in files if table.timeline.is_committed(instant)}
    groups = _by_number(one for one, _ in files)
    return groups, set(groups) - sure


def _by_number(ids: Iterable[MetadataGroupId]) -> list[str]:
    return [file_id for _, file_id in sorted({(one.index, one.format()) for one in ids})]


def rows_by_group(keys: pa.Array, count: int, hashing: KeyHashing) -> Sequence[npt.NDArray[np.int64]]:
    """For each of `count` file groups the positions of its keys, which are large binary. One sort."""
    indexes = file_groups(keys.cast(pa.large_string()), count, hashing=hashing)
    order = np.argsort(indexes, kind="stable")
    return np.split(order, np.searchsorted(indexes[order], np.arange(1, count)))
