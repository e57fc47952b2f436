"""A writer's turn at a table: under its guard, after the dead have been cleared away."""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import tzinfo
from typing import get_args

from pyhudi.errors import Conflict, HudiError, LockLost, OutcomeUnknown, Unavailable, Unsupported
from pyhudi.index.choice import IndexType
from pyhudi.merge.payloads import merge_rules
from pyhudi.merge.rules import MergeMode
from pyhudi.model.commit import CommitMetadata
from pyhudi.model.instant import Instant
from pyhudi.model.versions import WRITABLE_TEXT, Merging
from pyhudi.storage.protocol import Storage, StorageLocation
from pyhudi.table.config import KeyKind, TableConfig, table_config
from pyhudi.table.properties_file import read_table_properties, recover_table_properties
from pyhudi.table.restores import read_restore_plan
from pyhudi.table.snapshot import OpenListing, Snapshot, read_snapshot
from pyhudi.timeline.active import read_timeline
from pyhudi.timeline.ahead import newest_heeded
from pyhudi.timeline.clock import Clock, issue_instant
from pyhudi.txn.commit import complete, completion_time, settle
from pyhudi.txn.guard import Guard
from pyhudi.txn.heartbeat import beating, has_own_heartbeat, remove_heartbeat
from pyhudi.txn.hold import Hold
from pyhudi.txn.leftovers import sweep_leftovers
from pyhudi.txn.markers import read_markers, remove_lost_files, remove_markers
from pyhudi.txn.participants import CommitParticipant
from pyhudi.txn.restore import RestoreDone, RestoreRun, carry_out_restore
from pyhudi.txn.rollback import RolledBack, find_dead_writes, remove_leftovers, run_rollback
from pyhudi.txn.rollback_completed import drop_unbegun_rollbacks
from pyhudi.txn.waiting import awaited_hold

log = logging.getLogger("pyhudi")

Participants = Callable[[Snapshot, Callable[[], str], Hold], Sequence[CommitParticipant]]


@dataclass(frozen=True)
class TableAccess:
    """How a table is reached, and everything that a writer may not make up itself."""

    storage: Storage
    location: StorageLocation
    guard: Guard
    clock: Clock
    new_uuid: Callable[[], str]
    process_zone: Callable[[], tzinfo]
    open_listing: OpenListing

    def snapshot(self) -> Snapshot:
        return read_snapshot(self.storage, self.process_zone(), self.open_listing)


@dataclass(frozen=True, slots=True)
class HeartbeatSettings:
    """`interval_ms`: between two beats. `misses`: beats that may be missed before a writer counts as dead."""

    interval_ms: int
    misses: int

    @property
    def expires_ms(self) -> int:
        return self.interval_ms * (self.misses + 1)


