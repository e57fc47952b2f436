"""What a write needs of its input, wherever the input lies: the engine's side of the bargain."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, StrEnum
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from pyhudi.executor import Executor
from pyhudi.format.keys.record_keys import KeySpec
from pyhudi.format.timeline.records import REPLACES
from pyhudi.index.hits import Index
from pyhudi.table.slices.base_files.rows import TODAY, AsWritten
from pyhudi.table.view.pending import FileGroup

if TYPE_CHECKING:  # a Spark worker that stages rows does without what hashes keys, reads logs and writes files
    from pyhudi.index.bucket import BucketRule
    from pyhudi.table.facts.bucket_facts import BucketFacts
    from pyhudi.table.slices.merged_slice import SliceReader
    from pyhudi.table.view.slice_catalog import SliceCatalog
    from pyhudi.write.handles.target import WriteStatus, WriteTarget
    from pyhudi.write.place.plan import WorkloadProfile, WritePlan

ARRIVAL = "__pyhudi_arrival"
"""A column of incoming rows that numbers them as they arrived, where their order got lost on the way."""
LEAVES = "__pyhudi_leaves"
"""A column of incoming rows: the row moves to another partition, and its key is to go from here."""
STORED_PATH = "__pyhudi_stored_path"
"""A column of incoming rows: the partition path that a row lies in and stays in; null where its columns tell."""
POSITION = "__pyhudi_position"
"""A column of incoming rows: where in the base file of its group a row's key stands; -1 where that is not known."""


class Operation(StrEnum):
    """Write operations by the names that commits carry."""

    BULK_INSERT = "BULK_INSERT"
    INSERT = "INSERT"
    UPSERT = "UPSERT"
    DELETE = "DELETE"
    INSERT_OVERWRITE = "INSERT_OVERWRITE"
    INSERT_OVERWRITE_TABLE = "INSERT_OVERWRITE_TABLE"
    DELETE_PARTITION = "DELETE_PARTITION"

    @property
    def is_tagged(self) -> bool:
        """Whether incoming rows are looked up among the stored ones first."""
        return self in (Operation.UPSERT, Operation.DELETE)

    @property
    def drops_marked(self) -> bool:
        """Whether incoming rows that `_hoodie_is_deleted` marks are not stored. Seen: Apache Hudi's create handle
        leaves them out; its bulk insert of rows does not look.
        """
        return self not in (Operation.BULK_INSERT, Operation.DELETE)

    @property
    def replaces_groups(self) -> bool:
        """Whether it replaces file groups as a whole, by a replacecommit. Spec: format/actions.md section 4."""
        return self.value in REPLACES


class RowOrder(Enum):
    """How the rows of new file groups lie: as they arrived; so, and those of a partition in no more groups than they
    fill; each group's by record key; or, beside that, no key of a group between two keys of another group of its
    partition."""

    AS_ARRIVED = "as arrived"
    TOGETHER = "as arrived, each partition together"
    BY_KEY_IN_GROUP = "by key in each file group"
    BY_KEY_IN_PARTITION = "by key in each partition"

    @property
    def is_by_key(self) -> bool:
        return self in (RowOrder.BY_KEY_IN_GROUP, RowOrder.BY_KEY_IN_PARTITION)


@dataclass(frozen=True, slots=True)
class InputSpec:
    """What to make of the input: its columns as the table types them, keys, and what must not be null.

    `schema`: the columns to carry, without meta fields. `ordering`: those among them that rows are compared by.
    `carried_ordering`: the table's ordering columns that rows carry; of a delete all of them, or none.
    `required`: columns that the table's schema says are never null. `numbers_rows`: rows of different partitions
    will be settled against each other, so that their order must not get lost. `order`: of rows in new file groups.
    """

    schema: pa.Schema
    keys: KeySpec
    ordering: tuple[str, ...]
    carried_ordering: tuple[str, ...] = ()
    required: tuple[str, ...] = ()
    numbers_rows: bool = False
    order: RowOrder = RowOrder.AS_ARRIVED

    @property
    def has_float_keys(self) -> bool:
        """Whether a key or partition column is of floating point. Python and each JVM spell some of these their way."""
        return any(pa.types.is_floating(self.schema.field(name).type) for name in self.keys.columns)

    @property
    def bare_key(self) -> str | None:
        """The text column that is the record key as it is, which need not travel twice; None where there is none."""
        if self.keys.makes_keys or self.keys.is_composite or self.keys.own_generator:
            return None
        name = self.keys.record_key[0]
        return name if pa.types.is_string(self.schema.field(name).type) else None


