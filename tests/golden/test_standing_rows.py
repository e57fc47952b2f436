"""A row of a block could be scanned though a later record replaces it, be missed, or stay in the base file, too.

Where rows are stored whole, those that `find_standing` leaves must be the rows of the slice: of tables that Apache Hudi
wrote, and of our own with every rule by which one row of two wins whole, whether logs have positions or not.
"""

import random
from dataclasses import replace
from functools import partial
from pathlib import Path
from unittest.mock import MagicMock

import numpy as np
import pyarrow as pa
import pytest

from pyhudi import HudiTable
from pyhudi.errors import CorruptFile
from pyhudi.format.keys.record_keys import KeySpec
from pyhudi.format.log.data import read_batches
from pyhudi.format.log.reader import scan_log
from pyhudi.format.log.source import MemoryLog
from pyhudi.format.log.writer import encode_parquet_block
from pyhudi.format.schema.conversion import RECORD_KEY
from pyhudi.merge.rules import DeleteMark, Fill
from pyhudi.storage.protocol import Storage
from pyhudi.table.read.plan import ReadPlan
from pyhudi.table.slices import standing_rows
from pyhudi.table.slices.base_files.rows import read_stored_batches
from pyhudi.table.slices.conform import conform_batch
from pyhudi.table.slices.merged_slice import read_merged
from pyhudi.table.slices.slice_log import SliceFiles
from pyhudi.table.slices.standing_rows import StandingRows
from pyhudi.table.slices.standing_rows import find_standing as find_standing_among
from tests.golden.test_touched_rows import NAMES, slices
from tests.support.compare import assert_same_rows
from tests.support.golden_tables import GoldenTables

find_standing = partial(find_standing_among, data_blocks_max=100)
STANDING = {
    *(f"mor_parquet_log_{release}" for release in ("v6_h0150", "v8_h102", "v9_h120")),
    "mor_record_index_v6_h0150",
}


def standing(storage: Storage, files: SliceFiles, plan: ReadPlan, marks: StandingRows) -> pa.Table:
    """The rows that are left of the base file and of each block."""
    schema = plan.stored_schema
    assert files.base_path is not None
    base = read_stored_batches(storage, files.base_path, schema.names, use_threads=False)
    parts = [(list(base), marks.base_gone), *((list(read_batches(of)), gone) for of, gone in marks.blocks)]
    found = [schema.empty_table()]
    for batches, gone in parts:
        rows = pa.Table.from_batches((conform_batch(batch, schema, path="rows") for batch in batches), schema)
        assert len(gone) == len(rows)
        found.append(rows.filter(pa.array(~gone)))
    return pa.concat_tables(found)


def assert_is_the_slice(storage: Storage, files: SliceFiles, plan: ReadPlan) -> bool:
    """Whether its rows are known; they are then those of the slice."""
    assert plan.log_reading is not None
    found = find_standing(storage, files, plan.log_reading, plan.stored_schema, plan.stored_schema.names)
    if found is None:
        return False
    names = plan.stored_schema.names
    batches = read_merged(storage, files, plan.log_reading, plan.stored_schema, names, use_threads=False)
    merged = pa.Table.from_batches((batch.select(names) for batch in batches), plan.stored_schema)
    assert_same_rows(standing(storage, files, plan, found), merged)
    return True


def test_rows_of_golden_tables_are_found_where_they_lie(golden: GoldenTables) -> None:
    found = {name for name in NAMES if sum(assert_is_the_slice(*of) for of in of_table(golden, name))}

    assert found >= STANDING


def of_table(golden: GoldenTables, name: str) -> list[tuple[Storage, SliceFiles, ReadPlan]]:
    return [(storage, files, plan) for storage, plan, files in slices(golden, name)]


PARQUET = {"hoodie.logfile.data.block.format": "parquet"}
BY_BUCKET = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "1"}


