"""Writing from a Spark DataFrame: native expressions, one shuffle, then the file-group handle."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from pyhudi.engine.local.executors import LocalExecutor
from pyhudi.engine.local.nulls import refuse_null_ordering, refuse_null_required
from pyhudi.engine.spark.schema import arrow_schema, cast_column, spark_schema, spark_type
from pyhudi.engine.spark.session import arrow_batches, core_count, session_of
from pyhudi.engine.spark.write.buckets import with_rule_buckets
from pyhudi.engine.spark.write.kept import keep_input
from pyhudi.engine.spark.write.key_ranges import with_key_ranges
from pyhudi.engine.spark.write.keys import partition_path, quoted, record_key, refuse_bad_times
from pyhudi.engine.spark.write.shuffle import to_tasks
from pyhudi.engine.spark.write.small_tables import small_table
from pyhudi.engine.spark.write.tagging import (
    BROADCAST_ROWS_MAX,
    FOOTER_THREADS,
    NEW,
    NOWHERE,
    TARGETS,
    Lookup,
    contested_keys,
    find_candidates,
    living_targets,
    tagged_keys,
    with_buckets,
    without_losers,
)
from pyhudi.engine.spark.write.task import BUCKET, STATUS_SCHEMA, write_task
from pyhudi.errors import Bug, Invalid
from pyhudi.executor import Executor
from pyhudi.format.keys.record_keys import check_partition_path, null_key_message
from pyhudi.format.schema.conversion import PARTITION_PATH, RECORD_KEY
from pyhudi.index.bucket import BucketRule
from pyhudi.storage.protocol import StorageLocation
from pyhudi.table.view.file_system_view import FileSlice
from pyhudi.table.view.slice_catalog import SliceCatalog
from pyhudi.write.handles.target import WriteStatus, WriteTarget
from pyhudi.write.input.source import ARRIVAL, LEAVES, InputSpec, RowOrder, Tagging
from pyhudi.write.place.plan import WorkloadProfile, WritePlan

TASKS_PER_CORE = 8


class SparkSource:
    """A Spark DataFrame as the input of a write.

    Jobs: one to count; for upsert and delete one that joins the input's keys with the stored keys, or by bucket one
    that counts; one that shuffles the rows to their file groups and writes them. The payload is shuffled once while
    the tagged keys fit a broadcast (`BROADCAST_ROWS_MAX`), and by bucket; beyond that Spark's join shuffles it as well.
    """

    def __init__(self, rows: DataFrame, location: StorageLocation, *, is_stable: bool = False) -> None:
        """`is_stable`: the rows are the same, and cheap, each time that they are evaluated."""
        self._input, self._location, self._is_stable = rows, location, is_stable
        self._spark = session_of(rows)
        self._rows = rows
        self._schema = pa.schema([])
        self._key_column: str | None = None
        self._let_go: list[DataFrame] = []
        self._total = 0
        self._counts: Mapping[str, int] = {}
        self._tagged: DataFrame | None = None
        self._tagged_rows = 0
        self._moves = False
        self._is_bucketed = False
        self._slices: Sequence[FileSlice] = ()
        self._order = RowOrder.AS_ARRIVED

    @property
    def schema(self) -> pa.Schema:
        return arrow_schema(self._input.schema)

    @property
    def executor(self) -> Executor:
        return LocalExecutor(FOOTER_THREADS)

    @property
    def group_rows_max(self) -> int | None:
        return None  # a task has the memory of its executor

    def count(self, spec: InputSpec) -> Mapping[str, int]:
        self._schema, self._order = spec.schema, spec.order
        bare = spec.bare_key
        self._key_column = None if bare == RECORD_KEY else bare  # it travels under this name anyway
        columns = [as_table_types(self._input, name, spec.schema) for name in spec.schema.names]
        typed = self._input.select(*columns, *([ARRIVAL] if ARRIVAL in self._input.columns else []))
        kept, to_release = (typed, None) if self._is_stable else keep_input(typed)
        if to_release is not None:
            self._let_go.append(to_release)
        self._rows = kept.withColumns(
            {RECORD_KEY: record_key(spec.keys, spec.schema), PARTITION_PATH: partition_path(spec.keys, spec.schema)}
        )
        never_null = tuple(dict.fromkeys((*spec.ordering, *spec.required)))
        is_null = [
            f.sum(f.col(quoted(name)).isNull().cast("long")).alias(f"null_{i}") for i, name in enumerate(never_null)
        ]
        found = (
            self._rows.groupBy(PARTITION_PATH)
            .agg(
                f.count(f.lit(1)).alias("rows"),
                f.sum(f.col(RECORD_KEY).isNull().cast("long")).alias("bad"),
                *is_null,
            )
            .collect()
        )
        if bad := sum(row["bad"] for row in found):
            names = [quoted(name) for name in spec.keys.record_key]
            example = self._rows.where(f.col(RECORD_KEY).isNull()).select(*names).limit(1).collect()[0]
            raise Invalid(null_key_message(spec.keys.record_key, bad, f"one row has {example.asDict()}"))
        nulls = {name: sum(row[f"null_{i}"] for row in found) for i, name in enumerate(never_null)}
        refuse_null_ordering({name: nulls[name] for name in spec.ordering})
        refuse_null_required({name: nulls[name] for name in spec.required})
        for row in found:
            if row[PARTITION_PATH] is None:
                refuse_bad_times(self._rows, spec.schema, spec.keys)
            check_partition_path(row[PARTITION_PATH])
        self._counts = {row[PARTITION_PATH]: row["rows"] for row in found}
        self._total = sum(self._counts.values())
        return self._counts

    def tag(self, stored: SliceCatalog, tagging: Tagging) -> WorkloadProfile:
        if tagging.settles:
            self._settle(tagging.ordering)
        if tagging.index.is_exact and tagging.index.is_global:  # tasks find keys, and tell their slices by number
            stored.bring_all()
        elif tagging.index.is_exact:
            stored.bring(self._counts)
        self._slices = slices = stored[:]
        self._moves = tagging.moves
        lookup = Lookup(self._rows, self._total, self._location, self._schema, slices, tagging)
        candidates = find_candidates(lookup)
        if not candidates:
            return WorkloadProfile(self._counts, {})
        self._tagged = self._kept(tagged_keys(lookup, candidates))
        found = self._targets()

        shared = {at for targets in found for at in targets[1] if len(targets[1]) > 1}
        is_certain = tagging.index.is_global or tagging.index.is_exact or tagging.drops_stored
        if not is_certain and any(slices[at].log_files for at in shared):
            self._tagged = self._kept(living_targets(lookup, self._tagged, sorted(shared)))
            found = self._targets()
        return self._profile(slices, found)

    def count_buckets(self, rules: Mapping[str, BucketRule]) -> Mapping[tuple[str, int], int]:
        self._is_bucketed = True
        self._rows = with_rule_buckets(self._rows, rules, path=PARTITION_PATH, key=RECORD_KEY, bucket=_INDEX_BUCKET)
        found = self._rows.groupBy(PARTITION_PATH, _INDEX_BUCKET).count().collect()
        return {(row[PARTITION_PATH], row[_INDEX_BUCKET]): row["count"] for row in found}

    def stored_keys(self) -> tuple[int, str]:
        if self._tagged is None:
            return 0, ""
        left_out = self._tagged.where(f.col(TARGETS)[0] == NOWHERE)
        row = left_out.agg(f.count(f.lit(1)), f.min(RECORD_KEY)).collect()[0]
        return row[0], row[1] or ""

    def write(self, target: WriteTarget, plan: WritePlan) -> list[WriteStatus]:
        rows = self._rows
        if target.combines and ARRIVAL not in rows.columns:
            rows = rows.withColumn(ARRIVAL, f.monotonically_increasing_id())
        place = self._of_buckets if self._is_bucketed else self._placed
        placed = place(rows, plan, only_tagged=target.is_delete)
        placed = placed.drop(PARTITION_PATH) if self._key_column is None else placed.drop(PARTITION_PATH, RECORD_KEY)
        task_count = min(len(plan.tasks), TASKS_PER_CORE * core_count(self._spark))
        shuffled = to_tasks(placed, BUCKET, task_count)
        if self._order is not RowOrder.AS_ARRIVED:
            shuffled = shuffled.sortWithinPartitions(BUCKET, quoted(self._key_column or RECORD_KEY))
            target = replace(target, sorts_rows=False)  # Spark spills what a task cannot hold
        elif task_count < len(plan.tasks):
            shuffled = shuffled.sortWithinPartitions(BUCKET)
        names = [name for name in shuffled.columns if name != BUCKET]
        fields = [self._schema.field(name) if name in self._schema.names else _OWN_FIELDS[name] for name in names]
        tasks = {task.bucket: task for task in plan.tasks}
        run = write_task(target, tasks, pa.schema(fields), key_column=self._key_column)
        with arrow_batches(self._spark):
            statuses = shuffled.mapInArrow(run, spark_schema(STATUS_SCHEMA)).collect()
        return [WriteStatus(*row) for row in statuses]

    def close(self) -> None:
        for kept in self._let_go:
            kept.unpersist()

    def _kept(self, rows: DataFrame) -> DataFrame:
        """The rows in a form that may be read several times, until `close`."""
        kept, to_release = keep_input(rows)
        if to_release is not None:
            self._let_go.append(to_release)
        return kept

    def _settle(self, ordering: Sequence[str]) -> None:
        """Leave out the rows of keys whose greatest row lies in another partition."""
        rows = self._rows
        if ARRIVAL not in rows.columns:
            rows = rows.withColumn(ARRIVAL, f.monotonically_increasing_id())
        contested = self._kept(contested_keys(rows, ordering, self._schema))
        count = contested.count()
        if count:
            self._rows = without_losers(rows, contested, count)
            self._counts = {
                row[PARTITION_PATH]: row["count"] for row in self._rows.groupBy(PARTITION_PATH).count().collect()
            }
            self._total = sum(self._counts.values())

    def _targets(self) -> dict[tuple[str, tuple[int, ...]], int]:
        """How many keys of the input have which targets, by partition. One job."""
        assert self._tagged is not None
        found = self._tagged.groupBy(PARTITION_PATH, TARGETS).count().collect()
        return {(row[PARTITION_PATH], tuple(row[TARGETS])): row["count"] for row in found}

    def _profile(
        self, slices: Sequence[FileSlice], found: Mapping[tuple[str, tuple[int, ...]], int]
    ) -> WorkloadProfile:
        """Rows by what tagging found. Keys that repeat in the input make the inserts an upper bound."""
        updates: dict[tuple[str, str], int] = {}
        inserts = dict(self._counts)
        for (path, targets), count in found.items():
            self._tagged_rows += count * len(targets)
            for at in targets:
                if at >= 0:
                    group = slices[at].partition, slices[at].file_id
                    updates[group] = updates.get(group, 0) + count
            if NEW not in targets:
                inserts[path] = max(0, inserts[path] - count)
        return WorkloadProfile({p: n for p, n in inserts.items() if n}, updates)

    def _of_buckets(self, rows: DataFrame, plan: WritePlan, *, only_tagged: bool) -> DataFrame:
        """As `_placed`, where the rows of a bucket of the index go together."""
        groups = [(task.partition, task.index_bucket or 0, task.bucket) for task in plan.tasks]
        table = small_table(self._spark, groups, f"{PARTITION_PATH} string, {_INDEX_BUCKET} int, {BUCKET} int")
        at = [PARTITION_PATH, _INDEX_BUCKET]
        going = rows.join(f.broadcast(table), at, "inner" if only_tagged else "left").drop(_INDEX_BUCKET)
        return going.withColumn(BUCKET, _must_have(f.col(BUCKET)))

    def _placed(self, rows: DataFrame, plan: WritePlan, *, only_tagged: bool) -> DataFrame:
        """The rows with the bucket of each, by what tagging found, then by where new rows go."""
        bucket: Column | None = None
        is_small = self._tagged_rows <= BROADCAST_ROWS_MAX
        if self._tagged is not None:
            rows = with_buckets(
                rows,
                self._tagged,
                self._slices,
                plan.update_buckets(),
                moves=self._moves,
                is_small=is_small,
                only_tagged=only_tagged,
            )
            bucket = f.col(BUCKET)
        bins = plan.insert_buckets()
        if bins and not only_tagged:
            if self._order is RowOrder.BY_KEY_IN_PARTITION:
                rows, slot, spent = with_key_ranges(rows, bins)
            else:
                (rows, slot), spent = self._with_slots(rows, bins), (_SLOTS,)
            rows = rows.withColumn(BUCKET, slot if bucket is None else f.coalesce(bucket, slot)).drop(*spent)
        elif bucket is None:
            raise Bug("a write was planned whose rows go nowhere")
        return rows.withColumn(BUCKET, _must_have(f.col(BUCKET)))

    def _with_slots(self, rows: DataFrame, bins: Mapping[str, list[tuple[int, int]]]) -> tuple[DataFrame, Column]:
        """The rows, and the bucket of each as a new row: by partition, and by its key's hash where that has several."""
        ordered = sorted(bins.items())
        if all(len(buckets) == 1 for _, buckets in ordered):
            only = [(path, buckets[0][0]) for path, buckets in ordered]
            table = small_table(self._spark, only, f"{PARTITION_PATH} string, {_SLOTS} int")
            return rows.join(f.broadcast(table), PARTITION_PATH, "left"), f.col(_SLOTS)
        slots = [(path, slots_of(buckets)) for path, buckets in ordered]
        table = small_table(self._spark, slots, f"{PARTITION_PATH} string, {_SLOTS} array<int>")
        at = (f.pmod(f.xxhash64(RECORD_KEY), f.size(_SLOTS)) + 1).cast("int")
        return rows.join(f.broadcast(table), PARTITION_PATH, "left"), f.element_at(_SLOTS, at)


