"""Writing by buckets: the key of a row tells its file group, whether the row is stored or not.

Spec: format/indexes.md sections 4 and 5.
"""

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from pyhudi.errors import Invalid, Unsupported
from pyhudi.executor import Executor
from pyhudi.format.keys.bucket_counts import BucketCounts
from pyhudi.format.keys.hashing_metadata import BUCKET_INDEX, HashingMetadata, ring_folder
from pyhudi.index.bucket import (
    BucketRule,
    FixedBuckets,
    check_stored_keys,
    fixed_buckets,
    live_buckets,
    refuse_unsaid_buckets,
)
from pyhudi.index.bucket_counts import count_by_partition, find_counts
from pyhudi.index.consistent_buckets import RingBuckets, open_rings, refuse_replaced_nodes
from pyhudi.options.names import canonical_name
from pyhudi.storage.protocol import Storage
from pyhudi.table.facts.bucket_facts import BUCKET_COUNT, BUCKET_COUNT_DEFAULT, ENGINE, INDEX_TYPE, BucketFacts
from pyhudi.table.view.file_system_view import FileSlice
from pyhudi.table.view.snapshot import Snapshot
from pyhudi.write.input.inserts import POLICY
from pyhudi.write.input.source import Operation
from pyhudi.write.place.plan import FileGroupTask, TaskKind, WritePlan, group_task
from pyhudi.write.settings import WriteSettings


@dataclass(frozen=True, slots=True)
class PartitionBuckets:
    """The buckets of a partition that a write has rows for.

    `live`: the newest slice of each bucket that has one. `is_new`: the table has no such partition yet. `replaced`: ids
    of file groups that were replaced.
    """

    rule: BucketRule
    live: Mapping[int, FileSlice]
    is_new: bool
    replaced: Container[str] = ()

    def new_file_id(self, bucket: int, new_uuid: Callable[[], str], *, is_fixed: bool) -> str:
        """The file id for a bucket without a file group. `is_fixed`: the one that non-blocking writers agree on."""
        if not is_fixed:
            return self.rule.file_id_of(bucket, new_uuid)
        assert isinstance(self.rule, FixedBuckets), "refused before the write began"
        return self.rule.fixed_file_id_of(bucket, self.replaced)

    def emptied(self) -> "PartitionBuckets":
        """The same, with no live slice: as if all file groups of the partition were replaced."""
        return replace(self, live={})


def open_buckets(
    snapshot: Snapshot,
    facts: BucketFacts,
    partitions: Sequence[str],
    slices: Mapping[str, Sequence[FileSlice]],
    *,
    adds_rows: bool,
    executor: Executor,
) -> dict[str, PartitionBuckets]:
    """The buckets of the partitions that a write has rows for. If it adds rows, new partitions get their rings.

    `slices`: the newest slices of the partitions that exist. Requests: none if the table stores its facts, except what
    `open_rings` says for rings; otherwise also a look at stored keys of each partition.
    Raises: Invalid where other facts, or another index, placed the stored rows.
    """
    counts = rules_in_force(snapshot, facts) if facts.rescaling is None else facts.rescaling.counts
    rules = _rules(snapshot, facts, counts, partitions, slices, adds_rows=adds_rows, executor=executor)
    is_known = facts.is_stored or (facts.has_stored_fields and counts is not None and counts.is_stored)

    def open_one(partition: str) -> PartitionBuckets:
        if facts.rescaling is not None:  # all of its file groups go, whatever buckets they are
            return PartitionBuckets(rules[partition], {}, is_new=partition not in slices)
        live = live_buckets(rules[partition], partition, slices.get(partition, ()))
        if not is_known:
            check_stored_keys(snapshot.storage, rules[partition], live, snapshot.as_written, partition=partition)
        gone = snapshot.replaced.get(partition, {})
        return PartitionBuckets(rules[partition], live, is_new=partition not in slices, replaced=gone)

    return dict(zip(partitions, executor.run(open_one, partitions), strict=True))


def plan_buckets(
    counts: Mapping[tuple[str, int], int],
    buckets: Mapping[str, PartitionBuckets],
    *,
    appends: bool,
    adds_rows: bool,
    searches: bool,
    new_uuid: Callable[[], str],
    opens_with_logs: bool = False,
    fixes_ids: bool = False,
) -> WritePlan:
    """All rows of a bucket go to its file group; if it has none and the write adds rows, to a new one.

    `counts`: rows by partition and bucket. `appends`: rows go to the logs of groups that exist. `searches`: the tasks
    find out which of the rows are new. `opens_with_logs`: a new group gets a log, and no base file. `fixes_ids`: new
    groups get the file ids that non-blocking writers agree on.
    Sizes play no part: a bucket is one group. Pure but for `new_uuid`.
    Seen: Apache Hudi makes a base file for a new bucket of a merge-on-read table, too, unless it writes without
    blocking (1.0.2, 1.2.0).
    """
    tasks: list[FileGroupTask] = []
    for (partition, bucket), count in sorted(counts.items()):
        own = buckets[partition]
        file_slice = own.live.get(bucket)

        if file_slice is not None:
            kind = TaskKind.APPEND if appends else TaskKind.REWRITE
            searched = file_slice if searches else None
            task = group_task(len(tasks), kind, file_slice, updates=count, bucket_id=bucket, searched=searched)
        elif adds_rows:
            task = FileGroupTask(
                number=len(tasks), kind=TaskKind.APPEND if opens_with_logs else TaskKind.CREATE, partition=partition,
                file_id=own.new_file_id(bucket, new_uuid, is_fixed=fixes_ids), inserts=count,
                is_new_partition=own.is_new, bucket_id=bucket,
            )  # fmt: skip
        else:
            continue

        tasks.append(task)
    return WritePlan(tuple(tasks))


