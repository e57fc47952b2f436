"""A table as one call sees it: facts, timeline and listing, read once and bound together."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from datetime import tzinfo
from functools import cached_property
from typing import TypeAlias, assert_never

import pyarrow as pa

from pyhudi.format.keys.own_generators import find_key_generator
from pyhudi.format.keys.record_keys import KeySpec
from pyhudi.format.names import BaseFileName, LogFileName, group_named
from pyhudi.format.schema.conversion import META_FIELDS, arrow_from_avro
from pyhudi.format.schema.evolution import evolve_avro
from pyhudi.format.schema.history import SchemaHistory
from pyhudi.format.timeline.instant import Instant
from pyhudi.storage.protocol import Storage
from pyhudi.table.facts.config import KeyKind, TableConfig, table_config
from pyhudi.table.facts.properties_file import read_table_properties
from pyhudi.table.read.shown_columns import ShownColumns, shown_columns
from pyhudi.table.slices.base_files.rows import AsWritten
from pyhudi.table.slices.evolved import Evolution
from pyhudi.table.view.bootstrap import BOOTSTRAP_INSTANT, BootstrapIndex
from pyhudi.table.view.commits import StatedSchema, read_commit, read_replaced, read_stated_schema
from pyhudi.table.view.file_system_view import (
    FileSlice,
    LogSlicing,
    SliceByCompletion,
    SliceByName,
    SourceFile,
    latest_slices,
)
from pyhudi.table.view.listing import FileListing, ListedFile
from pyhudi.table.view.restores import hide_undone
from pyhudi.table.view.schema_on_read import read_history, refuse_others
from pyhudi.timeline.active import Timeline, read_timeline
from pyhudi.versions import LogNaming

OpenListing: TypeAlias = Callable[[Storage, TableConfig, Timeline, tzinfo], FileListing]


@dataclass(frozen=True, slots=True)
class PlannedColumns:
    """Columns that a table is to get. `text`: as `Snapshot.schema_text`. `history`: with them as the newest."""

    text: str
    history: SchemaHistory


@dataclass(frozen=True)
class Snapshot:
    """One consistent view of a table. Immutable; files are listed when first asked for.

    `zone`: the time zone of instants. `timeline`: ends at the moment the reader looks at (`Timeline.until`).
    `source_folder`: where the files are that the table was bootstrapped from; None: where the table says. `planned`:
    columns that the table is to get, as if it had them already.
    """

    storage: Storage
    config: TableConfig
    zone: tzinfo
    timeline: Timeline
    listing: FileListing
    source_folder: str | None = None
    planned: PlannedColumns | None = None

    @property
    def schema_text(self) -> str | None:
        """The Avro schema of rows, without meta fields. None if neither a write nor the creation has stated one.

        Partition columns that files lack are texts, at the end where the stated schema lacks them. Spec:
        format/layout.md section 7.2.
        """
        return self._rows_text

    @cached_property
    def _rows_text(self) -> str | None:
        text = self._stated.text
        if text is None or not self.config.left_out:
            return text
        stated = arrow_from_avro(text)
        lacking = [name for name in self.config.left_out if name not in stated.names]
        return evolve_avro(text, pa.schema([*stated, *(pa.field(name, pa.string()) for name in lacking)]))

    @cached_property
    def _stated(self) -> StatedSchema:
        if self.planned is not None:
            return StatedSchema(self.planned.text)
        return read_stated_schema(self.storage, self.timeline, self.config.create_schema)

    @property
    def stated_numbers(self) -> str | None:
        """The newest numbered schema, as the newest write states it. None for a table whose columns have no numbers."""
        return self._stated.latest

    @cached_property
    def history(self) -> SchemaHistory | None:
        """The schemas that the table had. None for a table whose columns have no numbers.

        A list request and a get for a table of schema-on-read evolution. Raises: CorruptFile for a history, or a stated
        schema, that is none of the table's columns.
        """
        if self.planned is not None:
            return self.planned.history
        latest = self.stated_numbers
        if latest is None:
            return None
        refuse_others(latest, [name for name in self.schema_with_meta.names if name not in self.config.left_out])
        return read_history(self.storage, self.timeline, latest)

    @cached_property
    def evolution(self) -> Evolution | None:
        """How files are read whose columns had other names. None if no column ever had another name."""
        return None if self.history is None else Evolution.of(self.history, self.timeline.until)

    @property
    def as_written(self) -> AsWritten:
        """How files may differ from the columns of today. Requests: as `evolution`."""
        return self.as_written_with(self.evolution)

    def as_written_with(self, evolution: Evolution | None) -> AsWritten:
        """As `as_written`, where columns had these names. No request."""
        config = self.config
        may_lack = config.drops_partition_columns or config.bootstrap_base is not None
        paths = self.key_spec if may_lack else None
        keys = None if config.has_meta_fields else self.key_spec
        kinds = pa.schema([]) if keys is None else self.schema
        return AsWritten(evolution, paths, config.drops_partition_columns, keys, kinds)

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns of rows, without meta fields. No columns before a schema is stated."""
        return pa.schema([]) if self.schema_text is None else arrow_from_avro(self.schema_text)

    @cached_property
    def schema_with_meta(self) -> pa.Schema:
        """The columns of an answer. The meta fields come first, if the table fills them."""
        if not self.config.has_meta_fields:
            return self.schema
        return pa.schema([*(pa.field(name, pa.string()) for name in META_FIELDS), *self.schema])

    @cached_property
    def replaced(self) -> dict[str, dict[str, str]]:
        return read_replaced(self.storage, self.timeline)

    @property
    def key_spec(self) -> KeySpec:
        return key_spec(self.config)

    def shown_columns(self, query: str) -> ShownColumns:
        """Columns that a query shows in another form than the stored one.

        Queries: snapshot, read_optimized, incremental.
        """
        return shown_columns(self.config, self.key_spec, self.schema, query=query)

    def slices(
        self, partition: str, groups: Collection[str] | None = None, *, even_replaced: bool = False
    ) -> list[FileSlice]:
        """The newest visible slice of each file group of a partition, sorted by file id.

        `groups`: only these groups. `even_replaced`: groups that a write has replaced, too. Then no
        replacecommit is read.
        """
        files = self.listing.files(partition)
        if groups is not None:
            files = [file for file in files if group_named(file.name) in groups]
        lost = self._lost_logs(partition, files)
        slices = latest_slices(
            partition,
            [file for file in files if file.name not in lost],
            self.timeline,
            slicing=log_slicing(self.config),
            replaced=None if even_replaced else self.replaced.get(partition),
            valid_tokens=self._valid_tokens(partition, files),
        )
        return [self._with_source(one) for one in slices] if self.config.bootstrap_base is not None else slices

    def _with_source(self, file_slice: FileSlice) -> FileSlice:
        base = file_slice.base_file
        source = None if base is None else self.source_of(file_slice.partition, base.name)
        return file_slice if source is None else replace(file_slice, source=source)

    def source_of(self, partition: str, base: BaseFileName) -> SourceFile | None:
        """The file that holds the columns of a base file which a bootstrap wrote; None for any other base file.

        Requests: for the first such file of a partition, a look-up in the bootstrap index.
        Raises: CorruptFile for a file that the index does not know.
        """
        if base.requested != BOOTSTRAP_INSTANT or self._bootstrap is None:
            return None
        return self._bootstrap.get(partition, base)

    def source_of_file(self, partition: str, name: str) -> SourceFile | None:
        """As `source_of`, for a data file of this name; None for a log."""
        base = BaseFileName.parse(name)
        return None if base is None else self.source_of(partition, base)

    @cached_property
    def _bootstrap(self) -> BootstrapIndex | None:
        folder = self.config.bootstrap_base
        return None if folder is None else BootstrapIndex(self.storage, folder, self.source_folder)

    def _valid_tokens(self, partition: str, files: list[ListedFile]) -> dict[tuple[str, str], str]:
        """The write tokens that commits name, where a file group has several files of one instant.

        (File id, requested time) -> write token. Files with other tokens were left by lost task attempts.
        """
        seen: dict[tuple[str, str], set[str]] = {}
        for file in files:
            if name := BaseFileName.parse(file.name):
                seen.setdefault((name.file_id, name.requested), set()).add(name.write_token)

        doubtful = {requested for (_, requested), tokens in seen.items() if len(tokens) > 1}
        valid: dict[tuple[str, str], str] = {}
        for instant in self._writes_at(doubtful):
            stats = read_commit(self.storage, self.timeline, instant).partition_to_write_stats
            for stat in stats.get(partition, ()):
                name = BaseFileName.parse((stat.path or "").rpartition("/")[2])
                if name is not None:
                    valid[name.file_id, name.requested] = name.write_token
        return valid

    def _lost_logs(self, partition: str, files: list[ListedFile]) -> set[str]:
        """Logs that lost task attempts left: the same group, instant and version as another log, but not in the commit.

        Before version 8 a log's name tells its slice, not its write, so that no commit of that instant names such logs.
        An upgraded table has them. They are lost only if the commit names a log beside them.
        """
        if self.config.version.log_naming is LogNaming.AFTER_SLICE:
            return set()

        alike: dict[tuple[str, str, int, str], list[str]] = {}
        for file in files:
            if name := LogFileName.parse(file.name):
                alike.setdefault((name.instant, name.file_id, name.version, name.suffix), []).append(file.name)

        doubtful: dict[str, list[set[str]]] = {}
        for (instant, *_), names in alike.items():
            if len(names) > 1:
                doubtful.setdefault(instant, []).append(set(names))

        lost: set[str] = set()
        for write in self._writes_at(set(doubtful)):
            stats = read_commit(self.storage, self.timeline, write).partition_to_write_stats.get(partition, ())
            named = {path.rpartition("/")[2] for stat in stats for path in (stat.path or "", *(stat.log_files or ()))}
            lost.update(*(names - named for names in doubtful[write.requested] if names & named))
        return lost

    def _writes_at(self, requested_times: set[str]) -> list[Instant]:
        """The completed writes with these requested times. Times that are not active are looked up in the history."""
        found = [i for i in self.timeline.completed_writes if i.requested in requested_times]
        for requested in sorted(requested_times - {i.requested for i in found}):
            found += self.timeline.archived_writes(requested_from=requested, requested_until=requested)
        return found

    def at(self, requested: str) -> "Snapshot":
        """The table as it was at this requested time. The listing is shared.

        Before the first write it has no rows; its columns are then those of now, unless its creation has stated some.
        """
        timeline, config = self.timeline.up_to(requested), self.config
        if config.create_schema is None and not timeline.completed_writes:
            config = replace(config, create_schema=self.schema_text)
        return replace(self, timeline=timeline, config=config)

    def completed_by(self, completed: str) -> "Snapshot":
        """The table as it was when this completion time had passed. The listing is shared."""
        return replace(self, timeline=self.timeline.completed_by(completed))