@pytest.mark.parametrize("ordering", ["ts", None, "x"])
@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("by_keys", [False, True], ids=["positions", "keys"])
def test_rows_of_our_tables_are_found_where_they_lie(
    tmp_path: Path, seed: int, ordering: str | None, by_keys: bool
) -> None:
    rand = random.Random(seed)
    table = HudiTable.create(
        tmp_path, name="t", record_key="id", ordering=ordering, table_type="MERGE_ON_READ",
        properties={**PARQUET, "hoodie.compact.inline": "false", **(BY_BUCKET if by_keys else {})},
    )  # fmt: skip

    def rows(keys: list[int]) -> pa.Table:
        return pa.table(
            {
                "id": pa.array([f"k{key}" for key in keys]),
                "ts": pa.array([rand.choice([1, 2, 3]) for _ in keys], pa.int64()),
                "x": pa.array([rand.choice([0.0, -0.0, float("nan"), 1.5]) for _ in keys]),
                "n": pa.array([rand.choice([None, *range(100)]) for _ in keys], pa.int64()),
                "_hoodie_is_deleted": pa.array([rand.random() < 0.1 for _ in keys]),
            }
        )

    table.bulk_insert(rows(list(range(100))).drop_columns("_hoodie_is_deleted").append_column(
        "_hoodie_is_deleted", pa.repeat(pa.scalar(False), 100)))  # fmt: skip
    for _ in range(5):
        some = rand.sample(range(120 if by_keys else 100), 30)
        table.delete(rows(some)) if rand.random() < 0.3 else table.upsert(rows(some))

    scan = table.scan()
    found = [assert_is_the_slice(scan._storage, file.slice_files, scan._plan) for file in scan._plan.files if file.logs]
    assert found == [True]


Upsert = list[tuple[str, int | None]]


@pytest.mark.parametrize(
    "ordering, upserts, all_win",
    [
        ("ts", [[("b", 5), ("a", 7)]], True),
        ("ts", [[("a", 5)], [("b", 6)]], True),
        ("ts", [[("a", 4)]], False),
        ("ts", [[("a", 6), ("b", 4)]], False),
        ("ts", [[("a", 6)], [("a", 5)]], False),
        ("ts", [[("a", 6)], [("a", 7)]], False),
        ("x", [[("a", 6)]], False),
        (None, [[("a", 4)], [("b", None)]], True),
        (None, [[("a", 6)], [("a", 5)]], False),
    ],
)
@pytest.mark.parametrize("by_keys", [False, True], ids=["positions", "keys"])
@pytest.mark.parametrize("mark", [None, "_hoodie_is_deleted"])
def test_what_footers_settle_is_what_values_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ordering: str | None, upserts: list[Upsert], all_win: bool,
    by_keys: bool, mark: str | None,
) -> None:  # fmt: skip
    """Base rows of 5: where each row of the log wins, none is looked at; with a column that marks deletes, each is."""
    table = HudiTable.create(
        tmp_path, name="t", record_key="id", ordering=ordering, table_type="MERGE_ON_READ",
        properties={**PARQUET, "hoodie.compact.inline": "false", **(BY_BUCKET if by_keys else {})},
    )  # fmt: skip

    def rows(of: Upsert) -> pa.Table:
        ids, times = zip(*of, strict=True)
        made = pa.table({"id": ids, "ts": pa.array(times, pa.int64()), "x": pa.array(times, pa.float64())})
        return made if mark is None else made.append_column(mark, pa.repeat(pa.scalar(False), len(of)))

    table.bulk_insert(rows([("a", 5), ("b", 5), ("c", 5)]))
    for upsert in upserts:
        table.upsert(rows([*upsert, ("d", 9 + upserts.index(upsert))] if by_keys and len(upserts) == 1 else upsert))
    asked = MagicMock(wraps=standing_rows._settle)
    monkeypatch.setattr(standing_rows, "_settle", asked)
    by_footers = _placed_of_only_slice(table)
    assert asked.called is not (all_win and mark is None)
    monkeypatch.setattr(standing_rows, "_all_win", lambda *of: False)

    assert by_footers is not None
    assert by_footers == _placed_of_only_slice(table)


def test_without_positions_of_this_base_file_keys_say_where_rows_lie(golden: GoldenTables) -> None:
    (storage, files, plan), *_ = of_table(golden, "mor_parquet_log_v9_h120")
    elsewhere = replace(files, base_instant="0")
    assert plan.log_reading is not None
    of = (plan.log_reading, plan.stored_schema, plan.stored_schema.names)
    by_positions, by_keys = (find_standing(storage, these, *of) for these in (files, elsewhere))

    assert by_positions is not None
    assert by_keys is not None
    assert by_keys.base_gone.tolist() == by_positions.base_gone.tolist()
    gone = [[of.tolist() for _, of in found.blocks] for found in (by_positions, by_keys)]
    assert gone[0] == gone[1]
    assert by_keys.base_gone.any()


def test_rows_of_a_base_file_that_share_a_key_have_no_place_of_their_own(tmp_path: Path) -> None:
    """Each of them becomes the row of the log."""
    table = HudiTable.create(tmp_path, name="t", record_key="id", table_type="MERGE_ON_READ",
                             properties={**PARQUET, "hoodie.compact.inline": "false", **BY_BUCKET})  # fmt: skip
    table.bulk_insert(pa.table({"id": ["a", "a", "b"], "n": [1, 2, 3]}))
    table.upsert(pa.table({"id": ["b"], "n": [4]}))
    assert _placed_of_only_slice(table) == [[2], []]
    table.upsert(pa.table({"id": ["a"], "n": [5]}))
    assert _placed_of_only_slice(table) is None


