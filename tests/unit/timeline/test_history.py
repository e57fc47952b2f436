"""An archived instant could be overlooked, because a file was left out, or counted twice; or a reader could fail
because an archival took its files away meanwhile."""

import pytest

from pyhudi.errors import CorruptFile, NotFound
from pyhudi.format.avro.container import encode_container
from pyhudi.format.avro.schema_files import schema_of
from pyhudi.format.timeline.action_files import encode_commit_avro
from pyhudi.format.timeline.instant import Instant
from pyhudi.format.timeline.lsm import HistoryFileName
from pyhudi.format.timeline.records import CommitMetadata
from pyhudi.storage.memory import MemoryStorage
from pyhudi.testing.counting import CountingStorage
from pyhudi.timeline import lsm_history
from pyhudi.timeline.active import Timeline
from pyhudi.timeline.history import NoHistory
from pyhudi.timeline.layout import timeline_layout
from pyhudi.timeline.log_history import LogHistory
from pyhudi.timeline.lsm_history import LsmHistory
from pyhudi.timeline.lsm_writer import ArchivedAction, append_actions, clean_history, compact_history
from pyhudi.txn.locks.hold import CertainHold
from tests.unit.format.timeline.test_archived_log import archive_file

FOLDER = "history"
HELD = CertainHold().confirm


def t(number: int) -> str:
    return f"20261121110000{number:03d}"


def instant(number: int, completed: int | None = None, action: str = "commit") -> Instant:
    return Instant(t(number), action, "COMPLETED", t(completed if completed is not None else number + 1))


def action(of: Instant) -> ArchivedAction:
    return ArchivedAction(of, encode_commit_avro(CommitMetadata({}, f"UPSERT {of.requested}")), None)


def archive(storage: MemoryStorage, *instants: Instant) -> None:
    name = HistoryFileName(instants[0].requested, instants[-1].requested, 0)
    append_actions(storage, FOLDER, map(action, instants), name, confirm=HELD)


@pytest.fixture
def storage() -> MemoryStorage:
    """Three files; the write requested at 2 completed last of all."""
    made = MemoryStorage()
    archive(made, instant(1), instant(2, 90), instant(3))
    archive(made, instant(10), instant(11, action="clean"), instant(12))
    archive(made, instant(20), instant(21))
    return made


def lsm(storage: MemoryStorage | CountingStorage, *, names_bound: bool = True) -> LsmHistory:
    return LsmHistory(storage, FOLDER, names_bound=names_bound)


def times(found: tuple[Instant, ...]) -> list[int]:
    return [int(i.requested[-3:]) for i in found]


def test_everything_by_requested_time(storage: MemoryStorage) -> None:
    assert times(lsm(storage).instants()) == [1, 2, 3, 10, 11, 12, 20, 21]


def test_an_empty_folder_is_an_empty_history() -> None:
    assert lsm(MemoryStorage()).instants() == ()
    with pytest.raises(NotFound, match=t(1)):
        lsm(MemoryStorage()).read_commit(instant(1))


@pytest.mark.parametrize(
    "start,end,after,found",
    [
        (10, None, None, [10, 11, 12, 20, 21]),
        (None, 10, None, [1, 2, 3, 10]),
        (12, 20, None, [12, 20]),
        (None, None, 12, [2, 12, 20, 21]),
        (None, 3, 12, [2]),
        (None, None, 90, []),
    ],
)
@pytest.mark.parametrize("names_bound", [True, False])
def test_bounds(
    storage: MemoryStorage, start: int | None, end: int | None, after: int | None, found: list[int], names_bound: bool
) -> None:
    bounds = [None if n is None else t(n) for n in (start, end, after)]

    answer = lsm(storage, names_bound=names_bound).instants(
        requested_from=bounds[0], requested_until=bounds[1], completed_after=bounds[2]
    )

    assert times(answer) == found