def read_config(storage: Storage) -> TableConfig:
    """The facts of the table as it is now. One get.

    Raises: NotFound, CorruptFile, Unsupported as `read_table_properties` and `table_config` do.
    """
    return table_config(read_table_properties(storage), path=f"{storage.location.uri}/.hoodie/hoodie.properties")


def read_snapshot(
    storage: Storage, process_zone: tzinfo, open_listing: OpenListing, source_folder: str | None = None
) -> Snapshot:
    """The table as it is now. About two gets and one list request; partitions are listed when they are asked for.

    While a restore is pending, the table is shown as the restore will leave it. That costs one more get.

    Raises: NotFound, CorruptFile, Unsupported as `read_table_properties` and `table_config` do.
    """
    config = read_config(storage)
    zone = config.zone(process_zone)
    timeline = hide_undone(storage, read_timeline(storage, config.layout, zone))
    return Snapshot(storage, config, zone, timeline, open_listing(storage, config, timeline, zone), source_folder)


def log_slicing(config: TableConfig) -> LogSlicing:
    """How log files find their slice. It depends on whether the table names logs after their write or their slice."""
    match config.version.log_naming:
        case LogNaming.AFTER_WRITE:
            return SliceByCompletion()
        case LogNaming.AFTER_SLICE:
            return SliceByName()
    assert_never(config.version.log_naming)


def key_spec(config: TableConfig) -> KeySpec:
    """How the table forms record keys and partition paths.

    Seen: a complex key generator with one field spells its key `field:value` on version 9, bare with 1.0.2 on
    version 8. Spec: format/layout.md section 5.1.
    """
    own = config.key_generator_class if config.key_kind is KeyKind.OTHER else ""
    names_one_field = config.key_kind is KeyKind.COMPLEX and config.version.names_only_key_field
    return KeySpec(
        record_key=config.record_key,
        partition_by=config.partition_by if config.key_kind is not KeyKind.NON_PARTITION else (),
        is_composite=len(config.record_key) > 1 or names_one_field,
        is_hive_style=config.is_hive_style,
        is_url_encoded=config.is_url_encoded,
        has_slashed_dates=config.has_slashed_dates and len(config.partition_by) == 1 and not (config.time_based or own),
        time_based=config.time_based,
        has_logical_timestamps=config.has_logical_timestamps,
        own_generator=own,
        generator=find_key_generator(own) if own else None,
        paths_tell_values=config.version.paths_tell_values,
    )
