"""What a write needs of its input, wherever the input lies: the engine's side of the bargain."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

import pyarrow as pa

from pyhudi.format.keys import KeySpec
from pyhudi.table.file_system_view import FileSlice
from pyhudi.write.handle import WriteStatus, WriteTarget
from pyhudi.write.plan import WorkloadProfile, WritePlan


class Operation(StrEnum):
    """Write operations by the names that commits carry."""

    BULK_INSERT = "BULK_INSERT"
    INSERT = "INSERT"
    UPSERT = "UPSERT"
    DELETE = "DELETE"

    @property
    def is_tagged(self) -> bool:
        """Whether incoming rows are looked up among the stored ones first."""
        return self in (Operation.UPSERT, Operation.DELETE)


@dataclass(frozen=True, slots=True)
class InputSpec:
    """What to make of the input: its columns as the table types them, keys, and what must not be null.

    `schema`: the columns to carry, without meta fields. `ordering`: ordering columns among them.
    `required`: columns that the table's schema says are never null.
    """

    schema: pa.Schema
    keys: KeySpec
    ordering: tuple[str, ...]
    required: tuple[str, ...] = ()


class WriteSource(Protocol):
    """The input of one write. It is evaluated once, whatever is asked of it."""

    @property
    def schema(self) -> pa.Schema:
        """The input's own columns and types."""

    def count(self, spec: InputSpec) -> Mapping[str, int]:
        """Rows by partition path. Called first, once.

        Raises: Invalid for a null or empty key, a null where the ordering or the schema allows none, a partition
        path that is none.
        """

    def tag(self, slices: Sequence[FileSlice]) -> WorkloadProfile:
        """Look the input's keys up in the base files of these slices, which lie in its partitions."""

    def write(self, target: WriteTarget, plan: WritePlan) -> list[WriteStatus]:
        """Carry the plan out; statuses of successful tasks only."""

    def close(self) -> None:
        """Let go of what was kept of the input."""