def test_a_record_without_a_key_is_told_of_where_rows_are_merged(tmp_path: Path) -> None:
    table = HudiTable.create(tmp_path, name="t", record_key="id", table_type="MERGE_ON_READ",
                             properties={**PARQUET, "hoodie.metadata.enable": "false", **BY_BUCKET})  # fmt: skip
    table.bulk_insert(pa.table({"id": ["a", "b"], "n": [1, 2]}))
    table.upsert(pa.table({"id": ["b", "c"], "n": [3, 4]}))
    (file,) = table.scan()._plan.files
    ((path, size_bytes),) = file.logs
    (block,) = scan_log(MemoryLog((tmp_path / path).read_bytes()), size_bytes, path=path)
    (rows,) = read_batches(block)
    at = rows.schema.get_field_index(RECORD_KEY)
    without = rows.set_column(at, rows.schema.field(at), pa.array([None, "c"]))
    (tmp_path / path).write_bytes(encode_parquet_block([without], block.header, compression="snappy"))

    assert _placed_of_only_slice(table) is None
    with pytest.raises(CorruptFile, match="a record key in each record of the log"):
        table.scan().to_arrow()


def test_keys_that_rows_do_not_hold_are_spelled(tmp_path: Path) -> None:
    table = HudiTable.create(tmp_path, name="t", record_key=["id", "at"], table_type="MERGE_ON_READ",
                             properties={**PARQUET, "hoodie.compact.inline": "false", **BY_BUCKET})  # fmt: skip
    table.bulk_insert(pa.table({"id": ["a", "a", "b"], "at": [1, 2, 1]}))
    table.upsert(pa.table({"id": ["a", "c"], "at": [2, 2]}))
    table.delete(pa.table({"id": ["b"], "at": [1]}))
    scan = table.scan()
    (file,) = scan._plan.files
    plan, reading = scan._plan, scan._plan.log_reading
    assert reading is not None
    spelled = replace(reading, keys=KeySpec(("id", "at"), (), True, False, False))
    found = find_standing(scan._storage, file.slice_files, spelled, plan.stored_schema, ["id", "at"])

    assert found is not None
    assert np.flatnonzero(found.base_gone).tolist() == [1, 2]


def _placed_of_only_slice(table: HudiTable) -> list[list[int]] | None:
    scan = table.scan()
    (file,) = scan._plan.files
    plan, reading = scan._plan, scan._plan.log_reading
    assert reading is not None
    found = find_standing(scan._storage, file.slice_files, reading, plan.stored_schema, plan.stored_schema.names)
    if found is None:
        return None
    return [np.flatnonzero(of).tolist() for of in (found.base_gone, *(gone for _, gone in found.blocks))]


@pytest.mark.parametrize(
    "kind", [pa.int32(), pa.int64(), pa.timestamp("us", "UTC"), pa.date32(), pa.float64()], ids=str
)
@pytest.mark.parametrize("first", [4, 5, 6])
@pytest.mark.parametrize("has_null", [False, True])
def test_a_footer_settles_who_wins_as_the_rows_do(
    tmp_path: Path, kind: pa.DataType, first: int, has_null: bool
) -> None:
    """Base rows of 5 and perhaps null, log rows from `first` on: whether the base file's values are read or not."""
    table = HudiTable.create(tmp_path, name="t", record_key="id", ordering="at", table_type="MERGE_ON_READ",
                             properties={**PARQUET, "hoodie.compact.inline": "false", **BY_BUCKET})  # fmt: skip
    width = kind.bit_width if not pa.types.is_floating(kind) else 64

    def rows(values: list[int | None]) -> pa.Table:
        at = pa.array(values, pa.int32() if width == 32 else pa.int64()).cast(kind)
        return pa.table({"id": [str(key) for key in range(len(values))], "at": at})

    table.bulk_insert(rows([5, -5, None if has_null else 5, 5]))
    table.upsert(rows([first, first, first]))
    scan = table.scan()
    (file,) = scan._plan.files

    assert assert_is_the_slice(scan._storage, file.slice_files, scan._plan)


