"""Which files a query reads: pure planning over a snapshot, with an account of what was pruned."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress

import pyarrow as pa

from pyhudi.errors import CorruptFile, Invalid, Unsupported
from pyhudi.format.keys.record_keys import KeySpec
from pyhudi.format.names import join
from pyhudi.format.schema.conversion import COMMIT_TIME, META_FIELDS, PARTITION_PATH
from pyhudi.format.struct_fields import find_field
from pyhudi.merge.payloads import merge_rules
from pyhudi.merge.rules import MergeRules
from pyhudi.options.arguments import several_texts
from pyhudi.predicate import Predicate, partition_can_match, partitions_in_doubt
from pyhudi.predicate.names import known_names
from pyhudi.table.prune.data_skipping import DataSkipping, SkippingOf
from pyhudi.table.prune.index_pruning import PrunedQuery
from pyhudi.table.prune.partition_values import PathValues, known_values
from pyhudi.table.prune.pruning import PrunedBy
from pyhudi.table.read.shown_columns import AS_STORED, ShownColumns, unknown_to_paths
from pyhudi.table.slices.base_files.rows import TODAY, AsWritten
from pyhudi.table.slices.log_reading import LogReading
from pyhudi.table.slices.slice_log import SliceFiles
from pyhudi.table.view.file_system_view import FileSlice, SourceFile
from pyhudi.table.view.snapshot import Snapshot
from pyhudi.timeline.active import Timeline


@dataclass(frozen=True, slots=True)
class PlannedFile:
    """One thing to read: a base file alone, or a file slice with its logs.

    `path`: relative to the table. `size_bytes`: of all files that are read. `logs`: path and size of each log file to
    merge, in reading order. If the slice has no base file, `path` is the first log's. `base_instant`: the base file's.
    `source`: as in `FileSlice`.
    """

    path: str
    partition: str
    size_bytes: int
    logs: tuple[tuple[str, int], ...] = ()
    base_instant: str = ""
    source: SourceFile | None = None

    @property
    def slice_files(self) -> SliceFiles:
        has_base = not self.logs or self.path != self.logs[0][0]
        return SliceFiles(self.path if has_base else None, self.base_instant, self.logs, self.source)

    @property
    def paths(self) -> list[str]:
        return list(dict.fromkeys([self.path, *(path for path, _ in self.logs)]))


def planned_slice(file_slice: FileSlice, *, with_logs: bool) -> PlannedFile | None:
    """What to read for a file slice. None if nothing is left: the slice has only logs, and logs are not read.

    `size_bytes` of the result counts all its files.
    """
    logs = [
        (join(file_slice.partition, log.name.format()), log.size_bytes) for log in file_slice.log_files if with_logs
    ]

    base, size_bytes = file_slice.base_file, sum(size for _, size in logs)
    if base is None and not logs:
        return None

    path = logs[0][0] if base is None else join(file_slice.partition, base.name.format())
    size_bytes += 0 if base is None else base.size_bytes
    size_bytes += 0 if file_slice.source is None else file_slice.source.size_bytes
    return PlannedFile(path, file_slice.partition, size_bytes, tuple(logs), file_slice.base_instant, file_slice.source)


@dataclass(frozen=True, slots=True)
class Explanation:
    """What a scan reads and what pruning spared it. `str()` of it is meant to be read by people.

    `indexes`: how many partitions and files each index ruled out, in the order in which the indexes were asked.
    """

    query: str
    partitions: int
    partitions_pruned: int
    files: int
    files_pruned: int
    size_bytes: int
    columns: tuple[str, ...]
    where: str | None
    listed_by: str
    indexes: tuple[PrunedBy, ...] = ()

    def __str__(self) -> str:
        by_values = self.partitions_pruned - sum(one.partitions for one in self.indexes)
        by_index = [f", {one.partitions:,} by {one.index}" for one in self.indexes if one.partitions]
        files_by = [f", {one.files:,} of them by {one.index}" for one in self.indexes if one.files]

        lines = [
            f"query       {self.query}",
            f"listed by   {self.listed_by}",
            f"partitions  {self.partitions - self.partitions_pruned:,} of {self.partitions:,} "
            f"({by_values:,} pruned by their values{''.join(by_index)})",
            f"files       {self.files:,} ({self.files_pruned:,} pruned{''.join(files_by)}), {self.size_bytes:,} bytes",
            f"columns     {', '.join(self.columns)}",
            f"where       {self.where or 'every row'}",
        ]
        return "\n".join(lines)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadPlan:
    """What to read, and the columns and rows of the answer.

    `schema`: the columns of the answer, in order. `stored_schema`: every column that a file may be
    asked for. `commit_times`: if not None, only rows that one of these instants wrote last. `shown`: columns that
    the answer and the predicate see otherwise than they are stored. `log_reading`: how logs are merged, where there
    are any. `keys`: how partition paths are spelled. `as_written`: how base files may differ from the columns of today.
    `is_located`: an index of record keys told which files hold rows of the answer.
    """

    files: tuple[PlannedFile, ...]
    schema: pa.Schema
    stored_schema: pa.Schema
    predicate: Predicate | None
    commit_times: frozenset[str] | None
    keys: KeySpec
    explanation: Explanation = field(compare=False)
    shown: ShownColumns = AS_STORED
    log_reading: LogReading | None = None
    as_written: AsWritten = TODAY
    is_located: bool = False

    def had_other_names(self, file: PlannedFile) -> bool:
        """Whether columns had other names when a file was written. What it states may be of other columns then."""
        evolution = self.as_written.evolution
        return evolution is not None and evolution.of_file(file.path, self.columns_read) is not None

    @property
    def columns_read(self) -> list[str]:
        """The columns to read: those of the answer, those of the predicate, and the commit time if it chooses rows."""
        needed = set(self.schema.names)

        if self.predicate is not None:
            needed |= self.predicate.columns
        if self.commit_times is not None:
            needed.add(COMMIT_TIME)
        if needed & set(self.shown.from_path):
            needed.add(PARTITION_PATH)

        return [name for name in self.stored_schema.names if name in needed]

    @property
    def schema_read(self) -> pa.Schema:
        """`columns_read` as a schema, with the stored types."""
        return pa.schema([self.stored_schema.field(name) for name in self.columns_read])

    @property
    def told_as_stored(self) -> PathValues:
        """What partition paths say of rows as they are stored, of the columns that reading needs."""
        return PathValues.as_stored(self.keys, self.schema_read)

    @property
    def told_as_shown(self) -> PathValues:
        """What partition paths say of rows of the answer."""
        return PathValues.as_shown(self.keys, self.schema, self.shown)


def log_reading(snapshot: Snapshot, as_of: Timeline | None = None) -> LogReading | None:
    """How a query merges the table's logs. None for a copy-on-write table, which has no logs.

    Raises: Unsupported for rules of merging that only Java code knows.
    """
    config = snapshot.config
    if not config.is_merge_on_read:
        return None
    rules = table_rules(snapshot, snapshot.schema)
    keys = None if config.has_meta_fields else snapshot.key_spec
    return LogReading.of(rules, as_of or snapshot.timeline, keys, snapshot.as_written)


def table_rules(snapshot: Snapshot, schema: pa.Schema) -> MergeRules:
    """How rows with the same key are merged, for rows with the columns of `schema`.

    Ordering columns, and fields of structs, that `schema` lacks are dropped from the rules: no row has a value in them.
    Defaults are those of the table's columns.

    Raises: Unsupported for rules of merging that only Java code knows.
    """
    path = f"{snapshot.storage.location.uri}/.hoodie/hoodie.properties"
    rules = merge_rules(snapshot.config.properties, version=snapshot.config.version, path=path)
    rules = replace(rules, ordering=tuple(name for name in rules.ordering if find_field(schema, name) is not None))
    return rules if snapshot.schema_text is None else rules.with_defaults(snapshot.schema_text)


def select_columns(
    snapshot: Snapshot, columns: Iterable[str] | None, *, meta_fields: bool, shown: ShownColumns = AS_STORED
) -> pa.Schema:
    """The answer's schema: the named columns in their order, or all of them.

    Raises: Invalid as `chosen_columns`.
    """
    full = shown.schema(snapshot.schema_with_meta)
    if columns is None:
        return pa.schema([field for field in full if meta_fields or field.name not in META_FIELDS])
    return chosen_columns(full, columns, table_name=snapshot.config.name)


def chosen_columns(full: pa.Schema, columns: Iterable[str], *, table_name: str) -> pa.Schema:
    """The named columns in their order.

    Raises: Invalid for anything but names, for a column that is not there, naming those that are, and for one that is
    named twice, which Polars and DuckDB cannot take.
    """
    names = several_texts(columns, what="columns", of="column names")
    for at, name in enumerate(names):
        if name not in full.names:
            raise Invalid(f"columns: no column '{name}' in table '{table_name}'; {known_names(name, full)}")
        if name in names[:at]:
            raise Invalid(f"columns: expected each column once, found '{name}' twice")
    return pa.schema([full.field(name) for name in names])


def plan_snapshot(
    snapshot: Snapshot,
    *,
    schema: pa.Schema,
    predicate: Predicate | None,
    where: str | None,
    query: str,
    shown: ShownColumns = AS_STORED,
    with_logs: bool = True,
    skipping: DataSkipping | None = None,
) -> ReadPlan:
    """Plans to read every visible slice that may hold a matching row. `with_logs`: read base files merged with logs.

    Requests: one listing of the partitions, one look-up for each partition that is kept (if the metadata table lists
    files, only the first look-up costs requests), and the look-ups in the indexes.

    `skipping`: the indexes of the table at the time of the snapshot, which rule out partitions and slices. None: no
    index is asked.
    """
    partitions = snapshot.listing.partitions()
    kept = partitions_that_can_hold(snapshot, predicate, partitions, shown)
    slices: Iterable[FileSlice] = (file_slice for partition in kept for file_slice in snapshot.slices(partition))

    # Indexes narrow the partitions and slices first, and the planned files below.
    by_index: SkippingOf | None = None
    if skipping is not None and predicate is not None:
        asked = PrunedQuery(
            snapshot, predicate, besides={*shown.texts, *shown.from_path},
            is_merged=with_logs or not snapshot.config.is_merge_on_read,
            by_columns=_is_merged_by_columns(snapshot, with_logs=with_logs),
        )  # fmt: skip
        by_index = SkippingOf(skipping, asked)
        kept, slices = by_index.slices(kept)

    found = (planned_slice(file_slice, with_logs=with_logs) for file_slice in slices)
    files = [file for file in found if file is not None]

    if by_index is not None:
        reads = by_index.matching([(file.partition, file.paths, bool(file.logs)) for file in files])
        files = list(compress(files, reads.tolist()))

    pruned = () if by_index is None else tuple(by_index.pruned)
    plan = make_plan(
        snapshot, files, schema=schema, predicate=predicate, where=where, query=query, commit_times=None,
        partitions=len(partitions), partitions_pruned=len(partitions) - len(kept),
        files_pruned=sum(one.files for one in pruned), shown=shown,
    )  # fmt: skip
    is_located = by_index is not None and by_index.is_located
    return replace(plan, explanation=replace(plan.explanation, indexes=pruned), is_located=is_located)


def _is_merged_by_columns(snapshot: Snapshot, *, with_logs: bool) -> bool:
    """Whether each value of a merged row is a value of some file of the slice. A merger may compute values instead."""
    try:
        reading = log_reading(snapshot) if with_logs else None
    except Unsupported:  # only a slice with logs makes this an error, when it is read
        return False
    return reading is None or reading.rules.merger is None


def make_plan(
    snapshot: Snapshot,
    files: Iterable[PlannedFile],
    *,
    schema: pa.Schema,
    predicate: Predicate | None,
    where: str | None,
    query: str,
    commit_times: frozenset[str] | None,
    partitions: int,
    partitions_pruned: int,
    files_pruned: int,
    shown: ShownColumns = AS_STORED,
    logs_as_of: Timeline | None = None,
) -> ReadPlan:
    """A plan over the given files, with its explanation.

    `logs_as_of`: a timeline; only log blocks of instants that it shows are merged. None: the snapshot's timeline.
    """
    chosen = tuple(sorted(files, key=lambda file: file.path))

    logged = next((file for file in chosen if file.logs), None)
    merges = log_reading(snapshot, logs_as_of) if logged is not None else None
    # Only a merge-on-read table says how to merge logs.
    if logged is not None and merges is None:
        raise CorruptFile(
            logged.logs[0][0], 0, expected="no log that counts in a table of type COPY_ON_WRITE", found="a log",
            hint="Correct hoodie.table.type in .hoodie/hoodie.properties: a table of logs is MERGE_ON_READ.",
        )  # fmt: skip

    explanation = Explanation(
        query=query,
        partitions=partitions,
        partitions_pruned=partitions_pruned,
        files=sum(len(file.paths) for file in chosen),
        files_pruned=files_pruned,
        size_bytes=sum(file.size_bytes for file in chosen),
        columns=tuple(schema.names),
        where=where,
        listed_by=snapshot.listing.source,
    )
    return ReadPlan(
        files=chosen,
        schema=schema,
        stored_schema=snapshot.schema_with_meta,
        predicate=predicate,
        commit_times=commit_times,
        keys=snapshot.key_spec,
        explanation=explanation,
        shown=shown,
        log_reading=merges,
        as_written=snapshot.as_written,
    )


def partitions_that_can_hold(
    snapshot: Snapshot, predicate: Predicate | None, partitions: Sequence[str], shown: ShownColumns = AS_STORED
) -> list[str]:
    """The partitions that may hold a row that the predicate keeps, in their order.

    Cost: if the predicate names no partition column, it is evaluated once, whatever the number of partitions.
    """
    if predicate is None:
        return list(partitions)

    spec, schema = snapshot.key_spec, shown.schema(snapshot.schema)
    told = set(spec.partition_by).difference(unknown_to_paths(spec, shown)) & set(predicate.columns)
    kinds = {field.name: field.type for field in schema if field.name in told}

    # No partition column is asked for, so that all partitions get the same answer.
    if not kinds:
        return list(partitions) if partition_can_match(predicate, {}) else []
    values = [known_values(partition, spec, kinds) for partition in partitions]
    doubtful = partitions_in_doubt(predicate, values)
    return [
        partition
        for partition, partition_values, is_doubtful in zip(partitions, values, doubtful, strict=True)
        if is_doubtful and partition_can_match(predicate, partition_values)
    ]
