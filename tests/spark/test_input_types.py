"""Every Spark type in every role: rows come back as they went in, or a `HudiError` says what to do."""

import itertools
from pathlib import Path
from typing import Any

import pytest

from pyhudi import HudiError, HudiTable

pytestmark = pytest.mark.spark

KEPT = {
    "tinyint": ("CAST(id AS TINYINT)", None),
    "smallint": ("CAST(id AS SMALLINT)", None),
    "int": ("CAST(id AS INT)", "CAST(NULL AS INT)"),
    "bigint": ("id * 10000000000", None),
    "float": ("CAST(id + 0.5 AS FLOAT)", None),
    "double": ("CAST(id + 0.25 AS DOUBLE)", "CAST('NaN' AS DOUBLE)"),
    "boolean": ("id % 2 = 0", "CAST(NULL AS BOOLEAN)"),
    "text": ("concat('t', id)", "''"),
    "binary": ("CAST(concat('b', id) AS BINARY)", "CAST(NULL AS BINARY)"),
    "decimal": ("CAST(id + 0.5 AS DECIMAL(20, 2))", "CAST(NULL AS DECIMAL(20, 2))"),
    "long_decimal": ("CAST(id AS DECIMAL(38, 10))", None),
    "date": ("date_add(DATE '1969-12-30', CAST(id AS INT))", "CAST(NULL AS DATE)"),
    "instant": ("timestamp_micros(id * 1234567)", "TIMESTAMP '1960-01-01 00:00:00Z'"),
    "local": ("CAST(concat('2026-01-0', id + 1, ' 01:02:03.456789') AS TIMESTAMP_NTZ)", None),
    "list": ("array(id, NULL)", "CAST(array() AS ARRAY<BIGINT>)"),
    "list_of_structs": ("array(named_struct('x', id, 'y', 'a'))", None),
    "map": ("map('k', id)", "CAST(map() AS MAP<STRING, BIGINT>)"),
    "struct": ("named_struct('x', CAST(id AS INT), 'y', array('a'))", None),
}
"""Name -> an expression over `id`, and the value of the last row, where it is another."""

REFUSED = {
    "null": "NULL",
    "days": "make_dt_interval(CAST(id AS INT))",
    "months": "make_ym_interval(CAST(id AS INT))",
    "map_by_numbers": "map(id, id)",
    "no_fields": "from_json('{}', 'struct<>')",
    "names_alike": "named_struct('x', 1, 'X', 2)",
}

ROLES = ("record_key", "partition_by", "ordering")


def column(name: str) -> str:
    common, last = KEPT[name]
    return f"{common} AS {name}" if last is None else f"CASE WHEN id = 2 THEN {last} ELSE {common} END AS {name}"


def rows_of(frame: Any) -> dict[int, str]:
    """Rows by id, as text: NaN equals itself there."""
    return {row["id"]: repr(row.asDict(recursive=True)) for row in frame.collect()}


def test_values_of_every_type_come_back_as_they_went_in(spark: Any, handover: str, tmp_path: Path) -> None:
    source = spark.range(3).selectExpr("id", *map(column, KEPT))
    table_type = "COPY_ON_WRITE" if handover == "shuffle" else "MERGE_ON_READ"
    table = HudiTable.create(tmp_path / "t", name="t", record_key="id", table_type=table_type)

    table.bulk_insert(source.where("id < 2"))
    table.upsert(source.where("id > 0"))
    table.upsert(source.where("id = 0"))

    found = table.scan(meta_fields=False).to_spark(spark).select(*source.columns)
    assert rows_of(found) == rows_of(source)
    kinds = {field.name: field.dataType.simpleString() for field in found.schema}
    given = {field.name: field.dataType.simpleString() for field in source.schema}
    widened = {"tinyint": "int", "smallint": "int"}  # Parquet and Avro have no smaller ones, nor has Apache Hudi
    assert kinds == {name: widened.get(kind, kind) for name, kind in given.items()}
    table.delete(source.where("id = 1").select("id"))
    assert set(rows_of(table.scan(meta_fields=False).to_spark(spark))) == {0, 2}


@pytest.mark.parametrize("name", REFUSED)
def test_a_type_that_no_table_has_is_refused_before_the_first_byte(name: str, spark: Any, tmp_path: Path) -> None:
    table = HudiTable.create(tmp_path / "t", name="t", record_key="id")
    frame = spark.range(2).selectExpr("id", f"{REFUSED[name]} AS v")

    for write in (table.bulk_insert, table.insert, table.upsert, table.insert_overwrite):
        with pytest.raises(HudiError, match=r"'v|\bv\b|null|struct"):
            write(frame)
    assert table.timeline() == ()


@pytest.mark.long
@pytest.mark.parametrize("role", ROLES)
def test_every_type_in_a_role_is_taken_or_refused(role: str, spark: Any, tmp_path: Path) -> None:
    taken = []
    for number, name in enumerate([*KEPT, *REFUSED]):
        of_role = {"record_key": "id", role: "v"}
        expression = KEPT[name][0] if name in KEPT else REFUSED[name]
        frame = spark.range(2).selectExpr("id", f"{expression} AS v")
        table = HudiTable.create(tmp_path / str(number), name="t", **of_role)  # type: ignore[arg-type]
        try:
            table.upsert(frame)
            table.upsert(frame)
        except HudiError:
            assert table.timeline() == ()
            continue
        taken.append(name)
        expected = dict(itertools.islice(rows_of(frame).items(), 2))
        assert set(rows_of(table.scan(meta_fields=False).to_spark(spark))) == set(expected), name

    assert {"int", "bigint", "text", "date"} <= set(taken)
    assert not set(REFUSED) & set(taken)
