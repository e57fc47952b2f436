"""Writing from a Spark DataFrame: native expressions, one shuffle, then the file-group handle."""

from collections.abc import Mapping, Sequence

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from pyhudi.engine.nulls import refuse_null_ordering, refuse_null_required
from pyhudi.engine.spark.kept import keep_input
from pyhudi.engine.spark.keys import partition_path, quoted, record_key
from pyhudi.engine.spark.read import read_files
from pyhudi.engine.spark.schema import arrow_schema, cast_column, spark_schema, spark_type
from pyhudi.engine.spark.session import arrow_batches, core_count, session_of
from pyhudi.engine.spark.shuffle import to_tasks
from pyhudi.engine.spark.small_tables import small_table
from pyhudi.engine.spark.task import BUCKET, STATUS_SCHEMA, write_task
from pyhudi.errors import Bug, Invalid
from pyhudi.format.keys import check_partition_path, null_key_message
from pyhudi.format.names import join
from pyhudi.format.schema import META_FIELDS
from pyhudi.storage.protocol import StorageLocation
from pyhudi.table.file_system_view import FileSlice
from pyhudi.write.base_file_writer import RECORD_KEY
from pyhudi.write.handle import ARRIVAL, WriteStatus, WriteTarget
from pyhudi.write.plan import WorkloadProfile, WritePlan
from pyhudi.write.source import InputSpec

PATH = META_FIELDS[3]
SLICE = "__pyhudi_slice"
SLICES = "__pyhudi_slices"
FILE = "__pyhudi_file"

BROADCAST_ROWS_MAX = 1_000_000
"""Keys, or tagged keys, up to which a join sends them to every task instead of shuffling the other side."""

TASKS_PER_CORE = 8


