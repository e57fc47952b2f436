"""Tagging on Spark: finding the file groups that hold the input's keys.

Spark joins the input's keys with the keys of the stored files that may hold them.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from pyhudi.engine.local.executors import LocalExecutor
from pyhudi.engine.spark.read.base_files import hides_file, holds_columns, read_as, read_files
from pyhudi.engine.spark.read.merged import read_standing_rows
from pyhudi.engine.spark.schema import spark_schema
from pyhudi.engine.spark.session import session_of
from pyhudi.engine.spark.struct_fields import with_field_columns
from pyhudi.engine.spark.write.contested_keys import BROADCAST_ROWS_MAX, comparable
from pyhudi.engine.spark.write.keys import record_key
from pyhudi.engine.spark.write.record_lookup import keys_by_path, locate_in_tasks
from pyhudi.engine.spark.write.small_tables import small_table
from pyhudi.engine.spark.write.task import TASK_NUMBER
from pyhudi.errors import Unsupported
from pyhudi.format.names import join
from pyhudi.format.schema.conversion import PARTITION_PATH, RECORD_KEY
from pyhudi.format.struct_fields import column_around, with_fields
from pyhudi.index.compacting import as_planned, split_compacting
from pyhudi.index.hits import KeyBounds
from pyhudi.index.own.lookup import OwnLookup
from pyhudi.index.record_index import RecordIndex
from pyhudi.storage.open import open_storage
from pyhudi.storage.protocol import StorageLocation
from pyhudi.table.slices.merged_slice import BaseReader, RowsReader
from pyhudi.table.view.file_system_view import FileSlice
from pyhudi.write.input.source import LEAVES, Tagging

TARGET = "__pyhudi_target"
TARGETS = "__pyhudi_targets"
NEW = -1
"""A target that is no position of a file slice: the key's rows are new in their partition."""
NOWHERE = -2
"""The only target of a key whose rows are left out: the key is stored, or its rows lose against a stored row."""

_FILE = "__pyhudi_file"
_STORED_PATH = "__pyhudi_stored_path"
_ORDER = "__pyhudi_order"
_STORED_ORDER = "__pyhudi_stored_order"
_IS_LIVE = "__pyhudi_is_live"


DRIVER_KEYS_MAX = 100_000
"""Up to so many keys are brought to the driver and tested against Bloom filters. Of more keys only ranges are."""

FOOTER_THREADS = 16


@dataclass(frozen=True)
class Lookup:
    """An input whose keys are looked up in `slices`. Its rows have the columns `PARTITION_PATH` and `RECORD_KEY`."""

    rows: DataFrame
    row_count: int
    location: StorageLocation
    schema: pa.Schema
    slices: Sequence[FileSlice]
    tagging: Tagging

    @property
    def stored_schema(self) -> pa.Schema:
        """The input's columns, and the table's that it lacks: a delete has fields of structs without the structs."""
        lacking = [field for field in self.tagging.stored if field.name not in self.schema.names]
        return pa.schema([*self.schema, *lacking])

    def small(self, keys: DataFrame) -> DataFrame:
        """Keys of the input for a join, sent to every task if the input is small."""
        return f.broadcast(keys) if self.row_count <= BROADCAST_ROWS_MAX else keys


def find_candidates(lookup: Lookup) -> list[int]:
    """Positions of the slices that the index cannot rule out.

    An index that rules nothing out, or that knows where each key lies, needs no job. Any other index needs one job: it
    brings the keys to the driver, or only their bounds if there are more than `DRIVER_KEYS_MAX`. Threads of the driver
    then request the footer of each slice.
    """
    index = lookup.tagging.index
    if not index.prunes or index.is_exact or not lookup.slices:
        return list(range(len(lookup.slices)))

    keys = lookup.rows.select(PARTITION_PATH, RECORD_KEY)
    bounds = _held_keys(keys) if lookup.row_count <= DRIVER_KEYS_MAX else None
    if bounds is None:
        found = (
            keys.groupBy(PARTITION_PATH).agg(f.min(RECORD_KEY).alias("low"), f.max(RECORD_KEY).alias("high")).collect()
        )
        bounds = {row[PARTITION_PATH]: KeyBounds(row["low"], row["high"]) for row in found}
    return index.candidates(open_storage(lookup.location), bounds, lookup.slices, LocalExecutor(FOOTER_THREADS))


