"""What a clustering reads from the table: file slices for a new plan, a pending plan, and the files of that plan."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import pyarrow as pa

from pyhudi.errors import Invalid
from pyhudi.format.names import join
from pyhudi.format.schema.conversion import arrow_from_avro, with_meta_fields
from pyhudi.format.timeline.action_files import decode_requested_replace, encode_requested_replace
from pyhudi.format.timeline.instant import Instant
from pyhudi.format.timeline.records import ClusteringGroup, ClusteringPlan, SliceInfo
from pyhudi.index.bucket import unbucketed_uuid
from pyhudi.index.doubled_logs import tells_rows
from pyhudi.index.planned_rings import becoming
from pyhudi.options.values import COUNT_MAX
from pyhudi.services.clustering.partitions import partitions_to_cluster
from pyhudi.services.clustering.plan import Sizing, is_by_single_files, plan_clustering, requested
from pyhudi.services.clustering.resizing import plan_rings
from pyhudi.services.clustering.settings import SINGLE_FILE_SORT, SORT_COLUMNS, ClusteringSettings
from pyhudi.services.clustering.trigger import plan_path, why_not_due
from pyhudi.table.facts.bucket_facts import BucketFacts
from pyhudi.table.read.plan import log_reading
from pyhudi.table.slices.slice_log import slice_files
from pyhudi.table.view.commits import read_commit
from pyhudi.table.view.file_system_view import FileSlice
from pyhudi.table.view.pending import FileGroup, read_pending_groups
from pyhudi.table.view.snapshot import Snapshot
from pyhudi.txn.action.session import WriteSession
from pyhudi.txn.conflicts.changes import change_of
from pyhudi.write.clustering.target import ClusteringTarget, GroupTask
from pyhudi.write.handles.base_file_writer import BaseFileSettings
from pyhudi.write.place.curves import Curve, curve_order
from pyhudi.write.stated_schema import StatedColumns


@dataclass(frozen=True, slots=True, kw_only=True)
class Scheduled:
    """A clustering that was put on the timeline, and its plan. Both are None when none was; `reason` then says why."""

    instant: Instant | None = None
    plan: ClusteringPlan | None = None
    reason: str = ""


def schedule(
    session: WriteSession,
    settings: ClusteringSettings,
    base_files: BaseFileSettings,
    *,
    partitions: Sequence[str] | None,
    rings: BucketFacts | None,
    is_asked: bool,
    claim: Callable[[str], object] = lambda requested: None,
) -> Scheduled:
    """Plan a clustering and put it on the timeline, if any slice qualifies.

    `partitions`: only these are looked into; None: all. `rings`: the buckets of a table whose rings are resized.
    `is_asked`: do so even if the trigger says that no clustering is due. `claim`: called with the requested time right
    before the plan is put; a caller that runs the clustering at once claims it here.

    The guard is held, so no write completes between the plan and its instant. A write that runs meanwhile may still be
    about to change a file group of the plan; it is refused when it completes. Requests: as `new_plan`.
    """
    snapshot, access = session.snapshot, session.access
    plan = new_plan(
        snapshot, settings, base_files, partitions=partitions, rings=rings, now_ms=access.clock.now_ms(),
        new_uuid=access.new_uuid, is_asked=is_asked,
    )  # fmt: skip
    if isinstance(plan, str):
        return Scheduled(reason=plan)

    action = snapshot.config.layout.kind.clustering
    instant = Instant(session.table.issue_instant(), action, "REQUESTED")
    session.table.confirm()
    claim(instant.requested)
    return Scheduled(instant=session.table.request(instant, encode_requested_replace(requested(plan))), plan=plan)


def new_plan(
    snapshot: Snapshot,
    settings: ClusteringSettings,
    base_files: BaseFileSettings,
    *,
    partitions: Sequence[str] | None,
    rings: BucketFacts | None,
    now_ms: int,
    new_uuid: Callable[[], str],
    is_asked: bool,
) -> ClusteringPlan | str:
    """The plan of a new clustering; or, in words, why there is nothing to do. Nothing is changed.

    `partitions`, `rings`, `is_asked`: as in `schedule`. Requests: what the trigger reads; where a clustering is due by
    it, also one listing per partition that is looked into, and one get per pending service.
    """
    refuse_unsortable(snapshot.schema_with_meta, settings.sort_columns, settings.curve)
    if not is_asked and (early := why_not_due(snapshot, settings)):
        return early

    taken = read_pending_groups(snapshot.storage, snapshot.timeline)
    hour = datetime.fromtimestamp(now_ms / 1_000, UTC).astimezone(snapshot.zone).hour
    known = snapshot.listing.partitions()
    chosen = partitions_to_cluster(
        known if partitions is None else [path for path in known if path in set(partitions)], settings, hour=hour
    )
    new_base = base_files.file_size_max_bytes
    sizing = Sizing(_root(snapshot.storage.location.uri), new_base)
    if rings is None:
        plan = plan_clustering(_slices(snapshot, chosen), settings, sizing, taken=taken)
    else:
        plan = plan_rings(snapshot, chosen, settings, new_base, sizing, taken=taken, new_uuid=new_uuid)
    return plan if plan.input_groups else _why_empty(chosen, taken)


def read_plan(snapshot: Snapshot, instant: Instant) -> ClusteringPlan:
    """The plan of a pending clustering."""
    path = plan_path(snapshot, instant)
    plan = decode_requested_replace(snapshot.storage.get(path), path=path).clustering_plan
    assert plan is not None, "a clustering has a plan"
    return plan


def slices_of(plan: ClusteringPlan) -> Iterator[SliceInfo]:
    for group in plan.input_groups or ():
        yield from group.slices


def groups_of(plan: ClusteringPlan) -> frozenset[FileGroup]:
    """The file groups whose rows a plan moves."""
    return frozenset(_key(one) for one in slices_of(plan))


def find_outdated(snapshot: Snapshot, instant: Instant, plan: ClusteringPlan) -> FileGroup | None:
    """A file group of the plan that has changed since the plan was made; None if the plan still holds.

    The plan's files would then lack rows, and the clustering would lose these. Seen: writers of Apache Hudi may be
    allowed to change such a file group (`SparkAllowUpdateStrategy`), and a restore may leave a plan without its files.
    Rows that were also logged for the file groups that a resizing makes are no change. Requests: where there are such,
    a get for each write since the plan.
    """
    current = _current(snapshot, plan)
    late: dict[FileGroup, set[str]] = {}
    for one in slices_of(plan):
        now, planned = current.get(_key(one)), _planned_names(one)
        found = set() if now is None else {log.name.format() for log in now.log_files}
        if now is not None and now.base_file is not None:
            found.add(now.base_file.name.format())
        if planned - found:
            return _key(one)
        if found - planned:
            late[_key(one)] = found - planned

    moves = becoming(plan, path=plan_path(snapshot, instant)) if late else {}
    if late.keys() <= moves.keys():
        _pass_over_doubled(snapshot, instant, current, late, moves)
    return min((group for group, names in late.items() if names), default=None)


def _pass_over_doubled(
    snapshot: Snapshot,
    instant: Instant,
    current: Mapping[FileGroup, FileSlice],
    late: Mapping[FileGroup, set[str]],
    moves: Mapping[FileGroup, frozenset[FileGroup]],
) -> None:
    """Take those names out of `late` whose rows were also logged for what a resizing makes of the group, or that hold
    none.
    """
    timeline = snapshot.timeline
    for write in timeline.completed_writes if late else ():
        if max(write.requested, timeline.effective_time(write)) > instant.requested:
            change = change_of(write.requested, read_commit(snapshot.storage, timeline, write))
            for (partition, file_id), names in late.items():
                if moves[partition, file_id] & change.appended:
                    names -= {_bare(file.path) for file in change.files.get(partition, ())}

    for group, names in late.items():
        sizes = {log.name.format(): log.size_bytes for log in current[group].log_files} if names else {}
        for name in [name for name in names if name in sizes]:
            if not tells_rows(snapshot.storage, timeline, join(group[0], name), sizes[name]):
                names.remove(name)


def _planned_names(one: SliceInfo) -> set[str]:
    """The files of a slice that the plan reads."""
    names = {_bare(path) for path in (one.data_file_path, *(one.delta_file_paths or ())) if path}
    return {name for name in names if not name.endswith(".cdc")}


def group_tasks(
    snapshot: Snapshot, plan: ClusteringPlan, *, new_uuid: Callable[[], str]
) -> list[GroupTask]:  # fmt: skip
    """One task for each group of a plan, the largest first. One listing per partition.

    Files are found by the file groups that the plan names, not by its paths, which are outdated when the table has been
    moved. Raises: Invalid for a group whose slices lie in several partitions, and for one of several slices or files in
    a plan that sorts each slice in itself.
    """
    if is_by_single_files(plan):
        _refuse_joined(plan.input_groups or ())
    current = _current(snapshot, plan)
    tasks = [
        _task(number, group, current, unbucketed_uuid(new_uuid)) for number, group in enumerate(plan.input_groups or ())
    ]
    return sorted(tasks, key=lambda task: -task.size_bytes)


def _refuse_joined(groups: Sequence[ClusteringGroup]) -> None:
    for number, group in enumerate(groups):
        slices, files = len(group.slices), group.num_output_file_groups
        if slices != 1 or files != 1:
            raise Invalid(
                f"group {number} of a clustering plan of '{SINGLE_FILE_SORT}': expected one file slice that becomes "
                f"one file, found {slices} slices that become {files} files; take the plan off the timeline: rollback"
            )


def clustering_target(
    session: WriteSession,
    instant: Instant,
    plan: ClusteringPlan,
    attempt: int,
    written: StatedColumns,
    settings: ClusteringSettings,
    base_files: BaseFileSettings,
) -> ClusteringTarget:
    """What all groups of one attempt share. `written`: the columns by which rows are written.

    The plan names the sort columns. How they order rows is not in plans, so whoever carries one out says it.
    Raises: Invalid for a column that the table has not, or that has no order.
    """
    snapshot = session.snapshot
    avro_schema = with_meta_fields(written.text)
    schema = arrow_from_avro(avro_schema)

    params = (plan.strategy.strategy_params if plan.strategy is not None else None) or {}
    columns = tuple(name.strip() for name in params.get(SORT_COLUMNS, "").split(",") if name.strip())
    refuse_unsortable(schema, columns, settings.curve)

    reading = log_reading(snapshot)
    return ClusteringTarget(
        location=session.access.location,
        requested=instant.requested,
        attempt=attempt,
        schema=schema,
        avro_schema=avro_schema,
        settings=base_files.of_table(snapshot.config),
        reading=None if reading is None else reading.with_evolution(written.evolution),
        as_written=snapshot.as_written_with(written.evolution),
        sort_columns=columns,
        curve=settings.curve,
        file_size_bytes=COUNT_MAX if is_by_single_files(plan) else settings.file_size_bytes,
        compression=settings.asked_compression,
    )


def refuse_unsortable(schema: pa.Schema, columns: Sequence[str], curve: Curve) -> None:
    """Raises: Invalid for a column to sort by that the table has not or that has no order, and for too many columns."""
    if columns:
        try:
            curve_order(schema.empty_table(), columns, curve)
        except Invalid as error:
            raise Invalid(f"option '{SORT_COLUMNS}'='{','.join(columns)}': {error}") from error


def _slices(snapshot: Snapshot, partitions: list[str]) -> Iterator[FileSlice]:
    for partition in partitions:
        yield from snapshot.slices(partition)


def _current(snapshot: Snapshot, plan: ClusteringPlan) -> dict[FileGroup, FileSlice]:
    """The newest slices of the plan's file groups that are in the table."""
    wanted: dict[str, set[str]] = {}
    for partition, file_id in groups_of(plan):
        wanted.setdefault(partition, set()).add(file_id)
    return {
        (partition, one.file_id): one
        for partition in sorted(wanted.keys() & set(snapshot.listing.partitions()))
        for one in snapshot.slices(partition, wanted[partition])
    }


