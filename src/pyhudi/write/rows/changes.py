"""Row-level changes of one table: rows that a predicate chooses are deleted, or get new values.

A change is a value. It is checked against a snapshot, and then makes the rows of an ordinary write of that snapshot.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import Invalid, Unsupported
from pyhudi.format.schema.conversion import RECORD_KEY
from pyhudi.format.struct_fields import column_around, column_at, find_field, is_path
from pyhudi.merge.latest import incoming_wins
from pyhudi.merge.rules import MergeMode
from pyhudi.predicate import Predicate, parse_predicate
from pyhudi.predicate.assignments import Assignment, parse_assignment
from pyhudi.predicate.names import known_names
from pyhudi.table.facts.config import TableConfig
from pyhudi.table.read.plan import table_rules
from pyhudi.table.view.snapshot import Snapshot
from pyhudi.write.input.source import STORED_PATH, Operation
from pyhudi.write.rows.matching import OpenSkipping, matching_rows

_MOVING: Final = (
    "or write with a global index that moves rows: hoodie.index.type=GLOBAL_SIMPLE, unless "
    "hoodie.simple.index.update.partition.path=false, or a record index with "
    "hoodie.record.index.update.partition.path=true"
)


class RowChange(Protocol):
    """A change of rows. `operation`: how its rows are written."""

    @property
    def operation(self) -> Operation: ...

    def check(self, snapshot: Snapshot) -> None:
        """Refuse what cannot be done to this table. Reads no row. Raises: Invalid, Unsupported."""

    def rows(self, snapshot: Snapshot, skipping: OpenSkipping) -> pa.RecordBatchReader:
        """The rows to write, made of the snapshot's rows as they are read. Raises: as `check`, and for values."""


@dataclass(frozen=True, slots=True)
class DeleteWhere:
    """Delete the rows that a predicate chooses."""

    where: Any

    @property
    def operation(self) -> Operation:
        return Operation.DELETE

    def check(self, snapshot: Snapshot) -> None:
        self._predicate(snapshot)

    def rows(self, snapshot: Snapshot, skipping: OpenSkipping) -> pa.RecordBatchReader:
        names = identity_columns(snapshot)
        found = matching_rows(snapshot, names, self._predicate(snapshot), skipping(snapshot))
        schema = _with_path(pa.schema([field for field in snapshot.schema_with_meta if field.name in names]), snapshot)
        return pa.RecordBatchReader.from_batches(schema, (stored.select(schema.names) for stored, _ in found))

    def _predicate(self, snapshot: Snapshot) -> Predicate:
        refuse_without_schema(snapshot, "delete")
        return parse_predicate(self.where, columns_shown(snapshot))


@dataclass(frozen=True, slots=True)
class UpdateWhere:
    """Give columns of the rows that a predicate chooses new values. `set`: column -> value. `where` None: all rows.

    `moves`: partition columns may be set, and the write moves the rows.
    """

    set: Mapping[str, Any]
    where: Any | None
    moves: bool

    @property
    def operation(self) -> Operation:
        return Operation.UPSERT

    def check(self, snapshot: Snapshot) -> None:
        self._parsed(snapshot)

    def rows(self, snapshot: Snapshot, skipping: OpenSkipping) -> pa.RecordBatchReader:
        assigned, predicate = self._parsed(snapshot)
        schema = whole_rows(snapshot)
        read = {*schema.names}.union(*(one.columns for one in assigned))  # values may be made of meta fields
        found = matching_rows(snapshot, tuple(read), predicate, None if predicate is None else skipping(snapshot))

        def changed() -> Iterator[pa.RecordBatch]:
            for stored, shown in found:
                rows = with_values(
                    stored.select(schema.names), {a.field.name: a.values(shown) for a in assigned}, snapshot.config
                )
                refuse_losing(snapshot, rows, stored, what="update")
                yield rows

        return pa.RecordBatchReader.from_batches(schema, changed())

    def _parsed(self, snapshot: Snapshot) -> tuple[list[Assignment], Predicate | None]:
        refuse_without_schema(snapshot, "update")
        refuse_rules_of_two(snapshot, "update")
        shown = columns_shown(snapshot)
        assigned = parse_assignments(self.set, snapshot, shown, what="set")
        refuse_moving([one.field.name for one in assigned], snapshot.config, moves=self.moves, what="set")
        return assigned, None if self.where is None else parse_predicate(self.where, shown)


