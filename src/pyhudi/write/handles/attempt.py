"""The files of one attempt at an action: each has a marker before it, and none is shown once the action has ended.

Whoever ends an action removes its heartbeat first, then its markers, then its files. So one of the two sides always
sees the other. Spec: format/actions.md section 2.

Seen: when 0.15.0 rolls back a write, it lists the logs that markers name in the metadata table of version 6. Its
readers fail if such a log is not there. 1.2.0 refuses to roll back over a log without a byte. So in version 6 a log is
made before its marker, of a block without records, and an attempt that is given up leaves such a log behind. Only a log
that its rollback has seen as it is stays so: the metadata table lists the log with this size, and a block of the
rollback voids its records.
"""

from dataclasses import dataclass, replace
from datetime import UTC

from pyhudi.errors import Conflict
from pyhudi.format.names import MarkerKind, MarkerName, heartbeat_path, marker_folder
from pyhudi.format.timeline.action_files import decode_rollback_plan
from pyhudi.storage.protocol import Storage
from pyhudi.table.view.snapshot import read_config
from pyhudi.timeline.active import read_timeline
from pyhudi.txn.action.markers import empty_log
from pyhudi.txn.undo.rollback_blocks import partition_logs
from pyhudi.versions import LogContent


@dataclass(frozen=True, slots=True)
class AttemptedFile:
    """A data file that one attempt at an action writes. `requested`: of the action. `path`: in the table.

    `content`: the form of a log's blocks.
    """

    storage: Storage
    requested: str
    path: str
    kind: MarkerKind
    content: LogContent = LogContent.AVRO

    def begin(self) -> None:
        """Put the marker, and before it the log that an `APPEND` marker names.

        Raises: Conflict when the action has ended.
        """
        if self._has_ended():
            raise self._given_up()
        if self.kind == "APPEND":
            self.storage.put_new(self.path, empty_log(self.requested, self.content))
        self.storage.put_new(self._marker, b"")

    def refuse_when_given_up(self) -> None:
        """Must be called last before the file becomes visible. Raises: Conflict when its marker is gone."""
        if self.storage.head(self._marker) is None:
            raise self._given_up()

    def shown_size(self) -> int:
        """The bytes of the file just shown, if it is still wanted. Otherwise its content is removed again.

        Raises: Conflict when the action ended without this attempt, or was rolled back.
        """
        info = self.storage.head(self.path)
        if info is None or self._has_ended() or self.storage.head(self._marker) is None:
            if self.kind == "APPEND":
                if info is None or self._size_at_rollback() != info.size_bytes:
                    self.storage.put(self.path, empty_log(self.requested, self.content))
            else:
                self.storage.delete(self.path)
            self.storage.delete(self._marker)  # this one only: a rollback may be reading the others
            raise self._given_up()
        return info.size_bytes

    def _size_at_rollback(self) -> int | None:
        """The bytes that this log had when the action was rolled back; None if no rollback on the timeline says so.

        Whoever rolls back puts the plan with the sizes first, then removes the markers.
        """
        layout = read_config(self.storage).layout
        for instant in read_timeline(self.storage, layout, UTC):
            if instant.action == "rollback":
                path = layout.path(replace(instant, state="REQUESTED", completed=None))
                plan = decode_rollback_plan(self.storage.get(path), path=path)
                if plan.instant_to_rollback is not None and plan.instant_to_rollback.requested == self.requested:
                    partition, _, name = self.path.rpartition("/")
                    logs = partition_logs(plan.rollback_requests or ()).get(partition, {})
                    return next((size for log, size in logs.items() if log.rpartition("/")[2] == name), None)
        return None

    @property
    def _marker(self) -> str:
        return f"{marker_folder(self.requested)}/{MarkerName(self.path, self.kind).format()}"

    def _has_ended(self) -> bool:
        return self.storage.head(heartbeat_path(self.requested)) is None

    def _given_up(self) -> Conflict:
        return Conflict(f"{self.path}: the write ended without this task attempt, or was rolled back; run it again")