def _task(number: int, group: ClusteringGroup, current: dict[FileGroup, FileSlice], uuid: str) -> GroupTask:
    partitions = {one.partition_path or "" for one in group.slices}
    if len(partitions) != 1:
        raise Invalid(f"group {number} of a clustering plan: expected file slices of one partition, found {partitions}")

    slices = [_as_planned(current[_key(one)], one) for one in group.slices]
    return GroupTask(
        number=number, partition=partitions.pop(), slices=tuple(map(slice_files, slices)),
        files=max(1, group.num_output_file_groups or 1), uuid=uuid,
        size_bytes=sum(one.base_bytes + one.log_bytes for one in slices),
    )  # fmt: skip


def _as_planned(now: FileSlice, one: SliceInfo) -> FileSlice:
    """A slice without the logs that came after the plan. A resizing leaves these to the logs of what it makes."""
    names = _planned_names(one)
    return replace(now, log_files=tuple(log for log in now.log_files if log.name.format() in names))


def _key(one: SliceInfo) -> FileGroup:
    return one.partition_path or "", one.file_id or ""


def _root(uri: str) -> str:
    """Where the table lies, as plans spell it. Seen: 0.15.0, 1.0.2 and 1.2.0 write `file:/path` of this machine."""
    return uri.rstrip("/") if "://" in uri else f"file:{uri.rstrip('/')}"


def _bare(path: str) -> str:
    return path.rpartition("/")[2]


def _why_empty(partitions: list[str], taken: Iterable[FileGroup]) -> str:
    busy = len([group for group in taken if group[0] in partitions])
    if busy:
        return f"no file slice qualifies: {busy:,} file groups are in pending services already"
    return f"no file slice qualifies in {len(partitions):,} partitions"
