"""Mergers that users register, by the id of their merge strategy or by the payload class that they stand for."""

import re
from collections.abc import Callable
from typing import Final, Protocol, TypeAlias

import pyarrow as pa

from pyhudi.errors import Bug, Invalid
from pyhudi.options.registered import PAYLOAD_CLASSES, OwnKind, Registered, checked_name

EVENT_TIME_ID: Final = "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5"
COMMIT_TIME_ID: Final = "ce9acb64-bde0-424c-9b91-f6ebba25356d"
CUSTOM_ID: Final = "1897ef5f-18bc-4557-939c-9d6a8afd1519"
PAYLOAD_ID: Final = "00000000-0000-0000-0000-000000000000"

_ID = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")

Merged: TypeAlias = pa.RecordBatch | tuple[pa.RecordBatch, pa.BooleanArray]


class RecordMerger(Protocol):
    """Merges two rows with the same key, for a batch of such pairs at a time. Is pickled to be sent to tasks."""

    def merge(self, older: pa.RecordBatch, newer: pa.RecordBatch) -> Merged:
        """Row `i` of the answer is the merged row of row `i` of `older` and row `i` of `newer`.

        All three batches have the same columns. Neither row is a delete. Within the log, `older` was written first;
        against the base file, `older` is the base row. The answer may come with booleans: which of its rows are
        deletes. Rows that the table's marks call deleted are deletes anyway. The record key must not change.
        """
        ...


MergerFactory: TypeAlias = Callable[[], RecordMerger]

_mergers: Registered[MergerFactory] = Registered(OwnKind.MERGER, lambda factory: factory)
_payloads: Registered[MergerFactory] = Registered(OwnKind.PAYLOAD_CLASS, lambda factory: factory)


def register_merger(strategy_id: str, factory: MergerFactory) -> None:
    """Let the merger that `factory` makes (usually a class) merge tables with this merge strategy.

    Call it in every process that opens such a table, before opening it. Registering the same definition again, as when
    a notebook's cell is run twice, replaces the earlier one: a definition is known by its module and name.
    Raises: Invalid for an id that is no UUID, is Apache Hudi's own, or is taken by another definition.
    """
    name = strategy_id.strip().lower()
    if _ID.fullmatch(name) is None:
        raise Invalid(f"merge strategy '{strategy_id}': expected a UUID, as hoodie.record.merge.strategy.id holds it")
    if name in (EVENT_TIME_ID, COMMIT_TIME_ID, PAYLOAD_ID):
        raise Invalid(f"merge strategy '{strategy_id}': expected an id of your own, this one is Apache Hudi's")
    _mergers.add(name, factory)


def register_payload_class(payload_class: str, factory: MergerFactory) -> None:
    """Let the merger that `factory` makes stand for a payload class, whose Java code pyhudi cannot run.

    `payload_class`: as the table's `hoodie.compaction.payload.class` spells it, such as `com.acme.VisitsPayload`.
    Scans, writes and compactions of such tables then go by the merger: within the log, and of the log with the base
    row. That it does what the Java class does is up to you. Otherwise as `register_merger`.
    Raises: Invalid for a name that is none, is Apache Hudi's own, or is taken by another definition.
    """
    if not callable(factory):
        raise Invalid(
            f"payload class '{payload_class}': expected a class or function that makes a merger, "
            f"found {type(factory).__name__}"
        )
    _payloads.add(checked_name(OwnKind.PAYLOAD_CLASS, payload_class, PAYLOAD_CLASSES), factory)


def find_merger(strategy_id: str) -> RecordMerger | None:
    """A new merger of this strategy. None if no merger is registered for it."""
    factory = _mergers.find(strategy_id.strip().lower())
    return None if factory is None else factory()


def find_payload_merger(payload_class: str) -> RecordMerger | None:
    """A new merger that stands for this payload class. None if none is registered for it."""
    factory = _payloads.find(payload_class.strip())
    return None if factory is None else factory()


def run_merger(
    merger: RecordMerger, older: pa.RecordBatch, newer: pa.RecordBatch, *, key: str
) -> tuple[pa.RecordBatch, pa.BooleanArray | None]:
    """The merger's rows, and which of them are deletes. The answer is checked.

    Raises: Invalid for an answer with other columns, another number of rows or other keys.
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
