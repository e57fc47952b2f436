"""The kinds of indexes, and the kind of a partition of the metadata table. A new kind is a module, and a row here."""

from collections.abc import Collection, Mapping
from typing import Final

from pyhudi.errors import Invalid, Unsupported
from pyhudi.format.metadata.index_definitions import IndexDefinition
from pyhudi.metadata.kinds.bloom_filters import BloomFiltersKind
from pyhudi.metadata.kinds.column_stats import ColumnStatsKind
from pyhudi.metadata.kinds.expression import ExpressionKind
from pyhudi.metadata.kinds.files import FilesKind
from pyhudi.metadata.kinds.partition_stats import PartitionStatsKind
from pyhudi.metadata.kinds.protocol import IndexKind, TableIndex
from pyhudi.metadata.kinds.record_index import RecordIndexKind
from pyhudi.metadata.kinds.request import IndexRequest
from pyhudi.metadata.kinds.secondary import SecondaryKind
from pyhudi.metadata.kinds.settings import IndexSettings
from pyhudi.metadata.kinds.views import IndexedTable
from pyhudi.metadata.store.indexes import MetadataIndexes
from pyhudi.table.prune.index_pruning import IndexPruner
from pyhudi.table.view.snapshot import Snapshot
from pyhudi.versions import TableVersion

KINDS: Final[tuple[IndexKind, ...]] = (
    FilesKind(),
    ColumnStatsKind(),
    PartitionStatsKind(),
    BloomFiltersKind(),
    ExpressionKind(),
    RecordIndexKind(),
    SecondaryKind(),
)
"""Order: that in which a deltacommit takes their changes."""


LISTING: Final = FilesKind.name
"""The partition that is there as long as the metadata table."""


def names() -> set[str]:
    """What each kind is called."""
    return {kind.name for kind in KINDS}


def is_listing(partition: str) -> bool:
    """Whether a partition is the list of files, without which there is no metadata table."""
    return partition == LISTING


def find_kind(partition: str) -> IndexKind | None:
    """The kind of a partition of the metadata table; None for one that this release does not know."""
    return next((kind for kind in KINDS if kind.owns(partition)), None)


def get_kind(partition: str) -> IndexKind:
    """Raises: Unsupported for a partition of a kind that this release does not know."""
    kind = find_kind(partition)
    if kind is None:
        raise Unsupported(f"index '{partition}': this release does not build indexes of this kind")
    return kind


def partitions_of_version(partitions: Collection[str], table_version: TableVersion) -> set[str]:
    """Of these partitions those that tables of a version have."""
    return {name for name in partitions if (kind := find_kind(name)) is not None and kind.is_in(table_version)}


def names_of_version(table_version: TableVersion) -> list[str]:
    """The names of the kinds that can be asked for in tables of a version."""
    return sorted(kind.name for kind in KINDS if kind.request_names and kind.is_in(table_version))


def absent_forms(partitions: Collection[str], table_version: TableVersion, *, is_partitioned: bool) -> list[str]:
    """What tables of a version lack of these indexes, by name. `is_partitioned`: the record index is by partition."""
    found: list[str] = []
    for name in sorted(partitions):
        kind = find_kind(name)
        found += [name] if kind is None else kind.absent_forms(name, table_version, is_partitioned=is_partitioned)
    return found


def made_of_keys(partitions: Collection[str]) -> list[str]:
    """Those of these indexes that are made of record keys, as files store them."""
    return [name for name in sorted(partitions) if (kind := find_kind(name)) is not None and kind.needs_stored_keys]


def telling_file_groups(partitions: Collection[str]) -> list[str]:
    """Those of these metadata partitions whose records name the file group of a key."""
    return [name for name in sorted(partitions) if (kind := find_kind(name)) is not None and kind.tells_file_groups]


def requested_kind(request: IndexRequest) -> IndexKind:
    """The kind that `build_index` is asked for. Raises: Invalid for a name that no kind has."""
    kind = next((kind for kind in KINDS if kind.claims(request)), None)
    if kind is None:
        names = ", ".join(f"'{name}'" for one in KINDS for name in one.request_names)
        raise Invalid(f"{request.what}: expected one of {names}")
    return kind


def requested_partition(request: IndexRequest) -> str:
    """The partition that `build_index` is asked for. Raises: Invalid for a kind, or an argument, that there is not."""
    return requested_kind(request).requested_partition(request)


def partition_names(name: str) -> list[str]:
    """The partitions that a name may stand for: the name itself, and the name behind each kind's prefix."""
    return [name, *(f"{prefix}{name}" for kind in reversed(KINDS) for prefix in kind.prefixes)]


def switched_off_by(settings: IndexSettings, partition: str) -> str:
    """The option because of which every write drops this index; empty for none."""
    kind = find_kind(partition)
    return kind.option(settings) if kind is not None and kind.is_asked(settings) is False else ""


def wanted_by(
    settings: IndexSettings, definitions: Mapping[str, IndexDefinition], table_version: TableVersion
) -> dict[str, str]:
    """The partitions that the options ask for -> the option that asks."""
    return {
        name: option for kind in KINDS for name, option in kind.wanted(settings, definitions, table_version).items()
    }


def telling_of_all_columns(partitions: Collection[str]) -> set[str]:
    """Of these partitions those that tell of columns by their names, whichever these are."""
    return {name for name in partitions if (kind := find_kind(name)) is not None and kind.tells_of_all_columns}


def dependents(dropped: Collection[str], present: Collection[str]) -> set[str]:
    """The indexes that cannot exist without the dropped ones."""
    return {name for name in present if (kind := find_kind(name)) is not None and kind.falls_with(dropped, present)}


def known_indexes(table: IndexedTable) -> tuple[TableIndex, ...]:
    """The indexes of a table that can be compared with its data, in the order of `KINDS`."""
    return tuple(index for kind in KINDS for index in kind.known(table))


def kept_indexes(table: IndexedTable) -> tuple[TableIndex, ...]:
    """The indexes of a table that can be kept true, in the order of `KINDS`."""
    return tuple(index for index in known_indexes(table) if index.is_kept)


def index_pruners(indexes: MetadataIndexes, snapshot: Snapshot) -> list[IndexPruner]:
    """The parts of a query's planning that ask the ready indexes, the sharp and cheap ones first.

    First come the record index and the secondary indexes. They cost as much as there are keys, and leave one file group
    a key. Then come statistics of partitions, with one look-up each; statistics of slices, with one look-up a file; and
    indexes on expressions. Bloom filters are large: they come last, for the files that are left.
    """
    ready = indexes.config.metadata_partitions
    kinds = [kind for kind in KINDS if any(kind.owns(name) for name in ready)]
    found = (kind.pruner(indexes, snapshot) for kind in sorted(kinds, key=lambda kind: kind.pruning_rank))
    return [pruner for pruner in found if pruner is not None]


def tells_of_keys(indexes: MetadataIndexes) -> bool:
    """Whether an index that is ready says of base files which record keys they may hold."""
    kinds = [kind for kind in KINDS if kind.tells_of_keys]
    return any(kind.owns(name) for kind in kinds for name in indexes.config.metadata_partitions)
