"""Writing from a Spark DataFrame: native expressions, one shuffle, then the file-group handle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from pyhudi.engine.local.executors import LocalExecutor
from pyhudi.engine.local.nulls import refuse_null_ordering, refuse_null_required
from pyhudi.engine.local.staged_rows import never_null
from pyhudi.engine.spark.batches import map_in_arrow
from pyhudi.engine.spark.outcomes import OUTCOMES, collect_outcomes
from pyhudi.engine.spark.schema import arrow_schema, spark_schema
from pyhudi.engine.spark.session import arrow_batches, core_count, session_of
from pyhudi.engine.spark.write.buckets import with_rule_buckets
from pyhudi.engine.spark.write.contested_keys import BROADCAST_ROWS_MAX, contested_keys, without_losers
from pyhudi.engine.spark.write.counts import PARTS, count_files, count_rows
from pyhudi.engine.spark.write.kept import KeptRows
from pyhudi.engine.spark.write.key_ranges import with_key_ranges
from pyhudi.engine.spark.write.keys import quoted, refuse_bad_values, with_keys
from pyhudi.engine.spark.write.parquet_files import ParquetFiles
from pyhudi.engine.spark.write.parts import PartWriter, has_parts
from pyhudi.engine.spark.write.record_lookup import of_one_state
from pyhudi.engine.spark.write.shuffle import to_tasks
from pyhudi.engine.spark.write.small_tables import small_table
from pyhudi.engine.spark.write.tagging import (
    FOOTER_THREADS,
    NEW,
    NOWHERE,
    TARGETS,
    Lookup,
    find_candidates,
    living_targets,
    tagged_keys,
    with_tasks,
)
from pyhudi.engine.spark.write.task import TASK_NUMBER, write_task
from pyhudi.engine.spark.write.task_rows import TaskRows
from pyhudi.engine.spark.write.typed_rows import typed_rows
from pyhudi.errors import Bug, Invalid
from pyhudi.executor import Executor
from pyhudi.format.keys.record_keys import check_partition_path, null_key_message
from pyhudi.format.schema.conversion import PARTITION_PATH, RECORD_KEY
from pyhudi.index.bucket import BucketRule
from pyhudi.storage.protocol import StorageLocation
from pyhudi.table.view.file_system_view import FileSlice
from pyhudi.table.view.slice_catalog import SliceCatalog
from pyhudi.write.handles.target import WriteStatus, WriteTarget
from pyhudi.write.input.source import ARRIVAL, LEAVES, STORED_PATH, InputSpec, RowOrder, Tagging
from pyhudi.write.place.plan import WorkloadProfile, WritePlan

TASKS_PER_CORE = 8


class SparkSource:
    """A Spark DataFrame as the input of a write.

    Jobs: one to count; for upsert and delete one that joins the input's keys with the stored keys, or by bucket one
    that counts; one that shuffles the rows to their file groups and writes them. The payload is shuffled once while
    the tagged keys fit a broadcast (`BROADCAST_ROWS_MAX`), and by bucket; beyond that Spark's join shuffles it as well.
    """

    def __init__(
        self,
        rows: DataFrame,
        location: StorageLocation,
        *,
        executor: Executor | None = None,
        kept: KeptRows | None = None,
        files: ParquetFiles | None = None,
        is_stable: bool = False,
    ) -> None:
        """`is_stable`: the rows are the same, and cheap, each time that they are evaluated. `kept`: of another source
        that reads the rows through this one, and closes it. `files`: that hold the rows, in the table's types.
        """
        self._input, self._location, self._is_stable = rows, location, is_stable
        self._files = files
        self._executor = executor or LocalExecutor(FOOTER_THREADS)
        self._kept = kept or KeptRows()

    @property
    def schema(self) -> pa.Schema:
        return arrow_schema(self._input.schema)

    def count(self, spec: InputSpec) -> SparkInput:
        typed = typed_rows(self._input, spec.schema, also=[ARRIVAL] if ARRIVAL in self._input.columns else [])
        kept = typed if self._is_stable else self._kept.keep(typed)
        rows = with_keys(kept, spec.keys, spec.schema)

        given = TaskRows.of(kept.select(*map(quoted, spec.schema.names)), self._files)
        found = count_files(given, spec) if has_parts(spec) else None
        if found is None:
            found = count_rows(rows, spec)

        if bad := sum(row["bad"] for row in found):
            names = [quoted(name) for name in spec.keys.record_key]
            example = rows.where(f.col(RECORD_KEY).isNull()).select(*names).limit(1).collect()[0]
            raise Invalid(null_key_message(spec.keys.record_key, bad, f"one row has {example.asDict()}"))
        nulls = {name: sum(row[f"null_{i}"] for row in found) for i, name in enumerate(never_null(spec))}
        refuse_null_ordering({name: nulls[name] for name in spec.ordering})
        refuse_null_required({name: nulls[name] for name in spec.required})
        for row in found:
            if row[PARTITION_PATH] is None:
                refuse_bad_values(rows, spec.schema, spec.keys)
            check_partition_path(row[PARTITION_PATH])

        counts = {row[PARTITION_PATH]: row["rows"] for row in found}
        written_apart = None
        if has_parts(spec) and all(row[PARTS] for row in found):
            parts = {row[PARTITION_PATH]: sorted(map(tuple, row[PARTS])) for row in found}
            written_apart = PartWriter(given, spec, parts)
        return SparkInput(rows, spec, counts, self._location, self._executor, self._kept, written_apart)

    def close(self) -> None:
        self._kept.release()


@dataclass(frozen=True, slots=True)
class SparkInput:
    """A DataFrame with the columns `PARTITION_PATH` and `RECORD_KEY`, counted by partition.

    `parts`: of an input whose new rows need no shuffle, unless the plan asks for one.
    """

    rows: DataFrame
    spec: InputSpec
    counts: Mapping[str, int]
    location: StorageLocation
    executor: Executor
    kept: KeptRows
    parts: PartWriter | None = None

    @property
    def group_rows_max(self) -> int | None:
        return None  # a task has the memory of its executor

    def tag(self, stored: SliceCatalog, tagging: Tagging) -> SparkTagged:
        settled = self._settled(tagging.ordering) if tagging.settles else self
        if tagging.index.is_exact and tagging.index.is_global:  # tasks find keys, and tell their slices by number
            stored.bring_all()
        elif tagging.index.is_exact:
            stored.bring(settled.counts)
        slices = stored[:]
        row_count = sum(settled.counts.values())
        lookup = Lookup(settled.rows, row_count, self.location, self.spec.schema, slices, tagging)
        candidates = find_candidates(lookup)
        if not candidates:
            return SparkTagged(settled, None, slices, {}, moves=tagging.moves)
        with of_one_state(tagging.index):
            keys = self.kept.keep(tagged_keys(lookup, candidates))
            found = _targets(keys)

        shared = {at for targets in found for at in targets[1] if len(targets[1]) > 1}
        is_certain = tagging.index.is_global or tagging.index.is_exact or tagging.drops_stored
        if not is_certain and any(slices[at].log_files for at in shared):
            keys = self.kept.keep(living_targets(lookup, keys, sorted(shared)))
            found = _targets(keys)
        return SparkTagged(settled, keys, slices, found, moves=tagging.moves)

    def count_buckets(self, rules: Mapping[str, BucketRule]) -> SparkBucketed:
        rows = with_rule_buckets(self.rows, rules, path=PARTITION_PATH, key=RECORD_KEY, bucket=_BUCKET_ID)
        found = rows.groupBy(PARTITION_PATH, _BUCKET_ID).count().collect()
        counts = {(row[PARTITION_PATH], row[_BUCKET_ID]): row["count"] for row in found}
        return SparkBucketed(replace(self, rows=rows), counts)

    def write(self, target: WriteTarget, plan: WritePlan) -> list[WriteStatus]:
        written = self.parts.write(target, plan) if self.parts is not None else None
        if written is not None:
            return written
        placed = self.placed(self.numbered(target), plan, None, only_tagged=target.is_delete)
        return self.write_placed(placed, target, plan)

    def numbered(self, target: WriteTarget) -> DataFrame:
        """The rows, with their order in numbers where rows of a key are settled by it."""
        return _numbered(self.rows) if target.combines else self.rows

    def placed(self, rows: DataFrame, plan: WritePlan, tagged: Column | None, *, only_tagged: bool) -> DataFrame:
        """The rows with the task number of each: by what tagging found, then by where new rows go.

        `tagged`: the task number of a row whose key is stored, null of other rows; None where no key was found.
        """
        bins = plan.insert_tasks()
        if bins and not only_tagged:
            if self.spec.order is RowOrder.BY_KEY_IN_PARTITION:
                rows, slot, spent = with_key_ranges(rows, bins)
            else:
                (rows, slot), spent = _with_slots(rows, bins), (_SLOTS,)
            rows = rows.withColumn(TASK_NUMBER, slot if tagged is None else f.coalesce(tagged, slot)).drop(*spent)
        elif tagged is None:
            raise Bug("a write was planned whose rows go nowhere")
        return rows.withColumn(TASK_NUMBER, _must_have(f.col(TASK_NUMBER)))

    def write_placed(self, placed: DataFrame, target: WriteTarget, plan: WritePlan) -> list[WriteStatus]:
        """Shuffle the rows to the tasks, and write them."""
        spark, schema, key_column = session_of(self.rows), self.spec.schema, self._key_column
        placed = placed.drop(PARTITION_PATH) if key_column is None else placed.drop(PARTITION_PATH, RECORD_KEY)
        task_count = min(len(plan.tasks), TASKS_PER_CORE * core_count(spark))
        shuffled = to_tasks(placed, TASK_NUMBER, task_count)
        if self.spec.order.is_by_key:
            shuffled = shuffled.sortWithinPartitions(TASK_NUMBER, quoted(key_column or RECORD_KEY))
            target = replace(target, sorts_rows=False)  # Spark spills what a task cannot hold
        elif task_count < len(plan.tasks):
            shuffled = shuffled.sortWithinPartitions(TASK_NUMBER)
        names = [name for name in shuffled.columns if name != TASK_NUMBER]
        fields = [schema.field(name) if name in schema.names else _OWN_FIELDS[name] for name in names]
        tasks = {task.number: task for task in plan.tasks}
        run = write_task(target, tasks, pa.schema(fields), key_column=key_column)
        with arrow_batches(spark):
            outcomes = collect_outcomes(map_in_arrow(shuffled, run, spark_schema(OUTCOMES)))
        return [status for statuses in outcomes for status in statuses]

    @property
    def _key_column(self) -> str | None:
        """The column that is the record key, where the key travels under its name only."""
        return None if self.spec.bare_key == RECORD_KEY else self.spec.bare_key

    def _settled(self, ordering: Sequence[str]) -> SparkInput:
        """The input without the rows of keys whose greatest row lies in another partition."""
        rows = _numbered(self.rows)
        contested = self.kept.keep(contested_keys(rows, ordering, self.spec.schema))
        count = contested.count()
        if not count:
            return self
        rows = without_losers(rows, contested, count)
        counts = {row[PARTITION_PATH]: row["count"] for row in rows.groupBy(PARTITION_PATH).count().collect()}
        return replace(self, rows=rows, counts=counts, parts=None)


@dataclass(frozen=True, slots=True)
class SparkTagged:
    """A DataFrame whose keys were looked up.

    `keys`: those that are stored, with their targets by the numbers of `slices`; None where no file may hold one.
    `found`: how many keys have which targets, by partition. `moves`: rows may leave the partition of their key.
    """

    counted: SparkInput
    keys: DataFrame | None
    slices: Sequence[FileSlice]
    found: Mapping[tuple[str, tuple[int, ...]], int]
    moves: bool

    @property
    def group_rows_max(self) -> int | None:
        return self.counted.group_rows_max

    @property
    def profile(self) -> WorkloadProfile:
        """Keys that repeat in the input make the inserts an upper bound."""
        updates: dict[tuple[str, str], int] = {}
        inserts = dict(self.counted.counts)
        for (path, targets), count in self.found.items():
            for at in targets:
                if at >= 0:
                    group = self.slices[at].partition, self.slices[at].file_id
                    updates[group] = updates.get(group, 0) + count
            if NEW not in targets:
                inserts[path] = max(0, inserts[path] - count)
        return WorkloadProfile({p: n for p, n in inserts.items() if n}, updates)

    def stored_keys(self) -> tuple[int, str]:
        if self.keys is None:
            return 0, ""
        left_out = self.keys.where(f.col(TARGETS)[0] == NOWHERE)
        row = left_out.agg(f.count(f.lit(1)), f.min(RECORD_KEY)).collect()[0]
        return row[0], row[1] or ""

    def write(self, target: WriteTarget, plan: WritePlan) -> list[WriteStatus]:
        """By what tagging found, then by where new rows go."""
        if self.keys is None:
            return self.counted.write(target, plan)
        row_count = sum(count * len(targets) for (_, targets), count in self.found.items())
        rows = with_tasks(
            self.counted.numbered(target),
            self.keys,
            self.slices,
            plan.update_tasks(),
            moves=self.moves,
            is_small=row_count <= BROADCAST_ROWS_MAX,
            only_tagged=target.is_delete,
        )
        placed = self.counted.placed(rows, plan, f.col(TASK_NUMBER), only_tagged=target.is_delete)
        return self.counted.write_placed(placed, target, plan)


@dataclass(frozen=True, slots=True)
class SparkBucketed:
    """A DataFrame with the bucket of each row by the index, counted by partition and bucket."""

    counted: SparkInput
    counts: Mapping[tuple[str, int], int]

    @property
    def group_rows_max(self) -> int | None:
        return self.counted.group_rows_max

    def write(self, target: WriteTarget, plan: WritePlan) -> list[WriteStatus]:
        """The rows of a bucket of the index go together."""
        rows = self.counted.numbered(target)
        groups = [(task.partition, task.bucket_id or 0, task.number) for task in plan.tasks]
        schema = f"{PARTITION_PATH} string, {_BUCKET_ID} int, {TASK_NUMBER} int"
        table = small_table(session_of(rows), groups, schema)
        at = [PARTITION_PATH, _BUCKET_ID]
        going = rows.join(f.broadcast(table), at, "inner" if target.is_delete else "left").drop(_BUCKET_ID)
        placed = going.withColumn(TASK_NUMBER, _must_have(f.col(TASK_NUMBER)))
        return self.counted.write_placed(placed, target, plan)


_BUCKET_ID = "__pyhudi_bucket_id"
_SLOTS = "__pyhudi_slots"
_SLOTS_MAX = 1_024

_OWN_FIELDS = {
    field.name: field
    for field in (
        pa.field(RECORD_KEY, pa.string()),
        pa.field(ARRIVAL, pa.int64()),
        pa.field(LEAVES, pa.bool_()),
        pa.field(STORED_PATH, pa.string()),
    )
}


def _numbered(rows: DataFrame) -> DataFrame:
    """The rows, numbered as they arrived."""
    return rows if ARRIVAL in rows.columns else rows.withColumn(ARRIVAL, f.monotonically_increasing_id())


def _targets(keys: DataFrame) -> dict[tuple[str, tuple[int, ...]], int]:
    """How many keys of the input have which targets, by partition. One job."""
    found = keys.groupBy(PARTITION_PATH, TARGETS).count().collect()
    return {(row[PARTITION_PATH], tuple(row[TARGETS])): row["count"] for row in found}


def _with_slots(rows: DataFrame, bins: Mapping[str, list[tuple[int, int]]]) -> tuple[DataFrame, Column]:
    """The rows, and the task number of each as a new row: by partition; by its key's hash if that has several."""
    spark = session_of(rows)
    ordered = sorted(bins.items())
    if all(len(of) == 1 for _, of in ordered):
        table = small_table(spark, [(path, of[0][0]) for path, of in ordered], f"{PARTITION_PATH} string, {_SLOTS} int")
        return rows.join(f.broadcast(table), PARTITION_PATH, "left"), f.col(_SLOTS)
    slots = [(path, slots_of(of)) for path, of in ordered]
    table = small_table(spark, slots, f"{PARTITION_PATH} string, {_SLOTS} array<int>")
    at = (f.pmod(f.xxhash64(RECORD_KEY), f.size(_SLOTS)) + 1).cast("int")
    return rows.join(f.broadcast(table), PARTITION_PATH, "left"), f.element_at(_SLOTS, at)


def slots_of(bins: Sequence[tuple[int, int]]) -> list[int]:
    """Task numbers, each as often as its share of the rows asks for: a key's hash picks one of them.

    Rows of one key always meet in one task.
    """
    total = sum(rows for _, rows in bins)
    slot_count = min(_SLOTS_MAX, max(len(bins), 64)) if len({rows for _, rows in bins}) > 1 else len(bins)
    slots: list[int] = []
    for number, rows in bins:
        slots += [number] * max(1, round(slot_count * rows / total))
    return slots


def _must_have(task: Column) -> Column:
    """The task number, or an error in the task for a row that was given none: rows are never dropped in silence."""
    return f.coalesce(task, f.raise_error(f.lit("pyhudi: a row without a file group; please report this")).cast("int"))