def parse_assignments(given: Any, snapshot: Snapshot, schema: pa.Schema, *, what: str) -> list[Assignment]:
    """The assignments of `{column: value}`, over the columns of `schema`. `what`: names the argument in messages.

    Raises: Invalid for a column that is not in the table, is given twice, or says which row it is.
    """
    if not isinstance(given, Mapping) or not given:
        raise Invalid(f"{what}={given!r}: expected columns and their values, such as {{'n': 'n + 1'}}")
    config, fields = snapshot.config, list(snapshot.schema)
    assigned: dict[str, Assignment] = {}
    for name, value in given.items():
        found = [field for field in fields if isinstance(name, str) and field.name.lower() == name.lower()]
        if not found:
            raise Invalid(f"{what}: no column {name!r} in table '{config.name}'; {known_names(str(name), fields)}")
        field = found[0]
        if field.name in assigned:
            raise Invalid(f"{what}: expected each column once, found '{field.name}' twice")
        assigned[field.name] = parse_assignment(value, field, schema, what=f"{what}['{name}']")
    return list(assigned.values())


def refuse_moving(assigned: Collection[str], config: TableConfig, *, moves: bool, what: str) -> None:
    """Raises: Invalid for a new value of one of the `staying_columns`."""
    stays = staying_columns(config, moves=moves)
    for name in assigned:
        if name in stays:
            is_of_key = name in map(column_around, config.record_key or (RECORD_KEY,))
            kind = "record key" if is_of_key else "partition"
            raise Invalid(
                f"{what}: column '{name}' is a {kind} column of table '{config.name}', and its values stay; "
                f"{stays[name]}"
            )


def staying_columns(config: TableConfig, *, moves: bool) -> dict[str, str]:
    """The columns whose values a change of rows must leave, each with the way out, as messages tell it.

    They say which row it is, and in which partition it lies, unless the write `moves` rows.
    """
    anew = "delete the rows, and insert them with the new value"
    partition = {} if moves else dict.fromkeys(config.partition_by, f"{anew}, {_MOVING}")
    stays = {**partition, **dict.fromkeys(config.record_key or (RECORD_KEY,), anew)}
    return {column_around(name): way_out for name, way_out in stays.items()}


def identity_columns(snapshot: Snapshot) -> list[str]:
    """The columns that say which row it is: those of key and partition, or the meta field of keys made by writers."""
    config = snapshot.config
    key = config.record_key or (RECORD_KEY,)
    names = dict.fromkeys((*key, *config.partition_by))
    return list(dict.fromkeys(map(column_around, names)))


def whole_rows(snapshot: Snapshot) -> pa.Schema:
    """The columns of rows that replace stored ones: all of the table's, the key where a writer made it up, and the path
    of the partition that a row stays in.
    """
    names = {*snapshot.schema.names, *(() if snapshot.config.record_key else (RECORD_KEY,))}
    return _with_path(pa.schema([field for field in snapshot.schema_with_meta if field.name in names]), snapshot)


def _with_path(schema: pa.Schema, snapshot: Snapshot) -> pa.Schema:
    """The columns, and `STORED_PATH` if the table has partitions: a path may be another than its row's columns make.

    Example: a global index left a row in its partition, or Apache Hudi spelled the path in another way.
    """
    return schema.append(pa.field(STORED_PATH, pa.string())) if snapshot.key_spec.partition_by else schema


def columns_shown(snapshot: Snapshot) -> pa.Schema:
    """The columns that predicates and expressions may name, as a query of the table shows them."""
    return snapshot.shown_columns("snapshot").schema(snapshot.schema_with_meta)


