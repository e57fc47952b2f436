"""Where the rows of a write go: to the file groups in which their keys are found, or to those of their buckets."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import pyarrow as pa

from pyhudi.errors import Conflict
from pyhudi.format.timeline.instant import Instant
from pyhudi.index.doubled_logs import refuse_to_end_doubled
from pyhudi.metadata.kinds.registry import telling_file_groups
from pyhudi.table.facts.bucket_facts import BucketFacts
from pyhudi.table.view.bootstrap import BOOTSTRAP_INSTANT
from pyhudi.table.view.commits import read_commit
from pyhudi.table.view.file_system_view import FileSlice
from pyhudi.table.view.pending import FileGroup
from pyhudi.table.view.slice_catalog import SliceCatalog
from pyhudi.table.view.snapshot import Snapshot
from pyhudi.txn.action.session import WriteSession
from pyhudi.versions import LogNaming
from pyhudi.write.handles.log_names import name_logs
from pyhudi.write.input.inserts import combines_rows, refuse_stored_keys
from pyhudi.write.input.source import Operation, PreparedWrite, WritableInput
from pyhudi.write.input.tagging import looks_keys_up, tag_input, tagging_of_table, workload
from pyhudi.write.place.buckets import open_buckets, plan_buckets, refuse_hidden_buckets, refuse_replacing_rings
from pyhudi.write.place.doubled import double_rows
from pyhudi.write.place.nested_partitions import Nesting, new_partitions, refuse_nested_partitions
from pyhudi.write.place.non_blocking import appends_freely
from pyhudi.write.place.plan import Sizing, WritePlan, plan_write, record_size
from pyhudi.write.place.replacement import clustering_groups, plan_replacement
from pyhudi.write.settings import WriteSettings

Slices = Mapping[str, list[FileSlice]]


@dataclass(frozen=True, slots=True)
class Placement:
    """Where the rows of a write go, with what writes them there.

    `replaced`: partition -> ids of the file groups that go; None for a write that replaces none. `nesting`: the folders
    above the partitions that it makes.
    """

    rows: WritableInput
    plan: WritePlan
    replaced: Mapping[str, tuple[str, ...]] | None
    nesting: Nesting


def place_rows(
    session: WriteSession, prepared: PreparedWrite, settings: WriteSettings, pending: Mapping[FileGroup, Instant]
) -> Placement:
    """Find where the rows of a write go, and what it replaces. `pending`: the file groups in the plans of services.

    Requests: a listing, and what the index reads. Raises: as `refuse_nested_partitions`, and what the index refuses.
    """
    snapshot, operation, counts = session.snapshot, prepared.operation, prepared.counted.counts
    stored = SliceCatalog(snapshot)
    rescaling = prepared.buckets.rescaling if prepared.buckets is not None else None
    also = prepared.also_replaced if rescaling is None else rescaling.partitions
    replaced = plan_replacement(snapshot, operation, {*counts, *also}, pending)
    frozen = clustering_groups(pending)
    refused = {} if settings.passes_clusterings else frozen
    if prepared.buckets is not None:
        refuse_replacing_rings(snapshot, replaced or ())
        stored.bring(counts)
        drops = operation is Operation.INSERT and looks_keys_up(operation, settings)
        rows, plan = _by_buckets(
            session, prepared, prepared.buckets, stored.by_partition, settings, replaces=replaced is not None,
            searches=drops or prepared.is_partial, frozen=frozen if settings.doubles_rows else {},
        )  # fmt: skip
        groups = [(task.partition, task.file_id) for task in plan.tasks if task.doubled is None]
        _refuse_frozen(refused, groups)
        for requested in sorted({frozen[group].requested for group in groups if group in frozen}):
            refuse_to_end_doubled(snapshot.storage, snapshot.timeline, requested)
    else:
        rows, plan = _by_keys(session, prepared, stored, frozen, settings, joins=replaced is None, refused=refused)
    nesting = refuse_nested_partitions(snapshot, new_partitions(plan), prepared.spec.keys, prepared.spec.schema)
    plan = name_logs(plan, snapshot, pending)
    return Placement(rows, _beside_services(plan, pending, snapshot.config.version.log_naming), replaced, nesting)


def _beside_services(plan: WritePlan, pending: Mapping[FileGroup, Instant], naming: LogNaming) -> WritePlan:
    """The plan, whose tasks know of the pending compactions and log compactions of their groups."""
    forbidding = {"logcompaction", "compaction"} if naming is LogNaming.AFTER_SLICE else {"logcompaction"}
    tasks = []
    for task in plan.tasks:
        service = pending.get((task.partition, task.file_id))
        if service is not None and service.action in forbidding:
            task = replace(task, merging=service)
        if service is not None and service.action == "compaction":
            task = replace(task, compaction=service.requested)
        tasks.append(task)
    return WritePlan(tuple(tasks))


def _by_buckets(
    session: WriteSession,
    prepared: PreparedWrite,
    facts: BucketFacts,
    slices: Slices,
    settings: WriteSettings,
    *,
    replaces: bool,
    searches: bool,
    frozen: Mapping[FileGroup, Instant],
) -> tuple[WritableInput, WritePlan]:
    """`frozen`: the file groups of pending clusterings, to which rows may go if they also go where these move them.

    Not on tables with an index that names the file group of a key: the write is later than the resizing, so that its
    records would go on naming the old one.
    """
    counted = prepared.counted
    adds_rows = prepared.operation is not Operation.DELETE
    buckets = open_buckets(
        session.snapshot, facts, tuple(counted.counts), slices, adds_rows=adds_rows, executor=counted.executor
    )
    bucketed = counted.count_buckets({partition: of.rule for partition, of in buckets.items()})
    if replaces:
        buckets = {partition: of.emptied() for partition, of in buckets.items()}
    plan = plan_buckets(
        bucketed.counts, buckets, appends=session.snapshot.config.is_merge_on_read, adds_rows=adds_rows,
        searches=searches, opens_with_logs=appends_freely(prepared, settings),
        fixes_ids=settings.is_non_blocking, new_uuid=session.access.new_uuid,
    )  # fmt: skip
    named = session.snapshot.config.metadata_partitions_named
    if frozen and not searches and not telling_file_groups(named):
        plan = double_rows(plan, session.snapshot, frozen, buckets)
    return bucketed, plan


def _by_keys(
    session: WriteSession,
    prepared: PreparedWrite,
    stored: SliceCatalog,
    frozen: Mapping[FileGroup, Instant],
    settings: WriteSettings,
    *,
    joins: bool,
    refused: Mapping[FileGroup, Instant],
) -> tuple[WritableInput, WritePlan]:
    """`joins`: new rows may go to file groups that are there; not to those that the write replaces. `frozen`: groups of
    pending clusterings, which take no new rows. `refused`: those of them in which nothing may change.
    """
    snapshot, operation, counted = session.snapshot, prepared.operation, prepared.counted
    tagging = tagging_of_table(
        snapshot, operation, prepared.spec, settings, counted.counts, stored, counted.executor
    )  # fmt: skip
    looks_up = looks_keys_up(operation, settings)
    brings = looks_up and tagging.index.is_exact  # what the input touches is only known behind the look-up

    if not brings:
        refuse_hidden_buckets(snapshot, stored.by_partition or stored.whole(counted.counts))
    tagged = tag_input(counted, stored, tagging) if looks_up else None

    profile = workload(operation, counted, tagged)
    if tagged is not None and tagging.drops_stored:
        refuse_stored_keys(tagged, settings, table_name=snapshot.config.name)
    _refuse_frozen(refused, profile.updates)
    touched = {**stored.by_partition, **stored.whole(profile.inserts)}
    if brings:
        refuse_hidden_buckets(snapshot, touched)

    fills = operation is not Operation.BULK_INSERT
    existing = {p: of if joins else [] for p, of in touched.items() if of}
    appends = snapshot.config.is_merge_on_read
    holds = combines_rows(operation, settings) or prepared.spec.order.is_by_key
    rows: WritableInput = counted if tagged is None else tagged

    sizing = Sizing(
        record_size_bytes=_record_size(snapshot, prepared.spec.schema, settings),
        file_size_max_bytes=settings.file_size_max_bytes,
        small_file_limit_bytes=settings.small_file_limit_bytes if fills and not prepared.is_partial else 0,
        small_groups_max=settings.logs.small_groups_max if appends else None,
        new_rows_max=rows.group_rows_max if holds else None,
    )

    return rows, plan_write(
        profile, existing, sizing=sizing, appends=appends, new_uuid=session.access.new_uuid, closed=frozen
    )


def _refuse_frozen(frozen: Mapping[FileGroup, Instant], groups: Iterable[FileGroup]) -> None:
    clash = min((key for key in groups if key in frozen), default=None)
    if clash is not None:
        raise Conflict(
            f"file group '{clash[1]}' in partition '{clash[0]}' is being clustered by '{frozen[clash].requested}': "
            f"run_clusterings() carries it out, rollback('{frozen[clash].requested}') takes it off the timeline, then "
            "retry; or let the write go first, by hoodie.clustering.updates.strategy=SparkAllowUpdateStrategy"
        )


def _record_size(snapshot: Snapshot, schema: pa.Schema, settings: WriteSettings) -> int:
    """Bytes a stored row, as the newest write with rows measured it; before that an estimate from the columns.

    A bootstrap tells nothing: its files hold the meta fields only.
    """
    guess = min(settings.record_size_estimate_bytes, 40 + sum(_width(field.type) for field in schema))
    for instant in reversed(snapshot.timeline.completed_writes[-3:]):
        if instant.requested == BOOTSTRAP_INSTANT:
            continue
        metadata = read_commit(snapshot.storage, snapshot.timeline, instant)
        stats = [s for of in metadata.partition_to_write_stats.values() for s in of if s.num_writes and not s.is_log]
        rows = sum(s.num_writes or 0 for s in stats)
        if rows >= 1_000:
            return record_size(rows, sum(s.file_size_in_bytes or 0 for s in stats), len(stats), default_bytes=guess)
    return guess


def _width(kind: pa.DataType) -> int:
    try:
        return max(1, kind.bit_width // 8)
    except ValueError:
        return 24
