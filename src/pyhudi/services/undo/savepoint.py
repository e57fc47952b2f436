"""Savepoints: commits whose files are kept until the savepoint is deleted. Spec: format/actions.md section 6."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from pyhudi.errors import Conflict, Invalid, NotFound
from pyhudi.format.names import join
from pyhudi.format.timeline.action_files import decode_savepoint, encode_savepoint
from pyhudi.format.timeline.instant import Instant
from pyhudi.format.timeline.records import SavepointMetadata, SavepointPartitionMetadata
from pyhudi.table.view.cleaned import paths_being_cleaned, refuse_cleaned
from pyhudi.table.view.snapshot import Snapshot
from pyhudi.txn.action.outcome import completion_time
from pyhudi.txn.action.run import ActionRun, Ending
from pyhudi.txn.action.session import WriteSession
from pyhudi.txn.locks.heartbeat import put_heartbeat, remove_heartbeat
from pyhudi.txn.undo.restore_plan import taken_back


@dataclass(frozen=True, slots=True, kw_only=True)
class Savepoint:
    """A savepoint.

    `requested`: the requested time of its commit. `completed`: when the savepoint was made. `saved_at_ms`: the same
    time in milliseconds since 1970, by the clock of the savepoint's writer. `file_count`: how many files it keeps.
    """

    requested: str
    completed: str
    user: str
    comment: str
    saved_at_ms: int
    file_count: int


def read_savepoint_list(snapshot: Snapshot) -> tuple[Savepoint, ...]:
    """The savepoints of a table, by requested time. One get per savepoint."""
    completed = (i for i in snapshot.timeline if i.action == "savepoint" and i.is_completed)
    return tuple(_savepoint(instant, _read(snapshot, instant)) for instant in completed)


def put_savepoint(session: WriteSession, requested: str | None, *, user: str, comment: str) -> Savepoint:
    """Make a savepoint of the commit requested at this time; None: of the newest commit.

    The savepoint names the files of the latest slices at that time: base files, and logs, the newest first. A restore
    goes by completion. Where that makes a difference, the savepoint also names the files that a restore needs. Order:
    heartbeat, inflight file, completed file. If the writer dies before the completed file, the next writer deletes the
    savepoint. Requests: the listing of each partition.
    """
    snapshot = session.snapshot
    commit = _commit(snapshot, requested)
    if any(i.action == "savepoint" and i.requested == commit.requested for i in snapshot.timeline):
        raise Invalid(f"savepoint '{commit.requested}': expected none of this commit, found one; delete it first")
    refuse_cleaned(snapshot, commit.requested, asked=f"savepoint '{commit.requested}'")
    files = _files_at(snapshot, commit)
    _refuse_going(snapshot, commit.requested, files)
    metadata = SavepointMetadata(user, session.access.clock.now_ms(), comment, files)

    table = session.table
    table.confirm()
    put_heartbeat(table.storage, commit.requested)
    inflight = table.request(Instant(commit.requested, "savepoint", "INFLIGHT"), b"")
    completed = ActionRun(table, inflight).complete(Ending(encode_savepoint(metadata)))
    remove_heartbeat(table.storage, commit.requested)
    done = completion_time(table.storage, table.layout, completed, snapshot.zone)
    return _savepoint(Instant(commit.requested, "savepoint", "COMPLETED", done), metadata)


def delete_savepoint(session: WriteSession, requested: str) -> Savepoint:
    """Delete a savepoint. Its completed file goes last, because this file alone says that the savepoint exists."""
    snapshot, storage = session.snapshot, session.access.storage
    found = [i for i in snapshot.timeline if i.action == "savepoint"]
    instant = next((i for i in found if i.requested == requested), None)
    if instant is None:
        have = ", ".join(i.requested for i in found) or "none"
        raise NotFound(f"savepoint '{requested}': expected one of the table's, which are: {have}")
    if not instant.is_completed:
        raise Conflict(f"savepoint '{requested}': another writer is making it, or died over it; let it finish")

    gone = _savepoint(instant, _read(snapshot, instant))
    session.hold.confirm()
    storage.delete(snapshot.timeline.layout.path(Instant(requested, "savepoint", "INFLIGHT")))
    storage.delete(snapshot.timeline.layout.path(instant))
    return gone


def _commit(snapshot: Snapshot, requested: str | None) -> Instant:
    if requested is not None:
        return snapshot.timeline.get_completed(requested)
    if not snapshot.timeline.completed_writes:
        raise Invalid(f"{snapshot.storage.location.uri}: expected a commit to make a savepoint of, found none")
    return snapshot.timeline.completed_writes[-1]


def _files_at(snapshot: Snapshot, commit: Instant) -> dict[str, SavepointPartitionMetadata]:
    """The files that time travel to a commit reads, and those that the table has after a restore to it."""
    timeline, then = snapshot.timeline, snapshot.at(commit.requested)
    undone = taken_back(timeline, commit, is_merge_on_read=snapshot.config.is_merge_on_read)
    restored = replace(timeline, undone=timeline.undone | undone)
    is_same = restored.completed_requested_times == then.timeline.completed_requested_times
    states = (then,) if is_same else (then, replace(snapshot, timeline=restored))
    found: dict[str, SavepointPartitionMetadata] = {}
    for partition in then.listing.partitions():
        names: list[str] = []
        for file_slice in (one for state in states for one in state.slices(partition)):
            names += [file_slice.base_file.name.format()] if file_slice.base_file is not None else []
            names += [log.name.format() for log in reversed(file_slice.log_files)]
        if names:
            found[partition] = SavepointPartitionMetadata(partition, tuple(dict.fromkeys(names)))
    return found


def _refuse_going(snapshot: Snapshot, requested: str, files: Mapping[str, SavepointPartitionMetadata]) -> None:
    """Raises: NotFound for a savepoint of files that a pending clean names: they may be gone already."""
    going = paths_being_cleaned(snapshot)
    for partition, saved in files.items():
        lost = next((path for name in saved.savepoint_data_file if (path := join(partition, name)) in going), None)
        if lost is not None:
            raise NotFound(f"savepoint '{requested}': a clean is deleting its files, such as '{lost}'")


def _read(snapshot: Snapshot, instant: Instant) -> SavepointMetadata:
    path = snapshot.timeline.layout.path(instant)
    return decode_savepoint(snapshot.storage.get(path), path=path)


def _savepoint(instant: Instant, metadata: SavepointMetadata) -> Savepoint:
    count = sum(len(saved.savepoint_data_file) for saved in metadata.partition_metadata.values())
    return Savepoint(
        requested=instant.requested, completed=instant.completed or "",
        user=metadata.savepointed_by, comment=metadata.comments, saved_at_ms=metadata.savepointed_at, file_count=count,
    )  # fmt: skip
