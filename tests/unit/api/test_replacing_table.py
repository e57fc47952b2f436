"""Making a table anew over one that is there could lose both: each way that it can end is tried.

The old table and its history must be there until the new one is, and no leftover may stay.
"""

import errno
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from pyhudi import Conflict, HudiTable, NotFound, Unavailable, Unsupported
from pyhudi.api.overwrite import replacing_table
from pyhudi.txn.locks.guard import LocalGuard


class LightsOut(BaseException):
    """The process ends here: no handler may swallow it."""


@pytest.fixture
def path(tmp_path: Path) -> str:
    place = str(tmp_path / "t")
    table = HudiTable.create(place, name="t", record_key="id", table_type="MERGE_ON_READ")
    table.bulk_insert(pa.table({"id": ["a"], "v": [1]}))
    table.upsert(pa.table({"id": ["a"], "v": [2]}))
    return place


@pytest.fixture
def shallow_stack() -> Iterator[int]:
    """A bound of recursion so low that folders as deep are made and deleted soon."""
    before, bound = sys.getrecursionlimit(), 350
    sys.setrecursionlimit(bound)
    yield bound
    sys.setrecursionlimit(before)


def replace_and_fail(path: str, error: BaseException) -> None:
    with replacing_table(path, wait_ms=0) as staged:
        make_other(staged)
        raise error


def make_other(place: str) -> None:
    HudiTable.create(place, name="other", record_key="k").bulk_insert(pa.table({"k": ["x", "y"]}))


def assert_old(path: str) -> None:
    table = HudiTable.open(path)
    assert table.scan(columns=["id", "v"]).to_arrow().to_pylist() == [{"id": "a", "v": 2}]
    assert len(table.timeline()) == 2
    assert os.listdir(os.path.dirname(path)) == ["t"]


def test_the_new_table_takes_the_place_of_the_old_one(path: str) -> None:
    with replacing_table(path, wait_ms=0) as staged:
        make_other(staged)
        assert HudiTable.open(path).name == "t"  # readers see the old one until the end

    table = HudiTable.open(path)
    assert (table.name, table.scan().to_arrow().num_rows) == ("other", 2)
    assert os.listdir(os.path.dirname(path)) == ["t"]
    table.upsert(pa.table({"k": ["z"]}))


def test_a_link_to_the_table_stays_a_link(path: str, tmp_path: Path) -> None:
    link = tmp_path / "links" / "t"
    link.parent.mkdir()
    link.symlink_to(path)

    with replacing_table(str(link), wait_ms=0) as staged:
        make_other(staged)

    assert link.is_symlink()
    assert HudiTable.open(path).name == "other"


def test_rows_that_cannot_be_written_leave_the_old_table(path: str) -> None:
    with pytest.raises(ZeroDivisionError):
        replace_and_fail(path, ZeroDivisionError())

    assert_old(path)


def test_beside_a_writer_the_old_table_stays(path: str) -> None:
    with (
        LocalGuard(path).acquire("upsert", "20261121093000000"),
        pytest.raises(Conflict),
        replacing_table(path, wait_ms=0) as staged,
    ):
        make_other(staged)

    assert_old(path)


def test_what_another_wrote_meanwhile_is_not_lost(path: str) -> None:
    """Its commit is complete when the new table is: no lock and no heartbeat tells of it."""

    def replace_beside_an_upsert() -> None:
        with replacing_table(path, wait_ms=0) as staged:
            make_other(staged)
            HudiTable.open(path).upsert(pa.table({"id": ["b"], "v": [3]}))

    with pytest.raises(Conflict, match="was changed while the new one was written"):
        replace_beside_an_upsert()

    table = HudiTable.open(path)
    assert sorted(table.scan(columns=["id"]).to_arrow()["id"].to_pylist()) == ["a", "b"]
    assert len(table.timeline()) == 3
    assert os.listdir(os.path.dirname(path)) == ["t"]


def test_an_old_table_of_deep_folders_goes_whole(path: str, shallow_stack: int) -> None:
    """A deletion that recurses would fail once the tables have changed places."""
    folder = os.open(path, os.O_RDONLY)
    for _ in range(shallow_stack):
        os.mkdir("x", dir_fd=folder)
        below = os.open("x", os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = below
    os.close(folder)

    with replacing_table(path, wait_ms=0) as staged:
        make_other(staged)

    assert HudiTable.open(path).name == "other"
    assert os.listdir(os.path.dirname(path)) == ["t"]


def test_beside_a_writer_of_apache_hudi_the_old_table_stays(path: str) -> None:
    beat = Path(path) / ".hoodie" / ".heartbeat" / "20261121093000000"
    beat.parent.mkdir(exist_ok=True)
    beat.touch()

    with (
        pytest.raises(Conflict, match="'20261121093000000' with a living heartbeat"),
        replacing_table(path, wait_ms=0) as staged,
    ):
        make_other(staged)

    assert_old(path)


def test_what_an_overwrite_left_that_died_is_swept(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("pyhudi.api.overwrite._delete", lambda room: None)  # the process died before it
        with pytest.raises(LightsOut):
            replace_and_fail(path, LightsOut())
    assert len(os.listdir(os.path.dirname(path))) == 2

    with pytest.raises(ZeroDivisionError), replacing_table(path, wait_ms=0):
        raise ZeroDivisionError

    assert_old(path)


def test_what_a_living_overwrite_holds_is_not_swept(path: str) -> None:
    with replacing_table(path, wait_ms=0) as first:
        make_other(first)
        with pytest.raises(ZeroDivisionError), replacing_table(path, wait_ms=0):
            raise ZeroDivisionError
        assert HudiTable.exists(first)

    assert HudiTable.open(path).name == "other"


@pytest.mark.parametrize("number,error", [("ENOSYS", Unsupported), ("EBUSY", Unavailable)])
def test_where_folders_cannot_change_places_the_old_table_stays(
    path: str, monkeypatch: pytest.MonkeyPatch, number: str, error: type[Exception]
) -> None:
    monkeypatch.setattr("pyhudi.storage.exchange._exchange", lambda one, other: getattr(errno, number))
    with pytest.raises(error), replacing_table(path, wait_ms=0) as staged:
        make_other(staged)

    assert_old(path)


def test_on_an_object_store_nothing_is_begun() -> None:
    with (
        pytest.raises(Unsupported, match="cannot replace a table in one step"),
        replacing_table("s3://bucket/t", wait_ms=0),
    ):
        raise AssertionError


def test_a_write_that_was_planned_on_the_old_table_does_not_go_to_the_new_one(path: str) -> None:
    """Its keys are other columns. The table changes while the input of the write is read."""
    table = HudiTable.open(path)
    rows = pa.table({"id": ["b"], "v": [1]})

    def batches() -> Iterator[pa.RecordBatch]:
        with replacing_table(path, wait_ms=0) as staged:
            HudiTable.create(staged, name="t", record_key="v").bulk_insert(rows)
        yield from rows.to_batches()

    with pytest.raises((Conflict, NotFound), match=r"made anew|expected a file, found none"):
        table.upsert(pa.RecordBatchReader.from_batches(rows.schema, batches()))

    assert HudiTable.open(path).record_key == ("v",)
    assert HudiTable.open(path).scan().to_arrow().num_rows == 1
