"""A merge-on-read table that pyhudi and the real Apache Hudi both write, and the model that says what it holds."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from pyhudi.format.names import LogFileName
from tests.interop.cow_rows import COMMIT_TIME, SCHEMA, Row
from tests.interop.cow_tables import PLAIN, Shape, Shared
from tests.support.compare import assert_same_rows
from tests.support.reference.client import ReferenceHudi

IS_DELETED = "_hoodie_is_deleted"
BLOCK_FORMAT = "hoodie.logfile.data.block.format"
POSITIONS = "hoodie.merge.use.record.positions"
LISTING = "hoodie.metadata.enable"
READ_OPTIMIZED = {"hoodie.datasource.query.type": "read_optimized"}
MERGE_ON_READ = {"hoodie.datasource.write.table.type": "MERGE_ON_READ"}
BY_ID_AND_TS: dict[str, Any] = {
    **MERGE_ON_READ,
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.compact.inline": False,
}
"""What Apache Hudi is told of a table of the key `id`, ordered by `ts`, whose logs stay."""

PARTIAL = ("id", "region", "city", "ts", "number", "tags", "driver")
"""The columns of a partial update."""

NO_STATISTICS_OF_DATES = {"hoodie.metadata.index.column.stats.column.list": "id,region,city,ts,number,flag"}
"""1.0.2 fails on a null date when it takes statistics of the rows that it logs."""

READINGS: tuple[dict[str, object], ...] = tuple(
    {LISTING: listing, POSITIONS: positions} for listing in (True, False) for positions in (True, False)
)
"""Each way to find the files, with each way to find a log's record in the base file."""


@dataclass
class LogModel:
    """What a merge-on-read table must hold: a dict, and a copy of it for every commit.

    `keeps_greater`: event-time ordering. `graves`: the ordering value of a delete that carried one, by its key: in a
    log it is compared like that of a row.
    """

    keeps_greater: bool
    schema: pa.Schema = SCHEMA
    rows: dict[str, Row] = field(default_factory=dict)
    graves: dict[str, int] = field(default_factory=dict)
    past: dict[str, tuple[dict[str, Row], pa.Schema]] = field(default_factory=dict)
    """Requested time -> the rows and columns after that commit."""

    def upsert(
        self, requested: str, new: Iterable[Row], schema: pa.Schema | None = None, *, is_partial: bool = False
    ) -> None:
        """`schema`: with columns that were added. `is_partial`: the other columns stay as they are."""
        for one in new:
            key = one["id"]
            if self._is_late(key, one["ts"]):
                continue
            self.graves.pop(key, None)
            if one.get(IS_DELETED):
                if self.rows.pop(key, None) is not None:
                    self.graves[key] = one["ts"]
            else:
                kept = self.rows.get(key, {}) if is_partial else {}
                self.rows[key] = {**kept, COMMIT_TIME: requested, **one}
        self.schema = schema or self.schema
        self._end(requested)

    def delete(self, requested: str, keys: Iterable[str], *, ts: int | None = None) -> None:
        """`ts`: the ordering value that each delete carries, if any."""
        for key in keys:
            if ts is not None and self._is_late(key, ts):
                continue
            if self.rows.pop(key, None) is not None and ts is not None:
                self.graves[key] = ts
        self._end(requested)

    def table(self, as_of: str | None = None, where: Callable[[Row], bool] = lambda row: True) -> pa.Table:
        of, schema = (self.rows, self.schema) if as_of is None else self.past[as_of]
        return pa.Table.from_pylist(
            [one for one in of.values() if where(one)], schema.insert(0, pa.field(COMMIT_TIME, pa.string()))
        )

    def changed(self, requested: Collection[str]) -> pa.Table:
        """The rows that these commits wrote last, as they stood after the newest of them, with the columns of now."""
        of, _ = self.past[max(requested)]
        rows = [one for one in of.values() if one[COMMIT_TIME] in requested]
        return pa.Table.from_pylist(rows, self.schema.insert(0, pa.field(COMMIT_TIME, pa.string())))

    def _is_late(self, key: str, ts: int) -> bool:
        stored = self.rows.get(key)
        floor = stored["ts"] if stored is not None else self.graves.get(key)
        return self.keeps_greater and floor is not None and ts < floor

    def _end(self, requested: str) -> None:
        self.past[requested] = (dict(self.rows), self.schema)


class SharedLogs(Shared):
    """A merge-on-read table, its writers on both sides and its model."""

    table_type, action = "MERGE_ON_READ", "deltacommit"

    def __init__(
        self, path: Path, shape: Shape = PLAIN, *, version: int = 8, properties: Mapping[str, object] | None = None
    ) -> None:
        super().__init__(
            path, Shape(shape.name, shape.record_key, shape.partition_by, shape.ordering,
                        {**shape.properties, **(properties or {})}), version=version,
        )  # fmt: skip
        self.model: LogModel = LogModel(keeps_greater=shape.ordering is not None)  # type: ignore[assignment]

    # Our turn.

    def upsert(self, new: list[Row], **options: object) -> str:
        return self._took_in(self.ours.upsert(self._as_table(new), options=options).requested, new)

    def upsert_columns(self, new: list[Row], names: Collection[str]) -> str:
        """A partial update: the rows with these columns only."""
        some = [{name: one[name] for name in names} for one in new]
        schema = pa.schema([one for one in self.model.schema if one.name in names])
        requested = self.ours.upsert(pa.Table.from_pylist(some, schema)).requested
        assert requested is not None
        self.model.upsert(requested, some, is_partial=True)
        return requested

    def upsert_with(self, new: list[Row], *added: pa.Field) -> str:
        """Rows with columns that the table does not have yet."""
        schema = pa.schema([*self.model.schema, *added])
        requested = self.ours.upsert(pa.Table.from_pylist(new, schema)).requested
        assert requested is not None
        self.model.upsert(requested, new, schema)
        return requested

    def delete_ordered(self, keys: Iterable[str], *, ts: int) -> str:
        """Deletes that carry an ordering value."""
        gone = [{**row, "ts": ts} for row in self._stored(keys)]
        names = [*self._key_columns(), "ts"]
        requested = self.ours.delete(self._as_table(gone).select(names)).requested
        assert requested is not None
        self.model.delete(requested, [row["id"] for row in gone], ts=ts)
        return requested

    # The turn of Apache Hudi.

    def hudi_options(self) -> dict[str, Any]:
        return {**super().hudi_options(), **MERGE_ON_READ, **NO_STATISTICS_OF_DATES}

    # What both must see.

    def check(self, *readers: ReferenceHudi) -> None:
        ours = self.check_ours()
        base = self.ours.scan(query="read_optimized").to_arrow()
        for hudi in readers:
            for reading in READINGS:
                assert_same_rows(hudi.read(self.path, **reading), ours)
            assert_same_rows(hudi.read(self.path, **READ_OPTIMIZED), base)

    def logs(self) -> list[Path]:
        found = (file for file in self.path.rglob(".*.log.*") if ".hoodie" not in file.relative_to(self.path).parts)
        return sorted(file for file in found if LogFileName.parse(file.name) is not None)

    def _as_table(self, of: list[Row]) -> pa.Table:
        return pa.Table.from_pylist(of, self.model.schema)
