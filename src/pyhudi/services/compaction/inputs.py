"""What a compaction reads from the table: file slices for a new plan, a pending plan, and the files of that plan."""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum

from pyhudi.errors import CorruptFile, Invalid, NotFound, Unsupported
from pyhudi.format.log.headers import instant_time, is_partial
from pyhudi.format.names import BaseFileName, LogFileName, join
from pyhudi.format.schema.conversion import arrow_from_avro, with_meta_fields
from pyhudi.format.timeline.action_files import decode_compaction_plan, encode_compaction_plan
from pyhudi.format.timeline.instant import WRITE_ACTIONS, Instant
from pyhudi.format.timeline.records import COMPACTION, LOG_COMPACTION, CompactionOperation, CompactionPlan, WriteStat
from pyhudi.services.compaction.plan import partitions_to_compact, plan_compaction, plan_log_compaction
from pyhudi.services.compaction.plan_copies import put_plan_copy
from pyhudi.services.compaction.settings import CompactionSettings
from pyhudi.services.compaction.trigger import why_logs_not_due, why_not_due
from pyhudi.table.read.plan import log_reading
from pyhudi.table.slices.log_reading import LogReading
from pyhudi.table.slices.merged_slice import stored_blocks
from pyhudi.table.slices.slice_log import slice_files
from pyhudi.table.view.commits import read_commit
from pyhudi.table.view.file_system_view import FileSlice
from pyhudi.table.view.listing import StorageListing
from pyhudi.table.view.pending import FileGroup, is_clustering, read_pending_groups
from pyhudi.table.view.snapshot import Snapshot
from pyhudi.txn.action.session import WriteSession
from pyhudi.versions import LogNaming
from pyhudi.write.handles.base_file_writer import BaseFileSettings
from pyhudi.write.handles.compaction import CompactionTarget, SliceTask, compact_slice
from pyhudi.write.handles.log_compaction import compact_log
from pyhudi.write.handles.log_names import next_log
from pyhudi.write.handles.slice_work import SliceHandle
from pyhudi.write.log_settings import LogSettings
from pyhudi.write.stated_schema import StatedColumns


class CompactionKind(StrEnum):
    """The two kinds of compaction. The value is the name of the pending action.

    BASE merges the base file and the logs of a slice into a new base file. LOG merges the logs of a slice into one log.
    """

    BASE = "compaction"
    LOG = "logcompaction"

    @property
    def operation(self) -> str:
        return COMPACTION if self is CompactionKind.BASE else LOG_COMPACTION

    @property
    def handle(self) -> SliceHandle[CompactionTarget, SliceTask, WriteStat]:
        return compact_slice if self is CompactionKind.BASE else compact_log


@dataclass(frozen=True, slots=True, kw_only=True)
class Scheduled:
    """A compaction that was put on the timeline, and its plan. Both are None when none was; `reason` then says why."""

    instant: Instant | None = None
    plan: CompactionPlan | None = None
    reason: str = ""


def refuse_not_compactable(snapshot: Snapshot) -> None:
    """Raises: Invalid for a table that has no logs."""
    if snapshot.config.table_type != "MERGE_ON_READ":
        raise Invalid(
            f"{snapshot.storage.location.uri}: expected a merge-on-read table to compact, found "
            f"{snapshot.config.table_type}, whose writes leave no logs"
        )


def schedule(
    session: WriteSession, kind: CompactionKind, settings: CompactionSettings, base_files: BaseFileSettings,
    *, is_asked: bool, claim: Callable[[str], object] = lambda requested: None,
) -> Scheduled:  # fmt: skip
    """Plan a compaction and put it on the timeline, if any slice qualifies.

    `is_asked`: do so even if the trigger says that no compaction is due. `claim`: called with the requested time right
    before the plan is put; a caller that runs the compaction at once claims it here.

    The guard is held, so no delta commit completes between the plan and its instant. Every log in the plan therefore
    belongs to a delta commit that completed earlier. Requests: as `new_plan`.
    """
    snapshot = session.snapshot
    plan = new_plan(
        snapshot, kind, settings, base_files, running=running_writes(snapshot),
        now_ms=session.access.clock.now_ms(), is_asked=is_asked,
    )  # fmt: skip
    if isinstance(plan, str):
        return Scheduled(reason=plan)

    instant = Instant(session.table.issue_instant(), kind.value, "REQUESTED")
    session.table.confirm()
    claim(instant.requested)
    content = encode_compaction_plan(plan)
    if kind is CompactionKind.BASE and snapshot.config.version.copies_compaction_plans:
        put_plan_copy(snapshot.storage, instant, content)
    return Scheduled(instant=session.table.request(instant, content), plan=plan)