def tagged_keys(lookup: Lookup, candidates: Sequence[int]) -> DataFrame:
    """`PARTITION_PATH` and `RECORD_KEY` of the rows whose key is stored, and the `TARGETS` of each such key.

    A key that several file groups hold, such as one that was bulk inserted twice, has each of them as a target.
    """
    tagging = lookup.tagging
    compares = tagging.moves and tagging.compares_stored
    targets = f.sort_array(f.collect_set(TARGET)).alias(TARGETS)

    # Hits: each key of the input with one file slice that holds it.
    if isinstance(tagging.index, RecordIndex | OwnLookup):
        hits = _recorded(lookup, tagging.index, compares=compares)
    elif tagging.index.is_global:
        located = _located(lookup, candidates, tagging.ordering if compares else ())
        keys = _greatest(lookup) if compares else lookup.rows.select(PARTITION_PATH, RECORD_KEY).distinct()
        hits = located.join(lookup.small(keys), RECORD_KEY)
    else:
        located = _located_in_bases(lookup, candidates, ()).withColumnRenamed(_STORED_PATH, PARTITION_PATH)
        keys = lookup.small(lookup.rows.select(PARTITION_PATH, RECORD_KEY))
        hits = located.join(keys, [PARTITION_PATH, RECORD_KEY], "left_semi")
        if not tagging.drops_stored:
            return hits.groupBy(PARTITION_PATH, RECORD_KEY).agg(targets)

        by_key = _with_life(lookup, candidates, hits).groupBy(PARTITION_PATH, RECORD_KEY)
        found = by_key.agg(targets, f.max(_IS_LIVE).alias(_IS_LIVE))
        # A key that logs deleted in every file group comes back in one of them, not in all.
        one_target = f.when(f.col(_IS_LIVE), f.col(TARGETS)).otherwise(f.slice(TARGETS, 1, 1))
        return _left_out_where(f.col(_IS_LIVE), found.withColumn(TARGETS, one_target))

    if not tagging.moves:
        found = hits.groupBy(PARTITION_PATH, RECORD_KEY).agg(targets)
        return _left_out_where(f.lit(tagging.drops_stored), found)

    # A row may move to its own partition: it is deleted where its key lies, and is new in its own partition. A stored
    # row in another partition that is greater beats it. With logs, a beaten row goes nowhere, as a log does not look
    # at what it deletes.
    is_here = f.col(_STORED_PATH) == f.col(PARTITION_PATH)
    is_beaten = ~is_here & (f.col(_ORDER) < f.col(_STORED_ORDER)) if compares else f.lit(False)
    goes = ~is_beaten if tagging.reader is not None else f.lit(True)  # the same rule as `tag_moving`
    found = hits.groupBy(PARTITION_PATH, RECORD_KEY).agg(
        f.sort_array(f.collect_set(f.when(goes, f.col(TARGET)))).alias(TARGETS),
        f.max(is_here | is_beaten).alias("stays"),
    )

    moved = f.concat(f.array(f.lit(NEW)), f.col(TARGETS))
    stayed = f.when(f.size(TARGETS) > 0, f.col(TARGETS)).otherwise(f.array(f.lit(NOWHERE)))
    return found.select(PARTITION_PATH, RECORD_KEY, f.when(f.col("stays"), stayed).otherwise(moved).alias(TARGETS))


