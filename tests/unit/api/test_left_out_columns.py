"""A table that leaves partition columns out of its files could lose their values, mix them up between partitions, or
take its own commits, which do not state the columns, for another schema.

All operations run on such tables. The rows are those of a dict, and no file holds a partition column.
"""

import datetime as dt
from collections.abc import Iterable
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pyhudi import HudiTable, Invalid, Unsupported
from pyhudi.api import creation
from pyhudi.errors import HudiError
from pyhudi.format.log.block import BlockType
from pyhudi.format.log.data import read_batches
from pyhudi.format.log.reader import read_blocks
from pyhudi.format.names import BaseFileName, LogFileName
from pyhudi.format.schema.conversion import avro_from_arrow
from pyhudi.storage.memory import MemoryStorage
from pyhudi.table.view.commits import SCHEMA, read_commit

DROPS = {"hoodie.datasource.write.drop.partition.columns": "true"}
TYPES = ("COPY_ON_WRITE", "MERGE_ON_READ")

Row = tuple[int, str | None, int, str]


def rows(found: Iterable[Row], kind: pa.DataType | None = None) -> pa.Table:
    """id, day, ts, note. `kind`: of the column `day`."""
    ids, days, times, notes = zip(*found, strict=True) if (found := list(found)) else ((), (), (), ())
    day = pa.array(days, pa.string()).cast(kind or pa.string())
    return pa.table({"id": pa.array(ids, pa.int64()), "day": day, "ts": pa.array(times, pa.int64()), "note": notes})


def a_table(table_type: str = "COPY_ON_WRITE", version: int = 9, **facts: object) -> tuple[HudiTable, MemoryStorage]:
    storage = MemoryStorage()
    given = {"partition_by": "day", "ordering": "ts", "properties": DROPS, **facts}
    table = HudiTable.create(
        "unused", name="t", record_key="id", table_type=table_type, table_version=version, storage=storage,
        **given,  # type: ignore[arg-type]
    )  # fmt: skip
    return table, storage


def stored(found: pa.Table) -> list[Row]:
    return sorted(zip(*(found.column(n).to_pylist() for n in ("id", "day", "ts", "note")), strict=True))


@pytest.mark.parametrize("version", [6, 8, 9])
@pytest.mark.parametrize("table_type", TYPES)
def test_rows_have_the_columns_that_no_file_holds(version: int, table_type: str) -> None:
    style = {"hoodie.datasource.write.hive_style_partitioning": "false" if version == 8 else "true"}
    table, storage = a_table(table_type, version, properties={**DROPS, **style})
    model = {n: (n, f"2026{n % 3}" if n else None, 1, "new") for n in range(12)}

    def check(query: str = "snapshot") -> None:
        found = table.scan(meta_fields=False, query=query).to_arrow()
        assert found.schema.field("day").type == pa.string()
        assert stored(found) == sorted(model.values())

    table.insert(rows([row for row in model.values() if row[1]], pa.int32()))
    del model[0]
    check()
    table.insert(rows([(0, None, 1, "nowhere")]))
    model[0] = (0, None, 1, "nowhere")
    check()
    for n in (3, 4, 20):
        model[n] = (n, f"2026{n % 3}", 2, "changed")
    result = table.upsert(rows([model[n] for n in (3, 4, 20)]))
    assert (result.updated, result.inserted) == (2, 1)
    check()
    late = table.upsert(rows([(4, "20261", 0, "too late")], pa.int64()))
    assert late.inserted == 0
    check()
    before = table.timeline()[-1].requested
    table.delete(rows([model[5], model[6]]).select(["id", "day"]))
    then = dict(model)
    del model[5], model[6]
    check()
    table.update(set={"note": "concat(note, day)"}, where="day = '20262'")
    model |= {n: (n, day, ts, f"{note}20262") for n, day, ts, note in model.values() if day == "20262"}
    check()
    source = rows([(7, "20261", 3, "merged"), (30, "20269", 3, "merged")])
    table.merge(source, on=["id", "day"], when_matched_update=True, when_not_matched_insert=True)
    model |= {7: (7, "20261", 3, "merged"), 30: (30, "20269", 3, "merged")}
    check()
    assert stored(table.scan(as_of=before, meta_fields=False).to_arrow()) == sorted(then.values())
    changes = table.incremental(table.timeline()[-2].completed).to_arrow()
    assert stored(changes) == [model[7], model[30]]
    assert table.lookup(["7"]).column("day").to_pylist() == ["20261"]
    assert stored(table.scan(where="day > '20260'", meta_fields=False).to_arrow()) == sorted(
        row for row in model.values() if row[1] and row[1] > "20260"
    )

    if table_type == "MERGE_ON_READ":
        assert table.compact().file_groups
        check("read_optimized")
    assert table.cluster(options={"hoodie.clustering.plan.strategy.sort.columns": "day,id"}).file_groups
    check()
    table.insert_overwrite(rows([(40, "20261", 4, "over")]))
    model = {n: row for n, row in model.items() if row[1] != "20261"} | {40: (40, "20261", 4, "over")}
    check()
    assert_left_out(table, storage)


