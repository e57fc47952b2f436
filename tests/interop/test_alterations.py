"""A column that we renamed, dropped, widened or added could be another column, or nulls, for Apache Hudi; and what it
changed could be that for us. Both sides alter one table in turns here, write to it, and rewrite its files."""

from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyhudi import HudiTable
from tests.support.compare import assert_same_rows
from tests.support.reference.client import ReferenceHudi

EVOLVES: dict[str, Any] = {"hoodie.schema.on.read.enable": True}
HOME = pa.struct([("street", pa.string()), ("number", pa.int32())])


def first_rows(keys: str, ts: int) -> pa.Table:
    count = len(keys)
    columns: dict[str, Any] = {
        "id": list(keys), "ts": [ts] * count, "part": ["p1", "p2"] * (count // 2) + ["p1"] * (count % 2),
        "name": [f"name of {key}" for key in keys], "count": pa.array([ts + n for n in range(count)], pa.int32()),
        "gone": [f"old {key}" for key in keys],
        "home": pa.array([{"street": f"street of {key}", "number": ts} for key in keys], HOME),
    }  # fmt: skip
    return pa.table(columns)


def later_rows(table: HudiTable, keys: str, ts: int) -> pa.Table:
    """Rows with the columns that the table has after the changes."""
    count = len(keys)
    values: dict[str, list[Any]] = {
        "id": list(keys), "ts": [ts] * count, "part": ["p1", "p2"] * (count // 2) + ["p1"] * (count % 2),
        "label": [f"label of {key}" for key in keys], "caption": [f"caption of {key}" for key in keys],
        "count": [str(ts)] * count, "gone": [f"new {key}" for key in keys], "more": [ts / 4] * count,
        "home": [{"zip": "z", "road": f"road of {key}", "street": key, "number": 1 << 40} for key in keys],
    }  # fmt: skip
    return pa.table([pa.array(values[field.name], field.type) for field in table.schema()], schema=table.schema())


SESSION = {
    "hoodie.schema.on.read.enable": "true", "hoodie.write.auto.upgrade": "false", "hoodie.metadata.enable": "false",
    "hoodie.clean.automatic": "false", "hoodie.parquet.small.file.limit": "0",
    "hoodie.datasource.write.schema.allow.auto.evolution.column.drop": "true",
    "spark.sql.parquet.enableVectorizedReader": "false",
}  # fmt: skip
"""Seen: with Spark's vectorized reader no release reads a struct in which a type changed; 1.2.0 says so."""


@contextmanager
def sql_table(hudi: ReferenceHudi, path: Path) -> Iterator[str]:
    """The table under a name in the session's catalog, with schema on read switched on."""
    for key, value in SESSION.items():
        hudi.sql(f"SET {key}={value}")
    hudi.sql(f"CREATE TABLE {path.name} USING hudi LOCATION '{path}'")
    try:
        yield path.name
    finally:
        hudi.sql(f"DROP TABLE {path.name}")
        for key in SESSION:
            hudi.sql(f"RESET {key}")


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("release, version", [("hudi_120", 9), ("hudi_102", 8), ("hudi_0150", 6)])
def test_both_alter_one_table_in_turns(
    request: pytest.FixtureRequest, tmp_path: Path, release: str, version: int, kind: str
) -> None:
    hudi: ReferenceHudi = request.getfixturevalue(release)
    path = tmp_path / f"altered_{version}_{kind[:4].lower()}"
    table = HudiTable.create(
        path, name=path.name, record_key="id", partition_by="part", ordering="ts", table_type=kind,
        table_version=version, properties={"hoodie.metadata.enable": "false", "hoodie.parquet.small.file.limit": "0"},
    )  # fmt: skip

    same = partial(assert_same_as_hudi, hudi, path, table)

    table.insert(first_rows("abcdefgh", 10))
    table.upsert(first_rows("ab", 20))
    same()
    with sql_table(hudi, path) as name:
        alter_in_turns(table, hudi, path, name)


def assert_same_as_hudi(hudi: ReferenceHudi, path: Path, table: HudiTable) -> None:
    assert_same_rows(hudi.read(path, **EVOLVES), table.scan().to_arrow())


def alter_in_turns(table: HudiTable, hudi: ReferenceHudi, path: Path, name: str) -> None:
    """Seen: 1.0.2 reads null in the field of a struct in a log that was renamed since; so no such field is renamed."""
    version = table.table_version
    same = partial(assert_same_as_hudi, hudi, path, table)

    change = table.alter().rename("name", "label").drop("gone").change_type("count", "int64")
    change.change_type("home.number", "int64").add("home.zip", "string", first=True)
    if (hudi.version, table.table_type) != ("1.0.2", "MERGE_ON_READ"):
        change.rename("home.street", "road")
    change.add("more", "double", after="id", comment="a new one").commit()
    same()
    table.alter().add("gone", "string", before="ts").change_type("count", "string").move("label", after="ts").commit()
    same()
    table.upsert(later_rows(table, "bcx", 30))
    table.delete(pa.table({"id": ["d"], "part": ["p2"]}))
    same()

    hudi.sql(f"UPDATE {name} SET gone = 'by hudi', ts = 40 WHERE id IN ('c', 'e')")
    same()
    hudi.sql(f"ALTER TABLE {name} RENAME COLUMN label TO caption")
    same()
    hudi.sql(f"DELETE FROM {name} WHERE id = 'f'")
    same()
    assert "caption" in table.schema().names
    table.upsert(later_rows(table, "gy", 50))
    same()
    if table.table_type == "MERGE_ON_READ":
        assert table.compact().completed
        same()
        table.upsert(later_rows(table, "ax", 60))
        options: dict[str, Any] = {
            **EVOLVES, "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.partitionpath.field": "part", "hoodie.datasource.write.precombine.field": "ts",
            "hoodie.compact.inline": True, "hoodie.compact.inline.max.delta.commits": 1,
            "hoodie.write.auto.upgrade": False, "hoodie.metadata.enable": False, "hoodie.write.table.version": version,
        }  # fmt: skip
        hudi.write(path, later_rows(table, "b", 70), **options)
        same()
    table.bulk_insert(later_rows(table, "z", 75))
    table.alter().rename("caption", "title").commit()
    assert table.cluster(options={"hoodie.clustering.plan.strategy.small.file.limit": str(1 << 30)}).file_groups
    same()
    table.upsert(first_rows("ab", 80).select(["id", "part", "ts"]), options={
        "hoodie.write.set.null.for.missing.columns": "true"})  # fmt: skip
    same()
    assert table.table_version == version


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("release, version", [("hudi_120", 9), ("hudi_102", 8), ("hudi_0150", 6)])
def test_values_that_fit_another_type_are_read_and_rewritten_alike(
    request: pytest.FixtureRequest, tmp_path: Path, release: str, version: int, kind: str
) -> None:
    """Seen: 0.15.0 and 1.0.2 read a float in a base file as the decimal nearest to its bits, 97735.852, and by its text
    where they merge logs. 1.2.0 goes by the text everywhere."""
    hudi: ReferenceHudi = request.getfixturevalue(release)
    rate = 97735.85 if kind == "MERGE_ON_READ" or hudi.version == "1.2.0" else 1e7
    path = tmp_path / f"fitted_{version}_{kind[:4].lower()}"
    table = HudiTable.create(
        path, name=path.name, record_key="id", ordering="ts", table_type=kind, table_version=version,
        properties={"hoodie.metadata.enable": "false", "hoodie.parquet.small.file.limit": "0"},
    )  # fmt: skip
    rows = pa.table({
        "id": ["a", "b", "c", "d"], "ts": [1] * 4, "price": [1.005, -2.5, None, 123456.789],
        "rate": pa.array([0.1, rate, None, -0.0005], pa.float32()), "number": ["1.505", "-2", None, "300"],
        "day": ["2021-01-05", "1999-12-31", None, "1900-01-01"],
        "amount": pa.array([Decimal("1.10"), Decimal("-3.00"), None, Decimal("0.00")], pa.decimal128(10, 2)),
    })  # fmt: skip
    table.insert(rows)
    table.upsert(rows.slice(0, 2).set_column(1, "ts", pa.array([2, 2])))

    change = table.alter().change_type("price", pa.decimal128(10, 2)).change_type("rate", pa.decimal128(20, 3))
    change.change_type("number", pa.decimal128(10, 2)).change_type("day", "date32").change_type("amount", "string")
    change.commit()

    same = partial(assert_same_as_hudi, hudi, path, table)
    with sql_table(hudi, path) as name:
        same()
        hudi.sql(f"UPDATE {name} SET ts = 3, price = 7.77 WHERE id IN ('a', 'c')")
        same()
    assert table.scan(where="price = 7.77").count() == 2
    if kind == "MERGE_ON_READ":
        assert table.compact().completed
        same()
