"""What an action does to file groups, as far as another action could conflict with it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from pyhudi.format.schema.conversion import without_meta_fields
from pyhudi.format.timeline.records import MOVES, NEW_FILE_GROUP, REPLACES, REWRITES, CommitMetadata, WriteStat
from pyhudi.table.slices.written_keys import WrittenFile
from pyhudi.table.view.commits import SCHEMA, SERVICES
from pyhudi.table.view.pending import FileGroup
from pyhudi.table.view.sink_batches import batch_text

ALTERS = "ALTER_SCHEMA"
WHOLE_TABLE = "INSERT_OVERWRITE_TABLE"


@dataclass(frozen=True)
class Change:
    """What an action did, or is about to complete with.

    `requested`: its requested time. `operation`: as its commit states it. `appended`: file groups whose logs grew.
    `rewritten`: file groups that got a new base file. `created`: file groups that it made. `replaced`: file groups that
    it took out of the table. `gaining`: partitions that may have keys now that they did not have before. `emptied`:
    partitions that it replaced as a whole. `schema`: the table's schema from this action on, as its commit
    states it, without meta fields; None for a service. `files`: the files that it wrote, by partition.
    `batch`: the batch of a stream that it holds, as its commit spells it; empty: none.
    """

    requested: str
    operation: str
    appended: frozenset[FileGroup] = frozenset()
    rewritten: frozenset[FileGroup] = frozenset()
    created: frozenset[FileGroup] = frozenset()
    replaced: frozenset[FileGroup] = frozenset()
    gaining: frozenset[str] = frozenset()
    emptied: frozenset[str] = frozenset()
    schema: str | None = None
    files: Mapping[str, tuple[WrittenFile, ...]] = field(default_factory=dict)
    batch: str = ""

    @cached_property
    def touched(self) -> frozenset[FileGroup]:
        return self.appended | self.rewritten | self.created | self.replaced

    @property
    def keeps_rows(self) -> bool:
        """Whether it only rewrote rows within their file groups, as a compaction does."""
        return self.operation in REWRITES

    @property
    def moves_rows(self) -> bool:
        """Whether it moved rows to other file groups, as a clustering does."""
        return self.operation in MOVES

    @property
    def alters_columns(self) -> bool:
        """Whether it changed the table's columns. They may have their names and types of before, and be others."""
        return self.operation == ALTERS

    @property
    def replaces_table(self) -> bool:
        return self.operation == WHOLE_TABLE


def change_of(requested: str, metadata: CommitMetadata) -> Change:
    """What a commit says that it did."""
    stats = [(path, stat) for path, of_path in metadata.partition_to_write_stats.items() for stat in of_path]
    operation = metadata.operation_type or ""
    replaced = metadata.partition_to_replace_file_ids or {}
    is_rewrite = operation in REWRITES

    def groups(kept: list[tuple[str, WriteStat]]) -> frozenset[FileGroup]:
        return frozenset((path, stat.file_id) for path, stat in kept if stat.file_id is not None)

    logs = [(path, stat) for path, stat in stats if stat.is_log]
    bases = [(path, stat) for path, stat in stats if not stat.is_log]
    new = [] if is_rewrite else [(path, stat) for path, stat in bases if stat.prev_commit in (None, NEW_FILE_GROUP)]
    gaining = {path for path, stat in stats if stat.num_inserts or stat.prev_commit in (None, NEW_FILE_GROUP)}
    created = groups(new)

    return Change(
        requested,
        operation,
        appended=groups(logs),
        rewritten=groups(bases) - created,
        created=created,
        replaced=frozenset((path, file_id) for path, file_ids in replaced.items() for file_id in file_ids),
        gaining=frozenset() if is_rewrite else frozenset(gaining),
        emptied=frozenset({*replaced, *metadata.partition_to_write_stats}) if operation in REPLACES
        else frozenset(),
        schema=_stated_schema(metadata),
        files={path: tuple(map(_written, of_path)) for path, of_path in metadata.partition_to_write_stats.items()},
        batch=batch_text(metadata.extra_metadata),
    )  # fmt: skip


def _stated_schema(metadata: CommitMetadata) -> str | None:
    """The schema from an action on. A service leaves columns as they are, and may state those of its plan's time."""
    text = metadata.extra_metadata.get(SCHEMA)
    return without_meta_fields(text) if text and metadata.operation_type not in SERVICES else None


def _written(stat: WriteStat) -> WrittenFile:
    rows = (stat.num_writes or 0) + (stat.num_deletes or 0)
    return WrittenFile(stat.path or "", stat.is_log, rows, stat.file_size_in_bytes or 0)