def living_targets(lookup: Lookup, tagged: DataFrame, contested: Sequence[int]) -> DataFrame:
    """The tagged keys, without targets whose log has deleted the key (`living_hits`).

    Only keys with several targets are looked at. If logs deleted a key in all its file groups, the first group stays
    its target. `contested`: positions of the slices that hold such keys; the keys of those with logs are read.
    """
    by_key = [PARTITION_PATH, RECORD_KEY]

    several = tagged.where(f.size(TARGETS) > 1)
    hits = several.select(*by_key, f.explode(TARGETS).alias(TARGET))

    living = f.sort_array(f.collect_set(f.when(f.col(_IS_LIVE), f.col(TARGET)))).alias(TARGETS)
    found = _with_life(lookup, contested, hits).groupBy(*by_key).agg(living, f.min(TARGET).alias(TARGET))

    one_at_least = f.when(f.size(TARGETS) > 0, f.col(TARGETS)).otherwise(f.array(TARGET)).alias(TARGETS)
    return tagged.where(f.size(TARGETS) <= 1).unionByName(found.select(*by_key, one_at_least))


def _greatest(lookup: Lookup) -> DataFrame:
    """Each partition and key of the input, with the greatest ordering value of its rows."""
    order = f.max(f.struct(*comparable(lookup.tagging.ordering, lookup.schema))).alias(_ORDER)
    return lookup.rows.groupBy(PARTITION_PATH, RECORD_KEY).agg(order)


def _recorded(lookup: Lookup, index: RecordIndex | OwnLookup, *, compares: bool) -> DataFrame:
    """The input's keys that an exact index knows, with the partition and the position of their slice.

    `compares`: add the input's and the stored ordering value. Stored values matter only for keys that lie in another
    partition than their row, so only slices with such keys are read. One more job.
    """
    keys = lookup.rows.select(PARTITION_PATH, RECORD_KEY).distinct()
    hits = locate_in_tasks(
        keys, lookup.row_count, index, lookup.location, lookup.slices, stored_path=_STORED_PATH, target=TARGET
    )
    if not compares:
        return hits

    left = hits.where(f.col(_STORED_PATH) != f.col(PARTITION_PATH)).select(TARGET).distinct().collect()
    ordered = hits.join(lookup.small(_greatest(lookup)), [PARTITION_PATH, RECORD_KEY])
    if not left:
        return ordered.withColumn(_STORED_ORDER, f.col(_ORDER))

    stored = _located(lookup, sorted(row[TARGET] for row in left), lookup.tagging.ordering)
    joined = ordered.join(stored.select(RECORD_KEY, TARGET, _STORED_ORDER), [RECORD_KEY, TARGET], "left")
    return joined.withColumn(_STORED_ORDER, f.coalesce(_STORED_ORDER, _ORDER))


def _left_out_where(is_stored: Column, found: DataFrame) -> DataFrame:
    """The keys found. Where `is_stored` holds, the only target is `NOWHERE`, so that the key's rows are left out."""
    targets = f.when(is_stored, f.array(f.lit(NOWHERE))).otherwise(f.col(TARGETS)).alias(TARGETS)
    return found.select(PARTITION_PATH, RECORD_KEY, targets)


def _with_life(lookup: Lookup, candidates: Sequence[int], hits: DataFrame) -> DataFrame:
    """The hits, each with a flag that says whether its key is alive: no log of the slice has deleted the key."""
    logged, reader = _logged(lookup, candidates), lookup.tagging.reader
    if not logged:
        return hits.withColumn(_IS_LIVE, f.lit(True))

    assert reader is not None
    spark = session_of(lookup.rows)
    standing = read_standing_rows(spark, lookup.location, logged, reader, [RECORD_KEY], TARGET)
    joined = hits.join(standing.withColumn(_IS_LIVE, f.lit(True)), [TARGET, RECORD_KEY], "left")
    has_logs = f.col(TARGET).isin([at for at, _ in logged])
    return joined.withColumn(_IS_LIVE, f.coalesce(_IS_LIVE, ~has_logs))


def _logged(lookup: Lookup, candidates: Sequence[int]) -> list[tuple[int, FileSlice]]:
    """The candidates that have logs, with their positions."""
    if lookup.tagging.reader is None:
        return []
    return [(at, lookup.slices[at]) for at in candidates if lookup.slices[at].log_files]


