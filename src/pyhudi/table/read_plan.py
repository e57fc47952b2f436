"""Which files a query reads: pure planning over a snapshot, with an account of what was pruned."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from pyhudi.errors import Invalid, Unsupported
from pyhudi.format.keys import partition_values
from pyhudi.format.names import join
from pyhudi.format.schema import COMMIT_TIME, META_FIELDS, PARTITION_PATH
from pyhudi.table.predicate import Predicate, partition_can_match
from pyhudi.table.shown_columns import AS_STORED, ShownColumns, unknown_to_paths
from pyhudi.table.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class PlannedFile:
    """One base file to read: its path relative to the table, its partition, its size."""

    path: str
    partition: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Explanation:
    """What a scan reads and what pruning spared it. `str()` of it is meant to be read."""

    query: str
    partitions: int
    partitions_pruned: int
    files: int
    files_pruned: int
    size_bytes: int
    columns: tuple[str, ...]
    where: str | None
    listed_by: str

    def __str__(self) -> str:
        lines = [
            f"query       {self.query}",
            f"listed by   {self.listed_by}",
            f"partitions  {self.partitions - self.partitions_pruned:,} of {self.partitions:,} "
            f"({self.partitions_pruned:,} pruned by their values)",
            f"files       {self.files:,} ({self.files_pruned:,} pruned), {self.size_bytes:,} bytes",
            f"columns     {', '.join(self.columns)}",
            f"where       {self.where or 'every row'}",
        ]
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class ReadPlan:
    """What to read and what to give.

    `schema`: the columns of the answer, in order. `stored_schema`: every column that a file may be
    asked for. `commit_times`: if not None, only rows that one of these instants wrote last. `shown`: columns that
    the answer and the predicate see otherwise than they are stored.
    """

    files: tuple[PlannedFile, ...]
    schema: pa.Schema
    stored_schema: pa.Schema
    predicate: Predicate | None
    commit_times: frozenset[str] | None
    explanation: Explanation = field(compare=False)
    shown: ShownColumns = AS_STORED

    @property
    def columns_read(self) -> list[str]:
        """The columns that reading needs: the answer's, the predicate's, the commit time to choose rows by."""
        needed = set(self.schema.names)
        if self.predicate is not None:
            needed |= self.predicate.columns
        if self.commit_times is not None:
            needed.add(COMMIT_TIME)
        if needed & set(self.shown.from_path):
            needed.add(PARTITION_PATH)
        return [name for name in self.stored_schema.names if name in needed]


def refuse_unreadable(snapshot: Snapshot) -> None:
    """Refuse what this release would read wrong. Raises: Unsupported, naming it."""
    if snapshot.config.table_type == "MERGE_ON_READ":
        raise Unsupported(
            f"{snapshot.storage.location.uri}: a MERGE_ON_READ table: this release reads COPY_ON_WRITE tables only; "
            "its log files would be left out of the answer"
        )


def select_columns(
    snapshot: Snapshot, columns: Sequence[str] | None, *, meta_fields: bool, shown: ShownColumns = AS_STORED
) -> pa.Schema:
    """The answer's schema: the named columns in their order, or all of them.

    Raises: Invalid for an unknown column, naming those that exist.
    """
    full = shown.schema(snapshot.schema_with_meta)
    if columns is None:
        names = [name for name in full.names if meta_fields or name not in META_FIELDS]
    else:
        if isinstance(columns, str):
            raise Invalid(f"columns='{columns}': expected a sequence of column names, such as ['{columns}']")
        names = list(columns)
    unknown = [name for name in names if name not in full.names]
    if unknown:
        raise Invalid(
            f"columns: no column '{unknown[0]}' in table '{snapshot.config.name}'; it has {', '.join(full.names)}"
        )
    return pa.schema([full.field(name) for name in names])


def plan_snapshot(
    snapshot: Snapshot,
    *,
    schema: pa.Schema,
    predicate: Predicate | None,
    where: str | None,
    query: str,
    shown: ShownColumns = AS_STORED,
) -> ReadPlan:
    """Every visible file of the partitions that may hold a matching row.

    Requests: one listing of the partitions, one look-up a partition that is left (none beyond the
    first where the metadata table lists them).
    """
    partitions = snapshot.listing.partitions()
    kept = [p for p in partitions if partition_can_hold(snapshot, predicate, p, shown)]
    files = [
        PlannedFile(join(partition, piece.base_file.name.format()), partition, piece.base_file.size_bytes)
        for partition in kept
        for piece in snapshot.slices(partition)
        if piece.base_file is not None
    ]
    return make_plan(
        snapshot, files, schema=schema, predicate=predicate, where=where, query=query, commit_times=None,
        partitions=len(partitions), partitions_pruned=len(partitions) - len(kept), files_pruned=0, shown=shown,
    )  # fmt: skip


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
) -> ReadPlan:
    """A plan over the given files, with its explanation."""
    chosen = tuple(sorted(files, key=lambda file: file.path))
    explanation = Explanation(
        query=query,
        partitions=partitions,
        partitions_pruned=partitions_pruned,
        files=len(chosen),
        files_pruned=files_pruned,
        size_bytes=sum(file.size_bytes for file in chosen),
        columns=tuple(schema.names),
        where=where,
        listed_by=snapshot.listing.source,
    )
    return ReadPlan(chosen, schema, snapshot.schema_with_meta, predicate, commit_times, explanation, shown)


def partition_can_hold(
    snapshot: Snapshot, predicate: Predicate | None, partition: str, shown: ShownColumns = AS_STORED
) -> bool:
    """Whether a partition may hold a row that the predicate keeps."""
    if predicate is None:
        return True
    values: dict[str, object] = {}
    schema, unknown = shown.schema(snapshot.schema), set(unknown_to_paths(snapshot.key_spec, shown))
    for name, text in partition_values(partition, snapshot.key_spec).items():
        if name not in schema.names or name in unknown:
            continue
        known, value = _typed(text, schema.field(name).type)
        if known:
            values[name] = value
    return partition_can_match(predicate, values)


def _typed(text: str | None, kind: pa.DataType) -> tuple[bool, object]:
    """The value that a partition's text stands for, and whether it can be told at all.

    An empty text and a null share a folder, so a text column's default partition is not known.
    """
    if text is None:
        return not pa.types.is_string(kind), None
    if pa.types.is_string(kind):
        return True, text
    if pa.types.is_integer(kind) or pa.types.is_date32(kind) or pa.types.is_boolean(kind):
        try:
            return True, pa.scalar(text).cast(kind).as_py()
        except pa.ArrowInvalid:
            return False, None
    return False, None
