"""A filter could be asked of other rows than those it keeps: columns are decoded at two times, in batches of different
lengths, over row groups of which some keep nothing, and of columns that older files lack.

The answer is the rows of a scan of everything that the filter keeps, in their order.
"""

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from pyhudi import HudiTable
from pyhudi.engine.local.executors import SerialExecutor
from pyhudi.storage.memory import MemoryStorage
from pyhudi.table.slices.base_files import few_rows as few_rows_of
from pyhudi.table.slices.base_files import parquet
from pyhudi.write.handles import base_file_writer
from tests.support.model import Handles, StepClock, seeded_uuids

ROWS = 3_000
WHERES = (
    "id = 'k01234'", "id in ('k00000', 'k02999')", "v % 500 = 7", "v >= 0", "v < 10 or v > 2990", "note is null",
    "late is not null", "late = 2999 and part = 'b'", "part = 'a' and v = 1500", "struct.inner > 2995", "v < 0",
)  # fmt: skip
COLUMNS = (None, ["v"], ["id", "late"], ["late"], ["note", "struct", "id"], ["_hoodie_commit_time", "v"], ["part"])


def rows(start: int, stop: int, *, is_late: bool) -> pa.Table:
    numbers = range(start, stop)
    columns = {
        "id": [f"k{n:05}" for n in numbers], "part": [("a", "b")[n % 2] for n in numbers], "v": list(numbers),
        "note": [None if n % 3 else "x" * (n % 50) for n in numbers], "struct": [{"inner": n} for n in numbers],
    }  # fmt: skip
    return pa.table({**columns, **({"late": list(numbers)} if is_late else {})})


@pytest.fixture(scope="module")
def table() -> HudiTable:
    """Files of several row groups, the older ones without the column `late`."""
    handles = Handles(MemoryStorage(), StepClock(), seeded_uuids(1), SerialExecutor())
    made = HudiTable.create(
        "", name="t", record_key="id", partition_by="part", storage=handles.storage, clock=handles.clock,
        random=handles.random, executor=handles.executor,
    )  # fmt: skip
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(base_file_writer, "ROW_GROUP_ROWS_MAX", 150)
        made.bulk_insert(rows(0, 2_000, is_late=False))
        made.bulk_insert(rows(2_000, ROWS, is_late=True))
    for file in made.scan()._plan.files:
        footer = pq.ParquetFile(pa.BufferReader(handles.storage.get(file.path))).metadata
        assert footer.num_row_groups == -(-footer.num_rows // 150)
    return made


def kept(everything: pa.Table, where: str, columns: Sequence[str] | None) -> pa.Table:
    v, late, note = everything["v"], everything["late"], everything["note"]
    by_where = {
        "id = 'k01234'": pc.equal(v, 1234),
        "id in ('k00000', 'k02999')": pc.or_(pc.equal(v, 0), pc.equal(v, 2999)),
        "v % 500 = 7": pc.is_in(v, pa.array(range(7, ROWS, 500))),
        "v >= 0": pc.greater_equal(v, 0),
        "v < 10 or v > 2990": pc.or_(pc.less(v, 10), pc.greater(v, 2990)),
        "note is null": pc.is_null(note),
        "late is not null": pc.is_valid(late),
        "late = 2999 and part = 'b'": pc.equal(late, 2999),
        "part = 'a' and v = 1500": pc.equal(v, 1500),
        "struct.inner > 2995": pc.greater(v, 2995),
        "v < 0": pc.less(v, 0),
    }
    found = everything.filter(by_where[where])
    return found if columns is None else found.select(list(columns))


@hypothesis_settings(deadline=None, max_examples=60)
@given(
    st.sampled_from(WHERES), st.sampled_from(COLUMNS), st.sampled_from([7, 100, 65_536]), st.sampled_from([3, 50]),
    st.booleans(),
)  # fmt: skip
def test_a_filtered_scan_is_the_filter_of_a_scan(
    table: HudiTable, where: str, columns: Sequence[str] | None, batch_rows: int, few_rows: int, by_pages: bool
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(few_rows_of, "BATCH_ROWS", batch_rows)
        patch.setattr(few_rows_of, "_FEW_ROWS", few_rows)
        patch.setattr(parquet, "GROUP_ROWS_MIN", 0 if by_pages else 1 << 30)
        found = table.scan(columns, where=where).to_arrow()

    assert found.equals(kept(table.scan().to_arrow(), where, columns))


def test_an_increment_is_filtered_by_commit_and_predicate(table: HudiTable) -> None:
    """The commit time tells which rows count; it is none of the columns that are asked for."""
    first, second = (instant.completed for instant in table.timeline()[:2])

    later = table.incremental(first, second, ["note", "v"], where="v % 500 = 7").to_arrow()

    assert sorted(later.column("v").to_pylist()) == [2_007, 2_507]
    assert table.incremental(None, first, ["v"], where="late is not null").to_arrow().num_rows == 0


def test_an_arrow_expression_is_a_filter_like_any_other(table: HudiTable) -> None:
    everything = table.scan().to_arrow()

    found = table.scan(["note", "late"], where=(pc.field("v") > 1_990) & (pc.field("part") == "a")).to_arrow()

    kept_rows = pc.and_(pc.greater(everything["v"], 1_990), pc.equal(everything["part"], "a"))
    assert found.equals(everything.filter(kept_rows).select(["note", "late"]))
