"""An insert could store a key twice that it was told to drop or refuse, or lay rows down in another order than asked.

Both are held against plain Python, with file groups of a few rows.
"""

import random
from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyhudi import HudiTable
from pyhudi.engine.local.key_order import split_by_key
from pyhudi.errors import Invalid
from pyhudi.format.names import BaseFileName
from pyhudi.storage.memory import MemoryStorage
from tests.support.model import Handles, Row, arrow, dump, read_rows

POLICY = "hoodie.datasource.insert.dup.policy"
DROP = "hoodie.datasource.write.insert.drop.duplicates"
SORT = "hoodie.bulkinsert.sort.mode"
PAYLOAD = "hoodie.datasource.write.payload.class"
EMPTY = "org.apache.hudi.common.model.EmptyHoodieRecordPayload"

STORED = [Row(f"k{n}", ("oslo", "rome")[n % 2], 5, n) for n in range(12)]


@pytest.fixture
def storage() -> MemoryStorage:
    return MemoryStorage()


@pytest.fixture
def table(storage: MemoryStorage) -> HudiTable:
    table = Handles(storage).create()
    table.upsert(arrow(STORED))
    return table


def rows_of(table: HudiTable) -> list[Row]:
    found = read_rows(table.scan().to_arrow())
    return sorted((of.row for of in found.values()), key=lambda row: (row.city, row.id))


