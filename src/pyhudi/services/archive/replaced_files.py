"""Replaced files that are still stored. The action that replaced them must stay on the timeline, or rows come back."""

from functools import cached_property

from pyhudi.format.names import join
from pyhudi.format.timeline.instant import Instant
from pyhudi.format.timeline.records import CleanMetadata
from pyhudi.services.archive.plan import StoredFile
from pyhudi.services.clean.inputs import Savepoints, read_savepoints
from pyhudi.table.view.cleaned import group_and_instant
from pyhudi.table.view.commits import read_commit
from pyhudi.table.view.listing import StorageListing
from pyhudi.table.view.snapshot import Snapshot


class ReplacedFiles:
    """Finds stored files of the groups that an action replaced. The storage is asked, as any later listing may be.

    A metadata table does not list a file that a clean failed to delete. `clean`: the newest one.
    Requests: one get for each action, and one list for each partition that an action replaced, once for all of them.
    """

    def __init__(self, snapshot: Snapshot, clean: CleanMetadata | None) -> None:
        self._snapshot, self._clean = snapshot, clean
        self._listing = StorageListing(snapshot.storage)
        self._names: dict[str, list[str]] = {}

    def find(self, instant: Instant) -> StoredFile | None:
        """A stored file that an action replaced; rather one that no savepoint keeps. None if there is none."""
        replaced = read_commit(self._snapshot.storage, self._snapshot.timeline, instant).partition_to_replace_file_ids
        kept: tuple[str, str] | None = None
        for partition, file_ids in (replaced or {}).items():
            groups = frozenset(file_ids)
            for name in self._names_of(partition) if groups else ():
                if group_and_instant(name)[0] not in groups:  # readers and cleans know data files only
                    continue
                if (partition, name) not in self._savepoints.files:
                    return StoredFile(join(partition, name), is_left=self._has_passed(instant))
                kept = kept or (partition, name)
        return None if kept is None else StoredFile(join(*kept), saved_by=self._savepoints.requested)

    def _names_of(self, partition: str) -> list[str]:
        if partition not in self._names:
            self._names[partition] = [file.name for file in self._listing.files(partition)]
        return self._names[partition]

    @cached_property
    def _savepoints(self) -> Savepoints:
        """Read once a stored file was found. One get for each savepoint."""
        return read_savepoints(self._snapshot.storage, self._snapshot.timeline)

    def _has_passed(self, instant: Instant) -> bool:
        """Whether cleans look no more for what an action replaced. Without a clean on the timeline: they found none."""
        if self._clean is None:
            return True
        return instant.requested < (self._clean.earliest_commit_to_retain or self._clean.last_completed_commit)