def test_files_are_left_out_by_their_names(storage: MemoryStorage) -> None:
    counting = CountingStorage(storage)

    lsm(counting).instants(requested_from=t(13), requested_until=t(30))

    assert counting.counts["get"] == 3  # the version, the manifest, the one file


def test_a_file_whose_rows_are_in_no_order_is_never_left_out() -> None:
    """As an upgrade leaves it: its name says less than it holds."""
    storage = MemoryStorage()
    archive(storage, instant(8), instant(9), instant(1), instant(2))
    archive(storage, instant(20), instant(25))

    assert times(lsm(storage).instants(requested_from=t(9), requested_until=t(9))) == [9]
    assert times(lsm(storage, names_bound=False).instants(requested_from=t(22), requested_until=t(25))) == [25]


def test_large_files_are_read_by_their_parts(storage: MemoryStorage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lsm_history, "WHOLE_FILE_MAX_BYTES", 10)
    counting = CountingStorage(storage)
    history = lsm(counting)

    assert times(history.instants(completed_after=t(21))) == [2, 21]
    assert history.read_commit(instant(2)).operation_type == f"UPSERT {t(2)}"
    assert counting.counts["open_input"] >= 3
    assert counting.counts["get"] == 2


def test_contents(storage: MemoryStorage) -> None:
    history = lsm(storage)

    for number in (21, 1, 3, 20, 2):
        assert history.read_commit(instant(number)).operation_type == f"UPSERT {t(number)}"
    with pytest.raises(NotFound, match=f"clean '{t(12)}'"):
        history.read_clean(instant(12, action="clean"))


def test_an_empty_completed_file_says_nothing() -> None:
    storage = MemoryStorage()
    name = HistoryFileName(t(1), t(2), 0)
    empty = [ArchivedAction(instant(1), None, None), ArchivedAction(instant(2, action="clean"), b"", None)]
    append_actions(storage, FOLDER, empty, name, confirm=HELD)

    assert lsm(storage).read_commit(instant(1)) == CommitMetadata()
    assert lsm(storage).read_clean(instant(2, action="clean")) is None


def test_a_missing_or_torn_version_file_means_the_largest_manifest(storage: MemoryStorage) -> None:
    for content in (None, b""):
        if content is None:
            storage.delete(f"{FOLDER}/_version_")
        else:
            storage.put(f"{FOLDER}/_version_", content)
        assert times(lsm(storage).instants()) == [1, 2, 3, 10, 11, 12, 20, 21]


def test_a_manifest_that_is_not_current_counts_for_nothing(storage: MemoryStorage) -> None:
    """A writer died between its manifest and the version file."""
    storage.put(f"{FOLDER}/_version_", b"1")

    assert times(lsm(storage).instants()) == [1, 2, 3]


def test_files_that_an_archival_takes_away_are_looked_for_anew(storage: MemoryStorage) -> None:
    history = lsm(storage)
    assert times(history.instants(requested_from=t(20))) == [20, 21]

    assert compact_history(storage, FOLDER, files_min=3, file_size_max_bytes=1 << 30, confirm=HELD) == 1
    clean_history(storage, FOLDER, manifests_kept=1)

    assert [f.path for f in storage.list(FOLDER)] == [
        f"{FOLDER}/{t(1)}_{t(21)}_1.parquet", f"{FOLDER}/_version_", f"{FOLDER}/manifest_4",
    ]  # fmt: skip
    assert history.read_commit(instant(1)).operation_type == f"UPSERT {t(1)}"
    assert times(history.instants()) == [1, 2, 3, 10, 11, 12, 20, 21]


def test_a_file_that_is_gone_for_good_is_an_error(storage: MemoryStorage) -> None:
    storage.delete(f"{FOLDER}/{t(1)}_{t(3)}_0.parquet")

    with pytest.raises(NotFound, match=r"_0\.parquet"):
        lsm(storage).instants()


