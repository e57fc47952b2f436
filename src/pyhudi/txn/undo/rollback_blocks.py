"""Rolling back writes to logs that are named after their file slice: a command block voids what a write logged.

Up to table version 6 a log's name does not tell which write made the log. On stores that append, several writes may
have written to one log. Such a log stays; the next log of its slice holds a command block, which says that the
blocks of the rolled-back instant no longer count.

Spec: format/actions.md sections 5.2 and 5.3.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby

from pyhudi.errors import Conflict
from pyhudi.format.log.headers import instant_time
from pyhudi.format.log.reader import scan_log
from pyhudi.format.log.writer import encode_rollback_block
from pyhudi.format.names import BaseFileName, LogFileName, MarkerName, WriteToken, join
from pyhudi.format.timeline.records import RollbackRequest
from pyhudi.storage.protocol import Storage
from pyhudi.table.view.listing import StorageListing
from pyhudi.table.view.stored_file import StoredFile

ROLLBACK_TOKEN = WriteToken(partition_number=1, stage=0, attempt=1).format()
"""Seen: 0.15.0."""


def requests_by_blocks(
    storage: Storage, requested: str, markers: list[MarkerName] | None
) -> tuple[RollbackRequest, ...]:
    """The requests of a rollback for the files that a write touched.

    Files that carry the write's time are deleted. Logs of older slices get a command block; a log that a marker names
    but that was never made gets none. Requests: one head per log that markers name. Without markers, one listing per
    partition, and the block headers of every log.
    """
    paths = _marked(storage, markers) if markers is not None else _found(storage, requested)
    root = storage.location.uri.rstrip("/")
    gone: dict[str, list[str]] = {}
    voided: dict[tuple[str, str, str], dict[str, int]] = {}

    for path, size_bytes in paths:
        partition, _, text = path.rpartition("/")
        log = LogFileName.parse(text)
        if log is None or log.instant == requested:
            gone.setdefault(partition, []).append(f"{root}/{path}")
        elif size_bytes is not None:
            voided.setdefault((partition, log.file_id, log.instant), {})[f"{root}/{path}"] = size_bytes

    deletions = (
        RollbackRequest(partition, files_to_be_deleted=tuple(files)) for partition, files in sorted(gone.items())
    )
    blocks = (
        RollbackRequest(partition, file_id, base_instant, log_blocks_to_be_deleted=logs)
        for (partition, file_id, base_instant), logs in sorted(voided.items())
    )
    return (*deletions, *blocks)


def put_command_blocks(
    storage: Storage, requests: Iterable[RollbackRequest], *, rollback: str, target: str
) -> dict[str, dict[str, int]]:
    """Write the command blocks of a plan. Returns partition -> absolute path of the new log -> its size in bytes.

    Can be repeated: a block that an earlier attempt at this rollback has written stays and is not written again.
    One list request per partition.
    """
    block = encode_rollback_block(instant_time=rollback, target_instant_time=target)
    wanted = [request for request in requests if request.log_blocks_to_be_deleted]
    root = storage.location.uri.rstrip("/")
    written: dict[str, dict[str, int]] = {}

    for partition, partition_requests in groupby(wanted, key=lambda request: request.partition_path):
        names = [LogFileName.parse(file.name) for file in StorageListing(storage).files(partition)]
        for request in partition_requests:
            group = request.file_id, request.latest_base_instant
            logs = [log for log in names if log is not None and (log.file_id, log.instant) == group]
            name = _put_block(storage, partition, request, logs, block)
            written.setdefault(partition, {})[f"{root}/{join(partition, name)}"] = len(block)
    return written


def _put_block(
    storage: Storage, partition: str, request: RollbackRequest, logs: list[LogFileName], block: bytes
) -> str:
    # An earlier attempt of this rollback may have put the block already.
    for log in logs:
        if log.write_token == ROLLBACK_TOKEN:
            path = join(partition, log.format())
            info = storage.head(path)
            if info is not None and info.size_bytes == len(block) and storage.get(path) == block:
                return log.format()

    assert request.file_id
    assert request.latest_base_instant
    version = max((log.version for log in logs), default=0) + 1
    name = LogFileName(request.file_id, request.latest_base_instant, version, ROLLBACK_TOKEN).format()
    if not storage.put_new(join(partition, name), block):
        raise Conflict(f"{join(partition, name)}: another writer wrote this log while a rollback was under way; retry")
    return name


def _marked(storage: Storage, markers: list[MarkerName]) -> Iterator[tuple[str, int | None]]:
    """The files that markers name. Each log comes with its size in bytes, or None when the log does not exist."""
    for marker in markers:
        info = storage.head(marker.data_path) if LogFileName.parse(_name(marker.data_path)) is not None else None
        yield marker.data_path, info.size_bytes if info is not None else None


def _found(storage: Storage, requested: str) -> Iterator[tuple[str, int | None]]:
    """The files whose names carry an instant's time, and the logs that hold blocks of that instant."""
    listing = StorageListing(storage)
    for partition in listing.partitions():
        for file in listing.files(partition):
            base, log = BaseFileName.parse(file.name), LogFileName.parse(file.name)
            path = join(partition, file.name)
            is_own = (base.requested if base else log.instant if log else None) == requested
            if is_own or (log is not None and _has_block_of(storage, path, file.size_bytes, requested)):
                yield path, file.size_bytes


def _has_block_of(storage: Storage, path: str, size_bytes: int, requested: str) -> bool:
    blocks = scan_log(StoredFile(storage, path), size_bytes, path=path)
    return any(block.damage is None and instant_time(block) == requested for block in blocks)


def partition_logs(requests: Iterable[RollbackRequest]) -> Mapping[str, dict[str, int]]:
    """Partition -> log of the failed write -> size in bytes, as the plan's requests name them."""
    found: dict[str, dict[str, int]] = {}
    for request in requests:
        if request.log_blocks_to_be_deleted:
            found.setdefault(request.partition_path, {}).update(request.log_blocks_to_be_deleted)
    return found


def _name(path: str) -> str:
    return path.rpartition("/")[2]