def assert_left_out(table: HudiTable, storage: MemoryStorage) -> None:
    seen = set()
    for info in storage.list("", recursive=True):
        name = info.path.rpartition("/")[2]
        if info.path.startswith(".hoodie/"):
            continue
        if BaseFileName.parse(name):
            with storage.open_input(info.path) as file:
                parquet = pq.ParquetFile(file)
                assert "day" not in parquet.schema_arrow.names
                assert b'"day"' not in parquet.metadata.metadata[b"parquet.avro.schema"]
            seen.add("base")
        elif LogFileName.parse(name):
            for block in read_blocks(storage.get(info.path), path=info.path):
                if block.type is not BlockType.DELETE:
                    assert all("day" not in batch.schema.names for batch in read_batches(block))
                    seen.add("log")
    assert seen == ({"base", "log"} if table.table_type == "MERGE_ON_READ" else {"base"})
    snapshot = table._access.snapshot()
    for instant in snapshot.timeline.completed_writes:
        assert '"day"' not in read_commit(storage, snapshot.timeline, instant).extra_metadata.get(SCHEMA, "")


@pytest.mark.parametrize("kind", [pa.int64(), pa.date32(), pa.bool_(), pa.dictionary(pa.int8(), pa.string())])
@pytest.mark.parametrize("is_told", [False, True], ids=["by the first write", "made with a schema"])
def test_values_that_the_path_spells_are_texts(kind: pa.DataType, is_told: bool) -> None:
    texts = ["true", "false"] if kind == pa.bool_() else ["2026-11-26"] if kind == pa.date32() else ["7", "-1"]
    given = rows([(n, text, 1, "") for n, text in enumerate(texts)], kind)
    table, _ = a_table(**({"schema": given.schema} if is_told else {}))
    assert not is_told or table.schema().field("day").type == pa.string()
    table.insert(given)
    table.upsert(given)
    table.delete(given.slice(1))
    assert table.scan().to_arrow().column("day").to_pylist() == texts[:1]
    assert table.scan(where=f"day = '{texts[0]}'").count() == 1


def test_a_column_of_another_type_is_refused_before_a_write() -> None:
    table, storage = a_table()
    moment = pa.array([dt.datetime(2026, 11, 26, tzinfo=dt.UTC)], pa.timestamp("us", "UTC"))
    with pytest.raises(Invalid, match=r"partition column 'day' of type timestamp.*cast it to text"):
        table.insert(rows([(1, "x", 1, "")]).set_column(1, "day", moment))
    assert table.timeline() == ()
    assert not [f for f in storage.list("", recursive=True) if not f.path.startswith(".hoodie/")]


