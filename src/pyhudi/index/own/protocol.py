"""The protocol of an index of one's own: locate these keys; these keys now lie there."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol, TypeAlias

import pyarrow as pa

from pyhudi.errors import Invalid
from pyhudi.options.registered import OwnKind, Registered, checked_name, is_registered

KEYS: Final = pa.schema([("record_key", pa.string()), ("partition_path", pa.string())])
"""Record keys, each with the partition path of the row that brings it."""

GROUPS: Final = pa.schema([("partition_path", pa.string()), ("file_id", pa.string())])
"""File groups. File ids are unique within the table."""

GONE: Final = pa.schema([*KEYS, pa.field("file_id", pa.string())])
"""Record keys that left a file group."""

LOCATIONS: Final = pa.schema([*GONE, pa.field("instant", pa.string())])
"""Where a record key lies: the partition path of its stored row, its file group, and the requested time of a commit
that put it there.
"""

_BUILT_IN: Final = (
    "SIMPLE", "BLOOM", "GLOBAL_SIMPLE", "GLOBAL_BLOOM", "BUCKET", "RECORD_INDEX", "GLOBAL_RECORD_LEVEL_INDEX",
    "RECORD_LEVEL_INDEX", "INMEMORY", "HBASE", "FLINK_STATE",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class IndexOf:
    """The table that an index is of. `uri`: as it was opened. Can be pickled."""

    uri: str
    name: str


@dataclass(frozen=True, slots=True)
class LocationChanges:
    """What one or several commits changed. Take it in as one: all of it and `state`, or nothing.

    The order counts: first forget every key of the file groups `emptied` (columns `GROUPS`); then forget the keys
    `gone` (columns `GONE`), each only where the index still has it in that file group; then take in `located`, batches
    with the columns `LOCATIONS`, which come once. A global index knows one location of a key: a later one replaces it.
    `state`: what `OwnIndex.state` gives from then on.
    """

    state: str
    emptied: pa.Table
    gone: pa.Table
    located: pa.RecordBatchReader


class OwnIndex(Protocol):
    """An index of one table. pyhudi opens it, calls it from one thread, and closes it.

    A method that raises ends the write before anything is written; only where the write has landed already, the error
    is logged, and the next write tells the index once more.
    """

    def state(self) -> str | None:
        """What the index was told last, as the `state` of the changes. None: it knows nothing, and is to be built."""
        ...

    def locate(self, keys: pa.Table) -> pa.Table:
        """Where these keys lie, as `LOCATIONS`; a key that is not known gives no row.

        `keys`: as `KEYS`, each pair once. A global index looks for the key in every partition, any other one in the
        partition beside it only.
        """
        ...

    def update(self, changes: LocationChanges) -> None:
        """Take in what commits changed, durably, in one transaction with the state."""
        ...

    def clear(self) -> None:
        """Forget everything, the state too. Called on rollback and restore of completed writes, and before a build."""
        ...

    def close(self) -> None:
        """Let go of connections and files."""
        ...


IndexFactory: TypeAlias = Callable[[IndexOf], OwnIndex]


@dataclass(frozen=True, slots=True)
class RegisteredIndex:
    """An index by its name. `is_global`: a record key has one row in the whole table, not one in each partition."""

    name: str
    factory: IndexFactory
    is_global: bool


_indexes: Registered[RegisteredIndex] = Registered(OwnKind.INDEX, lambda registered: registered.factory)


def register_index(name: str, factory: IndexFactory, *, is_global: bool = True) -> None:
    """Let writes find record keys by an index of your own, with the option `hoodie.index.class=<name>`.

    `factory`: opens the index of a table; called several times a write. On Spark, where many rows are written, it is
    pickled and called in tasks, too: they must reach the same storage. `is_global`: as of `RegisteredIndex`.
    Call it in every process that writes such a table. Registering the same definition again replaces the earlier one.
    Raises: Invalid for a name that is none, is built in, or is taken by another definition.
    """
    if not callable(factory):
        raise Invalid(f"index '{name}': expected a class or function of a table, found {type(factory).__name__}")
    text = checked_name(OwnKind.INDEX, name, _BUILT_IN)
    _indexes.add(text, RegisteredIndex(text, factory, is_global))


def find_index(name: str) -> RegisteredIndex:
    """The index that is registered under this name. Raises: Invalid if none is."""
    found = _indexes.find(name)
    if found is None:
        raise Invalid(
            f"option 'hoodie.index.class'='{name}': expected the name of an index that is registered in this process "
            "(pyhudi.register_index), or the dotted name of a Python class in a module that options may name "
            "(pyhudi.allow_dotted_names), found none; classes of Java cannot be called"
        )
    return found


def is_own_index(name: str) -> bool:
    """Whether an index is registered under this name."""
    return is_registered(OwnKind.INDEX, name)
