"""What an action of the data table changes in the partitions of its metadata table beside `files`.

Spec: format/metadata-table.md section 8.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.executor import Executor
from pyhudi.format.arrow_arrays import one_array
from pyhudi.format.instants import parse_instant_ms
from pyhudi.format.keys import value_text
from pyhudi.format.names import BaseFileName
from pyhudi.format.schema import RECORD_KEY
from pyhudi.metadata.changed_groups import ChangedGroup, changed_groups, reading_after, schema_after
from pyhudi.metadata.changes import PartitionChange
from pyhudi.metadata.derive_blooms import BLOOMS, read_blooms
from pyhudi.metadata.derive_keys import RowReading, key_changes
from pyhudi.metadata.derive_stats import is_counted, stats_changes
from pyhudi.metadata.expression_changes import cleaned_expression_change, expression_change
from pyhudi.metadata.index_changes import (
    bloom_change,
    record_index_changes,
    removed_column_stats,
    secondary_change,
    secondary_index_keys,
)
from pyhudi.metadata.index_facts import IndexFacts, SecondaryIndex
from pyhudi.model.commit import CleanMetadata, CommitMetadata
from pyhudi.model.versions import TableVersion
from pyhudi.table.snapshot import Snapshot

MOVES = frozenset({"CLUSTER"})
"""Operations that move rows to other file groups and change none."""


def commit_changes(
    snapshot: Snapshot,
    requested: str,
    metadata: CommitMetadata,
    facts: IndexFacts,
    executor: Executor,
    *,
    finds_keys: bool,
) -> Iterator[PartitionChange]:
    """The changes of a write, a compaction or a replacement, one partition after the other.

    `snapshot`: the table as it is while the action at `requested` is pending, its files written. `finds_keys`: as of
    `changed_groups`.
    Memory: of each index the keys that change.
    """
    if facts.stats is not None:
        yield from stats_changes(snapshot, metadata, facts.stats, executor)
    if facts.has_bloom_filters:
        blooms = read_blooms(snapshot.storage, new_base_files(metadata), executor)
        yield bloom_change(blooms, (), table_version=facts.table_version)
    for index in facts.expressions:
        yield expression_change(snapshot, requested, metadata, index, executor)
    if not facts.has_record_index and not facts.secondary:
        return
    action = next((i.action for i in snapshot.timeline if i.requested == requested), "commit")
    groups = changed_groups(snapshot, metadata, finds_keys=finds_keys)
    reading = RowReading(snapshot.storage, schema_after(snapshot, metadata), reading_after(snapshot, requested, action))
    if facts.has_record_index:
        keys = key_changes(reading, groups, executor)
        yield from record_index_changes(
            keys.located, keys.gone, instant_ms=parse_instant_ms(requested, snapshot.zone),
            table_version=facts.table_version, is_partitioned=facts.is_partitioned,
        )  # fmt: skip
    if metadata.operation_type not in MOVES:
        for secondary in facts.secondary:
            yield _secondary_change(reading, groups, secondary, facts.table_version, executor)


def clean_changes(snapshot: Snapshot, metadata: CleanMetadata, facts: IndexFacts) -> Iterator[PartitionChange]:
    """The changes of a clean: what is told of files goes with them; record keys stay where they are."""
    files = [
        (partition, name)
        for partition, of in metadata.partition_metadata.items()
        for name in of.delete_path_patterns
        if is_counted(name)
    ]
    if facts.stats is not None:
        yield removed_column_stats(
            facts.stats.known_columns(snapshot.schema_with_meta), files, table_version=facts.table_version
        )
    for index in facts.expressions:
        yield cleaned_expression_change(index, files, table_version=facts.table_version)
    if facts.has_bloom_filters:
        removed = [(partition, name) for partition, name in files if BaseFileName.parse(name) is not None]
        yield bloom_change(BLOOMS.empty_table(), removed, table_version=facts.table_version)


def new_base_files(metadata: CommitMetadata) -> list[tuple[str, BaseFileName]]:
    """Partition and name of the base files that an action wrote."""
    found = []
    for partition, stats in metadata.partition_to_write_stats.items():
        for stat in stats:
            name = BaseFileName.parse((stat.path or "").rpartition("/")[2])
            if name is not None:
                found.append((partition, name))
    return found


@dataclass(frozen=True, slots=True)
class SecondaryTask:
    """A file group whose keys of a secondary index are to be read, before and after an action."""

    reading: RowReading
    group: ChangedGroup
    index: SecondaryIndex


def _secondary_change(
    reading: RowReading,
    groups: Sequence[ChangedGroup],
    index: SecondaryIndex,
    table_version: TableVersion,
    executor: Executor,
) -> PartitionChange:
    found = executor.run(secondary_keys_of, [SecondaryTask(reading, group, index) for group in groups])
    none = [pa.array([], pa.string())]
    before = pa.concat_arrays([*none, *(of for of, _ in found)])
    after = pa.concat_arrays([*none, *(of for _, of in found)])
    return secondary_change(index.partition, before, after, table_version=table_version)


def secondary_keys_of(task: SecondaryTask) -> tuple[pa.Array, pa.Array]:
    """A file group's keys of a secondary index before an action and after it; those in both are left out."""
    before, after = (_keys(task, is_after=is_after) for is_after in (False, True))
    if not len(before) or not len(after):
        return before, after
    return before.filter(pc.invert(pc.is_in(before, after))), after.filter(pc.invert(pc.is_in(after, before)))


def _keys(task: SecondaryTask, *, is_after: bool) -> pa.Array:
    piece = task.group.after if is_after else task.group.before
    rows = task.reading.rows(piece, list(dict.fromkeys([RECORD_KEY, task.index.column])))
    texts = one_array(stored_text(rows.column(task.index.column), task.index.column))
    return secondary_index_keys(texts, one_array(rows.column(RECORD_KEY)), has_nulls=task.index.is_second_version)


def stored_text(column: pa.ChunkedArray, name: str) -> pa.ChunkedArray:
    """Values as Java prints what Avro stores: dates are their numbers, too."""
    if pa.types.is_date32(column.type):
        column = column.cast(pa.int32())
    return value_text(column, name)
