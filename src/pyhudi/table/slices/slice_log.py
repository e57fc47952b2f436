"""The blocks of a file slice's log that a reader is to merge, oldest first."""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final, TypeAlias

from pyhudi.format.log.block import MAGIC, BlockType, LogBlock
from pyhudi.format.log.headers import block_identifier, compacted_instants, instant_time, rolled_back_instant
from pyhudi.format.log.reader import scan_log
from pyhudi.format.log.source import LogSource, MemoryLog
from pyhudi.format.names import join
from pyhudi.storage.protocol import Storage
from pyhudi.table.view.file_system_view import FileSlice, SourceFile
from pyhudi.table.view.missing_files import told_as_missing
from pyhudi.table.view.stored_file import StoredFile

log = logging.getLogger("pyhudi")

DATA_TYPES = (BlockType.AVRO_DATA, BlockType.HFILE_DATA, BlockType.PARQUET_DATA)

ONE_GET_SIZE_MAX: Final = 1 << 20
"""A file of at most so many bytes is read whole: several reads of ranges would cost more."""

WHOLE_LOG_BYTES_MAX: Final = 64 << 10
"""A scan reads a log of at most so many bytes at once: its first request fetches as much anyway."""

HELD_BYTES_MAX: Final = 16 << 20
"""Bytes of a slice's small logs that a scan holds."""

REQUESTS_AT_ONCE: Final = 16

Blocks = Mapping[str, Sequence[LogBlock]]


def log_source(storage: Storage, path: str, size_bytes: int) -> tuple[str, LogSource, int]:
    """A log file in the form that `slice_blocks` takes. A small file is read at once, a large one in ranges."""
    if size_bytes > ONE_GET_SIZE_MAX:
        return path, StoredFile(storage, path), size_bytes
    with told_as_missing(path):
        content = storage.get(path)
    return path, MemoryLog(content), len(content)


def log_sources(storage: Storage, file_slice: FileSlice) -> Iterator[tuple[str, LogSource, int]]:
    """The logs of a slice, oldest first."""
    return (
        log_source(storage, join(file_slice.partition, log.name.format()), log.size_bytes)
        for log in file_slice.log_files
    )


def sources_of_logs(storage: Storage, logs: Sequence[tuple[str, int]]) -> Iterator[tuple[str, LogSource, int]]:
    """Log files (path, bytes) in the form that `slice_blocks` takes. Small ones are read at once, up to a memory limit.

    Requests: one for each small log, several at a time from a distant store. None yet for the other logs.
    Memory: `HELD_BYTES_MAX`, as long as one of their blocks is referenced.
    """
    held: list[tuple[str, int]] = []
    left_bytes = HELD_BYTES_MAX

    for path, size_bytes in logs:
        if len(MAGIC) <= size_bytes <= min(WHOLE_LOG_BYTES_MAX, left_bytes):
            held.append((path, size_bytes))
            left_bytes -= size_bytes
    contents = dict(zip((path for path, _ in held), _get_whole(storage, held), strict=True))

    for path, size_bytes in logs:
        content = contents.get(path)
        source = StoredFile(storage, path) if content is None else MemoryLog(content)
        yield path, source, size_bytes


def _get_whole(storage: Storage, logs: Sequence[tuple[str, int]]) -> Iterator[bytes]:
    """The content of each log, up to the size that it was listed with."""

    def get(log: tuple[str, int]) -> bytes:
        return StoredFile(storage, log[0]).read_at(0, log[1])

    if storage.location.is_near or len(logs) < 2:
        yield from map(get, logs)
        return
    with ThreadPoolExecutor(min(REQUESTS_AT_ONCE, len(logs)), thread_name_prefix="pyhudi-logs") as pool:
        yield from pool.map(get, logs)


@dataclass(frozen=True, slots=True)
class SliceFiles:
    """A slice's files, by paths relative to the table. `base_instant`: that of the base file, if there is one.

    `source`: as in `FileSlice`.
    """

    base_path: str | None
    base_instant: str
    logs: tuple[tuple[str, int], ...]
    source: SourceFile | None = None

    @property
    def partition(self) -> str:
        return (self.base_path or self.logs[0][0]).rpartition("/")[0]


@dataclass(slots=True)
class LogTally:
    """Counts of what a reader found in a slice's log and made of it, added up while it reads.

    `blocks`: blocks of rows and deletes, including those that were rolled back or replaced. `records`: records of the
    blocks that count. `keys`: distinct keys of these records. `updated`, `inserted`: rows of the answer that the log
    changed or added. `deleted`: keys that the log deleted, whether a row with the key was stored or not.
    """

    blocks: int = 0
    torn_blocks: int = 0
    rollback_blocks: int = 0
    records: int = 0
    keys: int = 0
    updated: int = 0
    inserted: int = 0
    deleted: int = 0


