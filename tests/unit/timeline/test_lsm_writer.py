"""What is archived could be lost in a merge, be taken away while a manifest still lists it, or be written in a way
that Apache Hudi does not read. Rows must come through every merge; files must be as Apache Hudi's."""

import io
from functools import cache

import pyarrow.parquet as pq
import pytest

from pyhudi.errors import Conflict, CorruptFile, LockLost
from pyhudi.format.timeline.instant import Instant
from pyhudi.format.timeline.lsm import HISTORY_SCHEMA, METADATA, PLAN, HistoryFileName, decode_manifest
from pyhudi.storage.memory import MemoryStorage
from pyhudi.timeline import lsm_writer
from pyhudi.timeline.lsm_history import LsmHistory, read_manifest
from pyhudi.timeline.lsm_writer import ArchivedAction, append_actions, clean_history, compact_history
from pyhudi.txn.locks.hold import CertainHold
from tests.unit.format.timeline.test_lsm import TABLES, history_entries

FOLDER = "history"
LARGE = 1 << 30
HELD = CertainHold().confirm


def t(number: int) -> str:
    return f"20261121110000{number:03d}"


def append(storage: MemoryStorage, *numbers: int, size: int = 100) -> None:
    actions = [ArchivedAction(Instant(t(n), "commit", "COMPLETED", t(n + 1)), b"x" * size, None) for n in numbers]
    append_actions(storage, FOLDER, actions, HistoryFileName(t(numbers[0]), t(numbers[-1]), 0), confirm=HELD)


def names(storage: MemoryStorage) -> list[str]:
    return [file.path.rpartition("/")[2] for file in storage.list(FOLDER)]


def known(storage: MemoryStorage) -> list[str]:
    return [i.requested for i in LsmHistory(storage, FOLDER, names_bound=True).instants()]


def layers(storage: MemoryStorage) -> list[int]:
    return [file.name.layer for file in read_manifest(storage, FOLDER).files]


@cache
def golden_files(table: str) -> dict[str, bytes]:
    return history_entries(table, ".parquet")


@pytest.mark.parametrize("table", [*TABLES, "mor_clean_archive_v9_h120"])
def test_files_hold_what_those_of_apache_hudi_hold(table: str) -> None:
    """Its rows, written by us: equal rows, types, names, codec and statistics."""
    assert golden_files(table)
    for path, content in golden_files(table).items():
        name = HistoryFileName.parse(path.rpartition("/")[2])
        theirs = pq.ParquetFile(io.BytesIO(content))
        rows = theirs.read()
        assert name is not None
        storage = MemoryStorage()
        actions = [
            ArchivedAction(
                Instant(row["instantTime"], row["action"], "COMPLETED", row["completionTime"]),
                row["metadata"],
                row["plan"],
            )
            for row in rows.to_pylist()
        ]

        name = HistoryFileName(name.first, name.last, 0)
        append_actions(storage, FOLDER, actions, name, confirm=HELD)

        ours = pq.ParquetFile(io.BytesIO(storage.get(f"{FOLDER}/{name.format()}")))
        assert ours.read().equals(rows.cast(HISTORY_SCHEMA))
        assert ours.schema_arrow.metadata == theirs.schema_arrow.metadata
        assert [described(ours, c) for c in range(6)] == [described(theirs, c) for c in range(6)]
        (entry,) = read_manifest(storage, FOLDER).files
        assert entry.size_bytes == storage.head(f"{FOLDER}/{name.format()}").size_bytes  # type: ignore[union-attr]


def described(parquet: pq.ParquetFile, column: int) -> tuple[object, ...]:
    """Type, codec and bounds of a column; small contents have bounds in files of Apache Hudi, which nobody uses."""
    of, chunk = parquet.schema.column(column), parquet.metadata.row_group(0).column(column)
    has_range = of.name not in (METADATA, PLAN) and chunk.statistics is not None and chunk.statistics.has_min_max
    bounds = (chunk.statistics.min, chunk.statistics.max) if has_range else None
    levels = of.max_definition_level, of.max_repetition_level
    return of.name, of.physical_type, str(of.logical_type), levels, chunk.compression, bounds


def test_files_of_one_layer_are_merged_into_the_next() -> None:
    storage = MemoryStorage()
    for first in range(1, 8, 2):
        append(storage, first, first + 1)
    assert compact_history(storage, FOLDER, files_min=5, file_size_max_bytes=LARGE, confirm=HELD) == 0

    assert compact_history(storage, FOLDER, files_min=3, file_size_max_bytes=LARGE, confirm=HELD) == 1

    assert layers(storage) == [0, 1]
    assert f"{t(1)}_{t(6)}_1.parquet" in names(storage)
    assert known(storage) == [t(n) for n in range(1, 9)]
    assert compact_history(storage, FOLDER, files_min=3, file_size_max_bytes=LARGE, confirm=HELD) == 0


def test_a_merge_may_make_the_next_one_due() -> None:
    storage = MemoryStorage()
    merges = 0
    for number in range(1, 28):
        append(storage, number)
        merges += compact_history(storage, FOLDER, files_min=3, file_size_max_bytes=LARGE, confirm=HELD)
        clean_history(storage, FOLDER, manifests_kept=1)

    assert merges == 9 + 3 + 1
    assert layers(storage) == [3]
    assert known(storage) == [t(n) for n in range(1, 28)]
    assert len(names(storage)) == 3