@dataclass(frozen=True)
class WriteSession:
    """What a writer holds while it is its turn."""

    access: TableAccess
    snapshot: Snapshot
    heartbeat: HeartbeatSettings
    participants: Sequence[CommitParticipant]
    issue_instant: Callable[[], str]
    hold: Hold
    restored: tuple[RestoreDone, ...] = ()
    """Restores that had died and were finished at the beginning of this turn."""
    rolled_back: tuple[RolledBack, ...] = ()
    """What was done about writes that had died, then."""

    @contextmanager
    def action(self, inflight: bytes, *, action: str = "commit", request: bytes = b"") -> Iterator[Instant]:
        """A write from requested to just before completion, with its heartbeat; gives it as it stands inflight.

        `action`: commit, or replacecommit. `request`, `inflight`: what the files of these states hold.
        When the block raises an Exception the write is rolled back at once and the error goes on; but nothing
        is touched when nobody can say whether it landed (OutcomeUnknown), or when the table is no longer ours
        (LockLost): the next writer finds out.
        """
        storage, layout = self.access.storage, self.snapshot.timeline.layout
        requested = self.issue_instant()
        target = Instant(requested, action, "INFLIGHT")
        try:
            with beating(storage, requested, interval_ms=self.heartbeat.interval_ms):
                storage.put_new(layout.path(Instant(requested, action, "REQUESTED")), request)
                storage.put_new(layout.path(target), inflight)
                yield target
        except (OutcomeUnknown, LockLost):
            raise
        except Exception as error:
            try:
                self.hold.confirm()
                self._roll_back(target)
            except HudiError as second:  # the write's own error says more, and the next writer rolls it back
                error.add_note(f"{target.action} '{requested}' could not be rolled back yet: {second}")
            raise

    def complete(self, target: Instant, metadata: CommitMetadata) -> str:
        """Reconcile the markers, tell the participants, complete. Returns the completion time.

        Files that markers name and the metadata does not are of lost task attempts, and go.
        Spec: format/actions.md section 1.

        Raises: Conflict when a writer that does not heed our guard changed the table meanwhile; LockLost when the
        table is no longer ours.
        """
        storage, layout, requested = self.access.storage, self.snapshot.timeline.layout, target.requested
        written = {stat.path for stats in metadata.partition_to_write_stats.values() for stat in stats}
        lost = [marker for marker in read_markers(storage, requested) or [] if marker.data_path not in written]
        remove_lost_files(storage, requested, lost)
        self._refuse_changed_table(requested)
        self.hold.confirm()
        for participant in self.participants:
            participant.before_completion(requested, metadata)
        completed = Instant(requested, target.action, "COMPLETED", self.issue_instant())
        self.hold.confirm()
        settle(complete(storage, layout, completed, layout.encode_commit(metadata)), completed)
        return completion_time(storage, layout, completed, self.snapshot.zone)

    def forget(self, target: Instant) -> None:
        """Remove the markers and the heartbeat of a write that completed.

        A failure is no failure of the write, which must not be repeated: the next writer removes them.
        """
        try:
            remove_markers(self.access.storage, target.requested)
            remove_heartbeat(self.access.storage, target.requested)
        except Unavailable as error:
            log.warning(
                "%s '%s' landed; its markers stay until the next write: %s", target.action, target.requested, error
            )

    def _refuse_changed_table(self, requested: str) -> None:
        """Refuse to complete upon a table that is not the one this write was planned on. One get and one list."""
        storage, before = self.access.storage, self.snapshot
        version = table_config(read_table_properties(storage), path=self.access.location.uri).version
        if version != before.config.version:
            raise Conflict(
                f"{self.access.location.uri}: table version {before.config.version} when this write began, now "
                f"{version}: it was upgraded meanwhile; run the write again"
            )
        now = read_timeline(storage, before.timeline.layout, before.zone)
        others = sorted(now.completed_requested_times - before.timeline.completed_requested_times)
        if others:
            raise Conflict(
                f"{self.access.location.uri}: another writer committed '{others[0]}' while this write ran, "
                "without heeding its guard; run the write again"
            )
        if not any(i.requested == requested for i in now.pending):
            raise Conflict(
                f"{self.access.location.uri}: another writer took this write ('{requested}') for dead and rolled it "
                "back; run it again, and let only one writer at the table at a time"
            )

    def _roll_back(self, target: Instant) -> None:
        run_rollback(
            self.access.storage,
            self.snapshot.timeline,
            target,
            issue_instant=self.issue_instant,
            participants=self.participants,
            confirm=self.hold.confirm,
        )


