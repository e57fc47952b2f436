"""What a table is keyed, placed, ordered or indexed by stays as it is: refusals of changes, by name."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from pyhudi.errors import Invalid
from pyhudi.format.schema.alterations import Add, Alteration, ChangeType, Comment, Drop, MakeNullable, Move, Rename
from pyhudi.format.schema.conversion import arrow_from_avro, canonical_arrow
from pyhudi.merge.marks import has_mark
from pyhudi.merge.rules import IS_DELETED
from pyhudi.metadata.kinds import registry
from pyhudi.metadata.store.indexes import read_definitions
from pyhudi.table.read.plan import table_rules
from pyhudi.table.view.snapshot import Snapshot
from pyhudi.write.input.schema import EXACT, SPELLING


@dataclass(frozen=True, slots=True)
class Pinned:
    """A column that something goes by. `path`: its full name. `why`: what goes by it, in words.

    `types`: the types that the column may become all the same.
    """

    path: str
    why: str
    types: tuple[pa.DataType, ...] = ()


def refuse_pinned(snapshot: Snapshot, changes: Sequence[Alteration]) -> None:
    """Refuse to rename, drop or retype what the table goes by. One get where the table has indexes.

    Raises: Invalid, naming the column and what goes by it.
    """
    pinned = tuple(_pinned(snapshot))
    marks = table_rules(snapshot, snapshot.schema).mark_columns
    for change in changes:
        if isinstance(change, Rename) and "." not in change.path and change.name in marks:
            raise Invalid(
                f"column '{change.path}': cannot be renamed to '{change.name}': it would mark rows as deleted"
            )
        verb = _verb(change)
        found = next((one for one in pinned if verb and _reaches(change.path, one.path)), None)
        if found is None or (isinstance(change, ChangeType) and _is_kept_by(found, change)):
            continue
        raise Invalid(f"column '{change.path}': cannot be {verb}: {found.why}")


def refuse_dropping(snapshot: Snapshot, text: str) -> None:
    """Refuse a write after which the table lacks a column that something goes by. `text`: the schema after it.

    Raises: Invalid, naming the column and what goes by it.
    """
    now = set(arrow_from_avro(text).names)
    gone = [name for name in snapshot.schema.names if name not in now]
    refuse_pinned(snapshot, [Drop(name) for name in gone])
    told = sorted(registry.telling_of_all_columns(snapshot.config.metadata_partitions_named))
    if gone and told:
        raise Invalid(
            f"table '{snapshot.config.name}': column '{gone[0]}' is missing from the input: expected it, for the index "
            f"{told[0]} tells of it; drop it first: alter().drop('{gone[0]}')"
        )


def _verb(change: Alteration) -> str:
    match change:
        case Rename():
            return "renamed"
        case Drop():
            return "dropped"
        case ChangeType():
            return f"made {change.type}"
        case Add() | Move() | MakeNullable() | Comment():
            return ""


def _is_kept_by(pinned: Pinned, change: ChangeType) -> bool:
    (field,) = canonical_arrow(pa.schema([pa.field("c", change.type)]))
    return pinned.path == change.path and field.type in pinned.types


def _reaches(path: str, pinned: str) -> bool:
    """Whether a change of the column `path` changes what `pinned` names: it, or the struct around it."""
    return pinned == path or pinned.startswith(f"{path}.")


def _pinned(snapshot: Snapshot) -> Iterator[Pinned]:
    config = snapshot.config
    now = {field.name: field.type for field in snapshot.schema}
    for name in config.record_key:
        why = "it is a record key column, and older files are keyed by it"
        yield Pinned(name, why, _kept_types(now, name, SPELLING))
    for name in config.partition_by:
        why = "it is a partition column, and the folders of the table are named by it"
        yield Pinned(name, why, _kept_types(now, name, SPELLING))
    for name in config.ordering:
        why = "it is an ordering column, and stored rows are compared by it"
        yield Pinned(name, why, _kept_types(now, name, EXACT))
    for name in sorted(table_rules(snapshot, snapshot.schema).mark_columns):
        if name == IS_DELETED and name in now and not has_mark(snapshot.schema):
            continue
        yield Pinned(name, "it marks rows as deleted")
    yield from _indexed(snapshot)


def _kept_types(
    now: Mapping[str, pa.DataType], name: str, widened: Mapping[pa.DataType, tuple[pa.DataType, ...]]
) -> tuple[pa.DataType, ...]:
    """What a column may become, besides what it is."""
    return (now[name], *widened.get(now[name], ())) if name in now else ()


def _indexed(snapshot: Snapshot) -> Iterator[Pinned]:
    """The columns of indexes that are asked for by name. Statistics of columns are not: they can be made anew."""
    if not snapshot.config.has_indexes:
        return
    for name, definition in read_definitions(snapshot.storage).items():
        kind = registry.find_kind(name)
        if name in snapshot.config.metadata_partitions_named and kind is not None and kind.is_of_columns:
            for column in definition.source_fields:
                yield Pinned(column, f"the index '{name}' is made of it; drop the index first: drop_index('{name}')")