@pytest.mark.parametrize(
    "value, style", [("a/b", ""), ("a/note=b", "hive_style_partitioning"), ("", ""), ("__HIVE_DEFAULT_PARTITION__", "")]
)
@pytest.mark.parametrize("table_type", TYPES)
def test_a_value_that_the_path_does_not_tell_is_refused_before_a_write(value: str, style: str, table_type: str) -> None:
    styles = {f"hoodie.datasource.write.{style}": "true"} if style else {}
    table, _ = a_table(table_type, partition_by=["day", "note"], properties={**DROPS, **styles})
    good = [(1, "x", 1, "y"), (2, None, 1, "z")]
    table.insert(rows(good))
    for write in (table.insert, table.upsert, table.bulk_insert, lambda of: table.upsert(of.to_reader())):
        with pytest.raises(Invalid, match=f"partition column 'day', value '{value}': expected a value that the part"):
            write(rows([(3, value, 1, "z")]))
    assert len(table.timeline()) == 1
    assert sorted(table.scan(meta_fields=False).to_arrow().column("id").to_pylist()) == [1, 2]
    assert table.delete(where="note = 'z'").deleted == 1


@pytest.mark.parametrize("style", ["hive_style_partitioning", "partitionpath.urlencode"])
def test_a_value_with_a_slash_is_kept_where_its_path_tells_it(style: str) -> None:
    table, _ = a_table(partition_by=["day", "note"], properties={**DROPS, f"hoodie.datasource.write.{style}": "true"})
    given = [(1, "a/b", 1, "z"), (2, "c", 1, "z")]
    table.insert(rows(given))
    assert stored(table.scan(meta_fields=False).to_arrow()) == given
    assert table.delete(where="note = 'z'").deleted == 2


def test_a_column_of_another_type_is_refused_where_a_table_is_made_or_was_made_with_it() -> None:
    """The first write passed, and later ones were refused."""
    given = rows([(1, "x", 1, "")]).set_column(1, "day", pa.array([Decimal("1.50")], pa.decimal128(6, 2)))
    with pytest.raises(Invalid, match=r"partition column 'day' of type decimal.*cast it to text"):
        a_table(schema=given.schema)

    table, storage = a_table(schema=rows([(1, "x", 1, "")]).schema)
    name = ".hoodie/hoodie.properties"
    text = avro_from_arrow(given.schema, record_name="t_record")
    stated = "".join(c if c.isalnum() else f"\\u{ord(c):04x}" for c in text)
    lines = [one for one in storage.get(name).splitlines() if not one.startswith(b"hoodie.table.create.schema")]
    storage.put(name, b"\n".join([*lines, f"hoodie.table.create.schema={stated}".encode(), b""]))
    assert pa.types.is_decimal(table.schema().field("day").type)
    with pytest.raises(Invalid, match=r"partition column 'day' of type decimal.*cast it to text"):
        table.insert(given)
    assert table.timeline() == ()


@pytest.mark.parametrize(
    "facts, reason",
    [
        ({"ordering": "day"}, "a partition column that orders rows"),
        (
            {"record_key": ["id", "day"], "properties": {**DROPS, "hoodie.populate.meta.fields": "false"}},
            "a partition column in the key",
        ),
    ],
)
def test_tables_whose_rows_need_the_columns_are_refused(
    facts: dict[str, object], reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = {"name": "t", "partition_by": "day", "properties": DROPS, "record_key": "id", **facts}
    with pytest.raises(Unsupported, match=reason):
        HudiTable.create("unused", storage=MemoryStorage(), **given)  # type: ignore[arg-type]

    monkeypatch.setattr(creation, "_refuse_never_written", lambda *_: None)  # as another tool makes it
    table = HudiTable.create("unused", storage=MemoryStorage(), **given)  # type: ignore[arg-type]
    with pytest.raises(Unsupported, match=reason):
        table.insert(rows([(1, "x", 1, "")]))


def test_columns_are_not_renumbered() -> None:
    table, _ = a_table()
    table.insert(rows([(1, "x", 1, "")]))
    with pytest.raises(HudiError, match=r"drop\.partition\.columns"):
        table.alter().rename("note", "text").commit()
