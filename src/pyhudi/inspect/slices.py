"""The files of a table as rows: every file slice, or the newest of each file group."""

from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase

from pyhudi.api.table import HudiTable
from pyhudi.table.view.file_system_view import FileSlice, LogFile, all_slices
from pyhudi.table.view.snapshot import log_slicing


@dataclass(frozen=True, slots=True)
class ShownSlice:
    """A file slice. `base_path`: absolute; empty where it has logs only, and then `base_size_bytes` is -1.

    `scheduled_logs`, `unscheduled_logs`: logs of the slice's own instant, and later ones.
    """

    slice: FileSlice
    base_path: str
    base_size_bytes: int
    log_paths: tuple[str, ...]
    scheduled_logs: tuple[LogFile, ...]
    unscheduled_logs: tuple[LogFile, ...]

    @property
    def log_size_bytes(self) -> int:
        return self.slice.log_bytes

    @property
    def scheduled_bytes(self) -> int:
        return sum(log.size_bytes for log in self.scheduled_logs)

    @property
    def unscheduled_bytes(self) -> int:
        return sum(log.size_bytes for log in self.unscheduled_logs)


def read_slices(table: HudiTable, *, newest_only: bool = False, below: str = "") -> Iterator[ShownSlice]:
    """The file slices of completed writes. `newest_only`: those that a reader sees now.

    `below`: of this partition and those below it; `*`, `?` and `[…]` stand for texts. Any `/*` at its end is passed
    over. One listing of each partition.
    """
    below = below.strip("/")
    while below.endswith("/*"):
        below = below.removesuffix("/*")
    snapshot = table._access.snapshot()
    for partition in snapshot.listing.partitions():
        if below and not (_is_below(partition, below) or fnmatchcase(partition, below)):
            continue
        if newest_only:
            found = snapshot.slices(partition)
        else:
            files, slicing = snapshot.listing.files(partition), log_slicing(snapshot.config)
            groups = all_slices(partition, files, snapshot.timeline, slicing=slicing)
            found = [piece for pieces in groups.values() for piece in pieces]
        for piece in found:
            yield _shown(table.path, piece)


def _is_below(partition: str, folder: str) -> bool:
    return partition == folder or partition.startswith(f"{folder}/")


def _shown(root: str, piece: FileSlice) -> ShownSlice:
    folder = f"{root.rstrip('/')}/{piece.partition}".rstrip("/")
    base = piece.base_file
    own = tuple(log for log in piece.log_files if log.name.instant == piece.base_instant)
    return ShownSlice(
        slice=piece,
        base_path="" if base is None else f"{folder}/{base.name.format()}",
        base_size_bytes=-1 if base is None else base.size_bytes,
        log_paths=tuple(f"{folder}/{log.name.format()}" for log in piece.log_files),
        scheduled_logs=own,
        unscheduled_logs=tuple(log for log in piece.log_files if log not in own),
    )