def test_a_field_of_a_column_that_orders_is_compared(tmp_path: Path) -> None:
    """As tables of Apache Hudi may have it: footers of base files know leaves, not columns."""
    table = HudiTable.create(tmp_path, name="t", record_key="id", ordering="ts", table_type="MERGE_ON_READ",
                             properties={**PARQUET, "hoodie.compact.inline": "false", **BY_BUCKET})  # fmt: skip

    def rows(times: list[int]) -> pa.Table:
        inner = pa.array([{"at": time} for time in times], pa.struct([("at", pa.int64())]))
        return pa.table({"id": [str(key) for key in range(len(times))], "ts": [1] * len(times), "s": inner})

    table.bulk_insert(rows([5, 5]))
    table.upsert(rows([4, 6]))
    scan = table.scan()
    (file,) = scan._plan.files
    reading = scan._plan.log_reading
    assert reading is not None
    plan = replace(scan._plan, log_reading=replace(reading, rules=replace(reading.rules, ordering=("s.at",))))

    assert assert_is_the_slice(scan._storage, file.slice_files, plan)


def test_a_column_that_orders_may_mark_deletes(tmp_path: Path) -> None:
    """As tables of Apache Hudi may have it: what its bounds say of who wins does not say who is deleted."""
    table = HudiTable.create(tmp_path, name="t", record_key="id", ordering="ts", table_type="MERGE_ON_READ",
                             properties={**PARQUET, "hoodie.compact.inline": "false"})  # fmt: skip
    table.bulk_insert(pa.table({"id": ["a", "b"], "ts": [5, 5]}))
    table.upsert(pa.table({"id": ["a", "b"], "ts": [6, 7]}))
    scan = table.scan()
    (file,) = scan._plan.files
    reading = scan._plan.log_reading
    assert reading is not None
    rules = replace(reading.rules, marks=(DeleteMark("ts", "7"),))
    plan = replace(scan._plan, log_reading=replace(reading, rules=rules))
    assert plan.log_reading is not None
    found = find_standing(scan._storage, file.slice_files, plan.log_reading, plan.stored_schema, ["id"])

    assert found is not None
    assert found.blocks[0][1].tolist() == [False, True]
    assert assert_is_the_slice(scan._storage, file.slice_files, plan)


def test_a_header_that_says_other_than_the_footer_is_believed(tmp_path: Path) -> None:
    """Rows are read by the header: ordering values that it does not tell of order nothing."""
    table = HudiTable.create(tmp_path, name="t", record_key="id", ordering="ts", table_type="MERGE_ON_READ",
                             properties={**PARQUET, "hoodie.metadata.enable": "false"})  # fmt: skip
    table.bulk_insert(pa.table({"id": ["a"], "ts": [5]}))
    table.upsert(pa.table({"id": ["a"], "ts": [6]}))
    (file,) = table.scan()._plan.files
    ((path, _),) = file.logs
    content = (tmp_path / path).read_bytes()
    assert content.count(b'"name":"ts"', 0, 2_000) == 1
    (tmp_path / path).write_bytes(content.replace(b'"name":"ts"', b'"name":"tz"', 1))

    assert _placed_of_only_slice(table) == [[], [0]]
    assert table.scan(columns=["ts"]).to_arrow().to_pylist() == [{"ts": 5}]


def test_rows_that_are_made_of_two_stand_nowhere(golden: GoldenTables) -> None:
    (storage, files, plan), *_ = of_table(golden, "mor_parquet_log_v9_h120")
    assert plan.log_reading is not None
    made = replace(plan.log_reading, rules=replace(plan.log_reading.rules, fill=Fill.NULLS))
    names = plan.stored_schema.names

    assert find_standing(storage, files, plan.log_reading, plan.stored_schema, names) is not None
    assert find_standing(storage, files, made, plan.stored_schema, names) is None
    assert find_standing(storage, files, plan.log_reading, plan.stored_schema, names, data_blocks_max=0) is None
    several_passes = replace(plan.log_reading, log_size_bytes_max=1)
    assert find_standing(storage, files, several_passes, plan.stored_schema, names) is None


def test_blocks_of_an_older_type_stand_nowhere(tmp_path: Path) -> None:
    """Spark would read them as the table's type of today, which not each of its releases can."""
    table = HudiTable.create(tmp_path, name="t", record_key="id", table_type="MERGE_ON_READ",
                             properties={**PARQUET, "hoodie.compact.inline": "false"})  # fmt: skip
    table.bulk_insert(pa.table({"id": ["a", "b"], "n": pa.array([1, 2], pa.int32())}))
    table.upsert(pa.table({"id": ["a"], "n": pa.array([3], pa.int32())}))
    table.upsert(pa.table({"id": ["b"], "n": pa.array([4], pa.int64())}))
    scan = table.scan()
    (file,) = scan._plan.files
    plan, reading = scan._plan, scan._plan.log_reading
    assert reading is not None

    assert find_standing(scan._storage, file.slice_files, reading, plan.stored_schema, ["n"]) is None
    assert find_standing(scan._storage, file.slice_files, reading, plan.stored_schema, ["id"]) is not None
