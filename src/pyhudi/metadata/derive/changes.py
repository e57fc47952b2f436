"""What an action changes in a partition of the metadata table: keys with new values, and keys that are deleted."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from pyhudi.format.metadata.keys import KeyHashing

CELLS = pa.schema([pa.field("key", pa.large_binary(), False), pa.field("value", pa.large_binary(), False)])
"""Cells of the metadata table's files: a record's key, and the record in Avro."""


def no_keys() -> pa.Array:
    return pa.array([], pa.large_binary())


def binary_keys(keys: pa.Array) -> pa.Array:
    """Keys that are text, in the type that changes have."""
    return keys.cast(pa.large_string()).cast(pa.large_binary())


@dataclass(frozen=True, slots=True)
class PartitionChange:
    """The change of one partition, not yet spread over its file groups.

    `cells`: as `CELLS`, in any order, each key once. `deletes`: keys, large binary, each once; none of them is among
    the cells. `data_partition`: the data partition of the keys, in a partitioned record index; None elsewhere. There
    file groups belong to data partitions.
    """

    partition: str
    cells: pa.Table = field(default_factory=CELLS.empty_table)
    deletes: pa.Array = field(default_factory=no_keys)
    data_partition: str | None = None

    def __post_init__(self) -> None:
        assert self.cells.schema == CELLS, self.cells.schema
        assert self.deletes.type == pa.large_binary()

    @property
    def is_empty(self) -> bool:
        return not len(self.cells) and not len(self.deletes)


@dataclass(frozen=True, slots=True)
class InitialPartition:
    """What a new partition begins with.

    `changes`: its records, without deletes. A partitioned record index has one change a data partition, others have
    one. `group_counts`: how many file groups there are, by the changes' data partition.
    """

    partition: str
    changes: Iterable[PartitionChange]
    group_counts: Mapping[str | None, int]
    hashing: KeyHashing = KeyHashing.WHOLE


def cells_of(records: Mapping[str, bytes]) -> pa.Table:
    """Cells of a few records, by key."""
    keys = pa.array([key.encode() for key in records], pa.large_binary())
    return pa.table({"key": keys, "value": pa.array(records.values(), pa.large_binary())}, schema=CELLS)