def refuse_unfit_for_buckets(operation: Operation, settings: WriteSettings, *, table_name: str) -> None:
    """Refuse a write that must know which keys are stored before it writes any. By buckets that is known only later.

    Raises: Invalid.
    """
    if operation is Operation.INSERT and settings.insert_duplicates == "fail":
        raise Invalid(
            f"insert into table '{table_name}': expected '{POLICY}'='none' or 'drop', found 'fail'; with the bucket "
            "index keys are looked up as they are written: use drop, or upsert"
        )


def refuse_hidden_buckets(snapshot: Snapshot, slices: Mapping[str, Sequence[FileSlice]]) -> None:
    """Refuse a write by another index to a table that has buckets but stores no index.

    No later write by bucket would find the rows.
    `slices`: of the partitions that the write touches. Requests: the listing of another partition if these have no
    file group, and one list on a merge-on-read table. None if the table stores its index. Raises: Invalid.
    """
    config = snapshot.config
    if any(canonical_name(name) == INDEX_TYPE and text.strip() for name, text in config.properties.items()):
        return

    known = [file_slice for existing in slices.values() for file_slice in existing]
    if not known:
        others = (partition for partition in snapshot.listing.partitions() if partition not in slices)
        known = next(filter(None, map(snapshot.slices, others)), [])

    refuse_unsaid_buckets(config.name, known)

    if config.is_merge_on_read and any(True for _ in snapshot.storage.list(BUCKET_INDEX, recursive=True)):
        raise Invalid(
            f"table '{config.name}': it has files of the bucket index ('{BUCKET_INDEX}'), and its properties do not "
            f"say so: expected options '{INDEX_TYPE}'='BUCKET', '{ENGINE}' and '{BUCKET_COUNT}' as its writers state "
            "them"
        )


def refuse_replacing_rings(snapshot: Snapshot, partitions: Iterable[str]) -> None:
    """Refuse to replace file groups that a ring names: its next rows would go to groups that no reader looks at.

    Requests: a list for each partition, on a merge-on-read table. Raises: Unsupported.
    """
    if not snapshot.config.is_merge_on_read:
        return
    for partition in partitions:
        if any(True for _ in snapshot.storage.list(ring_folder(partition))):
            raise Unsupported(
                f"partition '{partition}': its ring of buckets ({ring_folder(partition)}) names the file groups that "
                "this write would replace, and goes on naming them; delete rows instead, or make another table"
            )


def _rules(
    snapshot: Snapshot,
    facts: BucketFacts,
    counts: BucketCounts | None,
    partitions: Sequence[str],
    slices: Mapping[str, Sequence[FileSlice]],
    *,
    adds_rows: bool,
    executor: Executor,
) -> dict[str, BucketRule]:
    if facts.engine == "SIMPLE":
        if counts is not None:
            return {
                partition: FixedBuckets(count, facts.hash_fields)
                for partition, count in count_by_partition(counts, partitions).items()
            }
        is_empty = facts.bucket_count is None and not _has_groups(snapshot)
        rule = fixed_buckets(facts, table=snapshot.config.name, is_empty=is_empty)
        return dict.fromkeys(partitions, rule)

    count = facts.bucket_count or BUCKET_COUNT_DEFAULT

    def check(ring: HashingMetadata) -> None:
        refuse_replaced_nodes(ring, snapshot.replaced.get(ring.partition, {}))
        live_buckets(RingBuckets(ring, facts.hash_fields), ring.partition, slices.get(ring.partition, ()))

    wanted = [partition for partition in partitions if adds_rows or partition in slices]
    rings = open_rings(
        snapshot.storage, wanted, bucket_count=count, timeline=snapshot.timeline, check=check, executor=executor,
        live_file_ids=lambda partition: [file_slice.file_id for file_slice in slices.get(partition, ())],
    )  # fmt: skip

    absent = {p: HashingMetadata.initial(p, count) for p in partitions if p not in rings}  # nothing of them is live
    return {partition: RingBuckets(ring, facts.hash_fields) for partition, ring in {**rings, **absent}.items()}


def put_counts(storage: Storage, counts: BucketCounts, requested: str) -> None:
    """Put the rules that a rescaling at `requested` makes. They count once it is completed."""
    made = replace(counts, instant=requested)
    storage.put(made.path, made.encode())


def rules_in_force(snapshot: Snapshot, facts: BucketFacts) -> BucketCounts | None:
    """The rules for the bucket counts of partitions: the table's own, or those of the options; None on rings.

    Requests: as `find_counts`.
    """
    if facts.engine != "SIMPLE":
        return None
    return find_counts(snapshot.storage, snapshot.timeline) or facts.stated_counts


def _has_groups(snapshot: Snapshot) -> bool:
    return any(snapshot.slices(partition) for partition in snapshot.listing.partitions())