class SparkSource:
    """A Spark DataFrame as the input of a write.

    Jobs: one to count; for upsert and delete one that joins the input's keys with the stored keys; one that
    shuffles the rows to their file groups and writes them. The payload is shuffled once while the tagged keys
    fit a broadcast (`BROADCAST_ROWS_MAX`); beyond that Spark's join shuffles it as well.
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
        self._slices: Sequence[FileSlice] = ()

    @property
    def schema(self) -> pa.Schema:
        return arrow_schema(self._input.schema)

    def count(self, spec: InputSpec) -> Mapping[str, int]:
        self._schema = spec.schema
        self._key_column = bare_key(spec)
        columns = [as_table_types(self._input, name, spec.schema) for name in spec.schema.names]
        typed = self._input.select(*columns)
        kept, to_release = (typed, None) if self._is_stable else keep_input(typed)
        if to_release is not None:
            self._let_go.append(to_release)
        self._rows = kept.withColumns(
            {RECORD_KEY: record_key(spec.keys, spec.schema), PATH: partition_path(spec.keys, spec.schema)}
        )
        never_null = tuple(dict.fromkeys((*spec.ordering, *spec.required)))
        is_null = [
            f.sum(f.col(quoted(name)).isNull().cast("long")).alias(f"null_{i}") for i, name in enumerate(never_null)
        ]
        found = (
            self._rows.groupBy(PATH)
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
            check_partition_path(row[PATH])
        self._counts = {row[PATH]: row["rows"] for row in found}
        self._total = sum(self._counts.values())
        return self._counts

    def tag(self, slices: Sequence[FileSlice]) -> WorkloadProfile:
        self._slices = slices
        keys = self._rows.select(PATH, RECORD_KEY)
        if self._total <= BROADCAST_ROWS_MAX:
            keys = f.broadcast(keys)
        files = [
            (join(s.partition, s.base_file.name.format()), s.base_file.size_bytes)
            for s in slices
            if s.base_file is not None
        ]
        stored = read_files(
            self._spark, self._location, files, spark_schema(pa.schema([pa.field(RECORD_KEY, pa.string())]))
        )
        stored = stored.select(f.col(RECORD_KEY), f.col("_metadata.file_name").alias(FILE))
        names = [(s.base_file.name.format(), s.partition, at) for at, s in enumerate(slices) if s.base_file]
        of_files = small_table(self._spark, names, f"{FILE} string, {PATH} string, {SLICE} int")
        located = stored.join(f.broadcast(of_files), FILE).select(PATH, RECORD_KEY, SLICE)
        hits = located.join(keys, [PATH, RECORD_KEY], "left_semi")
        # A key that several groups hold (bulk inserted twice) goes to each of them.
        tagged, to_release = keep_input(
            hits.groupBy(PATH, RECORD_KEY).agg(f.sort_array(f.collect_set(SLICE)).alias(SLICES))
        )
        if to_release is not None:
            self._let_go.append(to_release)
        self._tagged = tagged
        return self._profile(slices)

    def write(self, target: WriteTarget, plan: WritePlan) -> list[WriteStatus]:
        rows = self._rows.withColumn(ARRIVAL, f.monotonically_increasing_id()) if target.combines else self._rows
        placed = self._placed(rows, plan, only_tagged=target.is_delete)
        placed = placed.drop(PATH) if self._key_column is None else placed.drop(PATH, RECORD_KEY)
        task_count = min(len(plan.tasks), TASKS_PER_CORE * core_count(self._spark))
        shuffled = to_tasks(placed, BUCKET, task_count)
        if task_count < len(plan.tasks):
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

    def _profile(self, slices: Sequence[FileSlice]) -> WorkloadProfile:
        """Rows by what tagging found. Keys that repeat in the input make the inserts an upper bound."""
        assert self._tagged is not None
        updates: dict[tuple[str, str], int] = {}
        inserts = dict(self._counts)
        for row in self._tagged.groupBy(SLICES).count().collect():
            for at in row[SLICES]:
                group = slices[at].partition, slices[at].file_id
                updates[group] = updates.get(group, 0) + row["count"]
            partition = slices[row[SLICES][0]].partition
            inserts[partition] = max(0, inserts[partition] - row["count"])
        self._tagged_rows = sum(updates.values())
        return WorkloadProfile({p: n for p, n in inserts.items() if n}, updates)

    def _placed(self, rows: DataFrame, plan: WritePlan, *, only_tagged: bool) -> DataFrame:
        """The rows with the bucket of each, by what tagging found, then by where new rows go."""
        bucket: Column | None = None
        if self._tagged is not None:
            of_slice = plan.update_buckets()
            known = [
                (at, of_slice[s.partition, s.file_id])
                for at, s in enumerate(self._slices)
                if (s.partition, s.file_id) in of_slice
            ]
            if known:
                numbers = small_table(self._spark, known, f"{SLICE} int, {BUCKET} int")
                each = self._tagged.select(PATH, RECORD_KEY, f.explode(SLICES).alias(SLICE))
                tagged = each.join(f.broadcast(numbers), SLICE).select(PATH, RECORD_KEY, BUCKET)
                if self._tagged_rows <= BROADCAST_ROWS_MAX:
                    tagged = f.broadcast(tagged)
                rows = rows.join(tagged, [PATH, RECORD_KEY], "inner" if only_tagged else "left")
                bucket = f.col(BUCKET)
        bins = plan.insert_buckets()
        if bins and not only_tagged:
            rows, slot = self._with_slots(rows, bins)
            rows = rows.withColumn(BUCKET, slot if bucket is None else f.coalesce(bucket, slot)).drop(_SLOTS)
        elif bucket is None:
            raise Bug("a write was planned whose rows go nowhere")
        return rows.withColumn(BUCKET, _must_have(f.col(BUCKET)))

    def _with_slots(self, rows: DataFrame, bins: Mapping[str, list[tuple[int, int]]]) -> tuple[DataFrame, Column]:
        """The rows, and the bucket of each as a new row: by partition, and by its key's hash where that has several."""
        ordered = sorted(bins.items())
        if all(len(of) == 1 for _, of in ordered):
            table = small_table(self._spark, [(path, of[0][0]) for path, of in ordered], f"{PATH} string, {_SLOTS} int")
            return rows.join(f.broadcast(table), PATH, "left"), f.col(_SLOTS)
        slots = [(path, slots_of(of)) for path, of in ordered]
        table = small_table(self._spark, slots, f"{PATH} string, {_SLOTS} array<int>")
        at = (f.pmod(f.xxhash64(RECORD_KEY), f.size(_SLOTS)) + 1).cast("int")
        return rows.join(f.broadcast(table), PATH, "left"), f.element_at(_SLOTS, at)


_SLOTS = "__pyhudi_slots"
_SLOTS_MAX = 1_024

_OWN_FIELDS = {RECORD_KEY: pa.field(RECORD_KEY, pa.string()), ARRIVAL: pa.field(ARRIVAL, pa.int64())}


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


def bare_key(spec: InputSpec) -> str | None:
    """The text column that is the record key as it is, which then need not travel twice; None where there is none."""
    name = spec.keys.record_key[0]
    is_bare = not spec.keys.is_composite and pa.types.is_string(spec.schema.field(name).type)
    return name if is_bare else None


def _must_have(bucket: Column) -> Column:
    """The bucket, or an error in the task for a row that was given none: rows are never dropped in silence."""
    return f.coalesce(
        bucket, f.raise_error(f.lit("pyhudi: a row without a file group; please report this")).cast("int")
    )


def as_table_types(rows: DataFrame, name: str, schema: pa.Schema) -> Column:
    """A column of the input, cast natively to what the table holds."""
    wanted = spark_type(schema.field(name).type, name)
    return cast_column(f.col(quoted(name)), rows.schema[name].dataType, wanted).alias(name)