def with_tasks(
    rows: DataFrame,
    tagged: DataFrame,
    slices: Sequence[FileSlice],
    tasks: Mapping[tuple[str, str], int],
    *,
    moves: bool,
    is_small: bool,
    only_tagged: bool,
) -> DataFrame:
    """The rows, once per target, with the task number of the target; that of a new row is null.

    Rows that go nowhere are left out. With `moves`, the column `LEAVES` says whether the row leaves the partition of
    its key. `tasks`: the task number of each file group, by partition and file id. `only_tagged`: leave out rows whose
    key is not stored.
    """
    spark = session_of(rows)
    known = [
        (at, tasks[s.partition, s.file_id], s.partition)
        for at, s in enumerate(slices)
        if (s.partition, s.file_id) in tasks
    ]

    # The task number for each position of a slice, as a table to join with.
    schema = f"{TARGET} int, {TASK_NUMBER} int, {_STORED_PATH} string"
    numbers = small_table(spark, [*known, (NEW, NEW, ""), (NOWHERE, NOWHERE, "")], schema)

    each = tagged.select(PARTITION_PATH, RECORD_KEY, f.explode(TARGETS).alias(TARGET)).join(
        f.broadcast(numbers), TARGET
    )

    leaves = (f.col(TASK_NUMBER) >= 0) & (f.col(_STORED_PATH) != f.col(PARTITION_PATH))
    marks = [leaves.alias(LEAVES)] if moves else []
    task = f.when(f.col(TASK_NUMBER) != NEW, f.col(TASK_NUMBER)).alias(TASK_NUMBER)
    targets = each.select(PARTITION_PATH, RECORD_KEY, task, *marks)

    joined = rows.join(
        f.broadcast(targets) if is_small else targets, [PARTITION_PATH, RECORD_KEY], "inner" if only_tagged else "left"
    )
    going = joined.where(f.coalesce(TASK_NUMBER, f.lit(NEW)) != NOWHERE)
    return going.withColumn(LEAVES, f.coalesce(LEAVES, f.lit(False))) if moves else going


def _located(lookup: Lookup, candidates: Sequence[int], ordering: Sequence[str]) -> DataFrame:
    """Stored keys with the partition and the position of their slice; keys that logs deleted are left out.

    `ordering`: columns whose stored values are wanted as well; may be empty.
    """
    logged = _logged(lookup, candidates)
    if not logged:
        return _located_in_bases(lookup, candidates, ordering)

    located = _located_in_logged(lookup, logged, ordering)
    others = sorted(set(candidates) - {at for at, _ in logged})
    return located.unionByName(_located_in_bases(lookup, others, ordering)) if others else located


def _stored_order(lookup: Lookup, ordering: Sequence[str]) -> list[Column]:
    return [f.struct(*comparable(ordering, lookup.schema)).alias(_STORED_ORDER)] if ordering else []


def _located_in_bases(lookup: Lookup, candidates: Sequence[int], ordering: Sequence[str]) -> DataFrame:
    """As `_located`, for the keys that base files hold, or will hold once pending compactions are done."""
    others, taken = split_compacting([lookup.slices[at] for at in candidates], lookup.tagging.planned)
    if not taken:
        return _located_in_stored_bases(lookup, candidates, ordering)

    planned = [(candidates[n], as_planned(lookup.slices[candidates[n]], lookup.tagging.planned)) for n in taken]
    located = _located_in_logged(lookup, planned, ordering)
    return (
        located.unionByName(_located_in_stored_bases(lookup, [candidates[n] for n in others], ordering))
        if others
        else located
    )


def _located_in_logged(lookup: Lookup, logged: Sequence[tuple[int, FileSlice]], ordering: Sequence[str]) -> DataFrame:
    """As `_located`, for slices with logs. `logged`: position and slice."""
    reader = lookup.tagging.reader
    assert reader is not None
    return _read_by_tasks(lookup, logged, reader, ordering)