def new_plan(
    snapshot: Snapshot, kind: CompactionKind, settings: CompactionSettings, base_files: BaseFileSettings,
    *, running: Sequence[Instant], now_ms: int, is_asked: bool,
) -> CompactionPlan | str:  # fmt: skip
    """The plan of a new compaction; or, in words, why there is nothing to do. Nothing is changed.

    `running`: the writes that have not completed, see `running_writes`. `is_asked`: as in `schedule`.
    Requests: none where the trigger says that none is due; else one listing per partition that the strategy looks into,
    one get per pending service and, for a log compaction, one get per log file.
    """
    if busy := _why_busy(snapshot, kind, running):
        return busy
    match kind:
        case CompactionKind.BASE:
            early = why_not_due(snapshot.timeline, settings, now_ms=now_ms, zone=snapshot.zone)
        case CompactionKind.LOG:
            early = why_logs_not_due(snapshot.timeline, settings.log_blocks_min)
    if early and not is_asked:
        return early

    taken = read_pending_groups(snapshot.storage, snapshot.timeline)
    partitions = snapshot.listing.partitions()
    new_base = base_files.file_size_max_bytes
    if kind is CompactionKind.BASE:
        today = datetime.fromtimestamp(now_ms / 1_000, UTC).astimezone(snapshot.zone).date()
        chosen = partitions_to_compact(partitions, settings, today=today)
        plan = plan_compaction(_slices(snapshot, chosen), settings, taken=taken, new_base_size_bytes=new_base)
    else:
        reading = _reading(snapshot)
        _refuse_unfit_rules(snapshot, reading)
        plan = plan_log_compaction(
            _slices(snapshot, partitions), taken=taken, new_base_size_bytes=new_base,
            is_worth_it=lambda file_slice: _is_worth_log_compaction(snapshot, file_slice, reading, settings),
        )  # fmt: skip
    return plan if plan.operations else _why_empty(taken)


def running_writes(snapshot: Snapshot) -> list[Instant]:
    """The writes that have not completed, oldest first. One get for each pending replacecommit."""
    storage, timeline = snapshot.storage, snapshot.timeline
    return [i for i in timeline.pending if i.action in WRITE_ACTIONS and not is_clustering(storage, timeline, i)]


def _why_busy(snapshot: Snapshot, kind: CompactionKind, running: Sequence[Instant]) -> str:
    """Why no compaction may be planned while writes are running; empty if one may.

    A write that runs may append to a slice after the plan was made. Its log would lie before the merged log, whose
    records are older. Where logs are named after their slice, its log would belong to the slice before the compaction.
    """
    if not running or (kind is CompactionKind.BASE and snapshot.config.version.log_naming is LogNaming.AFTER_WRITE):
        return ""
    return f"{running[0].action} '{running[0].requested}' is running: expected no write while a {kind.value} is planned"


def read_plan(snapshot: Snapshot, instant: Instant) -> CompactionPlan:
    """The plan of a pending compaction."""
    path = snapshot.timeline.layout.path(Instant(instant.requested, instant.action, "REQUESTED"))
    return decode_compaction_plan(snapshot.storage.get(path), path=path)


def slice_tasks(snapshot: Snapshot, instant: Instant, plan: CompactionPlan) -> list[SliceTask]:
    """One task for each slice in a plan, the largest logs first. One listing per partition.

    Plans of version 1 name files by absolute paths, which are outdated when the table has been moved. Files are
    therefore looked up by their bare names.

    Raises: NotFound for a file that is gone; CorruptFile for a name that is no data file older than the plan.
    """
    sizes: dict[str, dict[str, int]] = {}
    for partition in {partition for partition, _ in plan.file_groups}:
        sizes[partition] = {file.name: file.size_bytes for file in snapshot.listing.files(partition)}

    tasks = [
        _task(snapshot, instant, operation, number, sizes[operation.partition_path or ""])
        for number, operation in enumerate(plan.operations or ())
    ]

    # Where logs are named after their slice, the merged log needs the slice's next version number.
    is_after_slice = snapshot.config.version.log_naming is LogNaming.AFTER_SLICE
    if instant.action == CompactionKind.LOG.value and is_after_slice:
        tasks = _with_log_names(snapshot, tasks)
    return sorted(tasks, key=lambda task: -task.log_size_bytes)


def _with_log_names(snapshot: Snapshot, tasks: list[SliceTask]) -> list[SliceTask]:
    """The tasks, each with the name of the log that it is to write. One list request per partition."""
    listing = StorageListing(snapshot.storage)
    stored = {p: [file.name for file in listing.files(p)] for p in sorted({task.partition for task in tasks})}
    return [replace(t, log=next_log(stored[t.partition], t.file_id, t.base_instant)) for t in tasks]


