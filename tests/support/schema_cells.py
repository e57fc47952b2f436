"""One cell of the matrix of schema changes: a write, and all that the table shows afterwards."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi import HudiTable, Invalid, Unsupported
from pyhudi.engine.local.executors import SerialExecutor
from pyhudi.format.schema.conversion import arrow_from_avro, required_columns
from pyhudi.storage.memory import MemoryStorage
from tests.support.model import Handles, StepClock, dump, problems_on, seeded_uuids
from tests.support.schema_changes import Change, Row, by_key, conformed

KINDS = ("COPY_ON_WRITE", "MERGE_ON_READ")
VERSIONS = (6, 8, 9)
PATHS = ("upsert", "insert", "bulk_insert", "insert_overwrite", "insert_overwrite_table")

NONE, FILLS, DROPS, NULLABLE, NUMBERED, SOME = (
    "no option", "`reconcile.schema`", "`column.drop`", "`new.columns.nullable`", "columns altered before",
    "some columns, into a log",
)  # fmt: skip
OPTIONS: Mapping[str, Mapping[str, str]] = {
    NONE: {},
    FILLS: {"hoodie.datasource.write.reconcile.schema": "true"},
    DROPS: {"hoodie.datasource.write.schema.allow.auto.evolution.column.drop": "true"},
    NULLABLE: {"hoodie.datasource.write.new.columns.nullable": "true"},
    NUMBERED: {},
    SOME: {},
}
"""What a column of the page is called -> the options of the write. With the last, a write of some columns is one."""

REFUSED, SAME, NO_TABLE = "refused", "as before", "no such table"


@dataclass(frozen=True)
class Cell:
    change: Change
    option: str = NONE
    kind: str = KINDS[0]
    version: int = 9
    path: str = "upsert"

    def __str__(self) -> str:
        return f"{self.change.name} / {self.option} / {self.kind} {self.version} / {self.path}"


def cells(change: Change) -> Iterator[Cell]:
    """Every cell of a change."""
    for option in OPTIONS:
        for kind in KINDS:
            for version in VERSIONS:
                for path in PATHS:
                    takes_some = kind == KINDS[1] and version >= 8 and path == "upsert"
                    if option in (FILLS, DROPS) or takes_some == (option == SOME):
                        yield Cell(change, option, kind, version, path)


def run_cell(cell: Cell) -> str:
    """What the write does to the table's columns, in words. Fails where the table shows anything but what it holds."""
    try:
        handles, before = _copy_of_stored(cell)
    except Unsupported:
        return NO_TABLE
    table, options = handles.open(), OPTIONS[cell.option]
    given = cell.change.keyed(is_new=cell.path in ("insert", "bulk_insert"))
    then, text = dump(handles.storage), schema_text(table)

    try:
        getattr(table, cell.path)(given, options=options)
    except (Invalid, Unsupported):
        assert dump(handles.storage) == then, f"{cell}: refused, with something written"
        return REFUSED

    seen = outcome(text, schema_text(table))
    schema = table.schema()
    stored, incoming = by_key(conformed(cell.change.stored, schema)), by_key(conformed(given, schema))
    if cell.option == SOME:
        own = set(given.column_names)
        incoming = {
            key: {name: row[name] if name in own else stored.get(key, row)[name] for name in row}
            for key, row in incoming.items()
        }
    expected = after(cell.path, stored, incoming)
    look(table, cell.change, expected, f"{cell}")
    _look_at_changes(table, cell, before, expected, incoming)
    assert problems_on(handles.storage) == [], cell
    assert table.metadata.validate().differences == (), cell

    # The table is written again, with rows that it has, and compacted.
    table.upsert(table.scan(meta_fields=False).to_arrow(), options=options)
    if cell.kind == KINDS[1]:
        table.compact()
    assert found(table) == expected, f"{cell}: written again"
    _look_back(table, cell, before)
    return seen


def outcome(before: str, text: str) -> str:
    """What became of a table's columns, in words."""
    old, new = dict(_flat(arrow_from_avro(before))), dict(_flat(arrow_from_avro(text)))
    words = {
        "added": new.keys() - old.keys(),
        "dropped": old.keys() - new.keys(),
        "new type": {path for path, kind in new.items() if old.get(path, kind) != kind},
        "may be null": {*required_columns(before)} - {*required_columns(text)} - (old.keys() - new.keys()),
    }
    return ", ".join(word for word, paths in words.items() if paths) or SAME