def in_order(rows: list[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: (row.city, row.id))


@pytest.mark.parametrize("options", [{POLICY: "drop"}, {DROP: "true"}])
def test_rows_whose_key_is_stored_are_dropped(table: HudiTable, options: dict[str, str]) -> None:
    """Even where new rows fill the very file that holds such a key; a key of another partition is another key."""
    batch = [Row("k0", "oslo", 9, 99), Row("k1", "oslo", 1, 1), Row("new", "rome", 1, 2), Row("new", "rome", 3, 3)]

    result = table.insert(arrow(batch), options=options)

    assert (result.inserted, result.updated) == (2, 0)
    assert rows_of(table) == in_order([*STORED, batch[1], batch[3]])


def test_an_insert_of_nothing_but_stored_keys_adds_nothing(table: HudiTable) -> None:
    result = table.insert(arrow(STORED), options={POLICY: "drop"})

    assert (result.inserted, result.files) == (0, 0)
    assert rows_of(table) == in_order(STORED)


def test_one_stored_key_is_refused_before_anything_is_written(table: HudiTable, storage: MemoryStorage) -> None:
    before = dump(storage)

    with pytest.raises(Invalid, match=r"expected new record keys only, found 2 that are stored already, such as 'k\d'"):
        table.insert(arrow([STORED[0], STORED[1], STORED[0], Row("n", "oslo", 1, 1)]), options={POLICY: "fail"})

    assert dump(storage) == before
    assert table.insert(arrow([Row("n", "oslo", 1, 1)]), options={POLICY: "fail"}).inserted == 1


def test_without_a_policy_an_insert_looks_no_keys_up(table: HudiTable) -> None:
    assert table.insert(arrow(STORED[:1])).inserted == 1
    assert table.scan().to_arrow().num_rows == len(STORED) + 1


@pytest.mark.parametrize("is_first_write", [True, False])
@pytest.mark.parametrize("operation, stored", [("insert", 2), ("insert_overwrite", 2), ("bulk_insert", 3)])
def test_rows_marked_as_deleted_are_not_inserted(operation: str, stored: int, is_first_write: bool) -> None:
    """Also where new rows fill a file that is there. A bulk insert stores them, as Apache Hudi's does."""
    table = Handles(MemoryStorage()).create()
    marked = arrow([Row(f"n{n}", "oslo", 1, n) for n in range(3)])
    marked = marked.append_column("_hoodie_is_deleted", pa.array([False, True, None]))
    if not is_first_write:
        table.bulk_insert(marked.slice(0, 1))
    before = 0 if is_first_write or operation == "insert_overwrite" else 1

    result = getattr(table, operation)(marked)

    assert result.inserted == stored
    assert table.scan().to_arrow().num_rows == before + stored


def test_a_bulk_insert_refuses_a_policy_that_it_cannot_keep(table: HudiTable, storage: MemoryStorage) -> None:
    before = dump(storage)

    for options in ({POLICY: "drop"}, {POLICY: "fail"}, {DROP: "true"}):
        with pytest.raises(Invalid, match="a bulk insert looks no keys up: use insert"):
            table.bulk_insert(arrow(STORED), options=options)

    assert dump(storage) == before


def test_an_upsert_with_the_payload_of_deletes_deletes_however_late_it_is(table: HudiTable) -> None:
    late = [Row("k0", "oslo", 0, 1), Row("absent", "rome", 0, 1)]

    result = table.upsert(arrow(late), options={PAYLOAD: EMPTY})

    assert (result.operation, result.deleted) == ("delete", 1)
    assert rows_of(table) == in_order(STORED[1:])
    for method in ("insert", "bulk_insert", "insert_overwrite"):
        with pytest.raises(Invalid, match=f"{method}: expected an upsert or a delete with the payload class"):
            getattr(table, method)(arrow(late), options={PAYLOAD: EMPTY})


def test_nulls_are_a_soft_delete(table: HudiTable) -> None:
    """The key stays, and whoever asks finds that there is nothing more."""
    nulls = [None] * 2
    gone = arrow([Row("k0", "oslo", 9, 0), Row("k2", "oslo", 9, 0)])
    gone = gone.set_column(3, "v", pa.array(nulls, pa.int64())).set_column(4, "note", pa.array(nulls, pa.string()))

    result = table.upsert(gone)

    assert (result.updated, result.deleted) == (2, 0)
    found = {row["id"]: row["v"] for row in table.scan(columns=["id", "v"]).to_arrow().to_pylist()}
    assert found == {row.id: None if row.id in ("k0", "k2") else row.v for row in STORED}
    assert table.scan(where="v IS NOT NULL").to_arrow().num_rows == len(STORED) - 2


def groups_of(table: HudiTable) -> dict[str, list[list[str]]]:
    """Keys by partition and file group, in the order in which they lie; groups as their ids count them."""
    found: dict[str, dict[tuple[str, int], list[str]]] = {}
    for row in table.scan().to_arrow().to_pylist():
        name = BaseFileName.parse(row["_hoodie_file_name"])
        assert name is not None
        task = int(row["_hoodie_commit_seqno"].split("_")[1])
        found.setdefault(row["city"], {}).setdefault((name.file_id, task), []).append(row["id"])
    return {city: [keys for _, keys in sorted(of.items(), key=lambda g: g[0][1])] for city, of in found.items()}


SHUFFLED = random.Random(7).sample([Row(f"k{n:03}", ("oslo", "rome")[n % 2], 1, n) for n in range(180)], 180)
ARRIVED = {city: [row.id for row in SHUFFLED if row.city == city] for city in ("oslo", "rome")}


def flat(groups: list[list[str]]) -> list[str]:
    return [key for group in groups for key in group]


@pytest.mark.parametrize("mode", ["NONE", "PARTITION_PATH_REPARTITION", "PARTITION_PATH_REPARTITION_AND_SORT"])
def test_without_sorting_rows_lie_as_they_arrived(mode: str) -> None:
    table = Handles(MemoryStorage()).create()
    table.bulk_insert(arrow(SHUFFLED), options={SORT: mode})

    groups = groups_of(table)
    assert {city: flat(of) for city, of in groups.items()} == ARRIVED
    assert all(len(of) > 2 for of in groups.values())


def test_a_partition_sort_sorts_each_file_by_key() -> None:
    table = Handles(MemoryStorage()).create()
    table.bulk_insert(arrow(SHUFFLED), options={SORT: "PARTITION_SORT"})

    for city, groups in groups_of(table).items():
        assert len(groups) > 2
        assert all(keys == sorted(keys) for keys in groups)
        assert sorted(flat(groups)) == sorted(ARRIVED[city])
        assert flat(groups) != sorted(ARRIVED[city]), "the rows happened to be sorted already"


@pytest.mark.parametrize("combines", ["false", "true"])
def test_a_global_sort_gives_each_file_a_range_of_keys(combines: str) -> None:
    table = Handles(MemoryStorage()).create()
    table.bulk_insert(arrow(SHUFFLED), options={SORT: "GLOBAL_SORT", "hoodie.combine.before.insert": combines})

    for city, groups in groups_of(table).items():
        assert len(groups) > 2
        assert flat(groups) == sorted(ARRIVED[city])


def test_keys_that_are_made_up_are_in_order_already() -> None:
    table = HudiTable.create("unused", name="t", storage=MemoryStorage(), properties={SORT: "GLOBAL_SORT"})

    table.bulk_insert(pa.table({"n": list(range(30))}))

    assert table.scan(["n"]).to_arrow()["n"].to_pylist() == list(range(30))


def test_sorted_rows_of_one_key_count_once_where_they_are_combined() -> None:
    """The greatest by the ordering column, the last to arrive on a tie: sorting must not lose who came last."""
    rows = [Row(f"k{n % 20:02}", "oslo", n % 40 // 20, n) for n in range(80)]
    random.Random(1).shuffle(rows)
    wanted: dict[str, Row] = {}
    for row in rows:
        if row.id not in wanted or row.ts >= wanted[row.id].ts:
            wanted[row.id] = row
    for mode in ("GLOBAL_SORT", "PARTITION_SORT"):
        table = Handles(MemoryStorage()).create()
        options = {SORT: mode, "hoodie.combine.before.insert": "true"}
        assert table.bulk_insert(arrow(rows), options=options).inserted == 20
        assert rows_of(table) == in_order(list(wanted.values()))


@given(st.lists(st.text("ab\x00é\U0001f600", max_size=3)), st.data())
def test_rows_split_by_key_are_all_there_and_no_two_ranges_meet(keys: list[str], data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(keys)), max_size=4)))
    edges = [0, *cuts, len(keys)]
    bins = [(bucket, end - start) for bucket, (start, end) in enumerate(pairwise(edges))]

    parts = [(bucket, rows.tolist()) for bucket, rows in split_by_key(pa.array(keys, pa.string()), bins)]

    assert sorted(row for _, rows in parts for row in rows) == list(range(len(keys)))
    assert all(rows == sorted(rows) and rows for _, rows in parts)
    assert [bucket for bucket, _ in parts] == sorted({bucket for bucket, _ in parts})
    ranges = [sorted(keys[row].encode() for row in rows) for _, rows in parts]
    assert all(left[-1] < right[0] for left, right in pairwise(ranges))