def compaction_target(
    session: WriteSession,
    requested: str,
    attempt: int,
    columns: StatedColumns,
    base_files: BaseFileSettings,
    logs: LogSettings,
) -> CompactionTarget:
    """What all slices of one attempt share. `columns`: by which rows are written.

    Raises: Unsupported for rules of merging that only Java code knows.
    """
    snapshot = session.snapshot
    avro_schema = with_meta_fields(columns.text)
    return CompactionTarget(
        location=session.access.location,
        requested=requested,
        attempt=attempt,
        schema=arrow_from_avro(avro_schema),
        avro_schema=avro_schema,
        settings=base_files.of_table(snapshot.config),
        reading=_reading(snapshot).with_evolution(columns.evolution),
        logs=logs.of_version(snapshot.config.version),
        log_marker=snapshot.config.version.log_marker,
    )


def find_overtaking(snapshot: Snapshot, instant: Instant, groups: Collection[FileGroup]) -> Instant | None:
    """A compaction, pending or completed, that was requested after a log compaction and takes one of its file groups.

    The merged log would then lie upon that compaction's base file, and would bring back records that the base file has
    merged already. Seen: Apache Hudi plans compactions of groups whose log compaction is pending, and gives the log
    compaction up when it is run (1.0.2 `BaseHoodieTableServiceClient.logCompact`).
    """
    for other in snapshot.timeline:
        if other.requested <= instant.requested:
            continue

        theirs: Collection[FileGroup] = ()
        if other.action == "compaction" and not other.is_completed:
            theirs = read_plan(snapshot, other).file_groups
        elif other.action == "commit" and other.is_completed:
            stats = read_commit(snapshot.storage, snapshot.timeline, other).partition_to_write_stats
            theirs = [(partition, stat.file_id or "") for partition, own in stats.items() for stat in own]

        if set(theirs) & set(groups):
            return other
    return None


def _slices(snapshot: Snapshot, partitions: list[str]) -> Iterator[FileSlice]:
    for partition in partitions:
        yield from snapshot.slices(partition)


def _reading(snapshot: Snapshot) -> LogReading:
    reading = log_reading(snapshot)
    assert reading is not None, "a merge-on-read table"
    return reading


def _refuse_unfit_rules(snapshot: Snapshot, reading: LogReading) -> None:
    """Refuse a log compaction unless the merge mode takes one record of a key as a whole.

    Only then does merging the logs first, and the base file later, give the same row.
    """
    if reading.rules.merger is not None or reading.rules.fill is not None:
        raise Unsupported(
            f"{snapshot.storage.location.uri}: its merge mode makes a record of several; expected one in which a "
            "record wins whole (EVENT_TIME_ORDERING, COMMIT_TIME_ORDERING) for a log compaction; compact the table "
            "instead"
        )


def _is_worth_log_compaction(
    snapshot: Snapshot, file_slice: FileSlice, reading: LogReading, settings: CompactionSettings
) -> bool:
    """Whether a slice's logs have enough blocks, of more than one write, and only whole rows.

    Rows with some of the columns are left to a compaction of base files, which has the stored row at hand.
    """
    blocks = stored_blocks(snapshot.storage, slice_files(file_slice), reading)
    has_many = len(blocks) >= settings.log_blocks_min and len({instant_time(block) for block in blocks}) > 1
    return has_many and not any(map(is_partial, blocks))


def _task(
    snapshot: Snapshot, instant: Instant, operation: CompactionOperation, number: int, sizes: dict[str, int]
) -> SliceTask:
    partition = operation.partition_path or ""
    logs = [path.rpartition("/")[2] for path in operation.delta_file_paths or ()]
    base = (operation.data_file_path or "").rpartition("/")[2] or None
    what = f"{instant.action} '{instant.requested}'"

    for name in (*logs, *([base] if base is not None else [])):
        own, logged = BaseFileName.parse(name), LogFileName.parse(name)
        written_at = own.requested if own is not None else logged.instant if logged is not None else None
        if written_at is None or written_at >= instant.requested:
            raise CorruptFile(
                f"{instant.requested}.{instant.action}.requested", 0, expected="names of older files", found=f"'{name}'"
            )
        if name not in sizes:
            raise NotFound(
                f"{what}: its plan names '{join(partition, name)}', which is gone; roll it back with Apache Hudi"
            )

    parsed = BaseFileName.parse(base) if base is not None else None
    return SliceTask(
        number=number, partition=partition, file_id=operation.file_id or "",
        base_instant=parsed.requested if parsed is not None else operation.base_instant_time or "",
        base_file=base, logs=tuple((name, sizes[name]) for name in logs),
        source=None if parsed is None else snapshot.source_of(partition, parsed),
    )  # fmt: skip


def _why_empty(taken: Collection[FileGroup]) -> str:
    if taken:
        return f"no slice qualifies: {len(taken):,} file groups are in pending services already"
    return "no slice has logs that qualify"
