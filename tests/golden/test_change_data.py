"""We could tell other changes of a table than Apache Hudi does, or changes that its snapshots belie.

Change data of tables that Apache Hudi wrote are held against what 1.2.0 read back (0.15 and 1.0.2 drop every second row
of theirs), and, write by write, against the difference of the snapshots before and after.
"""

import re
import shutil
import zipfile
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pyhudi import HudiTable, NotFound
from pyhudi.engine.local.executors import SerialExecutor
from pyhudi.format.schema.conversion import COMMIT_TIME, META_FIELDS, PARTITION_PATH, RECORD_KEY
from pyhudi.format.timeline.records import MOVES, REWRITES
from pyhudi.table.read.files import read_plan_table
from pyhudi.table.read.plan import make_plan, planned_slice
from pyhudi.table.view.commits import read_commit
from tests.support.change_data import counted
from tests.support.golden_tables import FOLDER, GoldenTables, golden_names

CHANGED = tuple(name for name in golden_names() if "_cdc_" in name)
TOLD = tuple(name for name in CHANGED if name.endswith("_h120"))
# Merged rows, services, overwrites and every table version, without change logs.
WITHOUT_LOGS = (
    "cow_delete_partition_v6_h0150",
    "cow_delete_partition_v9_h120",
    "mor_avro_v8_h102",
    "mor_event_time_v6_h0150",
    "mor_event_time_v9_h120",
    "mor_log_compact_v9_h120",
    "mor_logonly_compact_v9_h120",
    "mor_partial_payload_v9_h120",
    "mor_replace_v6_h0150",
    "mor_replace_v9_h120",
    "mor_schema_promote_v8_h102",
    "mor_nbcc_v9_h120",
    "cow_evo_columns_v9_h120",
    "mor_evo_nested_v9_h120",
)


@cache
def told_ranges(name: str) -> tuple[tuple[str, str | None, str | None], ...]:
    """The answers of a table: file, start and end."""
    with zipfile.ZipFile(FOLDER / f"{name}.zip") as archive:
        files = [path.rpartition("/")[2] for path in archive.namelist()]
    found = (re.fullmatch(r"cdc(?:_(\d+)_(\d+))?\.parquet", file) for file in files)
    return tuple((match[0], match[1], match[2]) for match in found if match is not None)


@pytest.mark.parametrize(
    "name,answer", [(name, answer) for name in TOLD for answer in told_ranges(name)], ids=lambda one: str(one)
)
def test_changes_are_those_that_apache_hudi_read(
    golden: GoldenTables, name: str, answer: tuple[str, str | None, str | None]
) -> None:
    table = golden.get(name)
    file, start, end = answer
    expected = pq.read_table(table.path.with_name(f"{name}.expected") / file)

    found = HudiTable.open(table.path).cdc(start, end).as_json().to_arrow()

    assert counted(found) == counted(expected)


def test_images_of_change_logs_are_spelled_as_apache_hudi_spells_them(golden: GoldenTables) -> None:
    """To the last character: numbers, texts, times and the bytes of decimals."""
    name = "cow_cdc_ops_simple_data_before_after_v9_h120"
    table = golden.get(name)
    expected = pq.read_table(table.path.with_name(f"{name}.expected") / "cdc.parquet").to_pylist()
    logged = {
        (row["ts_ms"], text) for row in expected for text in (row["before"], row["after"]) if text and ": " in text
    }

    found = HudiTable.open(table.path).cdc().as_json().to_arrow().to_pylist()

    assert len(logged) > 100
    assert logged <= {(row["ts_ms"], text) for row in found for text in (row["before"], row["after"])}


Changes = Counter[tuple[str, str, str | None, str | None]]


def difference(before: pa.Table, after: pa.Table, replaced: set[str]) -> Changes:
    """What a write did, by the rows before and after it. A row of a replaced file group was deleted, not updated."""
    old, new = by_key(before), by_key(after)
    found: Changes = Counter()
    for key in old.keys() | new.keys():
        was, now = old.get(key), new.get(key)
        if was is not None and now is not None and was[COMMIT_TIME] == now[COMMIT_TIME] and was == now:
            continue
        if was is None or now is None or key[0] in replaced:
            if was is not None:
                found["d", key[1], shown(was), None] += 1
            if now is not None:
                found["i", key[1], None, shown(now)] += 1
        else:
            found["u", key[1], shown(was), shown(now)] += 1
    return found


def by_key(rows: pa.Table) -> dict[tuple[str, str], dict[str, object]]:
    kept = rows.drop_columns([name for name in ("_hoodie_file_name",) if name in rows.column_names])
    return {(row[PARTITION_PATH], row[RECORD_KEY]): row for row in kept.to_pylist()}


def shown(row: dict[str, object]) -> str:
    return repr({name: value for name, value in row.items() if name not in META_FIELDS})