@dataclass(frozen=True, slots=True)
class Tagging:
    """How the input's keys are looked up, and what a key means that lies in another partition than its row.

    `moves`: such a row is deleted there and becomes a new row of its own partition; otherwise it is written where
    its key lies. `settles`: a key whose rows lie in several partitions of the input keeps those of the partition
    of its greatest row. `ordering`: the columns that settle that; empty: the last to arrive counts.
    `compares_stored`: a row moves only if it wins over the stored one by `ordering` (event-time ordering).
    `drops_stored`: rows whose key is stored go nowhere. `reader`: of slices with logs; None: there are none.
    `planned`: the logs that pending compactions take, by file group; `index` knows of them. `as_written`: how base
    files hold rows. `stored`: the table's columns as they are before the write.
    """

    index: Index
    ordering: tuple[str, ...]
    compares_stored: bool
    moves: bool
    settles: bool
    drops_stored: bool = False
    reader: SliceReader | None = None
    planned: Mapping[FileGroup, frozenset[str]] = field(default_factory=dict)
    as_written: AsWritten = TODAY
    stored: pa.Schema = field(default_factory=lambda: pa.schema([]))


class WritableInput(Protocol):
    """Rows of an input that a plan may send to file groups."""

    @property
    def group_rows_max(self) -> int | None:
        """New rows of a file group that memory has room for; None where all of them have."""

    def write(self, target: WriteTarget, plan: WritePlan) -> list[WriteStatus]:
        """Carry the plan out; statuses of successful tasks only."""


class TaggedInput(WritableInput, Protocol):
    """Rows whose keys were looked up: those of stored keys go to the file groups that hold them."""

    @property
    def profile(self) -> WorkloadProfile:
        """What the rows ask for.

        A row that moves counts as an update of the file group that it leaves and as an insert. A row that is dropped
        counts as neither.
        """

    def stored_keys(self) -> tuple[int, str]:
        """How many of the input's distinct keys are left out because they are stored, and one of them."""


class BucketedInput(WritableInput, Protocol):
    """Rows whose buckets are known, in a table that places rows by bucket."""

    @property
    def counts(self) -> Mapping[tuple[str, int], int]:
        """Rows by partition path and bucket."""


class CountedInput(WritableInput, Protocol):
    """Rows that were checked and counted. Written from here, all of them are new rows of their partitions."""

    @property
    def counts(self) -> Mapping[str, int]:
        """Rows by partition path."""

    @property
    def executor(self) -> Executor:
        """What runs the small tasks of a plan, beside this process's storage."""

    def tag(self, stored: SliceCatalog, tagging: Tagging) -> TaggedInput:
        """Look the input's keys up in the slices of its partitions, or of all for a global index.

        `stored`: has those slices; by a record index they are brought in as it finds keys.
        """

    def count_buckets(self, rules: Mapping[str, BucketRule]) -> BucketedInput:
        """Find the bucket of each row, by the rule of its partition."""


class WriteSource(Protocol):
    """The input of one write. The steps after counting are asked of what `count` returns, until `close`."""

    @property
    def schema(self) -> pa.Schema:
        """The input's own columns and types."""

    def count(self, spec: InputSpec) -> CountedInput:
        """Check the rows and count them.

        A write whose table got another schema meanwhile counts once more, by another spec. A stream is read once all
        the same. What was counted before is no longer used then.

        Raises: Invalid for a null or empty key, a null where the ordering or the schema allows none, a partition
        path that is none.
        """

    def close(self) -> None:
        """Let go of what was kept of the input."""


@dataclass(frozen=True, slots=True)
class PreparedWrite:
    """An input that was checked and counted, before anything of the table was touched.

    `schema_text`: the table's schema from this write on. `schema_before`: as it was when the input was checked.
    `is_partial`: rows hold some of the columns, and leave the others of stored rows as they are. `buckets`: of a table
    whose rows are placed by bucket. `also_replaced`: partitions that go, beside those of the rows.
    """

    operation: Operation
    spec: InputSpec
    schema_text: str
    schema_before: str | None
    counted: CountedInput
    is_partial: bool = False
    buckets: BucketFacts | None = None
    also_replaced: frozenset[str] = frozenset()