def test_a_merge_takes_no_more_once_it_is_large() -> None:
    storage = MemoryStorage()
    for number in (1, 2, 3):
        append(storage, number)
    size_bytes = read_manifest(storage, FOLDER).files[0].size_bytes

    assert compact_history(storage, FOLDER, files_min=3, file_size_max_bytes=size_bytes - 1, confirm=HELD) == 0
    assert compact_history(storage, FOLDER, files_min=3, file_size_max_bytes=size_bytes, confirm=HELD) == 1
    assert sorted(layers(storage)) == [0, 1]
    assert known(storage) == [t(1), t(2), t(3)]


def test_a_damaged_file_stops_its_merge_and_nothing_is_lost() -> None:
    storage = MemoryStorage()
    for number in (1, 2, 3):
        append(storage, number)
    before = read_manifest(storage, FOLDER)
    storage.put(f"{FOLDER}/{t(2)}_{t(2)}_0.parquet", b"PAR1")

    with pytest.raises(CorruptFile):
        compact_history(storage, FOLDER, files_min=3, file_size_max_bytes=LARGE, confirm=HELD)

    assert read_manifest(storage, FOLDER) == before


def test_old_manifests_and_what_only_they_list_go() -> None:
    storage = MemoryStorage()
    for number in (1, 2, 3):
        append(storage, number)
    compact_history(storage, FOLDER, files_min=3, file_size_max_bytes=LARGE, confirm=HELD)
    storage.put(f"{FOLDER}/{t(50)}_{t(51)}_0.parquet", b"of a writer that died")

    clean_history(storage, FOLDER, manifests_kept=4)
    assert len(names(storage)) == 1 + 4 + 5  # nothing is stale yet

    clean_history(storage, FOLDER, manifests_kept=2)
    assert sorted(names(storage)) == [
        *(f"{t(n)}_{t(n)}_0.parquet" for n in (1,)), f"{t(1)}_{t(3)}_1.parquet",
        *(f"{t(n)}_{t(n)}_0.parquet" for n in (2, 3)), "_version_", "manifest_3", "manifest_4",
    ]  # fmt: skip

    clean_history(storage, FOLDER, manifests_kept=1)
    assert names(storage) == [f"{t(1)}_{t(3)}_1.parquet", "_version_", "manifest_4"]
    assert known(storage) == [t(1), t(2), t(3)]


def test_the_current_manifest_stays_however_old_it_is() -> None:
    """Writers died after their manifests and before the version file, again and again."""
    storage = MemoryStorage()
    append(storage, 1)
    for number in (2, 3, 4):
        storage.put(f"{FOLDER}/manifest_{number}", b'{"files": []}')

    clean_history(storage, FOLDER, manifests_kept=2)

    assert names(storage) == [f"{t(1)}_{t(1)}_0.parquet", "_version_", "manifest_1", "manifest_3", "manifest_4"]
    assert known(storage) == [t(1)]


def test_a_manifest_that_a_dead_writer_left_is_neither_followed_nor_written_over() -> None:
    storage = MemoryStorage()
    append(storage, 1)
    storage.put(f"{FOLDER}/manifest_2", b'{"files": []}')

    append(storage, 2)

    assert storage.get(f"{FOLDER}/_version_") == b"3"
    assert storage.get(f"{FOLDER}/manifest_2") == b'{"files": []}'
    assert len(decode_manifest(storage.get(f"{FOLDER}/manifest_3"), path="m")) == 2


def test_two_archivals_at_one_moment_do_not_both_land(monkeypatch: pytest.MonkeyPatch) -> None:
    storage = MemoryStorage()
    append(storage, 1)
    monkeypatch.setattr(lsm_writer, "manifest_numbers", lambda storage, folder: [])

    append(storage, 2)
    storage.put(f"{FOLDER}/_version_", b"1")

    with pytest.raises(Conflict, match="manifest_2: another writer archives"):
        append(storage, 3)


def test_a_history_that_moved_on_meanwhile_is_not_set_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another writer, who does not heed the guard, archived between our look at the history and our change."""
    storage = MemoryStorage()
    append(storage, 1)
    before = read_manifest(storage, FOLDER)
    append(storage, 2)
    monkeypatch.setattr(lsm_writer, "read_manifest", lambda storage, folder: before)

    with pytest.raises(Conflict, match="_version_: another writer archived"):
        append(storage, 3)

    assert known(storage) == [t(1), t(2)]


def test_nothing_changes_for_readers_once_the_table_is_not_held_any_more() -> None:
    storage = MemoryStorage()
    append(storage, 1)

    def lost() -> None:
        raise LockLost("the lease ended")

    actions = [ArchivedAction(Instant(t(2), "commit", "COMPLETED", t(3)), None, None)]
    with pytest.raises(LockLost):
        append_actions(storage, FOLDER, actions, HistoryFileName(t(2), t(2), 0), confirm=lost)
    assert known(storage) == [t(1)]
    assert "manifest_2" not in names(storage)


def test_contents_are_written_in_groups_of_bounded_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lsm_writer, "ROW_GROUP_MAX_BYTES", 250)
    storage = MemoryStorage()
    append(storage, 1, 2, 3, 4, 5)

    (file,) = [path for path in names(storage) if path.endswith(".parquet")]
    parquet = pq.ParquetFile(io.BytesIO(storage.get(f"{FOLDER}/{file}")))
    assert [parquet.metadata.row_group(n).num_rows for n in range(parquet.num_row_groups)] == [3, 2]
    assert known(storage) == [t(n) for n in range(1, 6)]
    history = LsmHistory(storage, FOLDER, names_bound=True)
    assert history.read_content(Instant(t(5), "commit", "COMPLETED"))[0] == b"x" * 100