def _flat(schema: pa.Schema) -> Iterator[tuple[str, pa.DataType | None]]:
    """The paths of columns and their parts, with the types of those that have no parts."""
    level = [("", field) for field in schema]
    while level:
        inner = []
        for around, field in level:
            path, count = f"{around}{field.name}", field.type.num_fields
            yield path, field.type if not count else None
            inner += [(f"{path}.", field.type.field(number)) for number in range(count)]
        level = inner


def schema_text(table: HudiTable) -> str:
    text = table._handle.access.snapshot().schema_text
    assert text is not None
    return text


def _copy_of_stored(cell: Cell) -> tuple[Handles, str]:
    handles, before = _stored(cell.change, cell.option == NUMBERED, cell.kind, cell.version, cell.option != DROPS)
    assert isinstance(handles.storage, MemoryStorage)
    return Handles(handles.storage.copy(), StepClock(handles.clock.ms), seeded_uuids(2), SerialExecutor()), before


@lru_cache(maxsize=32)
def _stored(change: Change, is_numbered: bool, kind: str, version: int, has_statistics: bool) -> tuple[Handles, str]:
    """A table with the rows that are stored, some of them written twice, and the time of the last write."""
    clock = StepClock()
    handles = Handles(MemoryStorage(clock_ms=lambda: clock.ms), clock, seeded_uuids(1), SerialExecutor())
    properties = {"hoodie.metadata.index.column.stats.enable": str(has_statistics).lower()}
    table = handles.create(table_version=version, table_type=kind, schema=change.stored.schema, properties=properties)
    table.insert(change.stored)
    table.upsert(change.stored.slice(1, 2))
    if is_numbered:
        table.alter().add("later", "int32").rename("z", "was_z").commit()
        table.alter().rename("was_z", "z").drop("later").commit()
    return handles, table.timeline()[-1].requested


def after(path: str, stored: Mapping[str, Row], incoming: Mapping[str, Row]) -> dict[str, Row]:
    """The rows of a table after a write."""
    if path == "insert_overwrite_table":
        return dict(incoming)
    kept = {key: row for key, row in stored.items() if path != "insert_overwrite" or row["city"] == "untouched"}
    return {**kept, **incoming}


def found(table: HudiTable, **asked: Any) -> dict[str, Row]:
    return by_key(iter(table.scan(meta_fields=False, **asked).to_arrow().to_pylist()))


def look(table: HudiTable, change: Change, expected: Mapping[str, Row], what: str) -> None:
    """The rows, and the rows by filters on each column that the change is about."""
    rows = found(table)
    assert rows == expected, f"{what}: {rows}, expected {expected}"
    for field in table.schema():
        name, kind = field.name, field.type
        if name not in change.columns:
            continue
        values = {None} if pa.types.is_nested(kind) else {row[name] for row in expected.values()}
        for value in values:
            where = pc.field(name).is_null() if value is None else pc.field(name) == pa.scalar(value, kind)
            wanted = {key for key, row in expected.items() if row[name] == value}
            assert found(table, where=where).keys() == wanted, f"{what}: filter {name} = {value!r}"
            if value is not None and not pa.types.is_boolean(kind):
                wanted = {key for key, row in expected.items() if row[name] is not None and row[name] >= value}
                greater = found(table, where=pc.field(name) >= pa.scalar(value, kind))
                assert greater.keys() == wanted, f"{what}: filter {name} >= {value!r}"


def _look_at_changes(
    table: HudiTable, cell: Cell, before: str, expected: Mapping[str, Row], incoming: Mapping[str, Row]
) -> None:
    has_completion_times = cell.version >= 8
    start = table.timeline()[-2].completed if has_completion_times else before
    for since, wanted in ((start, {key: expected[key] for key in incoming}), (None, expected)):
        rows = table.incremental(since, meta_fields=False).to_arrow()
        assert by_key(iter(rows.to_pylist())) == wanted, f"{cell}: incremental from {since}"
    _look_back(table, cell, before)


def _look_back(table: HudiTable, cell: Cell, before: str) -> None:
    then = table.scan(as_of=before, meta_fields=False).to_arrow()
    stored = cell.change.stored
    assert by_key(iter(then.to_pylist())) == by_key(iter(stored.to_pylist())), f"{cell}: as of before"
    assert [(one.name, one.type) for one in then.schema] == [(one.name, one.type) for one in stored.schema], cell
