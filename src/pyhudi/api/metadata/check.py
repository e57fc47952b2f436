"""Comparing the metadata table with the data, partition by partition of it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from pyhudi.engine.local.executors import LocalExecutor
from pyhudi.errors import Conflict
from pyhudi.metadata.check.differences import Difference, DifferenceKind
from pyhudi.metadata.kinds.protocol import TableIndex
from pyhudi.metadata.kinds.registry import known_indexes
from pyhudi.metadata.kinds.settings import ChosenColumns
from pyhudi.metadata.kinds.views import IndexCheck, IndexedTable
from pyhudi.metadata.store.indexes import MetadataIndexes
from pyhudi.metadata.store.table import MetadataTable
from pyhudi.table.view.snapshot import Snapshot

ATTEMPTS_MAX = 3

Progress: TypeAlias = Callable[[int, int], None]


def no_progress(done: int, total: int) -> None:
    """Tells nobody."""


@dataclass(frozen=True, slots=True)
class MetadataValidation:
    """What a comparison found. `checked`, `not_checked`: metadata partitions; of the latter nothing is known.

    `pending_cleans`: instants of cleans that have not completed. Their files may be gone although the metadata table
    still has them, which is no difference.
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
        check, known = _known_indexes(snapshot, table, on_progress)
        checked = tuple(name for name in in_use if name in known)
        bare = [name for name in checked if snapshot.timeline.completed_writes and not table.slices(name)]
        gone = [name for name in bare if not check.indexes.is_empty(name)]
        missing = tuple(Difference(name, DifferenceKind.GONE, "") for name in gone)
        there = (name for name in checked if name not in gone)
        found = missing + tuple(difference for name in there for difference in known[name].differences(check))
        if not found or read_snapshot().timeline.instants == snapshot.timeline.instants:
            return MetadataValidation(
                checked=checked,
                not_checked=tuple(name for name in in_use if name not in known),
                pending_cleans=tuple(i.requested for i in snapshot.timeline.pending if i.action == "clean"),
                differences=found,
            )
    raise Conflict(
        f"{snapshot.storage.location.uri}: the table changed each of {ATTEMPTS_MAX} times while it was compared; "
        "validate it when fewer writers are at work"
    )


def _known_indexes(
    snapshot: Snapshot, table: MetadataTable, on_progress: Progress
) -> tuple[IndexCheck, Mapping[str, TableIndex]]:
    """The indexes that can be made anew from the data: all but those of expressions that are not computed here."""
    indexes = MetadataIndexes(snapshot.storage, snapshot.config, snapshot.timeline, snapshot.zone, table)
    definitions, in_use = indexes.index_definitions(), snapshot.config.metadata_partitions
    known = known_indexes(IndexedTable(table, in_use, definitions, snapshot.schema_with_meta, ChosenColumns()))
    return IndexCheck(snapshot, indexes, LocalExecutor(), on_progress), {index.partition: index for index in known}