@contextmanager
def write_session(
    access: TableAccess,
    *,
    purpose: str,
    heartbeat: HeartbeatSettings,
    participants: Participants,
    is_write: bool = True,
    takes_over: str | None = None,
    takes_back: str | None = None,
    wait_ms: int = 0,
) -> Iterator[WriteSession]:
    """Take the table's guard, finish or undo what the dead left, and give the table as it then is.

    `is_write` False: for what adds no files, so that participants need not get ready for any. `takes_over`: of which
    instant a restore is finished that another writer left pending, which is refused otherwise. `takes_back`: which
    instant is about to be rolled back. `wait_ms`: how long to wait while another writer holds the table.
    Raises: Conflict when another writer holds the table; Unsupported when this release cannot write it.
    """
    with awaited_hold(access.guard, purpose, clock=access.clock, wait_ms=wait_ms) as hold:
        now_ms = access.clock.now_ms()
        recover_table_properties(access.storage)
        snapshot = access.snapshot()
        refuse_unwritable(snapshot.config, access.location.uri)
        newest = [newest_heeded(snapshot.timeline, access.clock, snapshot.zone, taken_back=takes_back) or ""]

        def issue() -> str:
            newest[0] = issue_instant(access.clock, snapshot.zone, after=newest[0] or None)
            return newest[0]

        taking_part = participants(snapshot, issue, hold)
        if snapshot.config.has_metadata_table and snapshot.listing.source == "storage":
            snapshot = access.snapshot()  # a participant has given up a metadata table that is gone
        restored = _finish_restores(access, snapshot, issue, taking_part, hold, takes_over)
        has_dropped = drop_unbegun_rollbacks(access.storage, snapshot.timeline, confirm=hold.confirm)
        if restored or has_dropped:
            snapshot = access.snapshot()
        dead = find_dead_writes(
            access.storage, snapshot.timeline, now_ms=now_ms, heartbeat_expires_ms=heartbeat.expires_ms
        )
        undone = [
            run_rollback(
                access.storage, snapshot.timeline, instant, issue_instant=issue, participants=taking_part,
                confirm=hold.confirm,
            )
            for instant in dead
        ]  # fmt: skip
        if dead:
            snapshot = access.snapshot()
        if remove_leftovers(access.storage, snapshot.timeline, confirm=hold.confirm) or dead:
            sweep_leftovers(
                access.storage,
                snapshot.config,
                (name for of in undone for name in of.partitions),
                now_ms=now_ms,
                heartbeat_expires_ms=heartbeat.expires_ms,
            )
        for participant in taking_part if is_write else ():
            participant.begin(snapshot)
        yield WriteSession(access, access.snapshot(), heartbeat, taking_part, issue, hold, restored, tuple(undone))


def _finish_restores(
    access: TableAccess,
    snapshot: Snapshot,
    issue: Callable[[], str],
    participants: Sequence[CommitParticipant],
    hold: Hold,
    takes_over: str | None,
) -> tuple[RestoreDone, ...]:
    """Finish restores that died: before dead writes, for what a restore rolls back looks like one halfway.

    Raises: Conflict for one of another writer, which may be running.
    """
    storage, timeline = access.storage, snapshot.timeline
    run = RestoreRun(storage, snapshot.config, timeline, issue, participants, hold.confirm)
    done = []
    for restore in timeline.pending_restores:
        if not has_own_heartbeat(storage, restore.requested):
            to = read_restore_plan(storage, timeline, restore).savepoint_to_restore
            if to is None or to != takes_over:
                raise Conflict(
                    f"restore '{restore.requested}' of another writer is pending, and may be running: let it finish; "
                    f'where it died, restore("{to}") brings it to its end'
                )
        log.info("%s: finishing restore '%s', which was left pending", access.location.uri, restore.requested)
        done.append(carry_out_restore(run, restore))
    return tuple(done)


def refuse_unwritable(config: TableConfig, uri: str) -> None:
    """Refuse a table that this release reads but cannot write. Raises: Unsupported, naming what stands in the way."""
    if not config.version.is_writable:
        raise Unsupported(
            f"{uri}: table version {config.version}: this release writes the versions "
            f"{WRITABLE_TEXT} only; write with Apache Hudi, or create a new table"
        )
    wanted = {
        "hoodie.table.cdc.enabled": ("false",),
        "hoodie.populate.meta.fields": ("true",),
        "hoodie.partition.metafile.use.base.format": ("false",),
        "hoodie.index.type": get_args(IndexType),
    }
    for key, known in wanted.items():
        value = config.properties.get(key, "")
        if value and value not in known:
            raise Unsupported(f"{uri}: {key}='{value}': this release writes tables with {' or '.join(known)} only")
    merge_rules(config.properties, version=config.version, path=uri)
    if config.version.merging is Merging.PAYLOAD and config.merge_mode is MergeMode.CUSTOM:
        payload = config.properties.get("hoodie.compaction.payload.class", "")
        raise Unsupported(
            f"{uri}: hoodie.compaction.payload.class='{payload}' on a table of version {config.version}: this release "
            "writes such tables where the row of a key wins that came last, or the one with the greatest ordering value"
        )
    if config.key_kind is KeyKind.OTHER:
        names = ("hoodie.table.keygenerator.type", "hoodie.table.keygenerator.class")
        said = ", ".join(f"{name}='{config.properties[name]}'" for name in names if name in config.properties)
        raise Unsupported(f"{uri}: {said}: this release writes keys as Apache Hudi's own key generators only")