@pytest.mark.parametrize("content", [b"", b"PAR1", b"not parquet at all"])
def test_a_damaged_file_is_corrupt(storage: MemoryStorage, content: bytes) -> None:
    path = f"{FOLDER}/{t(1)}_{t(3)}_0.parquet"
    storage.put(path, content)

    with pytest.raises(CorruptFile, match="Parquet file of archived instants") as caught:
        lsm(storage).instants()
    assert caught.value.path == path


# layout 1


def logs(*numbers: int) -> MemoryStorage:
    storage = MemoryStorage()
    for number in numbers:
        content = archive_file("cow_clean_archive_v6_h0150", number)
        storage.put(f"{FOLDER}/.commits_.archive.{number}_1-0-1", content)
    return storage


def test_archive_files_are_read_together_and_each_instant_once() -> None:
    storage = logs(1, 2, 3)
    storage.put(f"{FOLDER}/.commits_.archive.4_1-0-1", archive_file("cow_clean_archive_v6_h0150", 2))
    history = LogHistory(storage, FOLDER)

    found = history.instants()

    assert len(found) == 10
    assert [i.requested for i in found] == sorted({i.requested for i in found})
    assert history.read_commit(found[0]).operation_type == "INSERT"
    assert history.instants(requested_from=found[3].requested, requested_until=found[5].requested) == found[3:6]
    assert history.instants(completed_after=found[-2].completed) == found[-1:]


def test_a_merged_file_that_is_half_written_holds_nothing_while_its_plan_is_there() -> None:
    storage = logs(1)
    storage.put(f"{FOLDER}/.commits_.archive.2_1-0-1", b"#HUDI! broken")
    with pytest.raises(CorruptFile):
        LogHistory(storage, FOLDER).instants()

    record = {"version": 1, "candidate": [], "mergedArchiveFileName": ".commits_.archive.2_1-0-1"}
    storage.put(f"{FOLDER}/mergeArchivePlan", encode_container(schema_of("HoodieMergeArchiveFilePlan"), record))

    assert len(LogHistory(storage, FOLDER).instants()) == 2


def test_an_unknown_instant_is_not_found() -> None:
    with pytest.raises(NotFound, match="neither on the active timeline nor among the archived"):
        LogHistory(logs(1), FOLDER).read_commit(instant(1))
    with pytest.raises(NotFound):
        NoHistory().read_commit(instant(1))


# together with the active timeline

LAYOUT = timeline_layout({"hoodie.timeline.layout.version": "2", "hoodie.table.initial.version": "8"})


def timeline(storage: MemoryStorage, *active: Instant, until: str | None = None) -> Timeline:
    return Timeline(LAYOUT, active, until, lsm(storage))


def test_archived_and_active_together_each_once(storage: MemoryStorage) -> None:
    """An archival that died has left the newest archived ones on the timeline, too."""
    pending = Instant(t(40), "commit", "INFLIGHT")
    both = timeline(storage, instant(20), instant(21), instant(30), pending)

    assert times(both.with_archived()) == [1, 2, 3, 10, 11, 12, 20, 21, 30, 40]
    assert times(both.archived_writes()) == [1, 2, 3, 10, 12]


def test_a_reader_who_travels_back_sees_no_later_archived_write(storage: MemoryStorage) -> None:
    assert times(timeline(storage, instant(30), until=t(10)).archived_writes()) == [1, 2, 3, 10]


def test_completion_times_of_archived_writes(storage: MemoryStorage) -> None:
    both = timeline(storage, instant(30, 35), Instant(t(40), "commit", "INFLIGHT"))

    assert both.completion_time(t(30)) == t(35)
    assert both.completion_time(t(2)) == t(90)
    assert both.completion_time(t(40)) is None
    assert both.completion_time(t(5)) is None


def test_only_tables_that_were_never_upgraded_have_names_that_bound() -> None:
    assert LAYOUT.has_sorted_history
    for initial in ({}, {"hoodie.table.initial.version": "6"}):
        assert not timeline_layout({"hoodie.timeline.layout.version": "2", **initial}).has_sorted_history