def slice_files(file_slice: FileSlice) -> SliceFiles:
    """The files of a slice to be read with its logs."""
    base = file_slice.base_file
    return SliceFiles(
        base_path=join(file_slice.partition, base.name.format()) if base is not None else None,
        base_instant=file_slice.base_instant,
        logs=tuple((join(file_slice.partition, log.name.format()), log.size_bytes) for log in file_slice.log_files),
        source=file_slice.source,
    )


Counts: TypeAlias = Callable[[str], bool]
"""Whether what an instant wrote into a log counts."""


def any_write(instant: str) -> bool:
    """Counts whatever is there: for logs that one action wrote, which has not completed yet."""
    return True


def slice_blocks(
    logs: Iterable[tuple[str, LogSource, int]],
    is_visible: Callable[[str], bool],
    tally: LogTally | None = None,
    *,
    is_whole: bool = False,
) -> list[LogBlock]:
    """The data and delete blocks to merge, in the order in which they count. Their contents stay in the files.

    `logs`: path, source and bytes of each log file, in reading order. `is_visible`: whether a reader may see what an
    instant wrote. `is_whole`: these are all logs of a slice, so that what a log compaction merged is in the slice's
    base file if it is not here: see `_compacted_order`. Left out are blocks that were rolled back, and blocks that a
    log compaction merged into a new block: the new block stands in for them. A torn block, left by a writer that died,
    is passed over with a warning. A log too small for a block is not read. Seen: a rollback of 0.15.0 lists the logs
    that markers name with a size of 1, whether or not they were ever written (`MarkerBasedRollbackStrategy`).

    Requests: as `scan_log`. Spec: format/log-format.md section 5. Raises: CorruptFile for damage that no dying writer
    leaves.
    """
    found = tally if tally is not None else LogTally()
    by_instant: dict[str, list[LogBlock]] = {}

    for path, source, size_bytes in logs:
        if size_bytes < len(MAGIC):
            continue

        for block in scan_log(source, size_bytes, path=path):
            if block.damage is not None:
                if not block.damage.is_torn:
                    raise block.damage.error
                found.torn_blocks += 1
                log.warning(
                    "%s: %d bytes that a writer left which died are passed over", block.damage.error, block.size
                )
            elif block.type is BlockType.COMMAND:
                found.rollback_blocks += 1
                by_instant.pop(rolled_back_instant(block), None)
            elif block.type in (*DATA_TYPES, BlockType.DELETE) and is_visible(instant_time(block)):
                found.blocks += 1
                by_instant.setdefault(instant_time(block), []).append(block)

    whole = {instant: _of_best_attempt(blocks) for instant, blocks in by_instant.items()}
    return [block for instant in _compacted_order(whole, is_whole=is_whole) for block in whole[instant]]


def _of_best_attempt(blocks: list[LogBlock]) -> list[LogBlock]:
    """The blocks of the attempt that wrote most blocks. A task of 0.14 that was retried wrote its blocks repeatedly."""
    attempts = [block_identifier(block) for block in blocks]
    if any(one is None for one in attempts):
        return blocks

    by_attempt: dict[int, dict[int, LogBlock]] = {}
    for one, block in zip(attempts, blocks, strict=True):
        assert one is not None
        by_attempt.setdefault(one[0], {})[one[1]] = block

    best = max(by_attempt, key=lambda attempt: len(by_attempt[attempt]))
    return [by_attempt[best][number] for number in sorted(by_attempt[best])]


def _compacted_order(blocks: Blocks, *, is_whole: bool) -> list[str]:
    """The instants whose blocks count, oldest first. A log compaction stands where its newest source stood.

    Example: writes 1, 2 and 3, then a log compaction 4 of 1 and 2: the order is 4, 3. A log compaction without any of
    its sources does not count in the whole log of a slice: a compaction has merged them into the base file, and later
    writes perhaps. Seen: Apache Hudi plans compactions beside running log compactions, and passes over these (1.2.0).
    Elsewhere it keeps its own position. Spec: format/log-format.md section 5, step 4.
    """
    # Newest first, so that a log compaction which was itself compacted leads to the last one.
    into: dict[str, str] = {}
    for instant in reversed(list(blocks)):
        for source in compacted_instants(blocks[instant][0]):
            into.setdefault(source, into.get(instant, instant))

    own: dict[str, int] = {}
    by_source: dict[str, int] = {}
    for position, instant in enumerate(blocks):
        positions = own if compacted_instants(blocks[instant][0]) else by_source
        positions[into.get(instant, instant)] = position
    if is_whole:
        return sorted(by_source, key=by_source.__getitem__)
    return sorted({**own, **by_source}, key=lambda instant: by_source.get(instant, own.get(instant, 0)))
