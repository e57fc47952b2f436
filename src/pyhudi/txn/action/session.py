"""A writer's turn at a table: the writer holds the guard, and what dead writers left has been cleared up.

A turn is for beginning an action and for completing one. Most of an action's work goes on between its two turns.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import tzinfo
from importlib.util import find_spec
from typing import get_args

from pyhudi.errors import Unavailable, Unsupported
from pyhudi.format.keys.own_generators import find_key_generator
from pyhudi.format.struct_fields import column_around
from pyhudi.format.timeline.instant import Instant
from pyhudi.format.timeline.records import CommitMetadata
from pyhudi.index.choice import IndexType
from pyhudi.merge.first_value import FirstValue
from pyhudi.merge.payloads import merge_rules
from pyhudi.merge.rules import MergeMode
from pyhudi.metrics.measuring import told_hold
from pyhudi.storage.protocol import Storage, StorageLocation
from pyhudi.table.facts.config import BASE_FORMAT, KeyKind, TableConfig, table_config
from pyhudi.table.facts.properties_file import read_table_properties, recover_table_properties
from pyhudi.table.view.commits import read_commit
from pyhudi.table.view.pending import read_pending_groups
from pyhudi.table.view.snapshot import OpenListing, Snapshot, read_config, read_snapshot
from pyhudi.timeline.active import Timeline, read_timeline
from pyhudi.timeline.ahead import newest_heeded
from pyhudi.timeline.clock import Clock, issue_instant
from pyhudi.txn.action.markers import remove_markers
from pyhudi.txn.action.outcome import completion_time
from pyhudi.txn.action.participants import CommitParticipant
from pyhudi.txn.action.run import ActionRun, ActionTable, Ending
from pyhudi.txn.conflicts.changes import change_of
from pyhudi.txn.conflicts.verdict import Judge, Mine, TableState, Verdict
from pyhudi.txn.locks.guard import Guard
from pyhudi.txn.locks.heartbeat import remove_heartbeat
from pyhudi.txn.locks.hold import Hold
from pyhudi.txn.locks.life import LifeTerms
from pyhudi.txn.locks.waiting import awaited_hold
from pyhudi.txn.undo.clear_up import clear_up
from pyhudi.txn.undo.restore import RestoreDone
from pyhudi.txn.undo.rollback import RolledBack
from pyhudi.txn.undo.rollback_completed import refuse_planned_rollbacks
from pyhudi.versions import WAY_TO_FIVE, WRITABLE_TEXT, Merging

log = logging.getLogger("pyhudi")

Participants = Callable[[Snapshot, Callable[[], str], Hold], Sequence[CommitParticipant]]


@dataclass(frozen=True)
class TableAccess:
    """How a table is reached, and what a writer gets from outside: guard, clock, random ids, time zone.

    `shares_lock`: other tools' writers hold the same lock, so that they may be at work meanwhile. `source_folder`: as
    in `Snapshot`.
    """

    storage: Storage
    location: StorageLocation
    guard: Guard
    clock: Clock
    new_uuid: Callable[[], str]
    process_zone: Callable[[], tzinfo]
    open_listing: OpenListing
    shares_lock: bool = False
    source_folder: str | None = None

    def snapshot(self) -> Snapshot:
        return read_snapshot(self.storage, self.process_zone(), self.open_listing, self.source_folder)

    def config(self) -> TableConfig:
        """The facts of the table. One get. Raises: as `read_snapshot` where the properties are at fault."""
        return read_config(self.storage)


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
    """What a writer has during its turn. `table`: the table on which the writer begins and completes actions."""

    access: TableAccess
    snapshot: Snapshot
    heartbeat: HeartbeatSettings
    hold: Hold
    table: ActionTable
    restored: tuple[RestoreDone, ...] = ()
    """Restores of dead writers that were finished at the beginning of this turn."""
    rolled_back: tuple[RolledBack, ...] = ()
    """Rollbacks of dead writes that were done at the beginning of this turn."""

    def complete(self, run: ActionRun, metadata: CommitMetadata, judge: Judge, *, weighs_changes: bool = False) -> str:
        """Complete a write, or a service that rewrites files. Returns its completion time.

        `run`: an action begun in this turn or in an earlier one. `judge`: decides by what others did since then.
        `weighs_changes`: the judge looks at what they changed, which costs a get for each of their commits.
        Raises: as `ActionRun.complete`.
        """
        table, upon = self.table, run.upon
        assert upon is not None
        written = frozenset(
            path
            for partition_stats in metadata.partition_to_write_stats.values()
            for stat in partition_stats
            for path in (stat.path, *(stat.cdc_stats or ()))
            if path
        )

        def verdict(marked: frozenset[str]) -> Verdict:
            timeline, state = self._now() if run.table is table else (self.snapshot.timeline, self.state)
            if weighs_changes:
                state = self._with_changes(state, timeline, upon)
            requested_file = table.layout.path(Instant(run.requested, run.target.action, "REQUESTED"))
            is_requested = table.storage.head(requested_file) is not None
            change = change_of(run.requested, metadata)
            return judge(Mine(run.target, upon, change, written, marked, is_requested), state)

        ending = Ending(
            table.layout.encode_commit(metadata),
            tell=lambda participant: participant.before_completion(run.requested, metadata),
            written=written,
            verdict=verdict,
        )
        completed = run.on(table).complete(ending)
        for participant in table.participants:
            participant.after_completion(run.requested, metadata)
        return completion_time(table.storage, table.layout, completed, self.snapshot.zone)

    def life(self) -> LifeTerms:
        """By what a pending action counts as dead now."""
        access = self.access
        return LifeTerms(access.guard, access.clock.now_ms(), self.heartbeat.expires_ms, shares_lock=access.shares_lock)

    def forget(self, target: Instant) -> None:
        """Remove the markers and the heartbeat of a write that completed.

        A failure here is only logged, because the write has landed and must not be repeated. The next writer removes
        what is left.
        """
        try:
            remove_markers(self.table.storage, target.requested)
            remove_heartbeat(self.table.storage, target.requested)
        except Unavailable as error:
            log.warning(
                "%s '%s' landed; its markers stay until the next write: %s", target.action, target.requested, error
            )

    @property
    def state(self) -> TableState:
        """The table's state as of `snapshot`, for the verdict on an action that is planned on this snapshot.

        Requests: one get for each pending service.
        """
        return _state(self.access, self.snapshot.timeline, self.snapshot.config)

    def _now(self) -> tuple[Timeline, TableState]:
        """The table's state now. Writers that ignore our guard may have changed the table during this turn.

        Requests: one get and one list.
        """
        storage, uri = self.table.storage, self.access.location.uri
        config = table_config(read_table_properties(storage), path=uri)
        now = read_timeline(storage, self.table.layout, self.snapshot.zone)
        return now, _state(self.access, now, config)

    def _with_changes(self, state: TableState, timeline: Timeline, upon: TableState) -> TableState:
        """The state with what others completed since the state `upon`. One get for each of their commits."""
        storage, fresh = self.table.storage, state.committed - upon.committed
        commits = sorted((i for i in timeline.completed_writes if i.requested in fresh), key=timeline.effective_time)
        changes = (change_of(instant.requested, read_commit(storage, timeline, instant)) for instant in commits)
        return replace(state, changes=tuple(changes))


def _state(access: TableAccess, timeline: Timeline, config: TableConfig) -> TableState:
    planned = read_pending_groups(access.storage, timeline) if timeline.pending_services else {}
    return TableState(
        access.location.uri, config.version.number, timeline.completed_requested_times, timeline.pending, planned
    )


@contextmanager
def write_session(
    access: TableAccess,
    *,
    purpose: str,
    heartbeat: HeartbeatSettings,
    participants: Participants,
    is_write: bool = True,
    goes_on: bool = False,
    takes_over: str | None = None,
    takes_back: str | None = None,
    undoes_dead: bool = True,
    wait_ms: int = 0,
) -> Iterator[WriteSession]:
    """Take the table's guard, finish or undo what dead writers left, and give the table in its state after that.

    `is_write`: False for an action that adds no files; then participants need not get ready for a write. `goes_on`: the
    turn completes an action that began in an earlier turn; what the dead left since then is for the next that begins.
    `takes_over`: a pending restore of another writer to this instant is finished; any other is refused. `takes_back`:
    the instant that is about to be rolled back. `undoes_dead`: dead writes are rolled back; else they stay pending.
    `wait_ms`: how long to wait while another writer holds the table.
    Raises: Conflict when another writer holds the table, or is about to take its newest write back; Unsupported when
    this release cannot write the table.
    """
    holding = awaited_hold(access.guard, purpose, clock=access.clock, wait_ms=wait_ms)
    with told_hold(access.location.uri, purpose, holding) as hold:
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
            # The table's properties named a metadata table whose files are gone. A participant has given it up by now.
            snapshot = access.snapshot()
        table = ActionTable(access.storage, snapshot.timeline.layout, issue, hold.confirm, taking_part)

        if goes_on:
            yield WriteSession(access, snapshot, heartbeat, hold, table)
            return

        life = LifeTerms(access.guard, now_ms, heartbeat.expires_ms, shares_lock=access.shares_lock)
        cleared = clear_up(table, snapshot, access.snapshot, life, takes_over=takes_over, undoes_dead=undoes_dead)
        if is_write:
            refuse_planned_rollbacks(access.storage, cleared.snapshot.timeline)
        has_changed = [participant.begin(cleared.snapshot) for participant in taking_part] if is_write else []
        snapshot = access.snapshot() if any(has_changed) else cleared.snapshot
        yield WriteSession(access, snapshot, heartbeat, hold, table, cleared.restored, cleared.rolled_back)


def refuse_unwritable(config: TableConfig, uri: str) -> None:
    """Refuse a table that this release reads but cannot write. Raises: Unsupported, naming what stands in the way."""
    if not config.version.is_writable:
        raise Unsupported(
            f"{uri}: table version {config.version}: this release reads it, and writes the versions {WRITABLE_TEXT} "
            f"only. {WAY_TO_FIVE}"
        )

    if not config.has_meta_fields:
        _refuse_unwritable_keys(config, uri)

    if config.left_out:
        _refuse_unwritable_paths(config, uri)

    if config.base_format == "LANCE" and find_spec("lance") is None:
        raise Unsupported(
            f"{uri}: {BASE_FORMAT}='LANCE': Lance files need the package pylance: pip install 'pyhudi[lance]'"
        )

    wanted = {
        BASE_FORMAT: ("PARQUET", "ORC", "HFILE", "LANCE"),
        "hoodie.index.type": get_args(IndexType),
    }
    for key, known in wanted.items():
        value = config.properties.get(key, "")
        if value and value.upper() not in {of.upper() for of in known}:
            raise Unsupported(f"{uri}: {key}='{value}': this release writes tables with {' or '.join(known)} only")

    rules = merge_rules(config.properties, version=config.version, path=uri)
    is_custom = config.version.merging is Merging.PAYLOAD and config.merge_mode is MergeMode.CUSTOM
    payload = config.properties.get("hoodie.compaction.payload.class", "")
    if isinstance(rules.merger, FirstValue):
        raise Unsupported(
            f"{uri}: hoodie.compaction.payload.class='{payload}': expected rules by which the last of equal rows wins, "
            "found a class that keeps the first; reads work; write with Apache Hudi"
        )
    if is_custom and rules.merger is None:
        raise Unsupported(
            f"{uri}: hoodie.compaction.payload.class='{payload}' on a table of version {config.version}: this release "
            "writes such tables where the row of a key wins that came last, or the one with the greatest ordering "
            "value, or a merger that is registered for the class (pyhudi.register_payload_class); reads work; to "
            "write, make it a table of version 8 or 9 with Apache Hudi"
        )

    if config.key_kind is KeyKind.OTHER and find_key_generator(config.key_generator_class) is None:
        names = ("hoodie.table.keygenerator.type", "hoodie.table.keygenerator.class")
        said = ", ".join(f"{name}='{config.properties[name]}'" for name in names if name in config.properties)
        raise Unsupported(
            f"{uri}: {said}: expected a key generator of Apache Hudi's, or one that is registered in this process "
            f"under the name '{config.key_generator_class}' (pyhudi.register_key_generator), found none; the table can "
            "be read"
        )


def _refuse_unwritable_keys(config: TableConfig, uri: str) -> None:
    """Refuse a table without meta fields whose keys cannot be told from its columns."""
    kinds = (KeyKind.SIMPLE, KeyKind.COMPLEX, KeyKind.NON_PARTITION)
    reasons = {
        f"key generator {config.key_kind}, not one of {', '.join(kinds)}": config.key_kind not in kinds,
        "no hoodie.table.recordkey.fields": not config.record_key,
        "hoodie.table.cdc.enabled='true'": config.change_mode is not None,
        "hoodie.bootstrap.base.path": config.bootstrap_base is not None,
        f"{BASE_FORMAT}='HFILE', whose rows lie under their keys": config.base_format == "HFILE",
    }
    for reason, stands in reasons.items():
        if stands:
            raise Unsupported(
                f"{uri}: hoodie.populate.meta.fields='false' with {reason}: this release writes tables without meta "
                "fields where columns make up their keys; write with Apache Hudi"
            )


def _refuse_unwritable_paths(config: TableConfig, uri: str) -> None:
    """Refuse a table that leaves partition columns out of its files, where rows need their values."""
    ordering = set(map(column_around, config.ordering))
    keys = set(map(column_around, config.record_key))
    reasons = {
        f"key generator {config.key_kind}, whose paths are not the values": bool(config.time_based),
        "a partition column that orders rows": not ordering.isdisjoint(config.left_out),
        "hoodie.populate.meta.fields='false' and a partition column in the key": (
            not config.has_meta_fields and not keys.isdisjoint(config.left_out)
        ),
        "hoodie.bootstrap.base.path": config.bootstrap_base is not None,
    }
    for reason, stands in reasons.items():
        if stands:
            raise Unsupported(
                f"{uri}: hoodie.datasource.write.drop.partition.columns='true' with {reason}: this release writes "
                "tables that leave partition columns out where the partition path stands for them; write with Apache "
                "Hudi"
            )
