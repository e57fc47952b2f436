"""Tables with indexes that Apache Hudi wrote: an index that prunes too much changes answers, an idle one saves
nothing. A value of each column is asked for, with the indexes and without.
"""

import zipfile
from pathlib import Path

import pyarrow as pa
import pytest

from pyhudi.api import HudiTable
from pyhudi.engine.local.executors import SerialExecutor
from tests.support.golden_tables import GoldenTables, golden_names
from tests.support.pruning import plan_by, rows_by_file, rows_kept

INDEXED = tuple(
    name
    for name in golden_names()
    if any(m in name for m in ("mdt_all", "secondary_index", "expr_index", "record_index", "rli"))
)
OFF = {"hoodie.enable.data.skipping": False}


def _literal(value: object, kind: pa.DataType) -> str | None:
    if isinstance(value, str):
        return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
    return str(value) if pa.types.is_integer(kind) else None


@pytest.mark.parametrize("name", INDEXED)
def test_answers_are_the_same_with_and_without_indexes(golden: GoldenTables, name: str) -> None:
    path = golden.get(name).path
    with_indexes, without = HudiTable.open(path), HudiTable.open(path, options=OFF)
    rows = without.scan().to_arrow()
    pruned = asked = 0
    for column in (one for one in without.schema() if not pa.types.is_nested(one.type)):
        values = rows.column(column.name).unique().drop_null().to_pylist()[:1] if len(rows) else []
        literals = [text for value in values if (text := _literal(value, column.type)) is not None]
        wheres = [f"`{column.name}` {op} {text}" for text in literals for op in ("=", "<")]
        for where in [*wheres, f"`{column.name}` is null"]:
            scan, other = with_indexes.scan(where=where), without.scan(where=where)
            keys = [("_hoodie_record_key", "ascending"), ("_hoodie_partition_path", "ascending")]
            assert scan.to_arrow().sort_by(keys).equals(other.to_arrow().sort_by(keys)), where
            assert other._plan.explanation.indexes == ()
            pruned += sum(one.files + one.partitions for one in scan._plan.explanation.indexes)
            asked += 1
    assert asked
    if "column_stats" in without.properties["hoodie.table.metadata.partitions"]:
        assert pruned, "no query was spared a file"


UNTRUE = Path(__file__).parent / "untrue_statistics"


def unpacked(name: str, folder: Path) -> Path:
    with zipfile.ZipFile(UNTRUE / f"{name}.zip") as archive:
        archive.extractall(folder)
    return folder


def test_statistics_of_partitions_that_pass_over_base_files_rule_no_partition_out(tmp_path: Path) -> None:
    """Ten rows, `ts` 0 to 9, lie in ORC files; an upsert of the one with 2, now 1002, in a log. Apache Hudi 1.2.0
    states the partition by the log alone. Its own queries by other values of `ts` lose rows."""
    table = HudiTable.open(unpacked("mor_orc_partition_stats_v9_h120", tmp_path) / "t")
    assert [ts for ts in (*range(10), 1_002) if table.scan(where=f"ts = {ts}").count()] == [0, 1, *range(3, 10), 1_002]


@pytest.mark.parametrize("undone", ["upsert", "delete"])
def test_statistics_of_partitions_after_a_write_that_was_rolled_back_rule_none_out(tmp_path: Path, undone: str) -> None:
    """Ten rows, `ts` 0 to 9, in a table without statistics. A write that changes all, or deletes four, is rolled back
    by Apache Hudi 1.0.2. It makes the statistics of partitions before that, and keeps them: its own queries lose rows.
    1.1.1 and 1.2.0 do the same."""
    table = HudiTable.open(unpacked("undone_writes_v8_h102", tmp_path) / undone)
    assert [ts for ts in range(10) if table.scan(where=f"ts = {ts}").count() != 1] == []
    assert table.metadata.validate().differences

    everything = table.scan().to_arrow().select(["id", "part", "ts"])
    table.upsert(everything)
    assert table.metadata.validate().differences == ()
    assert "by partition_stats" in str(table.scan(where="ts = 2000").explain())


KEYED = tuple(name for name in INDEXED if any(m in name for m in ("mdt_all", "secondary_index", "record_index", "rli")))
BY_KEY = ("record_index", "bloom_filters")


@pytest.mark.parametrize("name", KEYED)
def test_queries_by_key_or_indexed_value_read_only_the_file_groups_that_hold_them(
    golden: GoldenTables, name: str
) -> None:
    table = HudiTable.open(golden.get(name).path, executor=SerialExecutor())
    snapshot, schema = table._access.snapshot(), table.scan().schema
    ready = set(snapshot.config.metadata_partitions)
    stored = rows_by_file(table, snapshot)
    one_of_each = [rows.slice(0, 1).to_pylist()[0] for rows in stored.values() if len(rows)]
    assert len(one_of_each) > 2
    keys = [row["_hoodie_record_key"] for row in one_of_each]
    first = f"id = '{keys[0]}'"
    wheres = [
        first, f"'{keys[1]}' <=> id and (ts > 0 or ts is null)",
        f"_hoodie_record_key in ('{keys[0]}', '{keys[2]}', 'x')",
        f"{first} or id = '{keys[1]}'", "id = 'none'", f"{first} and id = '{keys[1]}'", "id = null",
    ]  # fmt: skip
    secondary = [one for one in ready if one.startswith("secondary")]
    values = [row["name"] for row in one_of_each if row["name"] is not None][:3] if secondary else []
    by_value = [f"name = '{value}'" for value in values] + ["name in ('none', 'of these')"] * bool(values)
    used = set[str]()
    for where in [*wheres, *by_value]:
        expected = rows_kept(stored.values(), where, schema)
        holding = {path for path, rows in stored.items() if rows_kept([rows], where, schema)}
        for index in {*secondary} if where in by_value else ready & {*BY_KEY}:
            asked = ["files", index] if index in BY_KEY else ["files", "record_index", index]
            pruned = plan_by(table, snapshot, where, asked)
            read = {file.path for file in pruned.files}
            assert rows_kept((stored[path] for path in read), where, schema) == expected, (where, index)
            if index == "bloom_filters":
                bare = {file.path for file in pruned.files if not file.logs}
                assert len(bare - holding) <= 1, "more false positives than one in a billion"
            else:
                assert read == holding, (where, index)
            assert {one.index for one in pruned.explanation.indexes} <= {index}
            assert (f" by {index}" in str(pruned.explanation)) == bool(pruned.explanation.indexes)
            used |= {one.index for one in pruned.explanation.indexes}
    assert used >= {"record_index", *secondary}


def test_by_partition_a_key_is_looked_up_where_the_predicate_leaves_it(golden: GoldenTables) -> None:
    table = HudiTable.open(golden.get("mor_partitioned_rli_v9_h120").path)
    row = table.scan().to_arrow().slice(0, 1).to_pylist()[0]
    scan = table.scan(where=f"id = '{row['id']}' and part = '{row['part']}'")
    assert (scan.explain().partitions_pruned, len(scan._plan.files)) == (2, 1)
    other = table.scan(where=f"id = '{row['id']}' and part <> '{row['part']}'")
    assert other.to_arrow().num_rows == len(other._plan.files)
