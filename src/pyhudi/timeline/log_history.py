"""The archived timeline of layout 1: log files of Avro blocks. Files are read whole; archiving adds a new file."""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice

from pyhudi.errors import CorruptFile, NotFound
from pyhudi.format.names import ArchiveFileName
from pyhudi.format.timeline.archived_log import (
    MERGE_PLAN,
    ArchivedEntry,
    ArchivedState,
    archive_number,
    archived_clean,
    archived_commit,
    decode_archive,
    encode_archive_block,
    merged_file_name,
)
from pyhudi.format.timeline.instant import Instant
from pyhudi.format.timeline.records import CleanMetadata, CommitMetadata
from pyhudi.storage.protocol import Storage
from pyhudi.timeline.history import in_order, not_archived, within


class LogHistory:
    """Archived instants of layout 1. Their completion times are the modification times of their completed files.

    A file's name does not tell which instants the file holds, so the first question reads every file. `more`: other
    folders that files of the history may lie in. Requests: a list for each folder,
    and a get for each file; for contents, one more get for each file that is asked for.

    Memory: the instants, and one archive file.
    """

    def __init__(self, storage: Storage, folder: str, *more: str) -> None:
        self._storage, self._folder, self._folders = storage, folder, (folder, *more)
        self._files: dict[Instant, str] | None = None
        self._entries: tuple[str, dict[tuple[str, str], ArchivedEntry]] | None = None

    def instants(
        self,
        *,
        requested_from: str | None = None,
        requested_until: str | None = None,
        completed_after: str | None = None,
    ) -> tuple[Instant, ...]:
        return in_order({i for i in self._known() if within(i, requested_from, requested_until, completed_after)})

    def read_commit(self, instant: Instant) -> CommitMetadata:
        entry, path = self._find(instant)
        return archived_commit(entry, path=path)

    def read_clean(self, instant: Instant) -> CleanMetadata | None:
        entry, path = self._find(instant)
        return archived_clean(entry, path=path)

    def _known(self) -> dict[Instant, str]:
        if self._files is None:
            files: dict[Instant, str] = {}
            for path in self._paths():
                for entry in self._read(path).values():
                    files.setdefault(entry.instant, path)
            self._files = files
        return self._files

    def _paths(self) -> Iterator[str]:
        """The archive files, newest first. Spec: format/timeline.md section 6, "Read order"."""
        numbered = [one for folder in self._folders for one in _numbered(self._storage, folder)]
        for _, path in sorted(numbered, reverse=True):
            yield path

    def _find(self, instant: Instant) -> tuple[ArchivedEntry, str]:
        key = instant.requested, instant.comparable_action
        for known, path in self._known().items():
            if (known.requested, known.comparable_action) == key:
                entry = self._read(path).get(key)
                if entry is not None:
                    return entry, path
        raise not_archived(instant)

    def _read(self, path: str) -> dict[tuple[str, str], ArchivedEntry]:
        """The completed instants of a file. A file that a merge of small files left half written counts as empty."""
        if self._entries is None or self._entries[0] != path:
            try:
                entries = {
                    (entry.instant.requested, entry.instant.comparable_action): entry
                    for entry in decode_archive(self._storage.get(path), path=path)
                }
            except CorruptFile:
                if path.rpartition("/")[2] != self._being_merged():
                    raise
                entries = {}
            self._entries = path, entries
        return self._entries[1]

    def _being_merged(self) -> str | None:
        path = f"{self._folder}/{MERGE_PLAN}"
        try:
            return merged_file_name(self._storage.get(path), path=path)
        except NotFound:
            return None


ENTRIES_PER_BLOCK = 10
"""Seen: `hoodie.commits.archival.batch` of 0.15.0 and 1.x."""

_WRITE_TOKEN = "1-0-1"


def append_states(
    storage: Storage, folder: str, states: Iterable[ArchivedState], *, confirm: Callable[[], None]
) -> None:
    """Add a file to the archived timeline. `confirm` is called before any reader can see the file.

    Memory: the contents of one block.
    """
    number = max((number for number, _ in _numbered(storage, folder)), default=0) + 1
    name = ArchiveFileName(number, _WRITE_TOKEN).format()
    rest = iter(states)
    with storage.put_stream(f"{folder}/{name}") as sink:
        while block := list(islice(rest, ENTRIES_PER_BLOCK)):
            sink.write(encode_archive_block(block))
        confirm()


def remove_logs(storage: Storage, folder: str) -> None:
    """Remove an archived timeline. Other files in its folder stay."""
    paths = [path for _, path in _numbered(storage, folder)]
    storage.delete_many([*paths, f"{folder}/{MERGE_PLAN}"])


def read_entries(storage: Storage, folder: str) -> list[tuple[ArchivedEntry, str]]:
    """Every archived instant once, with the path of the newest file that has it. Memory: all of them."""
    found: dict[tuple[str, str], tuple[ArchivedEntry, str]] = {}
    for _, path in sorted(_numbered(storage, folder)):
        for entry in decode_archive(storage.get(path), path=path):
            found[entry.instant.requested, entry.instant.comparable_action] = entry, path
    return list(found.values())


def newest_states(storage: Storage, folder: str) -> list[Instant]:
    """The completed instants in the newest file of the archived timeline. One list request and a get."""
    newest = max(_numbered(storage, folder), default=None)
    if newest is None:
        return []
    return [entry.instant for entry in decode_archive(storage.get(newest[1]), path=newest[1])]


def _numbered(storage: Storage, folder: str) -> list[tuple[int, str]]:
    numbered = ((archive_number(file.path.rpartition("/")[2]), file.path) for file in storage.list(folder))
    return [(number, path) for number, path in numbered if number is not None]