def told_typed(rows: pa.Table, key: str) -> Changes:
    found: Changes = Counter()
    for row in rows.to_pylist():
        image = row["after"] or row["before"]
        before, after = (None if row[side] is None else shown(row[side]) for side in ("before", "after"))
        found[row["op"], str(image[key]), before, after] += 1
    return found


def writes(table: HudiTable) -> Iterator[tuple[str, set[str] | None]]:
    """The requested time of each write, with the partitions in which it replaced file groups. None for a service."""
    snapshot = table._access.snapshot()
    for instant in snapshot.timeline.completed_writes:
        metadata = read_commit(snapshot.storage, snapshot.timeline, instant)
        is_service = metadata.operation_type in REWRITES | MOVES
        yield instant.requested, None if is_service else set(metadata.partition_to_replace_file_ids or {})


@pytest.mark.parametrize("name", [*CHANGED, *WITHOUT_LOGS])
def test_changes_of_each_write_are_the_difference_of_two_snapshots(golden: GoldenTables, name: str) -> None:
    table = HudiTable.open(golden.get(name).path)
    key = table.record_key[0]
    before = table.scan().to_arrow().slice(0, 0)
    whole: Changes = Counter()
    for requested, replaced in writes(table):
        rows = rows_as_of(table, requested)
        found = table.cdc(str(int(requested) - 1), requested).to_arrow()
        # Seen: a log compaction of Apache Hudi gives rows its own commit time, though it changes none.
        assert told_typed(found, key) == (Counter() if replaced is None else difference(before, rows, replaced))
        assert set(found.column("requested").to_pylist()) <= {requested}
        whole += told_typed(found, key)
        before = rows
    assert whole
    assert told_typed(table.cdc().to_arrow(), key) == whole


def rows_as_of(table: HudiTable, requested: str) -> pa.Table:
    """The rows as of a write, in the columns of today. Time travel would have the columns of that moment."""
    now = table._access.snapshot()
    then = now.at(requested)
    slices = [one for partition in now.listing.partitions() for one in then.slices(partition)]
    files = [file for file in (planned_slice(one, with_logs=True) for one in slices) if file is not None]
    plan = make_plan(
        now, files, schema=now.schema_with_meta, predicate=None, where=None, query="then", commit_times=None,
        partitions=0, partitions_pruned=0, files_pruned=0, logs_as_of=then.timeline,
    )  # fmt: skip
    return read_plan_table(now.storage, plan, SerialExecutor())


def test_a_filter_keeps_changes_of_which_either_row_meets_it(golden: GoldenTables) -> None:
    for name in ("cow_cdc_ops_simple_data_before_after_v9_h120", "mor_cdc_ops_simple_op_key_only_v9_h120"):
        table = HudiTable.open(golden.get(name).path)
        whole = table.cdc(columns=["ts", "id"]).to_arrow().to_pylist()
        wanted = [
            row
            for row in whole
            if any(image is not None and image["ts"] > 235 for image in (row["before"], row["after"]))
        ]

        found = table.cdc(columns=["id"], where="ts > 235").to_arrow()

        assert 0 < len(wanted) < len(whole)
        assert [field.name for field in found.schema.field("after").type] == ["id"]
        assert Counter((row["op"], row["requested"], *ids(row)) for row in found.to_pylist()) == Counter(
            (row["op"], row["requested"], *ids(row)) for row in wanted
        )


def ids(row: dict[str, dict[str, object] | None]) -> tuple[object, object]:
    before, after = row["before"], row["after"]
    return before and before["id"], after and after["id"]


@pytest.mark.parametrize("ending", [".cdc", ".parquet"])
def test_files_that_were_cleaned_away_are_named_with_the_start_that_is_left(
    golden: GoldenTables, tmp_path: Path, ending: str
) -> None:
    """Change logs that hold both images need no other file; those that hold keys need the base files."""
    name = f"cow_cdc_ops_simple_{'data_before_after' if ending == '.cdc' else 'op_key_only'}_v9_h120"
    path = tmp_path / name
    shutil.copytree(golden.get(name).path, path)
    table = HudiTable.open(path)
    requested = [instant for instant, _ in writes(table)]
    whole = table.cdc(requested[2]).count()
    gone = sorted(path.glob(f"p1/*{requested[2]}*{ending}"))
    assert gone
    gone[0].unlink()

    with pytest.raises(NotFound, match=r"cleaned away, such as '[^']*'; the earliest start .* is '(\d+)'") as error:
        table.cdc()

    start = re.search(r"is '(\d+)'", str(error.value))
    assert start is not None
    assert table.cdc(start[1]).count() > 0
    assert start[1] == (requested[2] if ending == ".cdc" else requested[3])  # the next write needs the rows before
    assert ending == ".parquet" or table.cdc(start[1]).count() == whole
