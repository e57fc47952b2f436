"""Logs that only we can read lose what is in them to everybody else. Here the real Apache Hudi reads the logs that
pyhudi writes, of every kind of block, with every option of its reader that changes how; a row, a delete, a column or a
position that it takes otherwise shows as a difference to our answer, which is the model's, a dict."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from pyhudi import HudiTable
from tests.interop.cow_rows import META_BUT_TIME, key_range, row, rows
from tests.interop.cow_tables import PLAIN, SHAPES, Shape, next_ms
from tests.interop.mor_tables import BLOCK_FORMAT, IS_DELETED, LISTING, MERGE_ON_READ, POSITIONS, SharedLogs
from tests.interop.test_cow_tables import BEGIN, END, FILTERS, INCREMENTAL, SKIPPING
from tests.support.compare import assert_same_rows
from tests.support.reference.client import ReferenceFailed, ReferenceHudi

CASES = {
    "parquet": (PLAIN, "parquet"),
    "avro": (PLAIN, "avro"),
    "commit time": (SHAPES[1], "avro"),
    "no partition": (SHAPES[2], "parquet"),
    "two keys, encoded": (SHAPES[3], "parquet"),
}


def written_by_us(path: Path, shape: Shape, version: int, kind: str) -> tuple[SharedLogs, list[str]]:
    """Every kind of change of a log, most of them on the slices of one commit."""
    shared = SharedLogs(path, shape, version=version, properties={BLOCK_FORMAT: kind})
    gone, late = key_range(5, 150, 9), key_range(91, 170, 9)
    never = set[str]() if version == 9 or shape.ordering is None else set(gone)  # 1.0.2 fails: see test_log_merging.py
    again = sorted(set(gone[::2]) - never)
    commits = [
        shared.bulk_insert(rows(key_range(0, 160), turn=1)),
        shared.upsert(rows(key_range(100, 180), turn=3)),
        shared.upsert([row(key, turn=4, ts=n % 5) for n, key in enumerate(key_range(102, 170, 3))]),  # some too late
        shared.delete(gone),
        shared.delete_ordered(late, ts=3),
        shared.upsert([row(key, turn=5, ts=n % 6) for n, key in enumerate(late)] + rows(again, turn=5)),
        shared.upsert_with(
            [
                {**one, "note": f"note of {one['id']}", IS_DELETED: n % 4 == 0}
                for n, one in enumerate(rows(sorted({*key_range(3, 200, 6)} - never), turn=8))
            ],
            pa.field("note", pa.string()), pa.field(IS_DELETED, pa.bool_()),
        ),
        shared.upsert([{**one, "note": None} for one in rows(sorted({*key_range(1, 200, 13)} - never), turn=9)]),
    ]  # fmt: skip
    return shared, commits


def readers_of(version: int, request: pytest.FixtureRequest) -> list[ReferenceHudi]:
    return [request.getfixturevalue(name) for name in (("hudi_102", "hudi_120") if version == 8 else ("hudi_120",))]


@pytest.mark.parametrize("version", [8, 9])
@pytest.mark.parametrize("case", CASES)
def test_hudi_reads_our_logs_by_every_query(
    request: pytest.FixtureRequest, tmp_path: Path, case: str, version: int
) -> None:
    shape, kind = CASES[case]
    shared, commits = written_by_us(tmp_path / "rides", shape, version, kind)
    assert len(shared.logs()) > len(commits)
    ours = shared.check_ours()
    readers = readers_of(version, request)
    shared.check(*readers)

    for at, requested in enumerate(commits):
        then = shared.ours.scan(as_of=requested).to_arrow()
        assert_same_rows(then, shared.model.table(requested), ignore_columns=META_BUT_TIME)
        hudi = readers[at % len(readers)]
        reading = {LISTING: at % 3 == 0, POSITIONS: at % 2 == 0}
        assert_same_rows(hudi.read(shared.path, **{"as.of.instant": requested}, **reading), then)

    misspelled = ("region",) if "urlencode" in str(shape.properties) else ()
    for first, last in ((0, 7), (2, 5), (5, 6)):  # no range begins at rows that came too late
        start, end = shared.completed(commits[first]), shared.completed(commits[last])
        changes = shared.ours.incremental(start, end).to_arrow()
        assert_same_rows(changes, shared.model.changed(commits[first + 1 : last + 1]), ignore_columns=META_BUT_TIME)
        for hudi in readers:
            begin = next_ms(start) if hudi.version == "1.0.2" else start
            found = hudi.read(shared.path, **INCREMENTAL, **{BEGIN: begin, END: end})
            assert_same_rows(found, changes, ignore_columns=misspelled)
    for where, _ in FILTERS:
        for hudi in readers:
            assert_same_rows(hudi.read(shared.path, where, **SKIPPING), shared.ours.scan(where=where).to_arrow())
    assert len(ours) > 120


@pytest.mark.parametrize("name, version", [("hudi_102", 8), ("hudi_120", 9)])
def test_hudi_cannot_read_hfile_blocks_until_we_compact_them(
    request: pytest.FixtureRequest, tmp_path: Path, name: str, version: int
) -> None:
    """Nor those that it writes itself since 1.0: it takes rows of Avro for rows of Spark."""
    hudi: ReferenceHudi = request.getfixturevalue(name)
    shared, _ = written_by_us(tmp_path / "rides", PLAIN, version, "hfile")
    with pytest.raises(ReferenceFailed, match=r"cannot be cast to class \S+\.catalyst\.InternalRow"):
        hudi.read(shared.path)
    assert shared.ours.compact().requested is not None
    shared.check(hudi)


@pytest.mark.parametrize("name, version", [("hudi_102", 8), ("hudi_120", 9)])
def test_hudi_shows_rows_that_came_too_late_as_changes(
    request: pytest.FixtureRequest, tmp_path: Path, name: str, version: int
) -> None:
    """It leaves rows of the base file out that were written before the range, the greater ones too."""
    hudi: ReferenceHudi = request.getfixturevalue(name)
    shared = SharedLogs(tmp_path / "rides", version=version)
    first = shared.bulk_insert(rows(key_range(0, 10), turn=5))
    last = shared.upsert(rows(key_range(0, 3), turn=4))
    start, end = shared.completed(first), shared.completed(last)

    assert len(shared.ours.incremental(start, end).to_arrow()) == 0
    begin = next_ms(start) if hudi.version == "1.0.2" else start
    assert len(hudi.read(shared.path, **INCREMENTAL, **{BEGIN: begin, END: end})) == 3
    shared.check(hudi)


def test_several_ordering_columns_are_compared_alike(tmp_path: Path, hudi_120: ReferenceHudi) -> None:
    """Of version 9 alone: 1.0.2 has one ordering column."""

    def one(major: int, minor: int, said: str) -> pa.Table:
        return pa.table({"id": ["a"], "major": [major], "minor": [minor], "said": [said]})

    ours = HudiTable.create(
        tmp_path / "t", name="t", record_key="id", ordering=("major", "minor"), table_type="MERGE_ON_READ",
        table_version=9,
    )  # fmt: skip
    ours.upsert(one(2, 2, "first"))
    options = {
        "hoodie.datasource.write.recordkey.field": "id", "hoodie.table.ordering.fields": "major,minor", **MERGE_ON_READ,
    }  # fmt: skip
    for by_us, major, minor, said in (
        (True, 1, 9, "first"), (True, 2, 3, "ours"), (False, 2, 2, "ours"), (False, 2, 4, "theirs"),
        (True, 2, 3, "theirs"), (True, 3, 0, "ours"), (False, 3, 0, "theirs"),
    ):  # fmt: skip
        row = one(major, minor, "ours" if by_us else "theirs")
        if by_us:
            ours.upsert(row)
        else:
            hudi_120.write(ours.path, row, operation="upsert", **options)
        assert ours.scan(columns=["said"]).to_arrow()["said"].to_pylist() == [said]
        assert_same_rows(hudi_120.read(ours.path), ours.scan().to_arrow())
    late = one(2, 9, "").select(["id", "major", "minor"])
    ours.delete(late)  # carries both values, and comes too late
    assert_same_rows(hudi_120.read(ours.path), ours.scan().to_arrow())
    assert len(ours.scan().to_arrow()) == 1
    ours.delete(one(3, 1, "").select(["id", "major", "minor"]))
    assert len(hudi_120.read(ours.path)) == len(ours.scan().to_arrow()) == 0
