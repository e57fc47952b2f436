"""A write to a table whose columns Apache Hudi changed could take a dropped column for a new one of its name, lose the
history of the columns, or rewrite old rows under wrong columns.

Tables changed by ALTER TABLE are written here, by every operation that rewrites files, and compared with what they held
before, now and in the past.
"""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from pyhudi import HudiTable
from pyhudi.format.schema.history import parse_history
from tests.support.compare import assert_same_rows
from tests.support.golden_tables import GoldenTables, evolved_names, with_long

QUICK = {"cow_evo_columns_v9_h120", "mor_evo_columns_v6_h0150", "mor_evo_nested_v9_h120", "mor_evo_types_v8_h102"}
ALL_FILES = {
    "hoodie.clustering.plan.strategy.small.file.limit": str(1 << 30),
    "hoodie.clustering.plan.strategy.sort.columns": "id",
}
NO_CLEAN = {"hoodie.clean.automatic": "false"}


def histories(table: Path) -> dict[str, bytes]:
    """Requested time -> content of each history of the table's columns."""
    files = (table / ".hoodie" / ".schema").glob("*.schemacommit")
    return {file.name.partition(".")[0].partition("_")[0]: file.read_bytes() for file in files}


def changed(rows: pa.Table, keys: list[str]) -> pa.Table:
    """The rows of these keys, with a later `ts`."""
    mine = rows.filter(pc.is_in(rows["id"], value_set=pa.array(keys)))
    return mine.set_column(mine.schema.get_field_index("ts"), "ts", pc.add(mine["ts"], 1_000))


def without(rows: pa.Table, keys: list[str]) -> pa.Table:
    return rows.filter(pc.invert(pc.is_in(rows["id"], value_set=pa.array(keys))))


@pytest.mark.parametrize("name", with_long(evolved_names(), QUICK))
def test_evolved_tables_are_written_and_keep_their_rows_and_their_history(tmp_path: Path, name: str) -> None:
    golden = GoldenTables(tmp_path).get(name)
    table = HudiTable.open(golden.path, options=NO_CLEAN)
    cleaned = [instant.requested for instant in table.timeline() if instant.action == "clean"]
    moments = [i.requested for i in table.timeline() if i.is_completed and i.requested > max(cleaned, default="")]
    past = {moment: table.scan(as_of=moment).to_arrow() for moment in moments[::3]}
    known = max(histories(golden.path).items())[1]
    rows = table.scan(meta_fields=False).to_arrow()
    keys = rows["id"].to_pylist()

    def holds(expected: pa.Table) -> None:
        assert_same_rows(table.scan(meta_fields=False).to_arrow(), expected)

    new = changed(rows, keys[:3])
    table.upsert(new)
    rows = pa.concat_tables([without(rows, keys[:3]), new])
    holds(rows)

    table.delete(rows.filter(pc.is_in(rows["id"], value_set=pa.array(keys[3:5]))))
    rows = without(rows, keys[3:5])
    holds(rows)

    added = new.set_column(0, "id", pa.array(["new 1", "new 2", "new 3"]))
    table.insert(added)
    rows = pa.concat_tables([rows, added])
    holds(rows)

    table.update({"ts": "ts + 5"}, where="id = 'new 1'")
    at = rows.schema.get_field_index("ts")
    rows = rows.set_column(at, "ts", pc.add(rows["ts"], pc.if_else(pc.equal(rows["id"], "new 1"), 5, 0)))
    holds(rows)

    if table.table_type == "MERGE_ON_READ":
        assert table.log_compact(options={"hoodie.log.compaction.blocks.threshold": "2"}).completed
        holds(rows)
        assert table.compact().completed
        holds(rows)
    assert table.cluster(options=ALL_FILES).completed
    holds(rows)
    assert table.metadata.validate().differences == ()

    assert {moment: table.scan(as_of=moment).to_arrow().sort_by("id") for moment in past} == {
        moment: then.sort_by("id") for moment, then in past.items()
    }
    newest = max(histories(golden.path).items())
    assert newest[1] == known, "no write brought a column, so the history is carried on as it is"
    assert newest[0] == table.timeline()[-1].requested


@pytest.mark.parametrize("name", with_long(evolved_names(), {"cow_evo_columns_v6_h0150", "mor_evo_columns_v9_h120"}))
def test_a_column_that_a_write_brings_back_is_a_new_one(tmp_path: Path, name: str) -> None:
    golden = GoldenTables(tmp_path).get(name)
    table = HudiTable.open(golden.path, options=NO_CLEAN)
    rows = table.scan(meta_fields=False).to_arrow()
    was = {name for schema in parse_history(max(histories(golden.path).items())[1]).schemas
           for name in (column.name for column in schema.columns)}  # fmt: skip
    gone = sorted(was - set(rows.column_names) - set(table.scan().to_arrow().column_names)) or ["one more"[:3]]

    first = rows.slice(0, 1)
    table.upsert(changed(rows, first["id"].to_pylist()).append_column(gone[0], pa.array(["back"])))

    found = table.scan().to_arrow()
    assert found[gone[0]].drop_null().to_pylist() == ["back"]
    assert pc.sum(pc.is_valid(found[gone[0]])).as_py() == 1
    newest = parse_history(max(histories(golden.path).items())[1])
    assert newest.schemas[0].since == table.timeline()[-1].requested
    assert newest.schemas[0].columns[-1].number == newest.schemas[0].number_max == newest.schemas[1].number_max + 1


@pytest.mark.parametrize("name", with_long(evolved_names(), {"mor_evo_columns_v8_h102"}))
def test_statistics_of_an_evolved_table_tell_of_the_columns_of_today(tmp_path: Path, name: str) -> None:
    golden = GoldenTables(tmp_path).get(name)
    table = HudiTable.open(golden.path)
    assert table.build_index("column_stats").partitions
    assert table.metadata.validate().differences == ()
    rows = table.scan(meta_fields=False).to_arrow()
    table.upsert(changed(rows, rows["id"].to_pylist()[:2]))
    assert table.metadata.validate().differences == ()


@pytest.mark.parametrize("name", with_long(evolved_names(), {"cow_evo_nested_v8_h102", "mor_evo_columns_v6_h0150"}))
def test_columns_are_altered_on_top_of_what_apache_hudi_changed(tmp_path: Path, name: str) -> None:
    golden = GoldenTables(tmp_path).get(name)
    table = HudiTable.open(golden.path)
    before, known = table.scan(meta_fields=False).to_arrow(), max(histories(golden.path).items())[1]
    last = before.column_names[-1] if before.column_names[-1] not in ("ts", "part", "id") else before.column_names[2]

    result = table.alter().rename(last, "another").add("more", "int64", first=True).commit()

    after = table.scan(meta_fields=False).to_arrow()
    assert after.column_names[0] == "more"
    assert after["more"].null_count == len(after)
    assert_same_rows(after.drop(["more"]).rename_columns(
        [last if name == "another" else name for name in after.column_names[1:]]), before)  # fmt: skip
    newest = json.loads(max(histories(golden.path).items())[1])["schemas"]
    assert newest[0]["version_id"] == int(result.requested or 0)
    assert newest[1:] == json.loads(known)["schemas"]
