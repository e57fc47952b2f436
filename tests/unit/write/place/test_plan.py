"""A plan could lose rows, send them to two places, or differ from one machine to the next."""

from collections.abc import Callable
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from pyhudi.format.names import BaseFileName
from pyhudi.storage.protocol import StorageLocation
from pyhudi.table.view.file_system_view import BaseFile, FileSlice, SourceFile
from pyhudi.write.place.plan import (
    FILE_OVERHEAD_BYTES,
    Sizing,
    TaskKind,
    WorkloadProfile,
    WritePlan,
    equal_shares,
    plan_write,
    record_size,
)
from tests.support.model import seeded_uuids

MIB = 1 << 20


def a_slice(partition: str, file_id: str, size_bytes: int) -> FileSlice:
    name = BaseFileName(file_id, "0-0-0", "20260101000000000", ".parquet")
    return FileSlice(partition, file_id, name.requested, BaseFile(name, size_bytes))


def plan(
    inserts: dict[str, int],
    updates: dict[tuple[str, str], int] | None = None,
    slices: dict[str, list[FileSlice]] | None = None,
    *,
    record_bytes: int = 1_000,
    max_bytes: int = 120 * MIB,
    limit_bytes: int = 100 * MIB,
    appends: bool = False,
    new_rows_max: int | None = None,
    new_uuid: Callable[[], str] | None = None,
) -> WritePlan:
    return plan_write(
        WorkloadProfile(inserts, updates or {}),
        slices or {},
        sizing=Sizing(record_bytes, max_bytes, limit_bytes, 1 if appends else None, new_rows_max),
        appends=appends,
        new_uuid=new_uuid or seeded_uuids(3),
    )


def test_new_rows_go_into_the_smallest_files_first() -> None:
    slices = {"p": [a_slice("p", "a", 90 * MIB), a_slice("p", "b", 110 * MIB), a_slice("p", "c", 119 * MIB)]}
    tasks = plan({"p": 10}, {("p", "c"): 2}, slices).tasks

    assert [(t.file_id, t.inserts, t.updates) for t in tasks] == [("a", 10, 0), ("c", 0, 2)]


def test_a_bootstrapped_file_is_as_large_as_its_source() -> None:
    """Its own file holds the meta fields only, so that every insert would rewrite it."""
    small = a_slice("p", "a", MIB)
    source = SourceFile(StorageLocation("/source"), "a.parquet", 500 * MIB)
    (task,) = plan({"p": 10}, {}, {"p": [replace(small, source=source)]}).tasks
    assert task.kind is TaskKind.CREATE

    (task,) = plan({}, {("p", "a"): 1}, {"p": [replace(small, source=source)]}).tasks
    assert (task.kind, task.source) == (TaskKind.REWRITE, source)


def test_no_group_takes_more_new_rows_than_may_be_held() -> None:
    slices = {"p": [a_slice("p", "a", 90 * MIB)]}
    tasks = plan({"p": 1_000}, {("p", "a"): 700}, slices, new_rows_max=300).tasks

    assert [(t.file_id == "a", t.inserts, t.updates) for t in tasks] == [
        (True, 300, 700),
        (False, 234, 0),
        (False, 233, 0),
        (False, 233, 0),
    ]


def test_what_small_files_have_no_room_for_goes_into_new_groups_of_equal_shares() -> None:
    slices = {"p": [a_slice("p", "a", 99 * MIB), a_slice("p", "full", 120 * MIB)]}
    tasks = plan({"p": 300_000}, None, slices).tasks

    room = 21 * MIB // 1_000
    assert tasks[0].inserts == room
    new = [t.inserts for t in tasks if t.base_file is None]
    assert max(new) - min(new) <= 1
    assert sum(t.inserts for t in tasks) == 300_000
    assert all(rows * 1_000 + FILE_OVERHEAD_BYTES <= 120 * MIB for rows in new)


def test_without_small_files_inserts_open_new_groups_and_leave_the_others_alone() -> None:
    tasks = plan({"p": 5}, None, {"p": [a_slice("p", "a", 10)]}, limit_bytes=0).tasks

    assert [(t.base_file, t.inserts, t.is_new_partition) for t in tasks] == [(None, 5, False)]


