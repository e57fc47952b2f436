"""Comparing the metadata table with the data, partition by partition of it."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from pyhudi.engine.local import LocalExecutor
from pyhudi.errors import Conflict
from pyhudi.format.metadata_groups import BLOOM_FILTERS, COLUMN_STATS, FILES, PARTITION_STATS, RECORD_INDEX
from pyhudi.metadata.check import CommittedFiles, Difference, DifferenceKind, files_differences
from pyhudi.metadata.expression_checks import expression_differences
from pyhudi.metadata.expression_index import ExpressionIndex
from pyhudi.metadata.files_partition import read_files_partition
from pyhudi.metadata.index_checks import IndexCheck
from pyhudi.metadata.index_facts import SecondaryIndex, index_facts
from pyhudi.metadata.indexes import MetadataIndexes
from pyhudi.metadata.kinds.settings import ChosenColumns
from pyhudi.metadata.record_index_check import COLUMNS, record_index_differences
from pyhudi.metadata.table import MetadataTable
from pyhudi.table.listing import StorageListing
from pyhudi.table.read_files import read_plan_batches
from pyhudi.table.read_plan import plan_snapshot, select_columns
from pyhudi.table.snapshot import Snapshot

ATTEMPTS_MAX = 3

Progress: TypeAlias = Callable[[int, int], None]
Check: TypeAlias = Callable[[Snapshot, MetadataTable, Progress], Iterator[Difference]]


def no_progress(done: int, total: int) -> None:
    """Tells nobody."""


@dataclass(frozen=True, slots=True)
class MetadataValidation:
    """What a comparison found. `checked`, `not_checked`: metadata partitions; of the latter nothing is known.

    `pending_cleans`: instants whose files may be gone although the metadata table still has them, which then counts
    as a difference until the clean is finished.
    """

    checked: tuple[str, ...]
    not_checked: tuple[str, ...]
    pending_cleans: tuple[str, ...]
    differences: tuple[Difference, ...]

    @property
    def is_valid(self) -> bool:
        """Whether nothing that was checked differs."""
        return not self.differences


def validate_metadata(
    read_snapshot: Callable[[], Snapshot],
    open_table: Callable[[Snapshot], MetadataTable],
    *,
    on_progress: Progress,
) -> MetadataValidation:
    """Compare until the timeline stood still meanwhile; writers are not held up."""
    for _ in range(ATTEMPTS_MAX):
        snapshot = read_snapshot()
        table = open_table(snapshot)
        in_use = snapshot.config.metadata_partitions
        checks = {**_CHECKS, **_index_checks(snapshot, table)}
        checked = tuple(name for name in in_use if name in checks)
        gone = [name for name in checked if snapshot.timeline.completed_writes and not table.slices(name)]
        missing = tuple(Difference(name, DifferenceKind.GONE, "") for name in gone)
        there = (name for name in checked if name not in gone)
        found = missing + tuple(d for name in there for d in checks[name](snapshot, table, on_progress))
        if not found or read_snapshot().timeline.instants == snapshot.timeline.instants:
            return MetadataValidation(
                checked=checked,
                not_checked=tuple(name for name in in_use if name not in checks),
                pending_cleans=tuple(i.requested for i in snapshot.timeline.pending if i.action == "clean"),
                differences=found,
            )
    raise Conflict(
        f"{snapshot.storage.location.uri}: the table changed each of {ATTEMPTS_MAX} times while it was compared; "
        "validate it when fewer writers are at work"
    )


def _check_files(snapshot: Snapshot, table: MetadataTable, on_progress: Progress) -> Iterator[Difference]:
    committed = CommittedFiles(snapshot.storage, snapshot.config, snapshot.timeline)
    known = read_files_partition(table, snapshot.timeline)
    return files_differences(StorageListing(snapshot.storage), known, committed, on_progress=on_progress)


def _check_record_index(snapshot: Snapshot, table: MetadataTable, on_progress: Progress) -> Iterator[Difference]:
    """Reads the key columns of the whole table, by the storage's listing."""
    indexes = MetadataIndexes(snapshot.storage, snapshot.config, snapshot.timeline, snapshot.zone, table)
    columns = select_columns(snapshot, COLUMNS, meta_fields=True)
    plan = plan_snapshot(snapshot, schema=columns, predicate=None, where=None, query="snapshot")
    return record_index_differences(indexes, read_plan_batches(snapshot.storage, plan))


def _index_checks(snapshot: Snapshot, table: MetadataTable) -> Mapping[str, Check]:
    """Of the indexes that can be made anew from the data: all but those of expressions that are not computed here."""
    indexes = MetadataIndexes(snapshot.storage, snapshot.config, snapshot.timeline, snapshot.zone, table)
    facts = index_facts(
        table, snapshot.config.metadata_partitions, indexes.index_definitions(), snapshot.schema_with_meta,
        ChosenColumns(),
    )  # fmt: skip
    check = IndexCheck(snapshot, indexes, facts, LocalExecutor())
    found: dict[str, Check] = {BLOOM_FILTERS: lambda *_: check.bloom_filters()}
    if facts.stats is not None:
        found |= {COLUMN_STATS: lambda *_: check.column_stats(), PARTITION_STATS: lambda *_: check.partition_stats()}
    for index in facts.secondary:
        found[index.partition] = partial(_check_secondary, check, index)
    for of in facts.expressions:
        found[of.partition] = partial(_check_expression, check, of)
    return found


def _check_secondary(
    check: IndexCheck, index: SecondaryIndex, snapshot: Snapshot, table: MetadataTable, on_progress: Progress
) -> Iterator[Difference]:
    return check.secondary(index)


def _check_expression(
    check: IndexCheck, index: ExpressionIndex, snapshot: Snapshot, table: MetadataTable, on_progress: Progress
) -> Iterator[Difference]:
    return expression_differences(check, index)


_CHECKS: Mapping[str, Check] = {FILES: _check_files, RECORD_INDEX: _check_record_index}
