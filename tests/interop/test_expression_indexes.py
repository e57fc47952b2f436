"""Indexes on expressions that one side keeps and the other reads by: what they say must be what the data files hold,
whoever wrote last, and a file that they rule out is not opened.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest

from pyhudi import HudiTable
from pyhudi.storage.local import LocalStorage
from tests.support.compare import assert_same_rows
from tests.support.metadata_indexes import index_problems
from tests.support.reference.client import ReferenceHudi

SCHEMA = pa.schema([("id", pa.string()), ("city", pa.string()), ("ts", pa.int64()), ("name", pa.string())])
DAY_S = 86_400
FIRST = 1_767_225_600  # 2026-01-01
DAY, LOWER = "expr_index_idx_day", "expr_index_idx_lower"
ON_DAY = "from_unixtime(ts, 'yyyy-MM-dd')"
CITIES = ("oslo", "rome", "york")
SKIPPING = {
    "hoodie.metadata.enable": True,
    "hoodie.enable.data.skipping": True,
    "hoodie.metadata.index.expression.enable": True,
}
PAIRS = pytest.mark.parametrize("name, version", [("hudi_102", 8), ("hudi_120", 9)], ids=["1.0.2 on 8", "1.2.0 on 9"])
KINDS = pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
BY_DAY = [f"{ON_DAY} = '2026-01-01'", f"{ON_DAY} IN ('2026-01-11', '2030-01-01')", f"{ON_DAY} > '2026-01-20'"]
WORD = "expr_index_idx_word"
BY_WORD = ["regexp_replace(name, '[a-z]+', '.') = 'O.0'", "regexp_replace(name, '[a-z]+', '.') < 'A'"]
ASKS_FOR_WORD = {
    "hoodie.metadata.index.expression.column": "name",
    "hoodie.metadata.index.expression.options": "expr=regexp_replace, pattern=[a-z]+, replacement=.",
    "hoodie.index.name": "idx_word",
    "hoodie.expression.index.type": "column_stats",  # not in capitals, its default: it prunes by none such
}
BY_NAME = ["lower(name) = 'ola0'", "lower(name) = 'nobody'"]


ASKED = {DAY: BY_DAY, LOWER: BY_NAME, WORD: BY_WORD}


def rows(numbers: range, *, day: int) -> pa.Table:
    """Each city its own ten days, and its own names."""
    at = [CITIES[n % 3] for n in numbers]
    return pa.table(
        {
            "id": [f"k{n:03}" for n in numbers],
            "city": at,
            "ts": [FIRST + DAY_S * (10 * (n % 3) + day) + n for n in numbers],
            "name": [f"Ola{n % 3}" for n in numbers],
        },
        schema=SCHEMA,
    )


class Days:
    """A table whose rows both sides change.

    Neither 1.0.2 nor 1.2.0 can write to a merge-on-read table with filters of an expression, its own or ours: it fails
    at the first log file, of which it makes one.
    """

    def __init__(self, path: Path, kind: str, version: int, indexes: set[str]) -> None:
        self.path, self.kind, self.version, self.indexes = path, kind, version, indexes
        self.options = {"hoodie.index.type": "SIMPLE", "hoodie.metadata.compact.max.delta.commits": "4"}

    @property
    def ours(self) -> HudiTable:
        return HudiTable.open(self.path, options=self.options)

    def hudi_write(self, hudi: ReferenceHudi, new: pa.Table, operation: str = "upsert", **more: str) -> None:
        hudi.write(
            self.path, new, operation=operation,
            **{
                "hoodie.table.name": "days", "hoodie.datasource.write.table.type": self.kind,
                "hoodie.datasource.write.recordkey.field": "id", "hoodie.datasource.write.partitionpath.field": "city",
                "hoodie.datasource.write.precombine.field": "ts", "hoodie.write.table.version": str(self.version),
                "hoodie.metadata.index.column.stats.enable": "false",
                "hoodie.metadata.index.partition.stats.enable": "false",
                "hoodie.metadata.index.expression.enable": "true", **self.options, **more,
            },
        )  # fmt: skip

    def check(self, hudi: ReferenceHudi, *, of_partitions: bool = True, hudi_prunes: bool = True) -> None:
        """`of_partitions`: the index has statistics of partitions, too. `hudi_prunes`: it opens no file of others."""
        ready = self.ours.properties["hoodie.table.metadata.partitions"].split(",")
        assert self.indexes <= set(ready)
        assert not of_partitions or index_problems(LocalStorage(str(self.path))) == []
        assert self.ours.metadata.validate().differences == ()
        asked = [where for index, of in ASKED.items() if index in self.indexes for where in of]
        for where in asked:
            scan = self.ours.scan(where=where)
            off = HudiTable.open(self.path, options={"hoodie.enable.data.skipping": "false"}).scan(where=where)
            assert scan.to_arrow().num_rows == off.to_arrow().num_rows, where
            assert sum(one.files + one.partitions for one in scan._plan.explanation.indexes) > 0, where
            assert_same_rows(hudi.read(self.path, where, **SKIPPING), scan.to_arrow())
        if not hudi_prunes:
            return
        with self.without_files_but_of("oslo"):
            found = hudi.read(self.path, asked[0], **SKIPPING)
            assert found.num_rows == self.ours.scan(where=asked[0]).to_arrow().num_rows
            assert found.num_rows > 0

    @contextmanager
    def without_files_but_of(self, city: str) -> Iterator[None]:
        """The base files of the other cities are away: a reader that opens one fails."""
        away = [file for file in self.path.glob("*/*.parquet") if city not in file.parent.name]
        for file in away:
            file.rename(file.with_suffix(".away"))
        try:
            yield
        finally:
            for file in away:
                file.with_suffix(".away").rename(file)


@PAIRS
@KINDS
def test_hudi_reads_by_our_indexes_on_expressions_and_keeps_them(
    request: pytest.FixtureRequest, tmp_path: Path, name: str, version: int, kind: str
) -> None:
    hudi: ReferenceHudi = request.getfixturevalue(name)
    table = Days(tmp_path / "days", kind, version, {DAY, LOWER} if kind == "COPY_ON_WRITE" else {DAY})
    HudiTable.create(
        table.path, name="days", record_key="id", partition_by="city", ordering="ts", table_type=kind,
        table_version=version,
    )  # fmt: skip
    table.ours.upsert(rows(range(60), day=0))
    table.ours.build_index("column_stats", name="idx_day", columns="ts", expression=ON_DAY)
    if LOWER in table.indexes:
        table.ours.build_index("bloom_filters", name="idx_lower", columns="name", expression="lower(name)")
    table.ours.upsert(rows(range(6, 12), day=1))
    table.check(hudi)
    table.hudi_write(hudi, rows(range(50, 70), day=2))
    table.hudi_write(hudi, rows(range(70, 75), day=3))
    table.check(hudi)
    table.ours.upsert(rows(range(30, 36), day=4))
    table.ours.delete(rows(range(12, 15), day=0).select(["id", "city"]))
    table.check(hudi)
    table.hudi_write(hudi, rows(range(75, 78), day=5))  # beside a log of deletes alone
    table.check(hudi)


@PAIRS
@pytest.mark.parametrize(
    "kind, index", [("COPY_ON_WRITE", LOWER), ("COPY_ON_WRITE", DAY), ("MERGE_ON_READ", DAY)],
    ids=["filters", "statistics", "statistics, with logs"],
)  # fmt: skip
def test_indexes_on_expressions_of_hudi_stay_true_through_our_writes(
    request: pytest.FixtureRequest, tmp_path: Path, name: str, version: int, kind: str, index: str
) -> None:
    """One index a table: a second CREATE INDEX leaves the index without records, or fails."""
    hudi: ReferenceHudi = request.getfixturevalue(name)
    table = Days(tmp_path / "days", kind, version, {index})
    table.hudi_write(hudi, rows(range(60), day=0))
    registered = f"days_{kind.lower()}_{index}_{version}"
    hudi.sql(f"CREATE TABLE {registered} USING hudi LOCATION '{table.path}'")
    hudi.sql("SET hoodie.write.lock.provider=org.apache.hudi.client.transaction.lock.InProcessLockProvider")
    how = {
        LOWER: "bloom_filters(name) OPTIONS(expr='lower')",
        DAY: "column_stats(ts) OPTIONS(expr='from_unixtime', format='yyyy-MM-dd')",
    }
    short = index.removeprefix("expr_index_")
    hudi.sql(f"CREATE INDEX {short} ON {registered} USING {how[index]}")
    table.check(hudi)
    table.ours.upsert(rows(range(50, 70), day=2))
    table.ours.delete(rows(range(12, 15), day=0).select(["id", "city"]))
    if kind == "MERGE_ON_READ":
        table.ours.compact()
    table.check(hudi)
    table.hudi_write(hudi, rows(range(70, 80), day=3))
    table.ours.upsert(rows(range(3), day=4))
    table.ours.clean()
    table.check(hudi)
    hudi.sql(f"DROP INDEX {short} ON {registered}")
    assert index not in table.ours.properties["hoodie.table.metadata.partitions"]


@PAIRS
@pytest.mark.parametrize("writer", ["hudi", "ours"])
def test_an_index_that_a_write_of_either_side_asks_for_is_kept_by_both(
    request: pytest.FixtureRequest, tmp_path: Path, name: str, version: int, writer: str
) -> None:
    """Not the first one, at which Apache Hudi fails. Its own has no statistics of partitions then, and gets none, and
    1.0.2 prunes by none of its own that a write has built.
    """
    hudi: ReferenceHudi = request.getfixturevalue(name)
    is_ours = writer == "ours"
    prunes = is_ours or version == 9
    table = Days(tmp_path / "days", "COPY_ON_WRITE", version, {WORD})
    table.hudi_write(hudi, rows(range(60), day=0))
    if not is_ours:
        table.hudi_write(hudi, rows(range(58, 70), day=1), **ASKS_FOR_WORD)
    else:
        options = {**table.options, **ASKS_FOR_WORD, "hoodie.metadata.index.expression.enable": "true"}
        HudiTable.open(table.path, options=options).upsert(rows(range(58, 70), day=1))
    table.check(hudi, of_partitions=is_ours, hudi_prunes=prunes)
    table.ours.upsert(rows(range(50, 72), day=2))
    table.hudi_write(hudi, rows(range(70, 80), day=3), **ASKS_FOR_WORD)
    table.check(hudi, of_partitions=is_ours, hudi_prunes=prunes)