def test_a_new_partition_is_said_to_be_new() -> None:
    tasks = plan({"new": 1, "known": 1}, None, {"known": []}).tasks

    assert [(t.partition, t.is_new_partition) for t in tasks] == [("known", False), ("new", True)]


def test_a_small_target_size_does_not_mean_a_file_a_row() -> None:
    """The weight of a file beside its rows is reckoned with half of the target at most."""
    for max_bytes in (10_000, 400_000, 600_000):
        files = plan({"p": 100}, max_bytes=max_bytes, record_bytes=100).tasks
        assert len(files) <= -(-100 // max(1, max_bytes // 2 // 100)) + 1, max_bytes


partitions = st.sampled_from(["", "a", "b/c"])
file_ids = st.sampled_from(["f1", "f2", "f3"])


@st.composite
def workloads(draw: st.DrawFn) -> tuple[dict[str, int], dict[tuple[str, str], int], dict[str, list[FileSlice]]]:
    sizes = draw(st.dictionaries(partitions, st.dictionaries(file_ids, st.integers(1, 20_000), max_size=3)))
    slices = {p: [a_slice(p, f, size) for f, size in of.items()] for p, of in sizes.items()}
    known = [(p, f) for p, of in sizes.items() for f in of]
    updates = draw(st.dictionaries(st.sampled_from(known), st.integers(1, 50))) if known else {}
    return draw(st.dictionaries(partitions, st.integers(1, 5_000))), updates, slices


@settings(deadline=None)
@given(workloads(), st.integers(1, 900), st.integers(1, 20_000), st.integers(0, 20_000))
def test_every_row_has_one_place_and_the_plan_is_the_same_everywhere(
    workload: tuple[dict[str, int], dict[tuple[str, str], int], dict[str, list[FileSlice]]],
    record_bytes: int,
    max_bytes: int,
    limit_bytes: int,
) -> None:
    inserts, updates, slices = workload

    def make(of: dict[str, list[FileSlice]]) -> WritePlan:
        return plan(inserts, updates, of, record_bytes=record_bytes, max_bytes=max_bytes, limit_bytes=limit_bytes)

    made = make(slices)

    assert made == make({p: list(reversed(of)) for p, of in reversed(slices.items())})
    assert [task.number for task in made.tasks] == list(range(len(made.tasks)))
    groups = [(task.partition, task.file_id) for task in made.tasks]
    assert len(set(groups)) == len(groups)
    assert set(made.update_tasks()) >= set(updates)
    assert {(t.partition, t.file_id): t.updates for t in made.tasks if t.updates} == updates
    bins = made.insert_tasks()
    assert {p: sum(rows for _, rows in of) for p, of in bins.items()} == inserts
    assert all(rows > 0 for of in bins.values() for _, rows in of)
    assert all(t.updates or t.inserts for t in made.tasks)
    sizes = {(s.partition, s.file_id): s.base_file.size_bytes for of in slices.values() for s in of if s.base_file}
    for task in made.tasks:
        if task.base_file is not None and task.inserts:
            size = sizes[task.partition, task.file_id]
            assert size < limit_bytes
            assert size + task.inserts * record_bytes <= max_bytes


@settings(deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 50))
def test_shares_are_equal_and_add_up(total: int, count: int) -> None:
    shares = equal_shares(total, count)
    assert (sum(shares), len(shares)) == (total, count)
    assert max(shares) - min(shares) <= 1
    assert shares == sorted(shares, reverse=True)


def test_no_shares_of_nothing() -> None:
    assert equal_shares(0, 0) == []


def test_the_size_of_a_record_is_measured_where_enough_rows_tell() -> None:
    assert record_size(999, 10**9, 1, default_bytes=77) == 77
    assert record_size(1_000, 2_000_000 + FILE_OVERHEAD_BYTES, 1, default_bytes=77) == 2_000
    assert record_size(1_000, 400_000, 100, default_bytes=77) == 20
    assert record_size(10**6, 10, 1, default_bytes=77) == 1
