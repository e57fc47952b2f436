"""A small table on the local disk, the dict that says what it holds, and hudi-rs, which must find the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pyhudi import HudiTable, WriteResult
from pyhudi.engine.local.executors import SerialExecutor
from pyhudi.storage.local import LocalStorage
from tests.support.compare import assert_same_rows
from tests.support.hudi_rs import read_hudi_rs, read_hudi_rs_by_storage
from tests.support.model import Handles, Key, Model, Past, Row, Stored, arrow, read_rows

BEGINNING = "000"
CITIES = ("oslo", "rome")


def batch(start: int, stop: int, *, turn: int, step: int = 1, city: str | None = None) -> list[Row]:
    """Rows of keys by number, in the city of the number unless one is given."""
    return [Row(f"k{n:02}", city or CITIES[n % 2], turn, 100 * turn + n) for n in range(start, stop, step)]


class Watched:
    """Writes go to the table and to the dict; the checks read by pyhudi and by hudi-rs."""

    def __init__(self, path: Path, *, properties: Mapping[str, object] | None = None, **facts: Any) -> None:
        self.path = path
        handles = Handles(LocalStorage(str(path)), executor=SerialExecutor())
        self.table: HudiTable = handles.create(properties=properties, **facts)
        partition_by, ordering = facts.get("partition_by", "city"), facts.get("ordering", "ts")
        self.model = Model(partition_by is not None, ordered=ordering is not None, event_time=ordering is not None)

    # Writes.

    def add(self, rows: Sequence[Row], operation: str = "bulk_insert", **options: object) -> WriteResult:
        """Insert or bulk insert rows with new keys."""
        write = self.table.bulk_insert if operation == "bulk_insert" else self.table.insert
        return self._committed(write(arrow(rows), options=options), {self.model.key(row): row for row in rows}, set())

    def upsert(self, rows: Sequence[Row], **options: object) -> WriteResult:
        put, _, _ = self.model.upsert(rows)
        return self._committed(self.table.upsert(arrow(rows), options=options), put, set())

    def move(self, rows: Sequence[Row], **options: object) -> WriteResult:
        """Upsert by a global index: a key is one row of the table, in the partition of its newest row."""
        put, _, _ = self.model.upsert(rows)
        keys = {key[1] for key in put}
        gone = {key for key in self.model.rows if key[1] in keys and key not in put}
        return self._committed(self.table.upsert(arrow(rows), options=options), put, gone)

    def delete(self, rows: Sequence[Row], *, ordered: bool = False) -> WriteResult:
        gone = self.model.delete(rows, ordered=ordered)
        columns = ["city", "id", *(["ts"] if ordered else [])]
        return self._committed(self.table.delete(arrow(rows, columns)), {}, gone)

    def overwrite(self, rows: Sequence[Row], *, whole: bool = False) -> WriteResult:
        gone = self.model.overwritten(rows, whole=whole)
        write = self.table.insert_overwrite_table if whole else self.table.insert_overwrite
        return self._committed(write(arrow(rows)), {self.model.key(row): row for row in rows}, gone)

    def delete_partitions(self, *paths: str) -> WriteResult:
        gone = {key for key in self.model.rows if key[0] in paths}
        return self._committed(self.table.delete_partitions(paths), {}, gone)

    def _committed(self, result: WriteResult, put: Mapping[Key, Row], gone: set[Key]) -> WriteResult:
        assert result.requested is not None
        assert result.completed is not None
        self.model.committed(result.requested, result.completed, put, gone)
        return result

    # What all three must say.

    def check(self) -> None:
        """Every query of the table's whole life: the changes of each commit, and all up to it."""
        check_snapshot(self.path, self.table, self.model)
        for at, past in enumerate(self.model.past):
            check_past(self.path, self.table, past)
            for start in {0, at}:
                check_range(self.path, self.table, self.model, start, at + 1)


def check_snapshot(path: Path, table: HudiTable, model: Model) -> None:
    ours = table.scan().to_arrow()
    assert read_rows(ours) == model.rows
    assert_same_rows(read_hudi_rs(path), ours)
    assert_same_rows(read_hudi_rs_by_storage(path), ours)


def check_past(path: Path, table: HudiTable, past: Past) -> None:
    ours = table.scan(as_of=past.requested).to_arrow()
    assert read_rows(ours) == past.rows
    assert_same_rows(read_hudi_rs(path, as_of=past.requested), ours)


def check_range(path: Path, table: HudiTable, model: Model, start: int, end: int) -> None:
    """What the commits `past[start:end]` wrote last."""
    after, until = bounds(model, start, end)
    ours = table.incremental(after, until).to_arrow()
    assert read_rows(ours) == model.between(start, end)
    assert_same_rows(read_hudi_rs(path, incremental=(after, until)), ours)


def bounds(model: Model, start: int, end: int) -> tuple[str, str]:
    """Start and end of an incremental query over the commits `past[start:end]`."""
    return model.past[start - 1].completed if start else BEGINNING, model.past[end - 1].completed


def of_active_commits(table: HudiTable, rows: Mapping[Key, Stored]) -> dict[Key, Stored]:
    """The rows that commits of the active timeline wrote: an incremental query of hudi-rs has no others.

    Seen: hudi-rs 0.5 does not read archived commits.
    """
    active = {instant.requested for instant in table.timeline()}
    return {key: of for key, of in rows.items() if of.requested in active}