def _read_by_tasks(
    lookup: Lookup, slices: Sequence[tuple[int, FileSlice]], reader: RowsReader, ordering: Sequence[str]
) -> DataFrame:
    spark = session_of(lookup.rows)
    stored = dict.fromkeys(map(column_around, ordering))
    rows = read_standing_rows(spark, lookup.location, slices, reader, [RECORD_KEY, *stored], TARGET)
    rows = with_field_columns(rows, ordering)
    paths = small_table(
        spark, [(at, file_slice.partition) for at, file_slice in slices], f"{TARGET} int, {_STORED_PATH} string"
    )
    columns: list[str | Column] = [RECORD_KEY, *_stored_order(lookup, ordering), _STORED_PATH, TARGET]
    return rows.join(f.broadcast(paths), TARGET).select(*columns)


def _located_in_stored_bases(lookup: Lookup, candidates: Sequence[int], ordering: Sequence[str]) -> DataFrame:
    keys = lookup.tagging.as_written.keys
    asked = [*(() if keys is None else keys.record_key), *ordering]
    columns = list(dict.fromkeys(map(column_around, asked)))
    if hides_file(columns):
        raise Unsupported(
            f"{lookup.location.uri}: key or ordering columns {', '.join(columns)}: expected other names than "
            "_metadata, by which Spark tells which file a row is of; upsert without Spark"
        )
    # Tasks of pyhudi read HFiles, Lance files, the columns of a bootstrap's source, and times in ORC files.
    stored_as = lookup.stored_schema
    others = [at for at in candidates if not holds_columns(lookup.slices[at], stored_as, columns)]
    if others:
        reader = BaseReader(stored_as, lookup.tagging.as_written)
        read = _read_by_tasks(lookup, [(at, lookup.slices[at]) for at in others], reader, ordering)
        native = [at for at in candidates if at not in set(others)]
        return read.unionByName(_located_in_stored_bases(lookup, native, ordering)) if native else read

    spark = session_of(lookup.rows)
    files: list[tuple[str, int]] = []
    names: list[tuple[str | int, ...]] = []
    for at in candidates:
        file_slice = lookup.slices[at]
        assert file_slice.base_file is not None
        name = file_slice.base_file.name.format()
        files.append((join(file_slice.partition, name), file_slice.base_file.size_bytes))
        names.append((name, file_slice.partition, at))

    own = [pa.field(RECORD_KEY, pa.string())] if keys is None else []
    schema = pa.schema([*own, *(stored_as.field(name) for name in columns)])
    file_name = f.col("_metadata.file_name").alias(_FILE)
    if columns:
        stored = read_as(spark, lookup.location, files, schema, file_name)
    else:
        stored = read_files(spark, lookup.location, files, spark_schema(schema)).select(RECORD_KEY, file_name)

    stored, schema = with_field_columns(stored, asked), with_fields(schema, asked)
    key = f.col(RECORD_KEY) if keys is None else record_key(keys, schema).alias(RECORD_KEY)
    stored = stored.select(key, _FILE, *_stored_order(lookup, ordering))
    of_files = small_table(spark, names, f"{_FILE} string, {_STORED_PATH} string, {TARGET} int")
    return stored.join(f.broadcast(of_files), _FILE).drop(_FILE)


def _held_keys(keys: DataFrame) -> dict[str, KeyBounds] | None:
    """The keys, brought to this process, by partition; None if this release of Spark cannot hand over Arrow data."""
    if hasattr(keys, "toArrow"):
        table = keys.toArrow()
    else:  # classic sessions before Spark 4.0
        collect: Callable[[], list[pa.RecordBatch]] | None = getattr(keys, "_collect_as_arrow", None)
        if collect is None:
            return None
        batches = collect()
        if not batches:
            return {}
        table = pa.Table.from_batches(batches)
    if not len(table):
        return {}

    held: dict[str, KeyBounds] = {}
    for path, own_keys in keys_by_path(table).items():
        ends_of = pc.min_max(own_keys).as_py()
        held[path] = KeyBounds(ends_of["min"], ends_of["max"], own_keys)
    return held