_INDEX_BUCKET = "__pyhudi_index_bucket"
_SLOTS = "__pyhudi_slots"
_SLOTS_MAX = 1_024

_OWN_FIELDS = {
    field.name: field
    for field in (pa.field(RECORD_KEY, pa.string()), pa.field(ARRIVAL, pa.int64()), pa.field(LEAVES, pa.bool_()))
}


def slots_of(bins: Sequence[tuple[int, int]]) -> list[int]:
    """Bucket numbers, each as often as its share of the rows asks for: a key's hash picks one of them.

    Rows of one key always meet in one bucket.
    """
    total = sum(rows for _, rows in bins)
    slot_count = min(_SLOTS_MAX, max(len(bins), 64)) if len({rows for _, rows in bins}) > 1 else len(bins)
    slots: list[int] = []
    for bucket, rows in bins:
        slots += [bucket] * max(1, round(slot_count * rows / total))
    return slots


def _must_have(bucket: Column) -> Column:
    """The bucket, or an error in the task for a row that was given none: rows are never dropped in silence."""
    return f.coalesce(
        bucket, f.raise_error(f.lit("pyhudi: a row without a file group; please report this")).cast("int")
    )


def as_table_types(rows: DataFrame, name: str, schema: pa.Schema) -> Column:
    """A column of the input, cast natively to what the table holds; null where the input lacks it."""
    wanted = spark_type(schema.field(name).type, name)
    if name not in rows.columns:
        return f.lit(None).cast(wanted).alias(name)
    return cast_column(f.col(quoted(name)), rows.schema[name].dataType, wanted).alias(name)
