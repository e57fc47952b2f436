"""A table whose rules make one row of two could keep other values than reading says, once a batch, a base file or a
compaction has settled some of them before.

Random upserts and deletes run on a table of each mode, and row by row on dicts. Rows, time travel and what is left
after a compaction must be equal.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from pyhudi import HudiTable, Unsupported, register_merger, register_payload_class
from pyhudi.storage.memory import MemoryStorage
from pyhudi.table.read.plan import table_rules
from tests.support.model import StepClock, seeded_uuids
from tests.unit.merge.rows_model import Facts, Record, Row, fold, merge

SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("v", pa.int64()), ("a", pa.string()), ("b", pa.string())])
PAYLOAD = "hoodie.compaction.payload.class"
MODEL = "org.apache.hudi.common.model."
STRATEGY = "5f9c0b0e-8a51-4f5b-9d5b-61d7e9f0a7c4"


class LargestOrGone:
    """The larger `v` of two; a pair that adds up to zero is deleted. A value of columns, not of one row."""

    def merge(self, older: pa.RecordBatch, newer: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.BooleanArray]:
        at = newer.schema.get_field_index("v")
        first, second = (pc.fill_null(batch.column(at), 0) for batch in (older, newer))
        rows = newer.set_column(at, newer.schema.field(at), pc.max_element_wise(first, second))
        return rows, pc.equal(pc.add(first, second), 0)


def largest_or_gone(older: Row, newer: Row) -> Row | None:
    first, second = older["v"] or 0, newer["v"] or 0
    return None if first + second == 0 else {**newer, "v": max(first, second)}


register_merger(STRATEGY, LargestOrGone)
register_payload_class("com.acme.LargestOrGonePayload", LargestOrGone)

MODES: dict[str, dict[str, str]] = {
    "custom": {"hoodie.record.merge.mode": "CUSTOM", "hoodie.record.merge.strategy.id": STRATEGY},
    "payload of one's own": {PAYLOAD: "com.acme.LargestOrGonePayload"},
    "partial payload": {PAYLOAD: f"{MODEL}PartialUpdateAvroPayload"},
    "nondefaults payload": {PAYLOAD: f"{MODEL}OverwriteNonDefaultsWithLatestAvroPayload"},
    "delete field": {"hoodie.payload.delete.field": "b", "hoodie.payload.delete.marker": "D"},
    "fill unavailable": {
        "hoodie.table.partial.update.mode": "FILL_UNAVAILABLE",
        "hoodie.write.partial.update.unavailable.value": "?",
    },
}
ONLY_9 = {"fill unavailable"}
OWN_PAYLOAD = "payload of one's own"
CASES = [
    *((mode, n) for mode in MODES for n in (8, 9) if mode != OWN_PAYLOAD and (n == 9 or mode not in ONLY_9)),
    (OWN_PAYLOAD, 6),
    *(pytest.param(OWN_PAYLOAD, n, marks=pytest.mark.long) for n in (8, 9)),
]

rows = st.fixed_dictionaries(
    {
        "id": st.sampled_from(["k0", "k1", "k2", "k3"]),
        "ts": st.integers(1, 5),
        "v": st.one_of(st.none(), st.integers(-2, 2)),
        "a": st.sampled_from([None, "x", "y", "?"]),
        "b": st.sampled_from([None, "z", "D", "?"]),
    }
)
deletes = st.lists(st.tuples(st.sampled_from(["k0", "k1", "k2"]), st.one_of(st.none(), st.integers(1, 5))), max_size=2)
steps = st.lists(
    st.one_of(
        st.lists(rows, min_size=1, max_size=6),
        deletes.map(dict),
        st.just("compact"),
    ),
    min_size=1,
    max_size=5,
)
WRITE = "number of the write"
QUICK = settings(
    max_examples=8,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink],
)


@dataclass
class RowByRow:
    """What the table holds: base rows, and records of the log in their order; copy-on-write has no log.

    `groups`: the file group of each base row, by the number of the write that made it. Rows carry the number of the
    write that brought them, under `WRITE`.
    """

    facts: Facts
    has_logs: bool
    base: dict[str, Row] = field(default_factory=dict)
    log: list[tuple[str, Record]] = field(default_factory=list)
    groups: dict[str, int] = field(default_factory=dict)
    writes: int = 0

    def upsert(self, batch: list[Row]) -> None:
        self.writes += 1
        numbered = [{**row, WRITE: self.writes} for row in batch]
        arrived = [(row["id"], Record((row["ts"],), row, is_delete=self._is_marked(row))) for row in numbered]
        self._take({key: _written(one) for key, one in fold(self.facts, arrived).items()})

    def delete(self, keys: Mapping[str, int | None]) -> None:
        found = {key: Record((ts,), None, is_delete=True) for key, ts in keys.items() if key in self.base}
        self._take(found)

    def rows(self) -> list[Row]:
        shown = self._shown(self.log).values()
        return [{name: value for name, value in row.items() if name != WRITE} for row in shown]

    def compact(self) -> None:
        self.base, self.log = self._shown(self.log), []

    def _take(self, records: Mapping[str, Record]) -> None:
        new = {key: one.row for key, one in records.items() if key not in self.base and one.row is not None}
        appended = [(key, one) for key, one in records.items() if key in self.base]
        returning = self._returning(appended) if self.has_logs else set()
        self.log += appended
        if returning:
            self._rewrite(returning)
        if not self.has_logs:
            self.compact()
        self.base |= new
        self.groups |= dict.fromkeys(new, self.writes)

    def _returning(self, appended: list[tuple[str, Record]]) -> set[str]:
        """The keys whose deleted base row would show again, or give values, once these records are in the log."""
        rules = self.facts.rules
        if rules.keeps_rows_whole and not rules.base_by_ordering:
            return set()
        marks_rows = any(name in SCHEMA.names for name in rules.mark_columns)
        deleted = {key for key, one in self.log if one.is_entry}
        before, after = self._shown(self.log), self._shown([*self.log, *appended])
        dead = [
            key for key, one in appended if one.row is not None and key not in before and (marks_rows or key in deleted)
        ]
        if rules.keeps_rows_whole:
            return {key for key in dead if key in after and after[key][WRITE] != self.writes}
        return {key for key in dead if key in after}

    def _rewrite(self, returning: set[str]) -> None:
        """The file groups of these keys get their next base files, as if the keys had not been in the ones before."""
        touched = {self.groups[key] for key in returning}
        mine = {key for key in self.base if self.groups[key] in touched}
        held = {key: row for key, row in self.base.items() if key not in returning}
        rows = self._shown(self.log, held)
        self.base = {key: row for key, row in self.base.items() if key not in mine}
        self.base |= {key: row for key, row in rows.items() if key in mine}
        self.log = [(key, one) for key, one in self.log if key not in mine]

    def _shown(self, log: list[tuple[str, Record]], base: Mapping[str, Row] | None = None) -> dict[str, Row]:
        held = self.base if base is None else base
        found: list[Row] = merge(self.facts, [(key, row, (row["ts"],)) for key, row in held.items()], log)
        return {row["id"]: row for row in sorted(found, key=lambda row: str(row["id"]))}

    def _is_marked(self, row: Row) -> bool:
        return any(row[mark.column] == mark.text for mark in self.facts.rules.marks)


def _written(one: Record) -> Record:
    """A delete goes to the log as an entry of a delete block."""
    return Record(one.order, None, is_delete=True) if one.is_delete else one


def new_table(mode: str, version: int, kind: str, properties: Mapping[str, object] | None = None) -> HudiTable:
    clock = StepClock()
    return HudiTable.create(
        "", name="t", record_key="id", ordering="ts", table_type=kind, table_version=version, schema=SCHEMA,
        properties={"hoodie.parquet.small.file.limit": "0", **MODES[mode], **(properties or {})},
        storage=MemoryStorage(clock_ms=lambda: clock.ms), clock=clock, random=seeded_uuids(1),
    )  # fmt: skip


def stored(table: HudiTable, **options: Any) -> list[Row]:
    found: list[Row] = table.scan(meta_fields=False, **options).to_arrow().sort_by("id").to_pylist()
    return found


@pytest.mark.parametrize("mode, version", CASES)
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_rows_are_those_of_merging_row_by_row(mode: str, version: int, kind: str) -> None:
    @QUICK
    @given(steps)
    def check(actions: list[Any]) -> None:
        table = new_table(mode, version, kind)
        has_logs = kind == "MERGE_ON_READ"
        rules = table_rules(table._access.snapshot(), SCHEMA)
        custom: Callable[[Row, Row], Row | None] | None = largest_or_gone if rules.merger is not None else None
        model = RowByRow(Facts(rules, (False,) * len(rules.ordering), {}, custom), has_logs)
        model.facts = Facts(rules, (False,), {}, custom)
        past: dict[str, list[Row]] = {}
        for action in actions:
            if action == "compact":
                if has_logs:
                    table.compact()
                    model.compact()
            elif isinstance(action, dict):
                for is_ordered in (False, True):
                    chosen = {key: ts for key, ts in action.items() if (ts is not None) is is_ordered}
                    names = ["id", "ts"] if is_ordered else ["id"]
                    keys = [{"id": key, "ts": ts} for key, ts in chosen.items()]
                    table.delete(pa.Table.from_pylist(keys, pa.schema([SCHEMA.field(name) for name in names])))
                    model.delete(chosen)
            else:
                result = table.upsert(pa.Table.from_pylist(action, SCHEMA))
                model.upsert(action)
                past[result.requested or ""] = model.rows()
            assert stored(table) == model.rows(), action
        for requested, held in past.items():
            assert stored(table, as_of=requested) == held

    check()


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_row_that_changes_is_this_writes_and_one_that_does_not_stays(kind: str) -> None:
    table = new_table("partial payload", 9, kind)
    row = {"id": "k0", "ts": 5, "v": None, "a": "x", "b": None}
    table.upsert(pa.Table.from_pylist([row, {**row, "id": "k1", "b": "z", "v": 1}], SCHEMA))
    late = {"id": "k0", "ts": 1, "v": 7, "a": "late", "b": None}
    filled = table.upsert(pa.Table.from_pylist([late, {**late, "id": "k1"}], SCHEMA))

    assert stored(table) == [{**row, "v": 7}, {**row, "id": "k1", "b": "z", "v": 1}]
    if kind == "COPY_ON_WRITE":
        changes = table.incremental(start=table.timeline()[0].completed).to_arrow()
        assert changes.column("id").to_pylist() == ["k0"]
        assert filled.updated == 1


def test_a_write_that_changes_no_row_writes_no_file() -> None:
    table = new_table("delete field", 9, "COPY_ON_WRITE")
    row = {"id": "k0", "ts": 5, "v": 1, "a": "x", "b": None}
    table.upsert(pa.Table.from_pylist([row], SCHEMA))
    assert table.upsert(pa.Table.from_pylist([{**row, "ts": 1}], SCHEMA)).files == 0


@pytest.mark.parametrize("mode", ["partial payload", "custom", "nondefaults payload", "delete field"])
def test_rows_with_some_columns_only_are_refused(mode: str) -> None:
    table = new_table(mode, 9, "MERGE_ON_READ")
    row = {"id": "k0", "ts": 5, "v": 1, "a": "x", "b": None}
    whole = pa.Table.from_pylist([row], SCHEMA)
    table.upsert(whole)
    with pytest.raises(Unsupported, match=r"expected all columns in an upsert"):
        table.upsert(whole.select(["id", "ts", "v"]))
    assert stored(table) == [row]


def test_a_global_index_is_refused_where_a_row_is_made_of_two() -> None:
    clock = StepClock()
    table = HudiTable.create(
        "", name="t", record_key="id", ordering="ts", partition_by="a", schema=SCHEMA, table_version=9,
        properties={**MODES["partial payload"], "hoodie.index.type": "GLOBAL_SIMPLE"},
        storage=MemoryStorage(clock_ms=lambda: clock.ms), clock=clock,
    )  # fmt: skip
    rows = pa.Table.from_pylist([{"id": "k0", "ts": 5, "v": 1, "a": "x", "b": None}], SCHEMA)
    with pytest.raises(Unsupported, match=r"'GLOBAL_SIMPLE' with rules of merging that make one row of two"):
        table.upsert(rows)


def test_a_log_compaction_is_refused_where_a_row_is_made_of_two() -> None:
    table = new_table("partial payload", 9, "MERGE_ON_READ")
    rows = pa.Table.from_pylist([{"id": "k0", "ts": 5, "v": 1, "a": "x", "b": None}], SCHEMA)
    for _ in range(3):
        table.upsert(rows)
    with pytest.raises(Unsupported, match="its merge mode makes a record of several"):
        table.log_compact()
