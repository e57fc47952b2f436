"""Mergers of the user's own, by the id of their merge strategy."""

import re
from collections.abc import Callable
from typing import Final, Protocol, TypeAlias

import pyarrow as pa

from pyhudi.errors import Bug, Invalid

EVENT_TIME_ID: Final = "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5"
COMMIT_TIME_ID: Final = "ce9acb64-bde0-424c-9b91-f6ebba25356d"
CUSTOM_ID: Final = "1897ef5f-18bc-4557-939c-9d6a8afd1519"
PAYLOAD_ID: Final = "00000000-0000-0000-0000-000000000000"

_ID = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")

Merged: TypeAlias = pa.RecordBatch | tuple[pa.RecordBatch, pa.BooleanArray]


class RecordMerger(Protocol):
    """Settles two rows of one key, a batch of such pairs at a time. Tasks get it pickled."""

    def merge(self, older: pa.RecordBatch, newer: pa.RecordBatch) -> Merged:
        """Row `i` of the answer is what becomes of row `i` of `older` and row `i` of `newer`.

        All three have the same columns. Neither row is a delete. Within the log `older` was written first; against
        the base file `older` is the base row. With the answer may come which of its rows are deletes; rows that the
        table's marks call deleted are deletes anyway. The record key must stay.
        """
        ...


_mergers: dict[str, Callable[[], RecordMerger]] = {}


def register_merger(strategy_id: str, factory: Callable[[], RecordMerger]) -> None:
    """Let tables of this merge strategy be merged by what `factory` makes: a class, as a rule.

    Call it in every process that opens such a table, before it does. A definition that runs again, as a cell of a
    notebook does, takes the place of the earlier one: it has the same module and the same name.
    Raises: Invalid for an id that is no UUID, is Apache Hudi's own, or is taken by another definition.
    """
    name = strategy_id.strip().lower()
    if _ID.fullmatch(name) is None:
        raise Invalid(f"merge strategy '{strategy_id}': expected a UUID, as hoodie.record.merge.strategy.id holds it")
    if name in (EVENT_TIME_ID, COMMIT_TIME_ID, PAYLOAD_ID):
        raise Invalid(f"merge strategy '{strategy_id}': expected an id of your own, this one is Apache Hudi's")
    taken = _mergers.get(name)
    if taken is not None and _definition(taken) != _definition(factory):
        raise Invalid(f"merge strategy '{strategy_id}': already registered with {taken!r}")
    _mergers[name] = factory


def _definition(factory: Callable[[], RecordMerger]) -> object:
    """What tells one factory from another: its module and name, or the object itself where it has none."""
    name = getattr(factory, "__qualname__", None)
    is_named = name is not None and "<lambda>" not in name
    return (factory.__module__, name) if is_named else factory


def find_merger(strategy_id: str) -> RecordMerger | None:
    """A new merger of this strategy, or None where none is registered."""
    factory = _mergers.get(strategy_id.strip().lower())
    return None if factory is None else factory()


def run_merger(
    merger: RecordMerger, older: pa.RecordBatch, newer: pa.RecordBatch, *, key: str
) -> tuple[pa.RecordBatch, pa.BooleanArray | None]:
    """The merger's rows, and which of them are deletes, checked.

    Raises: Invalid for an answer of other columns, another number of rows or other keys.
    """
    if older.schema != newer.schema or len(older) != len(newer):
        raise Bug(f"merger: expected pairs of rows, found {older.schema} and {newer.schema}")
    found = merger.merge(older, newer)
    rows, deleted = found if isinstance(found, tuple) else (found, None)
    who = f"merger {type(merger).__name__}"
    if not isinstance(rows, pa.RecordBatch) or not rows.schema.equals(newer.schema):
        answer = _columns(rows.schema) if isinstance(rows, pa.RecordBatch) else str(type(rows))
        raise Invalid(f"{who}: expected a record batch of {_columns(newer.schema)}, found {answer}")
    counts = [len(rows)] if deleted is None else [len(rows), len(deleted)]
    if any(count != len(newer) for count in counts):
        found_counts = " and ".join(f"{count:,}" for count in counts)
        raise Invalid(f"{who}: expected {len(newer):,} rows, one for each pair, found {found_counts}")
    if deleted is not None and (deleted.type != pa.bool_() or deleted.null_count):
        raise Invalid(f"{who}: expected booleans without nulls for its deletes, found {deleted.type}")
    if not rows.column(key).equals(newer.column(key)):
        raise Invalid(f"{who}: expected the record keys of its pairs, found others; column '{key}' must stay as it is")
    return rows, deleted


def _columns(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name} {field.type}" for field in schema)