def with_values(rows: pa.RecordBatch, values: Mapping[str, pa.Array], config: TableConfig) -> pa.RecordBatch:
    """The rows with other values in some columns. Those with a new value of a partition column lie where that says."""
    columns = [values.get(name, column) for name, column in zip(rows.schema.names, rows.columns, strict=True)]
    changed = pa.RecordBatch.from_arrays(columns, schema=rows.schema)
    moving = [name for name in config.partition_by if column_around(name) in values]
    at = rows.schema.get_field_index(STORED_PATH)
    if at < 0 or not moving:
        return changed
    return changed.set_column(at, STORED_PATH, _path_of_same(changed, rows, moving))


def _path_of_same(changed: pa.RecordBatch, rows: pa.RecordBatch, partition_by: Sequence[str]) -> pa.Array:
    """The paths of rows whose partition columns have the values that they had; null for others."""
    same = pa.repeat(pa.scalar(True), len(rows))
    for name in partition_by:
        same = pc.and_(same, same_values(column_at(changed, name), column_at(rows, name)))
    return pc.if_else(same, rows.column(STORED_PATH), pa.scalar(None, pa.string()))


def same_values(new: pa.Array, old: pa.Array) -> pa.Array:
    """Which values are equal where keys and paths are: NaN is one value, -0.0 another than 0.0, null equals null."""
    new, old = _spelled(new), _spelled(old)
    if new.equals(old):
        return pa.repeat(pa.scalar(True), len(new))
    both_null = pc.and_(pc.is_null(new), pc.is_null(old))
    return pc.or_(both_null, pc.fill_null(pc.equal(new, old), False))


def _spelled(values: pa.Array) -> pa.Array:
    """The texts of floats, which are equal where keys are."""
    return values.cast(pa.string()) if pa.types.is_floating(values.type) else values


def refuse_without_schema(snapshot: Snapshot, what: str) -> None:
    if snapshot.schema_text is None:
        raise Invalid(
            f"{what} in table '{snapshot.config.name}': expected a table with columns, found one without a schema; "
            "its first write gives it one"
        )


def refuse_fields_of_structs(config: TableConfig, what: str) -> None:
    """Raises: Unsupported for a table whose rows are keyed, placed or ordered by the field of a struct."""
    found = next((name for name in (*config.record_key, *config.partition_by, *config.ordering) if is_path(name)), None)
    if found is not None:
        raise Unsupported(
            f"{what} in table '{config.name}': expected key, partition and ordering columns of their own, found "
            f"'{found}', the field of a struct; write such changes with upsert and delete"
        )


def refuse_rules_of_two(snapshot: Snapshot, what: str) -> None:
    """Raises: Unsupported where a row that is written is not the row that is read back."""
    if not table_rules(snapshot, snapshot.schema).wins_whole:
        raise Unsupported(
            f"{what} in table '{snapshot.config.name}': its rules of merging make one row of the stored one and the "
            "new one, so that a new value may not be what is stored; write such changes with upsert"
        )


def refuse_losing(snapshot: Snapshot, rows: pa.RecordBatch, stored: pa.RecordBatch, *, what: str) -> None:
    """Raises: Invalid for a changed row that would lose against the stored one by event-time ordering.

    `rows`, `stored`: the same rows with their new values, and as they are.
    """
    config = snapshot.config
    if config.merge_mode is not MergeMode.EVENT_TIME:
        return
    names = [name for name in config.ordering if find_field(rows.schema, name) is not None]
    after, before = ([column_at(batch, name) for name in names] for batch in (rows, stored))
    if all(new.equals(old) for new, old in zip(after, before, strict=True)):
        return
    loses = np.flatnonzero(~incoming_wins(after, before))
    if not len(loses):
        return
    row = int(loses[0])
    new, old = (tuple(column[row].as_py() for column in columns) for columns in (after, before))
    columns = ", ".join(f"'{name}'" for name in names)
    raise Invalid(
        f"{what} in table '{config.name}': expected ordering values ({columns}) not less than the stored ones, as the "
        f"table keeps the row of the greater value; found {new} for a row with {old}; nothing was written. Leave the "
        "ordering column as it is, or set a greater value"
    )
