"""Writes the archived timeline of layout 2: adds files, merges them into larger files, deletes what nobody needs.

Only the current manifest says which files count. A change writes its file first, then a manifest with a new number,
then this number as `_version_`, whole and in one step. A crash before that last step has changed nothing that a reader
sees. The caller holds the table's guard. `confirm` is called before each change that readers see, and raises if the
guard is lost.

Spec: format/timeline.md section 5.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from pyhudi.errors import Conflict
from pyhudi.format.avro.schema_files import schema_of
from pyhudi.format.timeline.instant import Instant
from pyhudi.format.timeline.lsm import (
    ACTION,
    COMPLETION_TIME,
    HISTORY_SCHEMA,
    INSTANT_TIME,
    LAYER_MAX,
    ROW_VERSION,
    VERSION,
    VERSION_FILE,
    HistoryFile,
    HistoryFileName,
    decode_manifest,
    encode_manifest,
    manifest_name,
    manifest_number,
)
from pyhudi.storage.protocol import Storage
from pyhudi.timeline.lsm_history import (
    Manifest,
    manifest_numbers,
    open_history_file,
    read_current_number,
    read_manifest,
)

ROW_GROUP_MAX_BYTES = 32 << 20
"""Contents are collected up to this size, then written as a row group. A writer holds no more than that."""


@dataclass(frozen=True, slots=True)
class ArchivedAction:
    """A completed instant to archive: the bytes of its completed file, and of its plan if it had one."""

    instant: Instant
    metadata: bytes | None
    plan: bytes | None


def append_actions(
    storage: Storage,
    folder: str,
    actions: Iterable[ArchivedAction],
    name: HistoryFileName,
    *,
    confirm: Callable[[], None],
) -> None:
    """Add a file of layer 0 to the archived timeline, with these actions in the order of their requested times.

    Memory: the contents of one row group.
    """
    assert name.layer == 0
    size_bytes = _write_file(storage, f"{folder}/{name.format()}", _batches(actions))
    current = read_manifest(storage, folder)
    kept = tuple(file for file in current.files if file.name != name)
    _write_manifest(storage, folder, current, (*kept, HistoryFile(name, size_bytes)), confirm)


def compact_history(
    storage: Storage, folder: str, *, files_min: int, file_size_max_bytes: int, confirm: Callable[[], None]
) -> int:
    """Merge the oldest files of each layer into one file of the next layer. Returns how many merges were done.

    A layer is merged if it has at least `files_min` files. As many files are taken, or fewer if their sizes together
    exceed `file_size_max_bytes`. The merged files stay for readers of older manifests, until `clean_history`.
    """
    assert files_min >= 2

    merges = 0
    for layer in range(LAYER_MAX):
        current = read_manifest(storage, folder)
        files = sorted((f for f in current.files if f.name.layer == layer), key=lambda file: file.name.format())
        chosen = _merge_candidates(files[:files_min], file_size_max_bytes) if len(files) >= files_min else []
        if len(chosen) < 2:
            break

        merged = HistoryFileName(
            min(file.name.first for file in chosen), max(file.name.last for file in chosen), layer + 1
        )
        size_bytes = _write_file(storage, f"{folder}/{merged.format()}", _rows_of(storage, folder, chosen))
        kept = tuple(file for file in current.files if file not in chosen)
        _write_manifest(storage, folder, current, (*kept, HistoryFile(merged, size_bytes)), confirm)
        merges += 1

    return merges


def clean_history(storage: Storage, folder: str, *, manifests_kept: int) -> None:
    """Delete all but the newest manifests, then the files that no remaining manifest lists.

    Requests: one list; if there is something to delete, also a get for each manifest that stays.
    """
    assert manifests_kept >= 1
    current = read_manifest(storage, folder)

    names = [file.path.rpartition("/")[2] for file in storage.list(folder)]
    numbers = sorted((n for n in (manifest_number(name) for name in names) if n is not None), reverse=True)
    kept = {*numbers[:manifests_kept], current.number}
    stale = [number for number in numbers if number not in kept]
    if not stale:
        return

    needed = {file.name.format() for file in current.files}
    for number in kept - {current.number}:
        needed |= {file.name.format() for file in _read_numbered(storage, folder, number)}

    storage.delete_many(f"{folder}/{manifest_name(number)}" for number in stale)
    storage.delete_many(f"{folder}/{n}" for n in names if HistoryFileName.parse(n) is not None and n not in needed)


def remove_sorted_files(storage: Storage, folder: str) -> None:
    """Remove an archived timeline, `_version_` first. Other files in its folder stay. One list request."""
    names = [file.path.rpartition("/")[2] for file in storage.list(folder)]
    storage.delete(f"{folder}/{VERSION_FILE}")
    ours = (name for name in names if manifest_number(name) is not None or HistoryFileName.parse(name) is not None)
    storage.delete_many(f"{folder}/{name}" for name in ours)


def _read_numbered(storage: Storage, folder: str, number: int) -> tuple[HistoryFile, ...]:
    path = f"{folder}/{manifest_name(number)}"
    return decode_manifest(storage.get(path), path=path)


def _merge_candidates(files: list[HistoryFile], size_max_bytes: int) -> list[HistoryFile]:
    chosen: list[HistoryFile] = []
    for file in files:
        if sum(f.size_bytes for f in chosen) > size_max_bytes:
            break
        chosen.append(file)
    return chosen


def _write_manifest(
    storage: Storage,
    folder: str,
    current: Manifest,
    files: tuple[HistoryFile, ...],
    confirm: Callable[[], None],
) -> None:
    """Make these files the archived timeline, by a new manifest. The manifest of a dead writer is never overwritten.

    Raises: Conflict if a writer that ignores the table's guard archives at the same moment.
    """
    confirm()
    number = max((*manifest_numbers(storage, folder), current.number)) + 1
    if not storage.put_new(f"{folder}/{manifest_name(number)}", encode_manifest(files)):
        raise Conflict(f"{folder}/{manifest_name(number)}: another writer archives at this moment; retry")
    if read_current_number(storage, folder, before=number) != current.number:
        raise Conflict(f"{folder}/{VERSION_FILE}: another writer archived at this moment; retry")
    storage.put(f"{folder}/{VERSION_FILE}", str(number).encode())


def _write_file(storage: Storage, path: str, groups: Iterable[pa.Table]) -> int:
    """Write a Parquet file as Apache Hudi does, with a row group for each table. Returns the file's size in bytes.

    Only the times, the action and the version have statistics: those of the contents would be as large as the contents.
    """
    with storage.put_stream(path) as sink:
        with _parquet_writer(sink) as writer:
            for rows in groups:
                writer.write_table(rows, row_group_size=max(len(rows), 1))
        return sink.tell()


@contextmanager
def _parquet_writer(sink: BinaryIO) -> Iterator[pq.ParquetWriter]:
    with pq.ParquetWriter(
        sink,
        HISTORY_SCHEMA,
        version="1.0",
        compression="gzip",
        use_dictionary=[ACTION, VERSION],
        write_statistics=[INSTANT_TIME, COMPLETION_TIME, ACTION, VERSION],
        store_schema=False,
    ) as writer:
        avro = schema_of("HoodieLSMTimelineInstant")
        writer.add_key_value_metadata({"parquet.avro.schema": avro, "writer.model.name": "avro"})
        yield writer


def _batches(actions: Iterable[ArchivedAction]) -> Iterator[pa.Table]:
    collected: list[ArchivedAction] = []
    size_bytes = 0
    for action in actions:
        collected.append(action)
        size_bytes += len(action.metadata or b"") + len(action.plan or b"")
        if size_bytes >= ROW_GROUP_MAX_BYTES:
            yield _table(collected)
            collected, size_bytes = [], 0
    if collected:
        yield _table(collected)


def _table(actions: list[ArchivedAction]) -> pa.Table:
    columns = [
        pa.array([a.instant.requested for a in actions], pa.string()),
        pa.array([a.instant.completed for a in actions], pa.string()),
        pa.array([a.instant.comparable_action for a in actions], pa.string()),
        pa.array([a.metadata or None for a in actions], pa.binary()),
        pa.array([a.plan or None for a in actions], pa.binary()),
        pa.array([ROW_VERSION] * len(actions), pa.int32()),
    ]
    return pa.Table.from_arrays(columns, schema=HISTORY_SCHEMA)


def _rows_of(storage: Storage, folder: str, files: list[HistoryFile]) -> Iterator[pa.Table]:
    """The rows of all files, one file after the other, row group by row group."""
    for file in files:
        with open_history_file(storage, folder, file) as parquet:
            for group in range(parquet.num_row_groups):
                yield parquet.read_row_group(group, columns=HISTORY_SCHEMA.names).cast(HISTORY_SCHEMA)
